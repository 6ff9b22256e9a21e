// Writes a small export like Nsight Systems' as a seed (the real ones are longer than what is mutated), and a gzip file:
// write_profile_seeds FOLDER
#include <zlib.h>

#include <cstdio>
#include <string>

#include "sim/sqlite/sqlite.h"

int main(int argc, char** argv) {
  using heddle::sqlite::Database;
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  std::remove((folder + "/nsys.sqlite").c_str());
  heddle::Result<Database> database = Database::Open(folder + "/nsys.sqlite", Database::Mode::kCreate);
  if (!database.ok()) return 1;
  const heddle::Status status = database->Execute(
      "PRAGMA page_size = 512;"
      "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
      "INSERT INTO StringIds VALUES (1, '_ZN2at1fILi3EEEvi'), (2, 'void at::f<(int)3>(int)'), (3, "
      "'cudaLaunchKernel_v7000');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, correlationId "
      "INTEGER, globalPid "
      "INTEGER, demangledName INTEGER, mangledName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 7, 16777216, 2, 1, 4, 2, 1), (30, 35, 0, 8, "
      "16777216, 2, 1, 1, 1, 1);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, "
      "correlationId INTEGER, nameId INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, 16777219, 7, 3);"
      "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, cuDevice INTEGER);"
      "INSERT INTO TARGET_INFO_GPU VALUES (0, 'GPU', 0);");
  if (!status.ok()) return 1;
  gzFile packed = gzopen((folder + "/kineto.json.gz").c_str(), "wb");
  const std::string json = R"({"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"ts":1,"dur":2}]})";
  gzwrite(packed, json.data(), static_cast<unsigned>(json.size()));
  return gzclose(packed) == Z_OK ? 0 : 1;
}

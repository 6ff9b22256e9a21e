// The container: what is written is read, and whatever else is in the file is an error.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "frontend/trace/blob.h"
#include "frontend/trace/htrace.h"
#include "frontend/trace/sass_codec.h"
#include "frontend/trace/schema.h"
#include "sim/base/digest.h"
#include "tests/unit/sample_trace.h"

namespace heddle::trace {
namespace {

namespace fs = std::filesystem;

class Htrace : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("heddle_htrace_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    path_ = (folder_ / "t.htrace").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Write(const Trace& trace) {
    const Status status = WriteTrace(trace, path_);
    ASSERT_TRUE(status.ok()) << status.error().ToString();
  }
  static std::string Contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void Replace(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  // The error of reading, which must be of the right kind.
  Error ReadError() const {
    const Result<Trace> trace = ReadTrace(path_);
    if (trace.ok()) return Error{ExitCode::kOk, "", "was read", ""};
    EXPECT_EQ(trace.error().code, ExitCode::kTrace);
    EXPECT_FALSE(trace.error().message.empty());
    EXPECT_FALSE(trace.error().next_step.empty()) << trace.error().message;
    return trace.error();
  }
  void Sql(const std::string& statements) const {
    auto database = sqlite::Database::Open(path_, sqlite::Database::Mode::kReadWrite);
    ASSERT_TRUE(database.ok());
    const Status status = database->Execute(statements);
    ASSERT_TRUE(status.ok()) << status.error().ToString();
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(Htrace, RoundTripsEveryField) {
  const Trace trace = SampleTrace();
  Write(trace);
  const Result<Trace> read = ReadTrace(path_);
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(read->name, trace.name);
  EXPECT_EQ(read->doc, trace.doc);
  EXPECT_EQ(read->defines, trace.defines);
  EXPECT_EQ(read->device, trace.device);
  EXPECT_EQ(read->modules, trace.modules);
  EXPECT_EQ(read->functions, trace.functions);
  EXPECT_EQ(read->launches, trace.launches);
  EXPECT_EQ(read->edges, trace.edges);
  EXPECT_EQ(read->buffers, trace.buffers);
  EXPECT_EQ(read->contents, trace.contents);
  EXPECT_EQ(read->tensor_maps, trace.tensor_maps);
  EXPECT_EQ(read->counters, trace.counters);
  EXPECT_EQ(read->collectives, trace.collectives);
  EXPECT_EQ(read->warp_streams, trace.warp_streams);
  EXPECT_EQ(read->check, trace.check);
  ASSERT_EQ(read->sass.size(), trace.sass.size());
  EXPECT_EQ(read->sass[0].function, trace.sass[0].function);
  EXPECT_EQ(read->sass[0].decoder_version, trace.sass[0].decoder_version);
  EXPECT_EQ(EncodeSass(read->sass[0].code), EncodeSass(trace.sass[0].code));
  EXPECT_EQ(DumpText(*read), DumpText(trace));
}

TEST_F(Htrace, SassRoundTripsEveryField) {
  const isa::KernelCode code = SampleTrace().sass[0].code;
  const auto read = DecodeSass(EncodeSass(code), "p");
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(read->name, code.name);
  EXPECT_EQ(read->sm_version, code.sm_version);
  ASSERT_EQ(read->instructions.size(), code.instructions.size());
  for (size_t i = 0; i < code.instructions.size(); ++i) {
    const isa::Instruction& a = code.instructions[i];
    const isa::Instruction& b = read->instructions[i];
    EXPECT_EQ(a.pc, b.pc);
    EXPECT_EQ(a.op, b.op);
    EXPECT_EQ(a.guard, b.guard);
    EXPECT_EQ(a.guard_negated, b.guard_negated);
    EXPECT_EQ(a.guard_uniform, b.guard_uniform);
    EXPECT_EQ(a.control, b.control);
    EXPECT_EQ(a.modifier_count, b.modifier_count);
    EXPECT_EQ(a.modifiers, b.modifiers);
    EXPECT_EQ(a.operand_count, b.operand_count);
    EXPECT_EQ(a.operands, b.operands);
    EXPECT_EQ(a.encoding, b.encoding);
  }
}

TEST_F(Htrace, EqualTracesGiveEqualBytes) {
  Write(SampleTrace());
  const std::string first = Contents(path_);
  Write(SampleTrace());
  EXPECT_EQ(Contents(path_), first);
  const Result<Trace> read = ReadTrace(path_);
  ASSERT_TRUE(read.ok());
  Write(*read);
  EXPECT_EQ(Contents(path_), first);
}

TEST_F(Htrace, StoresNothingOfTheMachineThatWroteIt) {
  setenv("HEDDLE_SECRET", "correct-horse-battery", 1);
  Write(SampleTrace());
  const std::string bytes = Contents(path_);
  EXPECT_EQ(bytes.find("correct-horse-battery"), std::string::npos);
  EXPECT_EQ(bytes.find(folder_.string()), std::string::npos);
}

// Whichever field changes, the digest changes.
TEST_F(Htrace, DigestSeesEveryTable) {
  std::set<std::string> digests{Digest(SampleTrace())};
  const auto with = [&](auto change) {
    Trace trace = SampleTrace();
    change(&trace);
    EXPECT_TRUE(digests.insert(Digest(trace)).second);
  };
  with([](Trace* t) { t->name += "x"; });
  with([](Trace* t) { t->doc += "x"; });
  with([](Trace* t) { t->defines[0].second = 2; });
  with([](Trace* t) { t->device.attributes["l2"] = 1; });
  with([](Trace* t) { t->modules[0].sha256[0] = 'f'; });
  with([](Trace* t) { t->functions[0].registers++; });
  with([](Trace* t) { t->launches[0].grid[1] = 9; });
  with([](Trace* t) { t->launches[0].parameters[3] = std::byte{9}; });
  with([](Trace* t) { t->launches[0].patches[0].offset = 4; });
  with([](Trace* t) { t->edges.clear(); });
  with([](Trace* t) { t->buffers[0].type = DType::kF16; });
  with([](Trace* t) { t->contents[0].rule.seed++; });
  with([](Trace* t) { t->contents[1].rule.bytes[0] = std::byte{9}; });
  with([](Trace* t) { t->tensor_maps[0].box[1] = Expr{4}; });
  with([](Trace* t) { t->counters[0].value = 2; });
  with([](Trace* t) { t->collectives[0].ranks = 3; });
  with([](Trace* t) { t->warp_streams[0].bytes[0] = std::byte{9}; });
  with([](Trace* t) { t->check += "x"; });
}

TEST_F(Htrace, LeavesNothingBehindAndTheTargetUntouchedWhenItCannotWrite) {
  Write(SampleTrace());
  const std::string before = Contents(path_);
  Trace bad = SampleTrace();
  bad.launches[0].function = 77;
  EXPECT_FALSE(WriteTrace(bad, path_).ok());
  EXPECT_EQ(Contents(path_), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
  const Status status = WriteTrace(SampleTrace(), (folder_ / "no" / "such" / "folder.htrace").string());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ExitCode::kTrace);
  // A folder stands where the file should go: the rename fails, the temporary goes.
  fs::create_directories(folder_ / "taken" / "inner");
  EXPECT_FALSE(WriteTrace(SampleTrace(), (folder_ / "taken").string()).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
}

TEST_F(Htrace, RefusesOtherFiles) {
  EXPECT_EQ(ReadError().message, "there is no such file");
  Replace("");
  EXPECT_EQ(ReadError().message, "is not a heddle trace");
  Replace(std::string(5000, 'x'));
  EXPECT_EQ(ReadError().message, "is not a heddle trace");
  fs::remove(path_);
  {
    auto database = sqlite::Database::Open(path_, sqlite::Database::Mode::kCreate);
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE(database->Execute("CREATE TABLE t(a)").ok());
  }
  EXPECT_EQ(ReadError().message, "is not a heddle trace");
  fs::remove(path_);
  fs::create_directory(path_);
  EXPECT_EQ(ReadError().message, "is not a file");
}

TEST_F(Htrace, RefusesNewerVersionsAndForeignSchemas) {
  Write(SampleTrace());
  Sql("PRAGMA user_version=99");
  EXPECT_EQ(ReadError().message, "has version 99 of the format, this heddle reads up to 1");
  Write(SampleTrace());
  Sql("PRAGMA user_version=0");
  EXPECT_EQ(ReadError().message, "states the impossible version 0");
  Write(SampleTrace());
  Sql("CREATE VIEW w AS SELECT 1");
  EXPECT_NE(ReadError().message.find("view 'w'"), std::string::npos);
  Write(SampleTrace());
  Sql("DROP TABLE warp_stream");
  EXPECT_NE(ReadError().message.find("'warp_stream' is missing"), std::string::npos);
  Write(SampleTrace());
  Sql("DROP TABLE counter; CREATE VIEW counter AS SELECT 0 AS id, 0 AS launch, 'x' AS name, 1.0 AS value, "
      "'u' AS unit");
  EXPECT_NE(ReadError().message.find("'counter' is not as"), std::string::npos);
}

TEST_F(Htrace, RefusesContradictions) {
  const auto expect = [&](const std::string& sql, const std::string& message) {
    Write(SampleTrace());
    Sql("PRAGMA foreign_keys=OFF; " + sql);
    EXPECT_NE(ReadError().message.find(message), std::string::npos) << sql << ": " << ReadError().message;
  };
  expect("UPDATE launch SET function = 5", "names a function that is not there");
  expect("UPDATE launch SET function = -1", "table launch: row 0 cannot be");
  expect("UPDATE launch SET stream = 99999999999", "table launch: row 0 cannot be");
  expect("UPDATE launch SET payload = x'ffff'", "table launch: row 0 cannot be");
  expect("UPDATE launch SET payload = x''", "table launch: row 0 cannot be");
  expect("UPDATE launch SET name = 'other'", "do not match their digest");
  expect("UPDATE edge SET source = target", "edge 0 does not point forwards");
  expect("INSERT INTO warp_stream SELECT 1, 0, cta, warp, blob FROM warp_stream",
         "warp_stream 1 is not in the order of the launches");
  expect("UPDATE content SET rule = 99", "table content: row 0 cannot be");
  expect("UPDATE content SET blob = NULL WHERE rule = 8", "table content: row 1 cannot be");
  expect("UPDATE blob SET sha256 = 'x'", "does not match its hash");
  expect("UPDATE blob SET size_bytes = 3", "is longer than the stated 3 bytes");
  expect("UPDATE blob SET size_bytes = -1", "negative size");
  expect("UPDATE blob SET size_bytes = 1000000000000", "larger than is ever written");
  expect("UPDATE blob SET zstd = substr(zstd, 1, length(zstd) - 5)", "ends too early");
  expect("UPDATE blob SET zstd = CAST(zstd || x'00' AS BLOB)", "bytes follow");
  expect("UPDATE blob SET zstd = x'0102030405060708'", "cannot be read");
  expect("DELETE FROM blob", "blob 0 is missing");
  expect("UPDATE buffer SET id = 7 WHERE id = 0", "row 0 is missing");
  expect("DELETE FROM meta", "do not match their digest");
}

TEST_F(Htrace, NamesUnknownInstructions) {
  isa::KernelCode code = SampleTrace().sass[0].code;
  std::string bytes = EncodeSass(code);
  const size_t at = bytes.find("IADD3");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 5, "QADD9");
  const auto read = DecodeSass(bytes, "p");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message, "unknown mnemonic 'QADD9'");
}

TEST_F(Htrace, MigratesOlderVersionsOneStepAfterTheOther) {
  {
    auto database = sqlite::Database::Open(path_, sqlite::Database::Mode::kCreate);
    ASSERT_TRUE(database->Execute("CREATE TABLE t(a INTEGER); INSERT INTO t VALUES(1)").ok());
  }
  const std::string before = Contents(path_);
  constexpr std::string_view kSteps[] = {"ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 5",
                                         "UPDATE t SET b = b + a"};
  auto file = sqlite::Database::Open(path_, sqlite::Database::Mode::kImmutable);
  auto migrated = Migrate(std::move(*file), 1, kSteps);
  ASSERT_TRUE(migrated.ok()) << migrated.error().ToString();
  EXPECT_EQ(*migrated->QueryInteger("SELECT b FROM t"), 6);
  EXPECT_EQ(Contents(path_), before);
  auto again = sqlite::Database::Open(path_, sqlite::Database::Mode::kImmutable);
  EXPECT_FALSE(Migrate(std::move(*again), 4, kSteps).ok());
}

TEST(Blob, CompressionRoundTripsAndShaIsSha) {
  std::vector<std::byte> bytes(100000, std::byte{7});
  const auto packed = Compress(bytes);
  EXPECT_LT(packed.size(), 100u);
  EXPECT_EQ(*Decompress(packed, bytes.size(), "p"), bytes);
  EXPECT_EQ(*Decompress(Compress({}), 0, "p"), std::vector<std::byte>{});
  EXPECT_FALSE(Decompress(packed, bytes.size() - 1, "p").ok());
  EXPECT_FALSE(Decompress(packed, bytes.size() + 1, "p").ok());
  // FIPS 180-2, appendix B.1.
  EXPECT_EQ(Sha256Hex(std::as_bytes(std::span("abc", 3))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace heddle::trace

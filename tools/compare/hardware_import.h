// Measurements of real GPUs into a results database: what profilers export (frontend/profile), traces that know when their
// launches ran, and databases of tools/measure-gpu.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/results/results.h"

namespace heddle::compare {

struct ImportOptions {
  std::string gpu;  // of sources that do not say which; may be empty
  results::RunManifest manifest;
};

struct ImportedFile {
  std::string path;
  std::string producer;
  size_t launches = 0;
  size_t kernels = 0;    // names
  size_t with_call = 0;  // launches whose call was found
  double total_ps = 0;   // of the launches that have a time
  uint32_t time_resolution_ns = 1;
  std::map<std::string, uint64_t> notes;
};

// All files are read before anything is written; the first that cannot be read is the error, and the database stays as it
// was. A file that was imported before (by its contents) is replaced, not added.
Result<std::vector<ImportedFile>> ImportHardware(const std::vector<std::string>& files,
                                                 const std::string& database, const ImportOptions& options);

}  // namespace heddle::compare

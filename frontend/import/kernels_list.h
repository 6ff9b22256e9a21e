// `kernelslist.g`: what a traced process did, in order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/import/faults.h"
#include "frontend/import/line_reader.h"
#include "sim/base/result.h"

namespace heddle::importer {

struct Copy {  // MemcpyHtoD
  uint64_t address = 0;
  uint64_t size_bytes = 0;
};

struct KernelsList {
  std::vector<Copy> copies;
  std::vector<std::string> kernels;  // names in the list's folder
};

// Lines of neither kind are left alone, as Accel-Sim does. A name that leaves the folder, or is neither `.traceg`,
// `.traceg.xz` nor `.tracez`, is a fault.
Result<KernelsList> ReadKernelsList(LineReader* lines, std::string_view file, FaultLog* faults);

}  // namespace heddle::importer

// From a launch description (launch.proto) to a Trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "frontend/trace/trace.h"
#include "sim/base/result.h"

namespace heddle::trace {

struct ModuleFunction {
  Function function;  // `module` is not set
  std::optional<Dim3> required_block;
  std::optional<Dim3> cluster;
};
struct ModuleContents {
  uint32_t sm_version = 0;
  std::vector<ModuleFunction> functions;
};
struct CudaCompilation {
  std::string file;
  std::vector<std::string> flags;
  std::string target;  // "sm_80"
};

// What building needs of other parts of heddle.
struct Toolchain {
  std::function<Result<ModuleContents>(std::span<const std::byte> cubin, const std::string& place)>
      read_module;
  // The decoded SASS of the named functions, in their order.
  std::function<Result<std::vector<isa::KernelCode>>(
      std::span<const std::byte> cubin, const std::vector<std::string>& functions, const std::string& place)>
      decode;
  uint32_t decoder_version = 0;
  std::function<Result<std::vector<std::byte>>(const CudaCompilation& compilation, const std::string& place)>
      compile_cuda;
};

struct BuildOptions {
  std::string target;  // replaces the description's; "": as described
  std::vector<std::pair<std::string, std::string>>
      defines;  // replace expressions of the description's `define`
};

// Errors state file:line:column. The result has passed Validate, and Resolve for a typical machine.
Result<Trace> BuildTrace(const std::string& path, const BuildOptions& options, const Toolchain& toolchain);
// As above; `path` names the text in errors and is where relative paths start.
Result<Trace> BuildTraceFromText(const std::string& text, const std::string& path,
                                 const BuildOptions& options, const Toolchain& toolchain);

// The names of device properties that expressions may use, with the values of an A100 (SXM4, 80 GB): what a
// description is tried with when it is built.
const Symbols& TypicalDevice();

}  // namespace heddle::trace

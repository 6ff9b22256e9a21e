// The modules of a launch description: cubins from files, from nvcc or from Triton. Private to
// frontend/trace.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/trace/build.h"
#include "frontend/trace/launch.pb.h"
#include "frontend/trace/text_format.h"

namespace heddle::trace {

// What Triton's metadata say of the one kernel of a module.
struct TritonLaunch {
  std::string kernel;
  uint32_t threads = 0;
  uint32_t shared_bytes = 0;
  Dim3 cluster;
};

struct LoadedModule {
  Module module;
  ModuleContents contents;
  std::optional<TritonLaunch> triton;
};

Result<std::vector<std::byte>> ReadFile(const std::string& path, const std::string& place);

// The path that a description gives: {target} replaced, relative to the description's folder.
std::string ResolvePath(const std::string& path, const std::string& description, const std::string& target);

Result<LoadedModule> LoadModule(const pb::Module& module, const Locator& at, const std::string& target,
                                const Toolchain& toolchain);

}  // namespace heddle::trace

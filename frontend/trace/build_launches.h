// The launches of a launch description. Private to frontend/trace.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontend/trace/build_contents.h"
#include "frontend/trace/build_modules.h"

namespace heddle::trace {

// Appends launches, their functions (each once) and edges to the trace. modules[i] belongs to
// trace->modules[i].
class LaunchBuilder {
 public:
  LaunchBuilder(const std::vector<LoadedModule>& modules, const Scope& scope, Trace* trace)
      : modules_(modules), scope_(scope), trace_(trace) {}
  Status Add(const pb::Launch& launch, const Locator& at);

 private:
  struct Choice {
    uint32_t module = 0;
    const ModuleFunction* function = nullptr;
  };
  Result<uint32_t> ChooseModule(const pb::Launch& launch, const Locator& at) const;
  Result<Choice> ChooseFunction(const pb::Launch& launch, const Locator& at) const;
  uint32_t FunctionIndex(const Choice& choice);
  Status SetExtents(const pb::Launch& launch, const Locator& at, const Choice& choice, Launch* out) const;
  Status SetParameters(const pb::Launch& launch, const Locator& at, const Choice& choice, Launch* out);
  Result<uint32_t> FindLaunch(const std::string& label, const std::string& place) const;
  Status CopyParameters(const pb::Launch& launch, const Locator& at, const Choice& choice, Launch* out);
  Status SetValue(const pb::Parameter& parameter, const Locator& at, uint32_t offset, uint32_t size_bytes,
                  Launch* out);
  Status SetStruct(const pb::Parameter& parameter, const Locator& at, uint32_t offset, uint32_t size_bytes,
                   Launch* out);
  Status SetTensorMap(const pb::TensorMap& map, const Locator& at, uint32_t offset, uint32_t size_bytes);
  // The shape and the strides that Triton's kernels take behind a map; `ordinal` is that of the map.
  Status SetTritonDescriptor(const pb::TensorMap& map, const Locator& at, uint32_t ordinal,
                             const Function& function, std::vector<bool>* given, Launch* out);
  Result<uint32_t> FindBuffer(const std::string& name, const std::string& place) const;

  const std::vector<LoadedModule>& modules_;
  const Scope& scope_;
  Trace* trace_;
  std::map<std::string, uint32_t> labels_;
  std::vector<TensorMap> maps_;  // of the launch that is being added
};

}  // namespace heddle::trace

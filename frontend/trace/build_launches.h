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
  Status SetParameters(const pb::Launch& launch, const Locator& at, const Choice& choice, Launch* out) const;
  Status SetValue(const pb::Parameter& parameter, const Locator& at, uint32_t offset, uint32_t size_bytes,
                  Launch* out) const;
  Status SetStruct(const pb::Parameter& parameter, const Locator& at, uint32_t offset, uint32_t size_bytes,
                   Launch* out) const;

  const std::vector<LoadedModule>& modules_;
  const Scope& scope_;
  Trace* trace_;
  std::map<std::string, uint32_t> labels_;
};

}  // namespace heddle::trace

#include "frontend/trace/build.h"

#include <fmt/format.h>

#include <filesystem>

#include "frontend/trace/build_check.h"
#include "frontend/trace/build_contents.h"
#include "frontend/trace/build_launches.h"
#include "frontend/trace/build_modules.h"
#include "frontend/trace/htrace.h"
#include "frontend/trace/launch.pb.h"
#include "frontend/trace/text_format.h"
#include "sim/base/suggest.h"

namespace heddle::trace {
namespace {

constexpr uintmax_t kMaxDescriptionBytes = 16 << 20;

Error Bad(std::string place, std::string message, std::string next_step) {
  return Error{ExitCode::kTrace, std::move(place), std::move(message), std::move(next_step)};
}

class Builder {
 public:
  Builder(const std::string& path, const BuildOptions& options, const Toolchain& toolchain)
      : path_(path), options_(options), toolchain_(toolchain) {}

  Result<Trace> Run(const std::string& text) {
    Locator::Tree tree;
    HEDDLE_RETURN_IF_ERROR(ParseText(text, path_, &description_, &tree));
    const Locator at(path_, &tree, description_);
    target_ = options_.target.empty() ? description_.target() : options_.target;
    trace_.name = description_.name().empty() ? DefaultName() : description_.name();
    trace_.doc = description_.doc();
    for (const auto& [name, value] : TypicalDevice()) scope_.symbols[name] = value;
    HEDDLE_RETURN_IF_ERROR(AddDefines(at));
    for (int i = 0; i < description_.buffer_size(); ++i)
      HEDDLE_RETURN_IF_ERROR(AddBuffer(description_.buffer(i), at.Sub("buffer", i, description_.buffer(i)),
                                       target_, &scope_, &trace_));
    HEDDLE_RETURN_IF_ERROR(AddModules(at));
    HEDDLE_RETURN_IF_ERROR(AddLaunches(at));
    if (!description_.has_check())
      return Bad(path_, "the description states no check",
                 "add `check { op { ... } compare { ... } }`, or `check { none: \"why\" }`");
    HEDDLE_ASSIGN_OR_RETURN(const ResolvedTrace resolved, Resolve(trace_, TypicalDevice()));
    HEDDLE_ASSIGN_OR_RETURN(
        trace_.check,
        MakeCheck(description_.check(), at.Sub("check", 0, description_.check()), target_, trace_, resolved));
    HEDDLE_RETURN_IF_ERROR(AddSass());
    HEDDLE_RETURN_IF_ERROR(Validate(trace_, path_));
    return std::move(trace_);
  }

 private:
  std::string DefaultName() const {
    std::string name = std::filesystem::path(path_).filename().string();
    for (const std::string_view suffix : {".textproto", ".launch"})
      if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
    return name;
  }

  Status AddDefines(const Locator& at) {
    std::vector<std::string> known;
    for (int i = 0; i < description_.define_size(); ++i) {
      const std::string& text = description_.define(i);
      const std::string place = at.Place("define", i);
      const size_t equals = text.find('=');
      std::string name = text.substr(0, equals);
      while (!name.empty() && name.back() == ' ') name.pop_back();
      if (equals == std::string::npos || NamesIn(name) != std::set<std::string>{name})
        return Bad(place, fmt::format("\"{}\" is no definition", text), "write \"name = expression\"");
      if (TypicalDevice().contains(name))
        return Bad(place, fmt::format("'{}' is a property of the device", name), "choose another name");
      std::string value = text.substr(equals + 1);
      std::string value_place = place;
      for (const auto& [overridden, replacement] : options_.defines) {
        if (overridden != name) continue;
        value = replacement;
        value_place = "--define " + name;
      }
      HEDDLE_ASSIGN_OR_RETURN(Expr expr, MakeExpr(value, scope_, value_place));
      HEDDLE_ASSIGN_OR_RETURN(const int64_t number, EvaluateInteger(value, scope_, value_place));
      if (scope_.symbols.contains(name))
        return Bad(place, fmt::format("'{}' is defined twice", name), "remove one");
      scope_.symbols[name] = number;
      known.push_back(name);
      trace_.defines.emplace_back(name, std::move(expr));
    }
    for (const auto& [name, value] : options_.defines) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const std::string near = Suggest(name, known);
      return Error{ExitCode::kUsage, "--define " + name, "the description defines no such name",
                   near.empty() ? fmt::format("it defines: {}", fmt::join(known, ", "))
                                : fmt::format("did you mean '{}'?", near)};
    }
    return Ok();
  }

  Status AddModules(const Locator& at) {
    if (description_.module_size() == 0)
      return Bad(path_, "the description has no module", "add `module { cubin: \"kernel.cubin\" }`");
    for (int i = 0; i < description_.module_size(); ++i) {
      HEDDLE_ASSIGN_OR_RETURN(LoadedModule loaded,
                              LoadModule(description_.module(i), at.Sub("module", i, description_.module(i)),
                                         target_, toolchain_));
      trace_.modules.push_back(loaded.module);
      modules_.push_back(std::move(loaded));
    }
    return Ok();
  }

  Status AddLaunches(const Locator& at) {
    if (description_.launch_size() == 0)
      return Bad(path_, "the description has no launch", "add `launch { kernel: \"...\" grid: [\"1\"] }`");
    LaunchBuilder builder(modules_, scope_, &trace_);
    for (int i = 0; i < description_.launch_size(); ++i)
      HEDDLE_RETURN_IF_ERROR(
          builder.Add(description_.launch(i), at.Sub("launch", i, description_.launch(i))));
    return Ok();
  }

  // Every launched function is decoded, module by module, so that the disassembler runs once for each.
  Status AddSass() {
    for (uint32_t m = 0; m < trace_.modules.size(); ++m) {
      std::vector<uint32_t> indices;
      std::vector<std::string> names;
      for (uint32_t f = 0; f < trace_.functions.size(); ++f) {
        if (trace_.functions[f].module != m) continue;
        indices.push_back(f);
        names.push_back(trace_.functions[f].name);
      }
      if (names.empty()) continue;
      HEDDLE_ASSIGN_OR_RETURN(std::vector<isa::KernelCode> code,
                              toolchain_.decode(trace_.modules[m].cubin, names, path_));
      for (size_t i = 0; i < indices.size(); ++i)
        trace_.sass.push_back({indices[i], toolchain_.decoder_version, std::move(code[i])});
    }
    return Ok();
  }

  const std::string& path_;
  const BuildOptions& options_;
  const Toolchain& toolchain_;
  pb::LaunchDescription description_;
  std::string target_;
  Scope scope_;
  std::vector<LoadedModule> modules_;
  Trace trace_;
};

}  // namespace

const Symbols& TypicalDevice() {
  static const Symbols device = {
      {"sm_count", 108},
      {"l2_bytes", 40 << 20},
      {"memory_bytes", int64_t{80} << 30},
      {"shared_bytes_per_sm", 164 << 10},
      {"shared_bytes_per_cta", 163 << 10},
      {"registers_per_sm", 65536},
      {"warps_per_sm", 64},
      {"ctas_per_sm", 32},
  };
  return device;
}

Result<Trace> BuildTraceFromText(const std::string& text, const std::string& path,
                                 const BuildOptions& options, const Toolchain& toolchain) {
  return Builder(path, options, toolchain).Run(text);
}

Result<Trace> BuildTrace(const std::string& path, const BuildOptions& options, const Toolchain& toolchain) {
  std::error_code ec;
  if (std::filesystem::file_size(path, ec) > kMaxDescriptionBytes && !ec)
    return Bad(path, "is larger than 16 MiB, hence no launch description", "check the path");
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadFile(path, path));
  return BuildTraceFromText({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path, options,
                            toolchain);
}

}  // namespace heddle::trace

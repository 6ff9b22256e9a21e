// `heddle arch list|show|check|diff|params`: the machine descriptions.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/config/describe.h"
#include "sim/config/load.h"
#include "tools/heddle/commands.h"

namespace heddle::tools {
namespace {

using Json = nlohmann::ordered_json;
using Strings = std::vector<std::string>;

void AddSet(po::options_description* options) {
  options->add_options()("set", po::value<Strings>()->composing()->value_name("PATH=VALUE"),
                         "change one value: l2.size_bytes=100Mi (may be repeated)");
}

void AddJson(po::options_description* options) {
  options->add_options()("json", po::bool_switch(), "print one JSON document");
}

Strings Overrides(const po::variables_map& values) {
  return values.count("set") == 0 ? Strings{} : values["set"].as<Strings>();
}

bool WantsJson(const po::variables_map& values) { return values["json"].as<bool>(); }

ExitCode UsageError(std::string_view message, std::string_view next_step) {
  return Report(Error{ExitCode::kUsage, "", std::string(message), std::string(next_step)});
}

// A number stays one in JSON; integers beyond 2^53 do not occur in descriptions.
Json ToJson(const config::Value& value) {
  if (value.is_number) return Json::parse(value.text, nullptr, /*allow_exceptions=*/false);
  if (value.text == "true" || value.text == "false") return value.text == "true";
  return value.text;
}

po::options_description ListOptions() {
  po::options_description options("Options");
  AddJson(&options);
  return options;
}

ExitCode List(const po::variables_map& values, Arguments) {
  Json json = Json::array();
  if (!WantsJson(values))
    fmt::print("{:<24} {:<10} {:>5} {:>6} {:>8}  {}\n", "name", "chip", "SMs", "MHz", "L2 MiB", "file");
  for (const config::ArchFile& arch : config::ListArchs()) {
    const auto gpu = config::LoadGpu(arch.name);
    if (WantsJson(values)) {
      Json entry{{"name", arch.name}, {"file", arch.path.string()}, {"valid", gpu.ok()}};
      if (gpu.ok()) {
        entry["chip"] = gpu->chip;
        entry["sm_count"] = gpu->sm.count;
        entry["sm_mhz"] = gpu->clocks.sm_mhz;
        entry["l2_size_bytes"] = gpu->l2.size_bytes;
        entry["digest"] = config::Digest(*gpu);
      }
      json.push_back(std::move(entry));
    } else if (gpu.ok()) {
      fmt::print("{:<24} {:<10} {:>5} {:>6} {:>8}  {}\n", arch.name, gpu->chip, gpu->sm.count,
                 gpu->clocks.sm_mhz, gpu->l2.size_bytes >> 20, arch.path.string());
    } else {
      fmt::print("{:<24} has errors: `heddle arch check {}`  {}\n", arch.name, arch.name, arch.path.string());
    }
  }
  if (WantsJson(values)) fmt::print("{}\n", json.dump(2));
  return ExitCode::kOk;
}

po::options_description ShowOptions() {
  po::options_description options("Options");
  AddSet(&options);
  AddJson(&options);
  return options;
}

ExitCode Show(const po::variables_map& values, Arguments positional) {
  if (positional.size() != 1)
    return UsageError("expects one NAME|FILE", "`heddle arch list` shows the names");
  const auto gpu = config::LoadGpu(positional[0], Overrides(values));
  if (!gpu.ok()) return Report(gpu.error());
  if (!WantsJson(values)) {
    fmt::print("{}", config::CanonicalText(*gpu));
    return ExitCode::kOk;
  }
  Json json{{"name", gpu->name}, {"digest", config::Digest(*gpu)}, {"values", Json::object()}};
  for (const config::Value& value : config::Flatten(*gpu)) json["values"][value.path] = ToJson(value);
  fmt::print("{}\n", json.dump(2));
  return ExitCode::kOk;
}

ExitCode Check(const po::variables_map& values, Arguments positional) {
  Strings names(positional.begin(), positional.end());
  if (names.empty()) {
    for (const config::ArchFile& arch : config::ListArchs()) names.push_back(arch.name);
  }
  ExitCode code = ExitCode::kOk;
  Json json = Json::array();
  for (const std::string& name : names) {
    const auto gpu = config::LoadGpu(name, Overrides(values));
    if (!gpu.ok()) code = gpu.error().code;
    if (WantsJson(values)) {
      Json entry{{"name", name}, {"valid", gpu.ok()}};
      gpu.ok() ? entry["digest"] = config::Digest(*gpu) : entry["errors"] = gpu.error().message;
      json.push_back(std::move(entry));
    } else if (gpu.ok()) {
      fmt::print("{}: ok, digest {}\n", name, config::Digest(*gpu).substr(0, 16));
    } else {
      Report(gpu.error());
    }
  }
  if (WantsJson(values)) fmt::print("{}\n", json.dump(2));
  return code;
}

ExitCode Diff(const po::variables_map& values, Arguments positional) {
  if (positional.size() != 2)
    return UsageError("expects two of NAME|FILE", "`heddle arch list` shows the names");
  const auto left = config::LoadGpu(positional[0]);
  if (!left.ok()) return Report(left.error());
  const auto right = config::LoadGpu(positional[1], Overrides(values));
  if (!right.ok()) return Report(right.error());
  const std::vector<config::Difference> differences = config::Compare(*left, *right);
  if (WantsJson(values)) {
    Json json = Json::array();
    for (const auto& d : differences)
      json.push_back({{"path", d.path}, {"left", d.left}, {"right", d.right}});
    fmt::print("{}\n", json.dump(2));
    return ExitCode::kOk;
  }
  size_t width = 0;
  for (const auto& d : differences) width = std::max(width, d.path.size());
  for (const auto& d : differences) fmt::print("{:<{}}  {} -> {}\n", d.path, width, d.left, d.right);
  return ExitCode::kOk;
}

po::options_description DiffOptions() {
  po::options_description options("Options");
  options.add_options()("set", po::value<Strings>()->composing()->value_name("PATH=VALUE"),
                        "change one value of the second (may be repeated)");
  AddJson(&options);
  return options;
}

po::options_description ParamsOptions() { return po::options_description("Options"); }

ExitCode Params(const po::variables_map&, Arguments) {
  fmt::print("{}", config::ParamsMarkdown());
  return ExitCode::kOk;
}

}  // namespace

Command ArchCommand() {
  Command arch{.name = "arch", .summary = "Machine descriptions: list, show, check, compare"};
  arch.subcommands = {
      {.name = "list", .summary = "All descriptions that can be named", .options = ListOptions, .run = List},
      {.name = "show",
       .summary = "The resolved description",
       .options = ShowOptions,
       .positional = "NAME|FILE",
       .run = Show},
      {.name = "check",
       .summary = "All faults of the descriptions named, or of all there are",
       .options = ShowOptions,
       .positional = "[NAME|FILE...]",
       .run = Check},
      {.name = "diff",
       .summary = "What the second description has otherwise than the first",
       .options = DiffOptions,
       .positional = "NAME|FILE NAME|FILE",
       .run = Diff},
      {.name = "params",
       .summary = "The reference of all fields, as Markdown (docs/params.md)",
       .options = ParamsOptions,
       .run = Params},
  };
  return arch;
}

}  // namespace heddle::tools

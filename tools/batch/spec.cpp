#include "tools/batch/spec.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/base/suggest.h"

namespace heddle::batch {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kResultsSchemaVersion = 1;
constexpr std::array<std::pair<const char*, Shape>, 4> kShapes = {{{"grid", Shape::kGrid},
                                                                   {"list", Shape::kList},
                                                                   {"random", Shape::kRandom},
                                                                   {"one-at-a-time", Shape::kOneByOne}}};

// A scalar as --set takes it; nothing for anything else.
std::optional<std::string> Text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return std::string(value.get<bool>() ? "true" : "false");
  if (value.is_number_integer()) return value.dump();
  if (value.is_number()) return NumberText(value.get<double>());
  return std::nullopt;
}

class SpecReader {
 public:
  SpecReader(std::string path, SweepRequest* request) : path_(std::move(path)), out_(*request) {}

  Status Read() {
    std::ifstream in(path_);
    if (!in) return Error{ExitCode::kUsage, path_, "cannot be read", "name a JSON file"};
    Json spec;
    try {
      spec = Json::parse(in, nullptr, true, true);
    } catch (const Json::parse_error& error) {
      return Error{ExitCode::kUsage, path_, error.what(), "docs/sweeps.md shows a specification"};
    }
    if (!spec.is_object()) return Error{ExitCode::kUsage, path_, "is no JSON object", ""};
    for (const auto& [key, value] : spec.items()) Key(key, value);
    if (faults_.empty()) return Ok();
    return Error{ExitCode::kUsage, "", fmt::format("{}", fmt::join(faults_, "\n")),
                 "docs/sweeps.md shows a specification"};
  }

 private:
  void Fault(const std::string& key, const std::string& message) {
    faults_.push_back(fmt::format("{}: {}: {}", path_, key, message));
  }

  void Key(const std::string& key, const Json& value) {
    static const std::vector<std::string> kKeys = {"arch",  "traces",  "set",  "axes",
                                                   "shape", "samples", "seed", "designs"};
    if (key == "arch") {
      if (!value.is_string()) return Fault(key, "expects a name");
      if (out_.arch.empty()) out_.arch = value.get<std::string>();
    } else if (key == "traces") {
      Traces(value);
    } else if (key == "set") {
      for (const auto& [path, text] : Object(key, value)) out_.overrides.push_back(path + "=" + text);
    } else if (key == "axes") {
      Axes(value);
    } else if (key == "shape") {
      const Result<Shape> shape = ParseShape(Text(value).value_or(value.dump()));
      if (!shape.ok()) return Fault(key, shape.error().message);
      out_.shape = *shape;
    } else if (key == "samples" || key == "seed") {
      if (!value.is_number_unsigned()) return Fault(key, "expects a whole number");
      if (key == "seed")
        out_.seed = value.get<uint64_t>();
      else
        out_.samples = value.get<uint32_t>();
    } else if (key == "designs") {
      if (!value.is_array()) return Fault(key, "expects a list of objects");
      for (const Json& design : value) out_.designs.push_back(Object(key, design));
    } else {
      Fault(key, "is not known" + DidYouMean(key, kKeys));
    }
  }

  void Traces(const Json& value) {
    if (!value.is_array()) return Fault("traces", "expects a list of files");
    const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
    for (const Json& file : value) {
      if (!file.is_string()) return Fault("traces", "expects a list of files");
      out_.traces.push_back((folder / file.get<std::string>()).string());
    }
  }

  Assignments Object(const std::string& key, const Json& value) {
    Assignments out;
    if (!value.is_object()) {
      Fault(key, "expects {\"path\": value}");
      return out;
    }
    for (const auto& [path, item] : value.items()) {
      const std::optional<std::string> text = Text(item);
      if (text)
        out.emplace_back(path, *text);
      else
        Fault(key + "." + path, "expects one value");
    }
    return out;
  }

  void Axes(const Json& value) {
    if (!value.is_object()) return Fault("axes", "expects {\"path\": values}");
    for (const auto& [path, item] : value.items()) {
      if (item.is_string()) {
        out_.axes.push_back(path + "=" + item.get<std::string>());
        continue;
      }
      std::vector<std::string> values;
      for (const Json& one : item.is_array() ? item : Json::array({item})) {
        const std::optional<std::string> text = Text(one);
        if (!text) return Fault("axes." + path, "expects values or a range as text");
        values.push_back(*text);
      }
      out_.axes.push_back(fmt::format("{}={}", path, fmt::join(values, ",")));
    }
  }

  std::string path_;
  SweepRequest& out_;
  std::vector<std::string> faults_;
};

Json ToJson(const Assignments& assignments) {
  Json out = Json::object();
  for (const auto& [path, value] : assignments) out[path] = value;
  return out;
}

}  // namespace

Status ReadSpec(const std::string& path, SweepRequest* request) { return SpecReader(path, request).Read(); }

Result<Shape> ParseShape(const std::string& word) {
  std::vector<std::string> names;
  for (const auto& [name, shape] : kShapes) {
    if (word == name) return shape;
    names.emplace_back(name);
  }
  return Error{ExitCode::kUsage, "--shape",
               fmt::format("'{}' is not one of {}{}", word, fmt::join(names, ", "), DidYouMean(word, names)),
               ""};
}

std::string ResultsJson(const SweepRequest& request, const Plan& plan,
                        const std::vector<DesignResult>& results) {
  Json out;
  out["schema_version"] = kResultsSchemaVersion;
  out["arch"] = request.arch;
  out["axes"] = plan.paths;
  out["traces"] = plan.traces;
  out["designs"] = Json::array();
  for (size_t i = 0; i < results.size(); ++i) {
    const Design& design = plan.designs[i];
    const DesignResult& result = results[i];
    Json item;
    item["values"] = ToJson(design.values);
    item["followed"] = ToJson(design.followed);
    item["config_digest"] = design.digest;
    item["missing_launches"] = result.missing;
    if (result.missing == 0) {
      item["cycles"] = result.cycles;
      item["duration_ps"] = result.picoseconds;
      item["duration_ps_by_trace"] = result.by_trace_ps;
      item["pareto"] = result.pareto;
    }
    item["area_mm2"] = {{"total", design.area.total()},
                        {"sms", design.area.sms_mm2},
                        {"l2", design.area.l2_mm2},
                        {"dram", design.area.dram_mm2},
                        {"links", design.area.links_mm2}};
    item["power_w"] = design.power_w;
    out["designs"].push_back(std::move(item));
  }
  out["notes"] = plan.notes;
  return out.dump(2);
}

}  // namespace heddle::batch

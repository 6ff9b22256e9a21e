// `heddle sensitivity`: how much a kernel's time changes when a number of the machine does.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/config/describe.h"
#include "sim/config/load.h"
#include "tools/heddle/commands.h"
#include "tools/heddle/run_settings.h"
#include "tools/heddle/stop.h"
#include "tools/heddle/table.h"
#include "tools/replay/trace_run.h"

namespace heddle::tools {
namespace {

po::options_description Options() {
  po::options_description options("options");
  const auto words = [] { return po::value<std::vector<std::string>>(); };
  options.add_options()("arch,a", po::value<std::string>()->required(),
                        "machine: a name of `heddle arch list` or a file")(
      "param,p", words()->required(),
      "path of a number as --set takes it; PREFIX* takes all numbers below; may be repeated")(
      "by", po::value<double>()->default_value(10, "10"),
      "change each number by this many percent, both ways")(
      "set,s", words(), "PATH=VALUE: change the machine first; may be repeated")(
      "define,d", words(), "NAME=INTEGER: change a shape that the trace defines; may be repeated")(
      "launch,l", po::value<uint32_t>(),
      "only this launch of the trace; all of them, one after the other, when left out")(
      "threads,t", po::value<uint32_t>()->default_value(1), "threads")(
      "json", "print one JSON document instead of a table");
  return options;
}

// A number of the machine, and what the trace takes with it and with two others in its place.
struct Sensitivity {
  config::Value value;
  std::string lower, higher;  // what it was set to; empty: the machine refuses that
  double lower_us = 0, higher_us = 0;
};

class Study {
 public:
  static Result<Study> Open(const std::string& path, const po::variables_map& values) {
    Study study;
    HEDDLE_ASSIGN_OR_RETURN(study.trace_, replay::ReadNamedTrace(path));
    study.arch_ = values["arch"].as<std::string>();
    if (values.count("set") != 0) study.overrides_ = values["set"].as<std::vector<std::string>>();
    if (values.count("define") != 0) {
      HEDDLE_ASSIGN_OR_RETURN(study.options_.defines,
                              ParseDefines(values["define"].as<std::vector<std::string>>()));
    }
    if (values.count("launch") != 0) study.launch_ = values["launch"].as<uint32_t>();
    study.options_.gpu.threads = values["threads"].as<uint32_t>();
    study.options_.gpu.per_pc = true;  // the sustained clock follows from what was issued
    study.options_.gpu.stop = &StopFlag();
    study.options_.lenient = true;
    return study;
  }

  Result<std::vector<config::Value>> Parameters(const std::vector<std::string>& patterns) const {
    HEDDLE_ASSIGN_OR_RETURN(const config::Gpu gpu, config::LoadGpu(arch_, overrides_));
    std::vector<config::Value> found;
    for (const std::string& pattern : patterns) {
      const bool prefix = pattern.ends_with('*');
      const std::string_view text = std::string_view(pattern).substr(0, pattern.size() - (prefix ? 1 : 0));
      const size_t before = found.size();
      for (const config::Value& value : config::Flatten(gpu))
        if (value.is_number && (prefix ? value.path.starts_with(text) : value.path == text))
          found.push_back(value);
      if (found.size() == before)
        return Error{ExitCode::kUsage, "--param", fmt::format("{} has no number '{}'", arch_, pattern),
                     "heddle arch show prints all of them"};
    }
    return found;
  }

  // Of the launches together; with `change`, "" or "path=value".
  Result<double> Microseconds(const std::string& change) const {
    std::vector<std::string> overrides = overrides_;
    if (!change.empty()) overrides.push_back(change);
    HEDDLE_ASSIGN_OR_RETURN(config::Gpu gpu, config::LoadGpu(arch_, overrides));
    const replay::MachineRecord machine = replay::RecordMachine(std::move(gpu));
    HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<replay::TraceRun> run,
                            replay::TraceRun::Open(trace_, machine, options_));
    if (launch_ && *launch_ >= run->launch_count())
      return Error{ExitCode::kUsage, "--launch",
                   fmt::format("the trace has {} launches, not {}", run->launch_count(), *launch_ + 1), ""};
    double microseconds = 0;
    for (uint32_t i = launch_.value_or(0); i < (launch_ ? *launch_ + 1 : run->launch_count()); ++i) {
      run->Select({.wanted = [i](uint32_t ordinal) { return ordinal == i; }});
      HEDDLE_RETURN_IF_ERROR(run->Run([](uint32_t) { return Result<bool>(false); },
                                      [&](const replay::LaunchResult& result) {
                                        microseconds += static_cast<double>(result.record.duration_ps) / 1e6;
                                        return Ok();
                                      }));
    }
    return microseconds;
  }

  // Empty where the machine does not take the value.
  Result<std::string> Try(const config::Value& value, double factor, double* microseconds) const {
    const double now = std::stod(value.text);
    const bool whole = value.text.find_first_of(".eE") == std::string::npos;
    double changed = now * factor;
    if (whole) changed = std::round(changed);
    if (whole && changed == now) changed = factor > 1 ? now + 1 : std::max(0.0, now - 1);
    const std::string text = whole ? fmt::format("{:.0f}", changed) : fmt::format("{}", changed);
    const std::string change = fmt::format("{}={}", value.path, text);
    const Result<double> time = Microseconds(change);
    if (!time.ok() && time.error().code == ExitCode::kConfiguration) return std::string();
    if (!time.ok()) return time.error();
    *microseconds = *time;
    return text;
  }

 private:
  replay::NamedTrace trace_;
  std::string arch_;
  std::vector<std::string> overrides_;
  std::optional<uint32_t> launch_;
  replay::TraceRunOptions options_;
};

// Percent of time for each percent of the number, from the ends that the machine took.
std::optional<double> Elasticity(const Sensitivity& one, double base_us) {
  const double now = std::stod(one.value.text);
  const double low = one.lower.empty() ? now : std::stod(one.lower);
  const double high = one.higher.empty() ? now : std::stod(one.higher);
  if (low == high || now == 0) return std::nullopt;
  const double low_us = one.lower.empty() ? base_us : one.lower_us;
  const double high_us = one.higher.empty() ? base_us : one.higher_us;
  return (high_us - low_us) / base_us / ((high - low) / now);
}

std::string Change(const std::string& value, double microseconds, double base_us) {
  return value.empty() ? "refused" : fmt::format("{:+.2f}", 100 * (microseconds / base_us - 1));
}

void PrintTable(const std::vector<Sensitivity>& all, double base_us) {
  Table table{{"parameter", "value", "lower", "time %", "higher", "time %", "time % for 1 %"},
              {},
              {false, true, true, true, true, true, true}};
  for (const Sensitivity& one : all) {
    const std::optional<double> elasticity = Elasticity(one, base_us);
    table.rows.push_back({one.value.path, one.value.text, one.lower, Change(one.lower, one.lower_us, base_us),
                          one.higher, Change(one.higher, one.higher_us, base_us),
                          elasticity ? fmt::format("{:+.3f}", *elasticity) : ""});
  }
  fmt::print("time as it is: {:.3f} us\n", base_us);
  Print(table);
}

void PrintJson(const std::vector<Sensitivity>& all, double base_us) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Sensitivity& one : all) {
    nlohmann::ordered_json entry = {{"path", one.value.path}, {"value", std::stod(one.value.text)}};
    if (!one.lower.empty()) entry["lower"] = {{"value", std::stod(one.lower)}, {"us", one.lower_us}};
    if (!one.higher.empty()) entry["higher"] = {{"value", std::stod(one.higher)}, {"us", one.higher_us}};
    if (const std::optional<double> elasticity = Elasticity(one, base_us)) entry["elasticity"] = *elasticity;
    list.push_back(std::move(entry));
  }
  const nlohmann::ordered_json document = {
      {"schema_version", 1}, {"us", base_us}, {"parameters", std::move(list)}};
  fmt::print("{}\n", document.dump(1));
}

Status Analyse(const po::variables_map& values, const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const Study study, Study::Open(path, values));
  const double by = values["by"].as<double>() / 100;
  if (!(by > 0 && by < 1)) return Error{ExitCode::kUsage, "--by", "is not between 0 and 100 percent", ""};
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<config::Value> parameters,
                          study.Parameters(values["param"].as<std::vector<std::string>>()));
  HEDDLE_ASSIGN_OR_RETURN(const double base_us, study.Microseconds(""));
  std::vector<Sensitivity> all;
  for (const config::Value& value : parameters) {
    Sensitivity one{value, "", "", 0, 0};
    HEDDLE_ASSIGN_OR_RETURN(one.lower, study.Try(value, 1 - by, &one.lower_us));
    HEDDLE_ASSIGN_OR_RETURN(one.higher, study.Try(value, 1 + by, &one.higher_us));
    all.push_back(std::move(one));
  }
  if (values.count("json") != 0)
    PrintJson(all, base_us);
  else
    PrintTable(all, base_us);
  return Ok();
}

ExitCode Run(const po::variables_map& values, Arguments arguments) {
  if (arguments.size() != 1)
    return Report(Error{ExitCode::kUsage, "heddle sensitivity", "needs one trace",
                        "heddle sensitivity TRACE --arch A --param PATH"});
  StopOnSignals();
  const Status status = Analyse(values, arguments[0]);
  return status.ok() ? ExitCode::kOk : Report(status.error());
}

}  // namespace

Command SensitivityCommand() {
  return {"sensitivity", "How much a kernel's time changes with numbers of the machine", Options, "TRACE",
          Run};
}

}  // namespace heddle::tools

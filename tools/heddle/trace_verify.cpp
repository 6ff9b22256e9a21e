#include "tools/heddle/trace_verify.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "frontend/trace/htrace.h"
#include "sim/config/load.h"
#include "tools/heddle/table.h"
#include "tools/replay/verify.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;

struct Outcome {
  std::string path;
  replay::Verification verification;
  std::vector<size_t> skeleton_differs;  // launches
  bool skeleton_compared = false;
  std::vector<uint32_t> races;  // of the runs with delayed effects: those that fail the check
  uint32_t race_runs = 0;
};

// JSON has no infinities.
ordered_json Number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(fmt::format("{}", value));
}

ordered_json ToJson(const Outcome& outcome) {
  const trace::CheckReport& check = outcome.verification.check;
  ordered_json comparisons = ordered_json::array();
  for (const trace::Comparison& c : check.comparisons)
    comparisons.push_back({{"buffer", c.buffer},
                           {"passed", c.passed},
                           {"elements", c.elements},
                           {"outside", c.outside},
                           {"absolute", c.absolute},
                           {"relative", c.relative},
                           {"max_error", Number(c.max_error)},
                           {"mean_error", Number(c.mean_error)},
                           {"worst_index", c.worst_index},
                           {"worst_got", Number(c.worst_got)},
                           {"worst_want", Number(c.worst_want)}});
  ordered_json issues = ordered_json::array();
  for (const isa::StreamIssue& issue : outcome.verification.issues)
    issues.push_back({{"kind", issue.kind}, {"detail", issue.detail}, {"count", issue.count}});
  ordered_json json = {
      {"trace", outcome.path},      {"verified", outcome.verification.verified()},
      {"no_check", check.none},     {"warp_instructions", outcome.verification.warp_instructions},
      {"comparisons", comparisons}, {"issues", issues}};
  if (outcome.race_runs != 0) json["races"] = outcome.races;
  if (outcome.skeleton_compared) json["skeleton_differs"] = outcome.skeleton_differs;
  return json;
}

void PrintOutcomes(const std::vector<Outcome>& outcomes) {
  Table table{{"trace", "buffer", "result", "elements", "outside", "max error", "mean error", "worst element",
               "got", "want"},
              {},
              {false, false, false, true, true, true, true, true, true, true}};
  for (const Outcome& outcome : outcomes) {
    const trace::CheckReport& check = outcome.verification.check;
    if (check.comparisons.empty())
      table.rows.push_back({outcome.path, "", "not verified", "", "", "", "", "", "", ""});
    for (const trace::Comparison& c : check.comparisons)
      table.rows.push_back({outcome.path, c.buffer, c.passed ? "right" : "WRONG",
                            Grouped(static_cast<int64_t>(c.elements)),
                            Grouped(static_cast<int64_t>(c.outside)), fmt::format("{:.3g}", c.max_error),
                            fmt::format("{:.3g}", c.mean_error), fmt::format("{}", c.worst_index),
                            fmt::format("{:.6g}", c.worst_got), fmt::format("{:.6g}", c.worst_want)});
  }
  Print(table);
}

Result<trace::Symbols> ParseDefines(const po::variables_map& values) {
  trace::Symbols defines;
  if (values.count("define") == 0) return defines;
  for (const std::string& define : values["define"].as<std::vector<std::string>>()) {
    const size_t equals = define.find('=');
    int64_t value = 0;
    const char* end = define.data() + define.size();
    const auto parsed = equals == std::string::npos ? std::from_chars_result{end, std::errc::invalid_argument}
                                                    : std::from_chars(define.data() + equals + 1, end, value);
    if (parsed.ec != std::errc() || parsed.ptr != end || equals == 0)
      return Error{ExitCode::kUsage, "--define " + define, "is no NAME=INTEGER",
                   "for example --define M=4096"};
    defines[define.substr(0, equals)] = value;
  }
  return defines;
}

Result<Outcome> VerifyOne(const std::string& path, const config::Gpu& gpu, const trace::Symbols& defines,
                          bool skeleton, uint32_t race_runs) {
  HEDDLE_ASSIGN_OR_RETURN(const trace::Trace trace, trace::ReadTrace(path));
  HEDDLE_ASSIGN_OR_RETURN(replay::Verification verification, replay::Verify(trace, gpu, defines));
  Outcome outcome{path, std::move(verification), {}, skeleton, {}, race_runs};
  for (uint32_t seed = 1; seed <= race_runs; ++seed) {
    HEDDLE_ASSIGN_OR_RETURN(const replay::Verification delayed, replay::Verify(trace, gpu, defines, seed));
    if (!delayed.check.passed() && delayed.check.none.empty()) outcome.races.push_back(seed);
  }
  if (!skeleton) return outcome;
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<uint64_t> hashes,
                          replay::SkeletonStreamHashes(trace, gpu, defines));
  for (size_t i = 0; i < hashes.size(); ++i)
    if (hashes[i] != outcome.verification.stream_hashes[i]) outcome.skeleton_differs.push_back(i);
  return outcome;
}

}  // namespace

po::options_description VerifyOptions() {
  po::options_description options("options");
  options.add_options()("arch",
                        po::value<std::string>()->value_name("NAME|FILE")->default_value("a100_sxm4_80gb"),
                        "machine whose properties expressions see");
  options.add_options()("define,D",
                        po::value<std::vector<std::string>>()->value_name("NAME=INTEGER")->composing(),
                        "replace a definition of the trace");
  options.add_options()("allow-unchecked", po::bool_switch(),
                        "a trace that states why it has no check does not fail");
  options.add_options()("skeleton", po::bool_switch(),
                        "also: skeleton mode must give the same instructions and addresses");
  options.add_options()(
      "races", po::value<uint32_t>()->value_name("N")->default_value(0),
      "also: N runs whose asynchronous copies take effect at random moments must pass the check");
  options.add_options()("json", po::bool_switch(), "print JSON");
  return options;
}

ExitCode RunVerify(const po::variables_map& values, Arguments traces) {
  if (traces.empty())
    return Report(
        {ExitCode::kUsage, "heddle trace verify", "give at least one trace", "heddle trace verify X.htrace"});
  const Result<config::Gpu> gpu = config::LoadGpu(values["arch"].as<std::string>());
  if (!gpu.ok()) return Report(gpu.error());
  const Result<trace::Symbols> defines = ParseDefines(values);
  if (!defines.ok()) return Report(defines.error());
  std::vector<Outcome> outcomes;
  bool good = true;
  for (const std::string& path : traces) {
    Result<Outcome> outcome =
        VerifyOne(path, *gpu, *defines, values["skeleton"].as<bool>(), values["races"].as<uint32_t>());
    if (!outcome.ok()) return Report(outcome.error());
    const trace::CheckReport& check = outcome->verification.check;
    if (!check.none.empty()) fmt::print(stderr, "{}: not verified: {}\n", path, check.none);
    for (const isa::StreamIssue& issue : outcome->verification.issues)
      fmt::print(stderr, "{}: {} ({} times): {}\n", path, issue.kind, issue.count, issue.detail);
    for (const size_t launch : outcome->skeleton_differs)
      fmt::print(stderr, "{}: launch {}: skeleton mode gives another stream than full mode\n", path, launch);
    for (const uint32_t seed : outcome->races)
      fmt::print(
          stderr,
          "{}: with asynchronous copies delayed (run {}) the output is wrong: the kernel lacks a wait\n",
          path, seed);
    good &= outcome->skeleton_differs.empty() && outcome->races.empty();
    good &= check.passed() || (!check.none.empty() && values["allow-unchecked"].as<bool>());
    outcomes.push_back(std::move(*outcome));
  }
  if (values["json"].as<bool>()) {
    ordered_json document = ordered_json::array();
    for (const Outcome& outcome : outcomes) document.push_back(ToJson(outcome));
    fmt::print("{}\n", document.dump(2, ' ', false, ordered_json::error_handler_t::replace));
  } else {
    PrintOutcomes(outcomes);
  }
  return good ? ExitCode::kOk : ExitCode::kGateFailed;
}

}  // namespace heddle::tools

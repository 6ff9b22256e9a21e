#include "tools/heddle/capture_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "frontend/capture/assemble.h"
#include "frontend/capture/join_measured.h"
#include "frontend/capture/merge.h"
#include "frontend/trace/htrace.h"
#include "tools/toolchain/toolchain.h"

namespace heddle::tools {
namespace {

namespace fs = std::filesystem;

std::string PathOf(const std::string& output, uint32_t process, bool several) {
  if (!several) return output;
  fs::path stem = output;
  if (stem.extension() == ".htrace") stem.replace_extension();
  return fmt::format("{}.{}.htrace", stem.string(), process);
}

void Say(const std::string& path, const capture::Captured& captured) {
  const trace::Trace& trace = captured.trace;
  fmt::print(stderr, "{}: {} launch{} of {} function{}, {} with times\n", path, trace.launches.size(),
             trace.launches.size() == 1 ? "" : "es", trace.functions.size(),
             trace.functions.size() == 1 ? "" : "s", captured.measured_launches);
  for (const auto& [what, sum] : captured.transfers)
    fmt::print(
        stderr, "  {} {} ({} bytes, {:.3f} ms)\n", sum.count,
        what == "fill" ? (sum.count == 1 ? "fill" : "fills") : (sum.count == 1 ? "copy " : "copies ") + what,
        sum.bytes, static_cast<double>(sum.nanoseconds) / 1e6);
  for (const std::string& warning : captured.warnings) fmt::print(stderr, "  {}\n", warning);
}

// What the runs for one kind of measurement found, into the traces of the first run.
void JoinRuns(const std::string& folder, const std::string& kind, std::vector<capture::Captured>* captured) {
  std::error_code ec;
  if (!fs::is_directory(fs::path(folder) / kind, ec)) return;
  const Result<std::vector<std::string>> processes = capture::ProcessFolders(folder + "/" + kind);
  if (!processes.ok()) {
    fmt::print(stderr, "{}: nothing was recorded\n", kind);
    return;
  }
  trace::Toolchain no_decoding = toolchain::Default();
  no_decoding.decode = nullptr;  // the first run's trace has the code
  std::vector<capture::Captured> runs;
  for (const std::string& process : *processes) {
    Result<capture::Captured> each = capture::AssembleTrace(process, no_decoding);
    if (!each.ok())
      fmt::print(stderr, "{}\n", each.error().ToString());
    else if (!each->trace.launches.empty() || !each->warnings.empty())
      runs.push_back(std::move(*each));
  }
  std::vector<const trace::Trace*> measured, traces;
  for (const capture::Captured& run : runs) measured.push_back(&run.trace);
  for (const capture::Captured& each : *captured) traces.push_back(&each.trace);
  const std::vector<size_t> partners = capture::PartnersOf(measured, traces);
  for (size_t i = 0; i < runs.size(); ++i) {
    if (partners[i] == SIZE_MAX) {
      fmt::print(stderr, "{}: process {} launched nothing that the first run did\n", kind, runs[i].process);
    } else {
      const capture::JoinedMeasurements joined =
          capture::JoinMeasured(runs[i].trace, &(*captured)[partners[i]].trace);
      fmt::print(stderr, "{}: {} of {} launches of process {} are measured", kind, joined.joined,
                 traces[partners[i]]->launches.size(), (*captured)[partners[i]].process);
      if (joined.strangers != 0)
        fmt::print(stderr, ", {} that were measured are not in the first run", joined.strangers);
      fmt::print(stderr, "\n");
    }
    for (const std::string& warning : runs[i].warnings) fmt::print(stderr, "  {}\n", warning);
  }
}

}  // namespace

Error NothingLaunched(const std::string& folder) {
  return {ExitCode::kTrace, folder, "no launch was recorded",
          "look at what is said above, at --kernels, --skip and --range"};
}

bool HoldsLaunches(const std::string& folder) {
  const Result<std::vector<std::string>> processes = capture::ProcessFolders(folder);
  if (!processes.ok()) return false;
  trace::Toolchain no_decoding = toolchain::Default();
  no_decoding.decode = nullptr;
  return std::any_of(processes->begin(), processes->end(), [&](const std::string& process) {
    const Result<capture::Captured> each = capture::AssembleTrace(process, no_decoding);
    return each.ok() && !each->trace.launches.empty();
  });
}

Result<bool> WriteCapture(const std::string& folder, const std::string& output) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> processes, capture::ProcessFolders(folder));
  const trace::Toolchain toolchain = toolchain::Default();
  std::vector<capture::Captured> captured;
  for (const std::string& process : processes) {
    Result<capture::Captured> each = capture::AssembleTrace(process, toolchain);
    if (!each.ok() && processes.size() == 1) return each.error();
    if (!each.ok())
      fmt::print(stderr, "{}\n", each.error().ToString());
    else if (each->trace.launches.empty())
      Say(fmt::format("process {}", each->process), *each);
    else
      captured.push_back(std::move(*each));
  }
  if (captured.empty()) return false;
  for (const char* kind : {"counters", "sass", "pc"}) JoinRuns(folder, kind, &captured);
  for (const capture::Captured& each : captured) {
    const std::string path = PathOf(output, each.process, captured.size() > 1);
    HEDDLE_RETURN_IF_ERROR(trace::WriteTrace(each.trace, path));
    Say(path, each);
  }
  return true;
}

po::options_description RecoverOptions() {
  po::options_description options("options");
  options.add_options()("output,o", po::value<std::string>()->value_name("FILE"),
                        "the trace to write; of several processes FILE.<pid>.htrace");
  return options;
}

Status Recover(const po::variables_map& values, Arguments positional) {
  if (positional.size() != 1 || values.count("output") == 0)
    return Error{ExitCode::kUsage, "heddle trace recover",
                 "give the records of a capture, and where to write",
                 "heddle trace recover run.htrace.records -o run.htrace"};
  fs::path folder = positional[0];
  std::error_code ec;
  if (fs::is_regular_file(folder, ec)) folder = fs::absolute(folder, ec).parent_path();  // the file `records`
  HEDDLE_ASSIGN_OR_RETURN(const bool written,
                          WriteCapture(folder.string(), values["output"].as<std::string>()));
  return written ? Ok() : Status(NothingLaunched(folder.string()));
}

po::options_description MergeOptions() {
  po::options_description options("options");
  options.add_options()("output,o", po::value<std::string>()->value_name("FILE"),
                        "the trace to write (.htrace)");
  return options;
}

Status Merge(const po::variables_map& values, Arguments positional) {
  if (positional.empty() || values.count("output") == 0)
    return Error{ExitCode::kUsage, "heddle trace merge", "give traces, and where to write",
                 "heddle trace merge run.*.htrace -o run.htrace"};
  std::vector<std::pair<std::string, trace::Trace>> traces;
  for (const std::string& path : positional) {
    HEDDLE_ASSIGN_OR_RETURN(trace::Trace trace, trace::ReadTrace(path));
    traces.emplace_back(path, std::move(trace));
  }
  const size_t count = traces.size();
  HEDDLE_ASSIGN_OR_RETURN(const capture::MergedTraces merged, capture::MergeTraces(std::move(traces)));
  const std::string output = values["output"].as<std::string>();
  HEDDLE_RETURN_IF_ERROR(trace::WriteTrace(merged.trace, output));
  fmt::print(stderr, "{}: {} launches of {} traces\n", output, merged.trace.launches.size(), count);
  for (const std::string& path : merged.relocated)
    fmt::print(stderr, "  {}: its memory was moved, another trace lies on the same addresses\n", path);
  return Ok();
}

}  // namespace heddle::tools

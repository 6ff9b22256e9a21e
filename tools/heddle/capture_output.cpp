#include "tools/heddle/capture_output.h"

#include <fmt/format.h>

#include <filesystem>

#include "frontend/capture/assemble.h"
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
  for (const std::string& warning : captured.warnings) fmt::print(stderr, "  {}\n", warning);
}

}  // namespace

Status WriteCapture(const std::string& folder, const std::string& output) {
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
  if (captured.empty())
    return Error{ExitCode::kTrace, folder, "no launch was recorded",
                 "look at what is said above, at --kernels, --skip and --range"};
  for (const capture::Captured& each : captured) {
    const std::string path = PathOf(output, each.process, captured.size() > 1);
    HEDDLE_RETURN_IF_ERROR(trace::WriteTrace(each.trace, path));
    Say(path, each);
  }
  return Ok();
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
  if (folder.filename() == "records") folder = folder.parent_path();
  return WriteCapture(folder.string(), values["output"].as<std::string>());
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
  HEDDLE_ASSIGN_OR_RETURN(const trace::Trace merged, capture::MergeTraces(traces));
  const std::string output = values["output"].as<std::string>();
  HEDDLE_RETURN_IF_ERROR(trace::WriteTrace(merged, output));
  fmt::print(stderr, "{}: {} launches of {} traces\n", output, merged.launches.size(), traces.size());
  return Ok();
}

}  // namespace heddle::tools

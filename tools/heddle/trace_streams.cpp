#include "tools/heddle/trace_streams.h"

#include <fmt/format.h>

#include <optional>

#include "frontend/trace/htrace.h"
#include "sim/config/load.h"
#include "tools/heddle/table.h"
#include "tools/replay/replay.h"
#include "tools/replay/streams.h"

namespace heddle::tools {
namespace {

constexpr const char* kExample = "heddle trace streams streams.htrace --against measured.db.streams";

Status Print(const std::vector<replay::StreamComparison>& rows, const std::string& place) {
  Table table{{"kernel", "launch", "accesses m|e", "threads apart", "results", "instructions m|e", "apart"},
              {},
              {false, true, true, true, false, true, true}};
  size_t apart = 0;
  std::string why;
  for (size_t i = 0; i < rows.size(); ++i) {
    const replay::StreamComparison& row = rows[i];
    table.rows.push_back(
        {row.kernel, fmt::format("{}", i),
         fmt::format("{} | {}", row.measured_accesses, row.executed_accesses),
         fmt::format("{}", row.threads_that_differ), row.same_results ? "same" : "OTHER",
         row.is_counted ? fmt::format("{:.0f} | {:.0f}", row.measured_instructions, row.executed_instructions)
                        : "",
         row.is_counted ? fmt::format("{}", row.instructions_that_differ) : ""});
    if (row.Agrees()) continue;
    ++apart;
    if (!row.first_difference.empty())
      why += fmt::format("\n  {} ({}): {}", row.kernel, i, row.first_difference);
    if (row.measured_accesses == 0)
      why += fmt::format("\n  {} ({}): the GPU wrote nothing down", row.kernel, i);
    if (row.strays != 0)
      why += fmt::format("\n  {} ({}): {} accesses were written down that no instruction made", row.kernel, i,
                         row.strays);
  }
  Print(table);
  if (apart == 0) return Ok();
  return Error{ExitCode::kGateFailed, place, fmt::format("{} of {} warps differ{}", apart, rows.size(), why),
               ""};
}

Status Run(const po::variables_map& values, Arguments positional) {
  const bool writes = values.count("write") != 0;
  if (positional.size() != 1 || writes == (values.count("against") != 0))
    return Error{ExitCode::kUsage, "heddle trace streams", "takes a trace, and --against or --write",
                 kExample};
  HEDDLE_ASSIGN_OR_RETURN(const trace::Trace trace, trace::ReadTrace(positional[0]));
  HEDDLE_ASSIGN_OR_RETURN(const config::Gpu gpu, config::LoadGpu(values["arch"].as<std::string>(), {}));
  HEDDLE_ASSIGN_OR_RETURN(const replay::ExecutedStreams executed, replay::ExecuteStreams(trace, gpu));
  if (writes) return replay::WriteStreams(executed.memory, values["write"].as<std::string>());
  const std::string& folder = values["against"].as<std::string>();
  HEDDLE_ASSIGN_OR_RETURN(const trace::ResolvedTrace resolved,
                          trace::Resolve(trace, replay::DeviceSymbols(gpu)));
  HEDDLE_ASSIGN_OR_RETURN(const replay::StreamMemory measured, replay::ReadStreams(folder, resolved));
  std::optional<trace::Trace> counted;
  if (values.count("counts") != 0) {
    HEDDLE_ASSIGN_OR_RETURN(counted, trace::ReadTrace(values["counts"].as<std::string>()));
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<replay::StreamComparison> rows,
                          replay::CompareStreams(trace, measured, executed, counted ? &*counted : nullptr));
  return Print(rows, folder);
}

}  // namespace

po::options_description StreamsOptions() {
  po::options_description options("options");
  auto add = options.add_options();
  add("against", po::value<std::string>()->value_name("FOLDER"),
      "what `heddle_measure --streams FOLDER` wrote on a GPU");
  add("counts", po::value<std::string>()->value_name("TRACE"),
      "a capture of that run with --sass-metrics: executed counts of each instruction of each warp");
  add("write", po::value<std::string>()->value_name("FOLDER"),
      "write what the emulator executes, in the same form");
  add("arch,a", po::value<std::string>()->default_value("a100_sxm4_80gb")->value_name("NAME"),
      "machine that the trace's expressions are for");
  return options;
}

ExitCode Streams(const po::variables_map& values, Arguments positional) {
  const Status status = Run(values, positional);
  return status.ok() ? ExitCode::kOk : Report(status.error());
}

}  // namespace heddle::tools

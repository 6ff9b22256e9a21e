// `heddle top` and `heddle timeline`: results in a terminal, and in a trace viewer.
#include <fmt/format.h>

#include <algorithm>

#include "tools/analysis/results_reader.h"
#include "tools/heddle/commands.h"
#include "tools/heddle/desk_options.h"
#include "tools/heddle/top.h"
#include "tools/timeline/perfetto_file.h"
#include "tools/timeline/tracks.h"

namespace heddle::tools {
namespace {

constexpr double kMegabyte = 1e6;

void AddSelection(po::options_description* options) {
  options->add_options()("kernel,k", po::value<std::string>(),
                         "only launches whose kernel matches this regular expression")(
      "machine,a", po::value<std::string>(), "only launches on this machine")(
      "run-id", po::value<int64_t>(), "only launches of this run (`run_id` of the table `run`)");
}

Result<analysis::ResultsReader> OpenSelected(std::string_view command, const po::variables_map& values,
                                             Arguments files) {
  if (files.size() != 1)
    return Error{ExitCode::kUsage, fmt::format("heddle {}", command), "takes one database", ""};
  analysis::Selection selection;
  if (values.count("run-id") != 0) selection.run_id = values["run-id"].as<int64_t>();
  if (values.count("machine") != 0) selection.machine = values["machine"].as<std::string>();
  HEDDLE_ASSIGN_OR_RETURN(selection.kernel, ParseKernelPattern(values));
  HEDDLE_ASSIGN_OR_RETURN(analysis::ResultsReader reader, analysis::ResultsReader::Open(files[0], selection));
  if (reader.launches().empty()) {
    return Error{ExitCode::kUsage, files[0], "no launch is selected",
                 fmt::format("`heddle db show {}` lists what there is", files[0])};
  }
  return reader;
}

po::options_description TopOptions() {
  po::options_description options("options");
  AddSelection(&options);
  options.add_options()("limit,n", po::value<size_t>()->default_value(20), "rows of each machine; 0: all")(
      "json", "print one JSON document");
  return options;
}

Status Top(const po::variables_map& values, Arguments files) {
  HEDDLE_ASSIGN_OR_RETURN(analysis::ResultsReader reader, OpenSelected("top", values, files));
  constexpr size_t kStalls = 3;
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<TopMachine> machines,
                          Summarize(&reader, values["limit"].as<size_t>(), kStalls));
  if (values.count("json") != 0)
    fmt::print("{}\n", ToJson(machines));
  else
    fmt::print("{}", ToText(machines, StyleOfStdout()));
  return Ok();
}

po::options_description TimelineOptions() {
  po::options_description options("options");
  options.add_options()("output,o", po::value<std::string>()->required(),
                        "the file to write, as in run.pftrace");
  AddSelection(&options);
  options.add_options()("max-mb", po::value<double>()->default_value(64),
                        "leave out CTAs, then samples, until the file is no larger");
  return options;
}

Status Timeline(const po::variables_map& values, Arguments files) {
  HEDDLE_ASSIGN_OR_RETURN(analysis::ResultsReader reader, OpenSelected("timeline", values, files));
  const double most = std::max(values["max-mb"].as<double>(), 0.0) * kMegabyte;
  HEDDLE_ASSIGN_OR_RETURN(const timeline::Tracks tracks,
                          timeline::BuildTracks(&reader, static_cast<uint64_t>(most)));
  const std::string output = values["output"].as<std::string>();
  HEDDLE_ASSIGN_OR_RETURN(const uint64_t bytes, timeline::WritePerfetto(tracks, output));
  fmt::print(stderr, "{}: {:.1f} MB, {} launches, {} of their {} CTAs; ui.perfetto.dev opens it\n", output,
             static_cast<double>(bytes) / kMegabyte, tracks.launches.size(), tracks.ctas_shown, tracks.ctas);
  if (tracks.sample_stride > 1)
    fmt::print(stderr, "One of {} samples is kept: --max-mb\n", tracks.sample_stride);
  if (tracks.launches_without_samples != 0) {
    fmt::print(stderr,
               "{} launches have neither CTAs nor counters: `heddle run --timeline` with the same database "
               "adds them\n",
               tracks.launches_without_samples);
  }
  return Ok();
}

template <auto kFunction>
ExitCode Run(const po::variables_map& values, Arguments arguments) {
  const Status status = kFunction(values, arguments);
  return status.ok() ? ExitCode::kOk : Report(status.error());
}

}  // namespace

Command TopCommand() {
  return {"top", "Kernels of a database by time: what bounds them, what they wait for", TopOptions, "FILE",
          Run<Top>};
}

Command TimelineCommand() {
  return {"timeline", "Write launches, CTAs and utilisation over time as a Perfetto trace", TimelineOptions,
          "FILE", Run<Timeline>};
}

}  // namespace heddle::tools

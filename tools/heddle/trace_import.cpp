#include "tools/heddle/trace_import.h"

#include <fmt/format.h>

#include <filesystem>

#include "frontend/import/accel_sim.h"
#include "frontend/trace/htrace.h"

namespace heddle::tools {
namespace {

constexpr const char* kExample = "heddle trace import accel-sim FOLDER -o X.htrace";

void PrintFaults(const importer::FaultLog& faults) {
  if (faults.total() == 0) return;
  fmt::print(stderr, "{} faults were left out:\n", faults.total());
  for (const importer::FaultLog::Placed& each : faults.placed())
    fmt::print(stderr, "  {}: {}\n", each.place, each.what);
  if (faults.total() > faults.placed().size()) {
    fmt::print(stderr, "  in all:\n");
    for (const auto& [kind, count] : faults.by_kind()) fmt::print(stderr, "    {} x {}\n", count, kind);
  }
}

}  // namespace

po::options_description ImportOptionsTable() {
  po::options_description options("options");
  options.add_options()("output,o", po::value<std::string>()->value_name("FILE"),
                        "the trace to write (.htrace)");
  options.add_options()(
      "lenient", po::bool_switch(),
      "leave out what cannot be read, and count it in the trace and in the results of its runs");
  return options;
}

Status Import(const po::variables_map& values, Arguments positional) {
  const auto usage = [](std::string message) {
    return Error{ExitCode::kUsage, "heddle trace import", std::move(message), kExample};
  };
  if (positional.size() != 2) return usage("give a format and a folder");
  if (positional[0] != "accel-sim")
    return usage(fmt::format("'{}' is no format that can be read", positional[0]));
  if (values.count("output") == 0) return usage("where to write is not stated: add -o X.htrace");
  importer::ImportOptions options;
  options.lenient = values["lenient"].as<bool>();
  HEDDLE_ASSIGN_OR_RETURN(const importer::Imported imported,
                          importer::ImportAccelSim(positional[1], options));
  const std::string& output = values["output"].as<std::string>();
  HEDDLE_RETURN_IF_ERROR(trace::WriteTrace(imported.trace, output));
  PrintFaults(imported.faults);
  std::error_code ec;
  const auto bytes = static_cast<double>(std::filesystem::file_size(output, ec));
  fmt::print(stderr, "{}: {} launch{}, {} warp instructions, {:.3f} bytes each\n", output,
             imported.trace.launches.size(), imported.trace.launches.size() == 1 ? "" : "es",
             imported.warp_instructions,
             imported.warp_instructions == 0 ? 0.0 : bytes / static_cast<double>(imported.warp_instructions));
  return Ok();
}

}  // namespace heddle::tools

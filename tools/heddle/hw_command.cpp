// `heddle hw import`: measurements of real GPUs into a results database.
#include <fmt/format.h>

#include "heddle_version.h"
#include "tools/compare/hardware_import.h"
#include "tools/heddle/commands.h"

namespace heddle::tools {
namespace {

po::options_description ImportOptionsText() {
  po::options_description options("options");
  options.add_options()("db", po::value<std::string>()->value_name("FILE"),
                        "results database to add the measurements to; made when it is missing");
  options.add_options()("gpu", po::value<std::string>()->value_name("NAME"),
                        "GPU of files that do not say which");
  return options;
}

void Print(const compare::ImportedFile& file) {
  fmt::print(stderr, "{}: {}, {} launch{}", file.path, file.producer, file.launches,
             file.launches == 1 ? "" : "es");
  if (file.kernels != 0) {
    fmt::print(stderr, " of {} kernel{}, {:.3f} ms", file.kernels, file.kernels == 1 ? "" : "s",
               file.total_ps / 1e9);
  }
  if (file.with_call != 0) fmt::print(stderr, "; {} with the call that launched them", file.with_call);
  if (file.time_resolution_ns > 1) fmt::print(stderr, "; times are whole microseconds");
  fmt::print(stderr, "\n");
  for (const auto& [what, count] : file.notes) fmt::print(stderr, "  {} {}\n", count, what);
}

ExitCode Import(const po::variables_map& values, Arguments files) {
  const auto usage = [](std::string message) {
    return Report({ExitCode::kUsage, "heddle hw import", std::move(message),
                   "heddle hw import FILE... --db results.db"});
  };
  if (files.empty()) return usage("give at least one file");
  if (values.count("db") == 0) return usage("where to write is not stated: add --db FILE");
  compare::ImportOptions options;
  if (values.count("gpu") != 0) options.gpu = values["gpu"].as<std::string>();
  options.manifest = {"heddle hw import", HEDDLE_VERSION,
                      fmt::format("{}, {}", HEDDLE_BUILD_TYPE, HEDDLE_COMPILER)};
  const std::string& database = values["db"].as<std::string>();
  const auto imported = compare::ImportHardware({files.begin(), files.end()}, database, options);
  if (!imported.ok()) return Report(imported.error());
  for (const compare::ImportedFile& file : *imported) Print(file);
  fmt::print(stderr, "Measurements are in {}\n", database);
  return ExitCode::kOk;
}

}  // namespace

Command HwCommand() {
  return {.name = "hw",
          .summary = "Measurements of real GPUs: profiles of Nsight and PyTorch into a results database",
          .subcommands = {{"import", "Add what profilers and tools/measure-gpu measured to a database",
                           ImportOptionsText, "FILE...", Import}}};
}

}  // namespace heddle::tools

// heddle_measure: plays traces on the GPU of this machine and writes their times as measurements. tools/measure-gpu calls it.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "frontend/trace/htrace.h"
#include "heddle_version.h"
#include "tools/measure/player.h"

namespace heddle::measure {
namespace {

constexpr const char* kUsage =
    "usage: heddle_measure [options] TRACE... --db FILE\n\n"
    "Plays the launches of traces on this machine's GPU and writes their times as measurements\n\n"
    "  --db FILE      results database to add them to\n"
    "  --repeats N    measurements of each launch (20)\n"
    "  --streams DIR  instead: play a trace of kernels/streams once and write DIR/log.bin and DIR/out.bin, "
    "for\n"
    "                 `heddle trace streams`\n"
    "  --library LIB  instead of libcuda.so.1\n"
    "  --dry-run      print what would be played, without a GPU\n";

struct Settings {
  std::vector<std::string> traces;
  std::string database;
  std::string library = "libcuda.so.1";
  std::string streams;
  Options options;
  bool dry_run = false;
};

Result<Settings> Parse(int argc, char** argv) {
  const auto usage = [](const std::string& message) {
    return Error{ExitCode::kUsage, "heddle_measure", message, kUsage};
  };
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--dry-run") {
      settings.dry_run = true;
    } else if (word == "--db" || word == "--streams" || word == "--repeats" || word == "--library") {
      if (i + 1 == argc) return usage(word + " wants a value");
      const std::string value = argv[++i];
      if (word == "--db") settings.database = value;
      if (word == "--streams") settings.streams = value;
      if (word == "--library") settings.library = value;
      if (word == "--repeats") {
        if (value.empty() || value.size() > 6 || value.find_first_not_of("0123456789") != std::string::npos ||
            std::stoul(value) == 0)
          return usage("--repeats wants a number above 0");
        settings.options.repeats = static_cast<uint32_t>(std::stoul(value));
      }
    } else if (word.starts_with("-")) {
      return usage("there is no option " + word);
    } else {
      settings.traces.push_back(word);
    }
  }
  if (settings.traces.empty()) return usage("give at least one trace");
  if (!settings.streams.empty() && settings.traces.size() != 1) return usage("--streams takes one trace");
  if (settings.database.empty() && settings.streams.empty() && !settings.dry_run)
    return usage("where to write is not stated: add --db FILE");
  return settings;
}

std::string FileName(const std::string& path) { return std::filesystem::path(path).filename().string(); }

Status Plan(const Settings& settings) {
  for (const std::string& path : settings.traces) {
    HEDDLE_ASSIGN_OR_RETURN(const trace::Trace trace, trace::ReadTrace(path));
    for (const trace::Launch& launch : trace.launches) {
      const trace::Function& function = trace.functions[launch.function];
      fmt::print("{}: {} for sm_{}, {} + {} times cold and warm\n", FileName(path), function.name,
                 trace.modules[function.module].sm_version, settings.options.warm_up,
                 settings.options.repeats);
    }
  }
  return Ok();
}

Status WriteStreams(Player* player, const Settings& settings) {
  const std::string& path = settings.traces[0];
  HEDDLE_ASSIGN_OR_RETURN(const trace::Trace trace, trace::ReadTrace(path));
  if (const std::string why = player->WhyNot(trace); !why.empty())
    return Error{ExitCode::kTrace, path, why, "`heddle trace build --target sm_NN` makes one for this GPU"};
  HEDDLE_ASSIGN_OR_RETURN(const auto contents, player->Play(trace, {"log", "out"}));
  std::error_code ec;
  std::filesystem::create_directories(settings.streams, ec);
  for (const auto& [name, bytes] : contents) {
    const std::string file = settings.streams + "/" + name + ".bin";
    std::ofstream out(file, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) return Error{ExitCode::kUsage, file, "cannot be written", "choose another folder"};
  }
  return Ok();
}

Status Run(const Settings& settings) {
  if (settings.dry_run) return Plan(settings);
  HEDDLE_ASSIGN_OR_RETURN(const Driver driver, Driver::Load(settings.library));
  HEDDLE_ASSIGN_OR_RETURN(Player player, Player::Open(driver));
  fmt::print(stderr, "{}, sm_{}\n", player.device().name, player.device().sm_version);
  if (!settings.streams.empty()) return WriteStreams(&player, settings);
  HEDDLE_ASSIGN_OR_RETURN(results::Writer writer, results::Writer::Open(settings.database));
  HEDDLE_RETURN_IF_ERROR(writer.BeginRun(
      {"heddle_measure", HEDDLE_VERSION, fmt::format("{}, {}", HEDDLE_BUILD_TYPE, HEDDLE_COMPILER)}));
  size_t measured = 0;
  for (const std::string& path : settings.traces) {
    std::string digest;
    HEDDLE_ASSIGN_OR_RETURN(const trace::Trace trace, trace::ReadTrace(path, &digest));
    if (const std::string why = player.WhyNot(trace); !why.empty()) {
      fmt::print(stderr, "{}: left out, {}\n", FileName(path), why);
      continue;
    }
    const std::string source =
        fmt::format("{} on {} ({})", FileName(path), player.device().name, digest.substr(0, 12));
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<results::HardwareRecord> records,
                            player.Measure(trace, digest, source, settings.options));
    HEDDLE_RETURN_IF_ERROR(writer.ReplaceProfile(source, records));
    for (const results::HardwareRecord& record : records) {
      fmt::print("{}: {} {:.2f} us cold, {:.2f} us warm\n", FileName(path), record.kernel_name,
                 record.metrics[0].value / 1e6, record.metrics[1].value / 1e6);
    }
    measured += records.size();
  }
  if (measured == 0) {
    writer.Abandon();
    return Error{ExitCode::kTrace, "heddle_measure", "none of the traces has code for this GPU",
                 "`heddle trace build --target sm_NN` makes them"};
  }
  return writer.Finish();
}

}  // namespace
}  // namespace heddle::measure

int main(int argc, char** argv) {
  const auto settings = heddle::measure::Parse(argc, argv);
  const heddle::Status status =
      settings.ok() ? heddle::measure::Run(*settings) : heddle::Status(settings.error());
  if (status.ok()) return 0;
  fmt::print(stderr, "heddle_measure: {}\n", status.error().ToString());
  return static_cast<int>(status.error().code);
}

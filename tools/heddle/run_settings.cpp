#include "tools/heddle/run_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <regex>
#include <thread>

#include "sim/base/suggest.h"
#include "tools/replay/trace_run.h"

namespace heddle::tools {
namespace {

Error Usage(const std::string& place, const std::string& message, const std::string& next = "") {
  return {ExitCode::kUsage, place, message, next};
}

Result<uint32_t> ParseOrdinal(std::string_view text) {
  uint32_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) {
    return Usage("--launch", fmt::format("'{}' is no launch number", text),
                 "write numbers and ranges: 0-3,7,12-");
  }
  return value;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

template <typename Enum, size_t N>
Result<Enum> Choose(const std::string& option, const std::string& word,
                    const std::array<std::pair<const char*, Enum>, N>& choices) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) {
    if (word == name) return value;
    names.emplace_back(name);
  }
  return Usage(option,
               fmt::format("'{}' is not one of {}{}", word, fmt::join(names, ", "), DidYouMean(word, names)));
}

}  // namespace

Result<trace::Symbols> ParseDefines(const std::vector<std::string>& words) {
  trace::Symbols defines;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    int64_t value = 0;
    const char* end = word.data() + word.size();
    if (equals == std::string::npos || equals == 0 ||
        std::from_chars(word.data() + equals + 1, end, value).ptr != end || equals + 1 == word.size()) {
      return Usage("--define " + word, "is not NAME=INTEGER");
    }
    defines[word.substr(0, equals)] = value;
  }
  return defines;
}

Result<OrdinalSet> OrdinalSet::Parse(const std::string& text) {
  OrdinalSet set;
  if (text.empty()) return set;
  for (const std::string& part : Split(text, ',')) {
    Range range;
    const size_t dash = part.find('-');
    HEDDLE_ASSIGN_OR_RETURN(range.first, ParseOrdinal(std::string_view(part).substr(0, dash)));
    if (dash == std::string::npos) {
      range.last = range.first;
    } else if (dash + 1 == part.size()) {
      range.last = std::numeric_limits<uint32_t>::max();
    } else {
      HEDDLE_ASSIGN_OR_RETURN(range.last, ParseOrdinal(std::string_view(part).substr(dash + 1)));
    }
    if (range.last < range.first) return Usage("--launch", fmt::format("'{}' ends before it starts", part));
    set.ranges_.push_back(range);
  }
  return set;
}

bool OrdinalSet::Contains(uint32_t ordinal) const {
  return ranges_.empty() || std::any_of(ranges_.begin(), ranges_.end(), [ordinal](const Range& range) {
           return ordinal >= range.first && ordinal <= range.last;
         });
}

po::options_description RunOptionsDescription() {
  po::options_description options("options");
  const auto words = [] { return po::value<std::vector<std::string>>(); };
  options.add_options()("arch,a", words()->required(),
                        "machine: a name of `heddle arch list` or a file; may be repeated")(
      "set,s", words(), "PATH=VALUE: change the machine, as in --set sm.count=144; may be repeated")(
      "define,d", words(), "NAME=INTEGER: change a shape that the trace defines; may be repeated")(
      "kernel,k", po::value<std::string>(), "only launches whose kernel matches this regular expression")(
      "launch,l", po::value<std::string>()->default_value(""),
      "only these launches of each trace: 0-3,7,12-")(
      "mode", po::value<std::string>()->default_value("skeleton"),
      "skeleton; full: compute all data too; or sampled: leave out the middle of large grids, with an "
      "interval")(
      "cache", po::value<std::string>()->default_value("cold"),
      "caches before each launch: cold, warm (as the launch before left them) or flush (full of other, dirty "
      "lines)")("threads,t", po::value<uint32_t>()->default_value(0),
                "threads; 0: one a core. The result does not depend on it")(
      "max-cycles", po::value<uint64_t>()->default_value(0),
      "give up on a launch after this many cycles; 0: never")(
      "allow-foreign", "run cubins of another architecture than the machine's")(
      "lenient", "count oddities of a trace instead of stopping at them")(
      "timeline", "also keep where CTAs ran and how counters grew, for `heddle timeline`")(
      "db", po::value<std::string>()->default_value("heddle.db"),
      "results database; what is in it is not run again")(
      "publish", po::value<std::string>()->default_value(""),
      "put a whole copy of the database there every so many launches, for work in local scratch")(
      "publish-every", po::value<uint32_t>()->default_value(20), "launches between two copies")(
      "json", "print one JSON document instead of a table")("no-table", "print no table")(
      "quiet,q", "no progress and no words on stderr but errors");
  return options;
}

RunSettings ParseRunSettings(const po::variables_map& values, Arguments traces, std::vector<Error>* faults) {
  RunSettings settings;
  const auto take = [faults](auto result, auto* to) {
    if (result.ok())
      *to = std::move(*result);
    else
      faults->push_back(result.error());
  };
  if (traces.empty())
    faults->push_back(Usage("heddle run", "no trace given", "name one or more .htrace files"));
  settings.traces.assign(traces.begin(), traces.end());
  if (values.count("arch") != 0) settings.archs = values["arch"].as<std::vector<std::string>>();
  if (values.count("set") != 0) settings.overrides = values["set"].as<std::vector<std::string>>();
  if (values.count("define") != 0)
    take(ParseDefines(values["define"].as<std::vector<std::string>>()), &settings.defines);
  if (values.count("kernel") != 0) {
    const std::string pattern = values["kernel"].as<std::string>();
    try {
      settings.launch_setting.kernel = [regex = std::regex(pattern)](const std::string& text) {
        return std::regex_search(text, regex);
      };
    } catch (const std::regex_error& error) {
      faults->push_back(
          Usage("--kernel", fmt::format("'{}' is no regular expression: {}", pattern, error.what())));
    }
  }
  OrdinalSet launches;
  take(OrdinalSet::Parse(values["launch"].as<std::string>()), &launches);
  settings.launch_setting.wanted = [launches](uint32_t ordinal) { return launches.Contains(ordinal); };
  settings.launch_setting.mode = values["mode"].as<std::string>();
  take(Choose("--mode", settings.launch_setting.mode, replay::kModes), &settings.mode);
  settings.launch_setting.cache = values["cache"].as<std::string>();
  take(Choose("--cache", settings.launch_setting.cache, replay::kCachePolicies), &settings.cache_policy);
  settings.threads = values["threads"].as<uint32_t>();
  if (settings.threads == 0) settings.threads = std::max(1u, std::thread::hardware_concurrency());
  settings.max_cycles = values["max-cycles"].as<uint64_t>();
  settings.allow_foreign_cubins = values.count("allow-foreign") != 0;
  settings.lenient = values.count("lenient") != 0;
  settings.timeline = values.count("timeline") != 0;
  if (settings.timeline && settings.mode == replay::Mode::kSampled)
    faults->push_back(Usage("--timeline", "a sampled launch has no timeline: most of its CTAs do not run",
                            "leave out --mode sampled"));
  settings.database = values["db"].as<std::string>();
  if (values.count("publish") != 0) {
    settings.publish = values["publish"].as<std::string>();
    settings.publish_every = std::max(1u, values["publish-every"].as<uint32_t>());
  }
  settings.json = values.count("json") != 0;
  settings.quiet = values.count("quiet") != 0;
  settings.table = values.count("no-table") == 0;
  return settings;
}

Result<RunSettings> ParseRunSettings(const po::variables_map& values, Arguments traces) {
  std::vector<Error> faults;
  RunSettings settings = ParseRunSettings(values, traces, &faults);
  if (faults.empty()) return settings;
  if (faults.size() == 1) return faults.front();
  std::string text;
  for (const Error& fault : faults)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", fault.place, fault.message);
  return Usage("", text, "nothing was run");
}

}  // namespace heddle::tools

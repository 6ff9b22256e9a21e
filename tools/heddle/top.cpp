#include "tools/heddle/top.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <utility>

#include "sim/results/results.h"
#include "tools/analysis/bounds.h"
#include "tools/analysis/stalls.h"
#include "tools/analysis/work.h"
#include "tools/heddle/table.h"

namespace heddle::tools {
namespace {

using analysis::LaunchGroup;
using analysis::LaunchInfo;

constexpr size_t kShortestName = 12;
constexpr size_t kNarrowest = 60;

Result<TopRow> RowOf(analysis::ResultsReader* reader, const LaunchGroup& group, size_t stalls) {
  const LaunchInfo& launch = reader->launches()[group.representative];
  HEDDLE_ASSIGN_OR_RETURN(const analysis::Machine* machine, reader->MachineOf(launch.config_id));
  HEDDLE_ASSIGN_OR_RETURN(const analysis::Kernel* kernel, reader->KernelOf(launch.kernel_id));
  HEDDLE_ASSIGN_OR_RETURN(const analysis::LaunchCounts counts, reader->CountsOf(launch));
  const analysis::LaunchWork work =
      analysis::WorkOf(machine->gpu, kernel->instructions, counts.per_pc, counts.counters, launch.grid,
                       launch.block, launch.Cycles());
  const analysis::LowerBound bound = analysis::LowerBoundOf(machine->gpu, work);
  TopRow row;
  row.kernel = kernel->name;
  row.grid = fmt::format("{}x{}x{}", launch.grid.x, launch.grid.y, launch.grid.z);
  row.launches = group.launches.size();
  row.seconds = group.seconds;
  row.cycles = static_cast<double>(launch.Cycles());
  if (!bound.resources.empty()) {
    row.bound = analysis::Name(bound.resources.front().resource);
    row.bound_percent = 100 * bound.resources.front().cycles / std::max(row.cycles, 1.0);
  }
  row.reached_percent = 100 * bound.reached;
  for (const analysis::StallShare& stall : analysis::StallLadder(launch, counts)) {
    if (row.stalls.size() == stalls) break;
    if (stall.stall != stats::Stall::k_selected)
      row.stalls.push_back({std::string(analysis::Name(stall.stall)), 100 * stall.share});
  }
  return row;
}

// Mangled template names are long: their start and end tell most.
std::string Cut(const std::string& text, size_t width) {
  if (text.size() <= width) return text;
  const size_t tail = std::min<size_t>(8, width / 3);
  return text.substr(0, width - tail - 2) + ".." + text.substr(text.size() - tail);
}

// Colours by ANSI's numbers, which every terminal maps to its own palette.
std::string Paint(const std::string& text, int code, const TopStyle& style) {
  return style.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}
constexpr int kBold = 1, kRed = 31, kGreen = 32, kYellow = 33;
int ColorOf(double percent) { return percent >= 80 ? kGreen : percent >= 50 ? kYellow : kRed; }

std::string StallText(const std::vector<TopRow::Stall>& stalls, size_t width) {
  std::string text;
  for (const TopRow::Stall& stall : stalls) {
    const std::string next = fmt::format("{}{} {:.0f}%", text.empty() ? "" : ", ", stall.name, stall.percent);
    if (text.size() + next.size() > width) break;
    text += next;
  }
  return text;
}

struct Widths {
  size_t kernel = 6, grid = 4, us = 2, launches = 1, bound = 5, stalls = 0;
};

std::string Microseconds(double seconds) { return fmt::format("{:.1f}", seconds * 1e6); }

// Columns are as wide as they need; the stalls get what is left, the kernels' names make room for one of them.
Widths FitInto(size_t width, const TopMachine& machine) {
  Widths widths;
  for (const TopRow& row : machine.rows) {
    widths.kernel = std::max(widths.kernel, row.kernel.size());
    widths.grid = std::max(widths.grid, row.grid.size());
    widths.us = std::max(widths.us, Microseconds(row.seconds).size());
    widths.launches = std::max(widths.launches, fmt::format("{}", row.launches).size());
    widths.bound = std::max(widths.bound, row.bound.size());
  }
  constexpr size_t kWantedForStalls = 44, kNumbers = 5 + 6 + 6 + 7 * 2 + 1;
  const size_t fixed = kNumbers + widths.us + widths.launches + widths.grid + widths.bound;
  const size_t left = std::max(width, kNarrowest) - std::min(fixed, std::max(width, kNarrowest));
  const size_t for_kernel = left > kWantedForStalls + kShortestName ? left - kWantedForStalls : kShortestName;
  widths.kernel = std::min(widths.kernel, for_kernel);
  widths.stalls = left > widths.kernel ? left - widths.kernel : 0;
  return widths;
}

void AppendMachine(const TopMachine& machine, const TopStyle& style, std::string* out) {
  const Widths widths = FitInto(style.width, machine);
  *out += Paint(fmt::format("{}", machine.name), kBold, style);
  *out += fmt::format(": {} launch{}, {} us\n", Grouped(static_cast<int64_t>(machine.launches)),
                      machine.launches == 1 ? "" : "es", Microseconds(machine.seconds));
  std::string head = fmt::format("{:>5}  {:>{}}  {:>{}}  {:<{}}  {:<{}}  {:<{}} {:>6}  {:>6}", "time%", "us",
                                 widths.us, "n", widths.launches, "kernel", widths.kernel, "grid",
                                 widths.grid, "bound", widths.bound, "busy%", "limit%");
  if (widths.stalls >= 9) head += "  waits for";
  *out += Paint(head, kBold, style) + '\n';
  for (const TopRow& row : machine.rows) {
    std::string line = fmt::format("{:>5.1f}  {:>{}}  {:>{}}  {:<{}}  {:<{}}  {:<{}} ", row.time_percent,
                                   Microseconds(row.seconds), widths.us, row.launches, widths.launches,
                                   Cut(row.kernel, widths.kernel), widths.kernel, row.grid, widths.grid,
                                   row.bound, widths.bound);
    line += fmt::format("{:>6.1f}  ", row.bound_percent);
    line += Paint(fmt::format("{:>6.1f}", row.reached_percent), ColorOf(row.reached_percent), style);
    if (const std::string stalls = StallText(row.stalls, widths.stalls); !stalls.empty())
      line += "  " + stalls;
    *out += line + '\n';
  }
  if (machine.rows_left_out != 0)
    *out += fmt::format("... {} more (--limit 0 shows all)\n", machine.rows_left_out);
}

void AppendJson(const TopRow& row, std::string* out) {
  const auto add = [out](std::string_view name, const std::string& value) {
    fmt::format_to(std::back_inserter(*out), "\n          \"{}\": {},", name, value);
  };
  *out += "\n        {";
  add("kernel", JsonString(row.kernel));
  add("grid", JsonString(row.grid));
  add("launches", std::to_string(row.launches));
  add("duration_us", JsonNumber(row.seconds * 1e6));
  add("time_percent", JsonNumber(row.time_percent));
  add("cycles", JsonNumber(row.cycles));
  add("bound", JsonString(row.bound));
  add("bound_busy_percent", JsonNumber(row.bound_percent));
  add("lower_bound_percent", JsonNumber(row.reached_percent));
  *out += "\n          \"stalls\": [";
  for (const TopRow::Stall& stall : row.stalls)
    *out += fmt::format(
        "{}\n            {{\n              \"stall\": {},\n              \"percent\": {}\n            }}",
        &stall == row.stalls.data() ? "" : ",", JsonString(stall.name), JsonNumber(stall.percent));
  *out += row.stalls.empty() ? "]\n        }" : "\n          ]\n        }";
}

}  // namespace

Result<std::vector<TopMachine>> Summarize(analysis::ResultsReader* reader, size_t limit, size_t stalls) {
  std::map<int64_t, TopMachine> machines;
  for (const LaunchInfo& launch : reader->launches()) {
    TopMachine& machine = machines[launch.config_id];
    ++machine.launches;
    machine.seconds += launch.Seconds();
  }
  for (const LaunchGroup& group : analysis::GroupLaunches(reader->launches())) {  // by falling time
    TopMachine& machine = machines[group.config_id];
    if (limit != 0 && machine.rows.size() >= limit) {
      ++machine.rows_left_out;
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(TopRow row, RowOf(reader, group, stalls));
    row.time_percent = 100 * row.seconds / std::max(machine.seconds, 1e-15);
    machine.rows.push_back(std::move(row));
  }
  std::vector<TopMachine> sorted;
  for (auto& [config_id, machine] : machines) {
    machine.name = reader->MachineName(config_id);
    sorted.push_back(std::move(machine));
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const TopMachine& a, const TopMachine& b) { return a.seconds > b.seconds; });
  return sorted;
}

std::string ToText(const std::vector<TopMachine>& machines, const TopStyle& style) {
  std::string out;
  for (const TopMachine& machine : machines) {
    if (!out.empty()) out += '\n';
    AppendMachine(machine, style, &out);
  }
  return out;
}

// Written as it comes: a document of thousands of rows is not built first.
std::string ToJson(const std::vector<TopMachine>& machines) {
  std::string out = fmt::format("{{\n  \"schema_version\": {},\n  \"machines\": [", results::kSchemaVersion);
  for (const TopMachine& machine : machines) {
    out += &machine == machines.data() ? "\n    {" : ",\n    {";
    out += fmt::format("\n      \"machine\": {},\n      \"launches\": {},\n      \"duration_us\": {},",
                       JsonString(machine.name), machine.launches, JsonNumber(machine.seconds * 1e6));
    out += "\n      \"kernels\": [";
    for (const TopRow& row : machine.rows) {
      out += &row == machine.rows.data() ? "" : ",";
      AppendJson(row, &out);
    }
    out += machine.rows.empty() ? "]\n    }" : "\n      ]\n    }";
  }
  return out + (machines.empty() ? "]\n}" : "\n  ]\n}");
}

TopStyle StyleOfStdout() {
  TopStyle style;
  style.width = 120;
  const char* columns = std::getenv("COLUMNS");
  if (columns != nullptr && std::atoi(columns) > 0) style.width = static_cast<size_t>(std::atoi(columns));
  if (isatty(STDOUT_FILENO) == 0) return style;
  const char* no_color = std::getenv("NO_COLOR");
  style.color = no_color == nullptr || *no_color == '\0';
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) style.width = size.ws_col;
  return style;
}

}  // namespace heddle::tools

#include "tools/validate/header_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "sim/config/load.h"

namespace heddle::validate {
namespace {

constexpr std::string_view kBegin = "# Measured errors, written by `heddle validate --write-header`";
constexpr std::string_view kEnd = "# End of measured errors";

size_t EndOfLine(const std::string& text, size_t at) {
  const size_t end = text.find('\n', at);
  return end == std::string::npos ? text.size() : end + 1;
}

std::string TableLine(const Group& group) {
  const Summary& summary = group.summary;
  return fmt::format("#   {:<20} {:<20} {:>5} {:>8.1f} {:>8} {:>8.1f}\n", group.category, group.gpu,
                     summary.count, summary.median_abs_error_percent,
                     StatisticText(summary.p90_abs_error_percent, 1), summary.mape_percent);
}

bool IsOf(const Recipes& recipes, const std::string& gpu, const std::string& arch) {
  const auto machine = recipes.machines.find(gpu);
  return machine != recipes.machines.end() && machine->second == arch;
}

}  // namespace

std::string WithTable(const std::string& text, const std::string& table) {
  const size_t begin = text.find(kBegin), end = text.find(kEnd);
  if (begin != std::string::npos && end != std::string::npos && begin < end)
    return text.substr(0, begin) + table + text.substr(EndOfLine(text, end));
  size_t at = 0;
  while (at < text.size() && text[at] == '#') at = EndOfLine(text, at);
  return text.substr(0, at) + (at == 0 ? "" : "#\n") + table + text.substr(at);
}

std::string HeaderTable(const Report& report, const Recipes& recipes, const std::string& arch) {
  std::string lines;
  for (const Group& group : report.categories)
    if (group.summary.count != 0 && IsOf(recipes, group.gpu, arch)) lines += TableLine(group);
  std::string table = fmt::format("{}\n", kBegin);
  table += lines.empty() ? "#   no rows here: held out\n"
                         : fmt::format("#   {:<20} {:<20} {:>5} {:>8} {:>8} {:>8}  |error| in percent\n{}",
                                       "category", "gpu", "rows", "median", "p90", "mean", lines);
  return table + fmt::format("{}\n", kEnd);
}

bool WritesHeader(const Report& report, const Recipes& recipes, const std::vector<Row>& suite,
                  const std::string& arch) {
  return std::any_of(report.categories.begin(), report.categories.end(),
                     [&](const Group& group) {
                       return group.summary.count != 0 && IsOf(recipes, group.gpu, arch);
                     }) ||
         std::none_of(suite.begin(), suite.end(),
                      [&](const Row& row) { return IsOf(recipes, row.gpu, arch); });
}

Status WriteHeaders(const Report& report, const Recipes& recipes, const std::vector<Row>& suite) {
  std::set<std::string> machines;
  for (const auto& [gpu, machine] : recipes.machines) machines.insert(machine);
  for (const config::ArchFile& arch : config::ListArchs()) {
    if (!machines.contains(arch.name) || !WritesHeader(report, recipes, suite, arch.name)) continue;
    std::ifstream file(arch.path);
    std::ostringstream text;
    text << file.rdbuf();
    const std::string changed = WithTable(text.str(), HeaderTable(report, recipes, arch.name));
    if (changed == text.str()) continue;
    std::ofstream out(arch.path);
    out << changed;
    out.close();
    if (!out) return Error{ExitCode::kConfiguration, arch.path.string(), "cannot be written", ""};
  }
  return Ok();
}

}  // namespace heddle::validate

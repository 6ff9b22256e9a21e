#include <fmt/format.h>

#include "sim/results/results.h"
#include "sim/results/schema.h"

namespace heddle::results {
namespace {

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
  return lines;
}

// "CREATE TABLE run (" -> "run"; empty for other lines.
std::string_view CreatedName(std::string_view line) {
  for (const std::string_view prefix : {"CREATE TABLE ", "CREATE VIEW "}) {
    if (!line.starts_with(prefix)) continue;
    line.remove_prefix(prefix.size());
    return line.substr(0, line.find(' '));
  }
  return {};
}

}  // namespace

std::string SchemaMarkdown() {
  std::string out =
      "# The results database\n\nGenerated from `sim/results/schema.sql` by `heddle db schema`. Counters and "
      "causes are "
      "listed at the end.\n";
  std::string comment;
  bool open = false;
  for (const std::string_view line : Lines(kSchemaSql)) {
    if (!open && line.starts_with("-- ")) {
      comment += fmt::format("{}{}", comment.empty() ? "" : " ", line.substr(3));
    } else if (const std::string_view name = CreatedName(line); !name.empty()) {
      out += fmt::format("\n## `{}`\n\n{}\n\n```sql\n{}\n", name, comment, line);
      open = true;
    } else if (open) {
      out += fmt::format("{}\n", line);
    } else {
      comment.clear();
    }
    if (open && line.ends_with(';')) {
      out += "```\n";
      open = false;
      comment.clear();
    }
  }
  out += "\n## Counters\n\n| name | unit | meaning |\n|---|---|---|\n";
  for (const stats::CounterDef& def : stats::CounterDefs()) {
    out += fmt::format("| `{}` | {} | {} |\n", def.name, def.unit, def.text);
  }
  out += "\n## Causes that issue slots are charged to\n\n| name | meaning |\n|---|---|\n";
  for (const stats::StallDef& def : stats::StallDefs())
    out += fmt::format("| `{}` | {} |\n", def.name, def.text);
  return out;
}

}  // namespace heddle::results

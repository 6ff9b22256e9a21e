#include "tools/report/kernel_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/base/demangle.h"
#include "tools/html/html.h"
#include "tools/report/roofline_plot.h"
#include "tools/report/stall_stack.h"
#include "tools/report/text.h"

namespace heddle::report {
namespace {

using analysis::KernelAnalysis;
using analysis::PcRow;

constexpr size_t kMostLines = 120;      // of SASS that wait the most
constexpr size_t kBriefLines = 6;       // of a kernel without a whole page
constexpr uint32_t kNeighbours = 1;     // shown before and behind each, on a whole page
constexpr double kLeastShare = 0.0005;  // of all slots

std::set<uint32_t> ShownLines(std::vector<PcRow> table, size_t instructions, bool whole) {
  const size_t most = whole ? kMostLines : kBriefLines;
  const uint32_t neighbours = whole ? kNeighbours : 0;
  std::stable_sort(table.begin(), table.end(),
                   [](const PcRow& a, const PcRow& b) { return a.share > b.share; });
  std::set<uint32_t> shown;
  for (size_t i = 0; i < std::min(table.size(), most); ++i) {
    if (table[i].share < kLeastShare) break;
    const uint32_t first = table[i].index - std::min(table[i].index, neighbours);
    for (uint32_t at = first; at <= table[i].index + neighbours && at < instructions; ++at) shown.insert(at);
  }
  return shown;
}

std::string StallWords(const PcRow& row) {
  std::string text;
  constexpr size_t kMostStalls = 2;
  for (size_t i = 0; i < std::min(kMostStalls, row.stalls.size()); ++i)
    text += fmt::format("{}{} {:.1f}", i == 0 ? "" : ", ", analysis::Name(row.stalls[i].stall),
                        100 * row.stalls[i].share);
  return text;
}

// Sectors and wavefronts of a request; what is more than needed stands beside.
std::string MemoryCell(const stats::MemorySums& memory) {
  if (!memory.any()) return "<td>";
  const auto a_request = [&](uint64_t sum) { return double(sum) / double(memory.requests); };
  std::string text;
  if (memory.sectors != 0) text = fmt::format("{:.3g} sectors", a_request(memory.sectors));
  if (memory.sectors > memory.ideal_sectors)
    text += fmt::format(" (needs {:.3g})", a_request(memory.ideal_sectors));
  if (memory.wavefronts != 0)
    text += fmt::format("{}{:.3g} wavefronts", text.empty() ? "" : ", ", a_request(memory.wavefronts));
  if (memory.bank_conflicts != 0)
    text += fmt::format(" ({:.3g} by conflicts)", a_request(memory.bank_conflicts));
  const bool wastes = memory.sectors > memory.ideal_sectors || memory.bank_conflicts != 0;
  return fmt::format("<td class=\"mem{}\" title=\"{} requests: {}\">{}", wastes ? " waste" : "",
                     memory.requests, analysis::MemoryText(memory, false), text);
}

std::string SassLine(const KernelAnalysis& kernel, uint32_t index, const PcRow* row, double largest,
                     const std::map<uint32_t, std::string>& source, bool has_memory) {
  const auto line = source.find(index);
  std::string text = fmt::format("<tr><td>{:04x}<td><code>{}</code>", kernel.kernel->PcOf(index),
                                 html::Escape(kernel.kernel->text[index]));
  if (!source.empty()) text += "<td class=muted>" + (line == source.end() ? "" : html::Escape(line->second));
  const stats::MemorySums memory = row == nullptr ? stats::MemorySums{} : row->memory;
  if (has_memory) text += MemoryCell(memory);
  if (row == nullptr) return text + "<td class=iss><td><td>\n";
  text +=
      fmt::format("<td class=\"num iss\">{}<td class=num>{:.1f}<td><div class=w>{}<small>{}</small></div>\n",
                  Human(double(row->issued), ""), 100 * row->share,
                  StallBar(row->stalls, largest > 0 ? row->share / largest : 0), StallWords(*row));
  return text;
}

std::string BoundText(const KernelAnalysis& kernel) {
  if (kernel.bound.resources.empty()) return "";
  return fmt::format("{:.0f} % of the speed that {} would allow", 100 * kernel.bound.reached,
                     analysis::Name(kernel.bound.resources[0].resource));
}

std::string Facts(const KernelAnalysis& kernel, const KernelPageOptions& options) {
  const analysis::LaunchInfo& launch = kernel.launch;
  std::string text = "<div class=\"cards\">";
  text += html::Card(HumanSeconds(launch.Seconds(), launch.IntervalSeconds()), "a launch (the median one)");
  text += html::Card(fmt::format("{}", kernel.group.launches.size()), "launches");
  if (options.workload_seconds > 0)
    text += html::Card(fmt::format("{:.1f} %", 100 * kernel.group.seconds / options.workload_seconds),
                       "of all time");
  text +=
      html::Card(fmt::format("{:.0f} %", 100 * kernel.bound.reached), "of the speed that its bound allows");
  if (kernel.roofline.ops > 0)
    text += html::Card(
        Human(kernel.roofline.ops_per_second, "op/s"),
        fmt::format("{}, {:.1f} % of its ceiling", kernel.roofline.kind, kernel.roofline.rate_percent));
  text += "</div>";
  text += fmt::format(
      "<p class=\"muted\">{} &middot; grid {}&times;{}&times;{}, block {}&times;{}&times;{}, {} registers a "
      "thread, {} of "
      "shared memory a CTA &middot; {} #{}</p>",
      html::Escape(kernel.machine->name), launch.grid.x, launch.grid.y, launch.grid.z, launch.block.x,
      launch.block.y, launch.block.z, kernel.kernel->registers_per_thread,
      Human(launch.shared_bytes_per_cta, "byte"), html::Escape(launch.trace_name), launch.ordinal);
  if (launch.IsSampled())
    text += fmt::format(
        "<p class=\"muted\">Sampled: {:.1f} % of the CTAs were simulated; with a confidence of 95 % the "
        "launch takes "
        "{} &plusmn; {} cycles.</p>",
        100 * launch.simulated_share, Human(static_cast<double>(launch.Cycles()), ""),
        Human(static_cast<double>(launch.interval_cycles), ""));
  return text;
}

std::string StallTable(const KernelAnalysis& kernel) {
  std::string text = "<table class=\"stalls\"><tbody>";
  for (const analysis::StallShare& stall : kernel.ladder) {
    if (stall.share < 0.005) continue;
    text += fmt::format("<tr><td title=\"{}\">{}<td class=num>{:.1f} %<td>{}\n",
                        html::Escape(analysis::Text(stall.stall)), analysis::Name(stall.stall),
                        100 * stall.share, StallBar({stall}, stall.share / kernel.ladder[0].share));
  }
  return text + "</table>";
}

}  // namespace

const char* const kKernelPageStyle = R"css(
details { border: 1px solid var(--line); border-radius: 8px; margin: .4rem 0; background: var(--paper); }
details > summary { cursor: pointer; padding: .5rem .8rem; background: var(--card); border-radius: 8px; display: grid;
  grid-template-columns: minmax(0, 2.2fr) 6rem 4rem minmax(6rem, 1.4fr); gap: .2rem .8rem; align-items: center; list-style: none; }
details > summary::-webkit-details-marker { display: none; }
details > summary b i { font-style: normal; font-weight: 400; color: var(--muted); margin-right: .5rem; }
details > summary b { overflow-wrap: anywhere; font-weight: 600; } details > summary .num { text-align: right; }
details > summary small { grid-column: 1 / -1; color: var(--muted); }
details[open] > summary { border-bottom: 1px solid var(--line); border-radius: 8px 8px 0 0; }
details > div { padding: .4rem .8rem .8rem; } details > div.plain { overflow-x: auto; } details.plain > summary { display: block; }
.sol { columns: 3 20rem; column-gap: 1.5rem; } .sol .wide { break-inside: avoid; margin-bottom: .8rem; } .sol table { width: 100%; }
.sol td:first-child { min-width: 0; } .sol th { position: static; }
.sass { font-size: .82rem; width: 100%; } .sass td { padding: .1rem .5rem; } .sass td:first-child { min-width: 0; color: var(--muted); font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
.sass code { white-space: pre; } .sass td:last-child { min-width: 9rem; } .sass small { color: var(--muted); white-space: nowrap; } .sass .bar { height: .55rem; flex: none; max-width: 6rem; }
.sass .mem { white-space: nowrap; color: var(--muted); font-size: .95em; } .sass .waste { color: inherit; font-weight: 600; }
.sass .w { display: flex; gap: .5rem; align-items: center; }
.sass tr.gap td { color: var(--muted); border: 0; padding: 0 .5rem; }
.stalls { width: 100%; } .stalls td { border: 0; padding: .12rem .5rem; white-space: nowrap; } .stalls td:first-child { min-width: 0; } .stalls td:last-child { width: 70%; }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; align-items: start; }
.command { white-space: pre-wrap; overflow-wrap: anywhere; margin: .2rem 0; } .run { border-bottom: 1px solid var(--line); padding: .4rem 0; font-size: .88rem; }
pre { overflow-x: auto; background: var(--card); padding: .7rem; border-radius: 8px; font-size: .8rem; line-height: 1.4; }
@media (max-width: 640px) {
  pre { white-space: pre-wrap; overflow-wrap: anywhere; } .sass .iss, .sass small { display: none; }
  .sass td { padding: .1rem .25rem; } .sass td:first-child { white-space: nowrap; } .sass .mem { white-space: normal; }
  .sass code { white-space: pre-wrap; overflow-wrap: anywhere; } .sass td:last-child { min-width: 4rem; } .sass .bar { max-width: 4rem; }
  body { padding: .7rem; } details > summary { grid-template-columns: 1fr auto auto; } details > summary > .bar { grid-column: 1 / -1; }
  .sass { min-width: 40rem; } figure svg { font-size: 15px; } .card { min-width: 6.5rem; padding: .4rem .7rem; } td:first-child { min-width: 7rem; } }
)css";

std::string SassHtml(const KernelAnalysis& kernel, const std::map<uint32_t, std::string>& source,
                     bool whole) {
  const std::vector<PcRow> table = analysis::PcTable(kernel.launch, kernel.counts);
  const std::set<uint32_t> shown = ShownLines(table, kernel.kernel->text.size(), whole);
  if (shown.empty()) return "<p class=\"muted\">The database has no counts by instruction.</p>";
  double largest = 0;
  bool has_memory = false;
  std::map<uint32_t, const PcRow*> rows;
  for (const PcRow& row : table) {
    rows[row.index] = &row;
    largest = std::max(largest, row.share);
    has_memory |= row.memory.any();
  }
  std::string text = fmt::format(
      "<div class=\"wide\"><table class=\"sass\"><thead><tr><th>pc<th>instruction{}{}<th class=\"num "
      "iss\">issued<th "
      "class=num>% "
      "slots<th>waits (% of all issue slots)</thead><tbody>\n",
      source.empty() ? "" : "<th>source",
      has_memory ? "<th title=\"32-byte sectors and shared-memory wavefronts a request, and how few would "
                   "do\">asks of memory, each time"
                 : "");
  uint32_t next = 0;
  for (const uint32_t index : shown) {
    if (index != next) text += fmt::format("<tr class=gap><td><td>&#8942; {} instructions\n", index - next);
    next = index + 1;
    const auto row = rows.find(index);
    text += SassLine(kernel, index, row == rows.end() ? nullptr : row->second, largest, source, has_memory);
  }
  if (next < kernel.kernel->text.size())
    text += fmt::format("<tr class=gap><td><td>&#8942; {} instructions\n", kernel.kernel->text.size() - next);
  return text + "</tbody></table></div>";
}

std::string KernelPage(const KernelAnalysis& kernel, const KernelPageOptions& options) {
  const double share = options.workload_seconds > 0 ? kernel.group.seconds / options.workload_seconds : 0;
  std::string text = fmt::format(
      "<details id=\"{}\"><summary><b title=\"{}\"><i>{}</i>{}</b><span class=\"num\">{}</span><span "
      "class=\"num\">{:.1f} %</span>{}"
      "<small>{}</small></summary><div>",
      html::Escape(options.anchor), html::Escape(kernel.kernel->name), options.number,
      html::Escape(ShortName(Demangled(kernel.kernel->name), 90)), HumanSeconds(kernel.group.seconds),
      100 * share, StallBar(kernel.ladder),
      fmt::format("{} launch{} on {}; {}", kernel.group.launches.size(),
                  kernel.group.launches.size() == 1 ? "" : "es", html::Escape(kernel.machine->name),
                  BoundText(kernel)));
  if (!options.whole) {
    text += fmt::format(
        "<p class=\"muted\">{} cycles, grid {}&times;{}&times;{}; its busiest instructions (<code>heddle "
        "report "
        "--kernel</code> gives it a whole page):</p>{}</div></details>\n",
        kernel.launch.Cycles(), kernel.launch.grid.x, kernel.launch.grid.y, kernel.launch.grid.z,
        SassHtml(kernel, {}, false));
    return text;
  }
  text += Facts(kernel, options);
  text += "<div class=\"two\"><div><h3>Issue slots</h3>" + StallTable(kernel) +
          "</div><div><h3>Cycles that each resource needs at least</h3>" + BoundHtml(kernel) + "</div></div>";
  if (!options.tree.empty()) text += "<h3>Bottleneck tree</h3><pre>" + html::Escape(options.tree) + "</pre>";
  const std::string plot = RooflinePlot({&kernel}, {1}, 620, 360);
  if (!plot.empty()) text += "<h3>Roofline</h3><figure>" + plot + "</figure>";
  text += "<h3>Speed of light</h3>" + SectionsHtml(kernel);
  text += "<h3>Instructions</h3>" + SassHtml(kernel, options.source, true);
  return text + "</div></details>\n";
}

}  // namespace heddle::report

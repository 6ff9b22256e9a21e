#include "tools/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tools/html/html.h"
#include "tools/report/kernel_page.h"
#include "tools/report/roofline_plot.h"
#include "tools/report/stall_stack.h"
#include "tools/report/text.h"

namespace heddle::report {
namespace {

using analysis::KernelAnalysis;

constexpr size_t kMostPlotted = 60;  // kernels in one roofline

class PartWriter {
 public:
  PartWriter(const ReportPart& part, size_t number, const ReportOptions& options, size_t first_kernel)
      : part_(part), number_(number), options_(options), first_kernel_(first_kernel) {}

  Result<std::string> Write(size_t bytes_left) {
    // Pages first, because their analyses are what the rest is made of; instructions are forgotten kernel by kernel.
    std::string pages;
    for (size_t i = 0; i < part_.groups.size(); ++i) {
      HEDDLE_ASSIGN_OR_RETURN(KernelAnalysis kernel, analysis::Analyse(part_.reader, part_.groups[i]));
      pages += Page(kernel, i, bytes_left - std::min(bytes_left, pages.size()));
      kernel.counts.per_pc = {};
      if (i < kMostPlotted) kernels_.push_back(std::move(kernel));
    }
    std::string body = Summary();
    body += html::Section("Roofline", Rooflines());
    if (!part_.explained.empty())
      body +=
          html::Section("What relieving a resource wins", "<pre>" + html::Escape(part_.explained) + "</pre>");
    body += html::Section("Kernels, by the time they take", StallKey() + pages);
    HEDDLE_ASSIGN_OR_RETURN(const std::string comparison, Comparison());
    body += html::Section("Beside hardware", comparison);
    HEDDLE_ASSIGN_OR_RETURN(const std::string machines, Machines());
    body += html::Section("Machines", machines);
    body += html::Section("Manifest", Manifest());
    return body;
  }

 private:
  std::string Page(const KernelAnalysis& kernel, size_t i, size_t bytes_left) {
    KernelPageOptions page;
    page.anchor = fmt::format("k{}-{}", number_, i + 1);
    page.number = i + 1;
    page.workload_seconds = part_.seconds;
    const size_t position = first_kernel_ + i;
    if (const auto tree = options_.trees.find(position); tree != options_.trees.end())
      page.tree = tree->second;
    if (const auto source = options_.source.find(position); source != options_.source.end())
      page.source = source->second;
    constexpr size_t kBriefBytes = 3300;  // of each kernel that is still to come
    const size_t reserved = (part_.groups.size() - i) * kBriefBytes;
    std::string text = KernelPage(kernel, page);
    if (text.size() + reserved <= bytes_left) return text;
    page.whole = false;
    return KernelPage(kernel, page);
  }

  std::string Summary() const {
    double bound = 0, told = 0;
    for (const KernelAnalysis& kernel : kernels_) {
      bound += kernel.group.seconds * std::min(1.0, kernel.bound.reached);
      told += kernel.group.seconds;
    }
    std::set<int64_t> machines;
    double interval = 0;  // as if all launches erred to one side
    size_t sampled = 0;
    for (const analysis::LaunchInfo& launch : part_.reader->launches()) {
      machines.insert(launch.config_id);
      interval += launch.IntervalSeconds();
      sampled += launch.IsSampled() ? 1 : 0;
    }
    std::string cards = "<div class=\"cards\">";
    cards += html::Card(HumanSeconds(part_.seconds, interval), "simulated time of all launches");
    if (sampled > 0)
      cards += html::Card(Human(static_cast<double>(sampled), ""), "of them sampled (95 % intervals)");
    cards += html::Card(Human(static_cast<double>(part_.reader->launches().size()), ""), "launches");
    cards += html::Card(Human(static_cast<double>(part_.groups.size()), ""), "kernels and shapes shown");
    cards += html::Card(Human(static_cast<double>(machines.size()), ""),
                        machines.size() == 1 ? "machine" : "machines");
    if (told > 0)
      cards +=
          html::Card(fmt::format("{:.0f} %", 100 * bound / told), "of the speed that their bounds allow");
    return cards + "</div>\n";
  }

  std::string Rooflines() const {
    std::map<int64_t, std::vector<size_t>> by_machine;
    for (size_t i = 0; i < kernels_.size(); ++i) by_machine[kernels_[i].launch.config_id].push_back(i);
    std::string body = "<div class=\"plots\">";
    for (const auto& [id, indices] : by_machine) {
      std::vector<const KernelAnalysis*> list;
      std::vector<size_t> numbers;
      for (const size_t i : indices) {
        list.push_back(&kernels_[i]);
        numbers.push_back(i + 1);
      }
      const std::string plot = RooflinePlot(list, numbers, by_machine.size() > 1 ? 560 : 900, 420);
      if (plot.empty()) continue;
      body += fmt::format(
          "<figure>{}<figcaption>{}, {} SMs; kernels by number, at their operations a DRAM "
          "byte</figcaption></figure>",
          plot, html::Escape(part_.reader->MachineName(id)), list.front()->machine->gpu.sm.count);
    }
    return body + "</div>";
  }

  Result<std::string> Comparison() {
    std::vector<std::vector<html::Cell>> rows;
    for (const KernelAnalysis& kernel : kernels_) {
      for (const analysis::Measurement& measurement : kernel.measurements) {
        const auto time = measurement.metrics.find("duration_ps");
        if (time == measurement.metrics.end() || time->second <= 0) continue;
        const double error = 100 * (static_cast<double>(kernel.launch.duration_ps) / time->second - 1);
        rows.push_back({{ShortName(kernel.kernel->name, 60), "", kernel.kernel->name},
                        {measurement.gpu, "", measurement.protocol},
                        {measurement.source, "", ""},
                        {HumanSeconds(time->second / 1e12), "num", ""},
                        {HumanSeconds(kernel.launch.Seconds(), kernel.launch.IntervalSeconds()), "num", ""},
                        {fmt::format("{:+.1f} %", error), std::abs(error) > 20 ? "num bad" : "num", ""}});
      }
    }
    if (rows.empty())
      return std::string(
          "<p class=\"muted\">No measurement of these launches is in the database; <code>heddle hw "
          "import</code> adds them.</p>");
    return html::Table(
        {{"kernel"}, {"GPU"}, {"source"}, {"measured", true}, {"simulated", true}, {"error", true}}, rows);
  }

  Result<std::string> Machines() {
    std::string body;
    std::set<int64_t> ids;
    for (const analysis::LaunchInfo& launch : part_.reader->launches()) ids.insert(launch.config_id);
    for (const int64_t id : ids) {
      HEDDLE_ASSIGN_OR_RETURN(const analysis::Machine* machine, part_.reader->MachineOf(id));
      const config::Gpu& gpu = machine->gpu;
      body += fmt::format(
          "<details class=\"plain\"><summary><b>{}</b> <span class=\"muted\">{} SMs at {:.0f} MHz, L2 {:.0f} "
          "MiB, DRAM {:.0f} "
          "GB/s</span></summary><div class=\"plain\"><p class=\"muted\">SHA-256 "
          "{}</p><pre>{}</pre></div></details>\n",
          html::Escape(machine->name), gpu.sm.count, gpu.clocks.sm_mhz,
          static_cast<double>(gpu.l2.size_bytes) / 1048576.0, gpu.dram.bandwidth_gb_s,
          html::Escape(machine->digest), html::Escape(machine->text));
    }
    return body;
  }

  std::string Manifest() const {
    std::set<int64_t> used;
    std::set<std::string> traces;
    for (const analysis::LaunchInfo& launch : part_.reader->launches()) {
      used.insert(launch.run_id);
      traces.insert(launch.trace_name + "  " + launch.trace_digest);
    }
    constexpr size_t kMostRows = 200;
    std::string body;
    size_t shown = 0;
    for (const analysis::RunInfo& run : part_.reader->runs()) {
      if (!used.contains(run.run_id) || shown++ >= kMostRows) continue;
      body += fmt::format(
          "<div class=\"run\"><div class=\"command\"><code>{}</code></div><span class=\"muted\">heddle {}, "
          "{}; {} to "
          "{}</span></div>\n",
          run.command.empty() ? "(command not recorded)" : html::Escape(run.command),
          html::Escape(run.heddle_version), html::Escape(run.build), html::Escape(run.started_at),
          run.finished_at.empty() ? "an interruption" : html::Escape(run.finished_at));
    }
    std::string list;
    size_t count = 0;
    for (const std::string& trace : traces)
      if (count++ < kMostRows) list += trace + "\n";
    return body + fmt::format(
                      "<details class=\"plain\"><summary>{} trace{}, by "
                      "SHA-256</summary><div><pre>{}</pre></div></details>",
                      traces.size(), traces.size() == 1 ? "" : "s", html::Escape(list));
  }

  const ReportPart& part_;
  size_t number_;
  const ReportOptions& options_;
  size_t first_kernel_;
  std::vector<KernelAnalysis> kernels_;  // the first of them, without their instructions' counts
};

}  // namespace

Result<std::string> ReportPage(const std::vector<ReportPart>& parts, const ReportOptions& options) {
  std::string body = "<h1>heddle report</h1>\n";
  size_t first_kernel = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    PartWriter writer(parts[i], i + 1, options, first_kernel);
    const size_t left = options.most_bytes - std::min(options.most_bytes, body.size());
    HEDDLE_ASSIGN_OR_RETURN(const std::string text, writer.Write(left / (parts.size() - i)));
    body += fmt::format("<p class=\"muted\">{}</p>\n{}", html::Escape(parts[i].name), text);
    first_kernel += parts[i].groups.size();
  }
  return html::Page({"heddle report", body, std::string(kStallStyle) + kKernelPageStyle});
}

}  // namespace heddle::report

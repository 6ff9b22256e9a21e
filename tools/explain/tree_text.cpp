#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/demangle.h"
#include "tools/explain/bottleneck_tree.h"
#include "tools/report/text.h"

namespace heddle::explain {
namespace {

using analysis::KernelAnalysis;

std::string Percent(double share) { return fmt::format("{:5.1f} %", 100 * share); }

std::string InstructionText(const KernelAnalysis& kernel, const BottleneckTree& tree, uint32_t index) {
  std::string text = fmt::format("{:04x}", kernel.kernel->PcOf(index));
  if (index < kernel.kernel->text.size()) text += "  " + kernel.kernel->text[index];
  if (const auto line = tree.source.find(index); line != tree.source.end())
    text += "  [" + line->second + "]";
  return text;
}

std::string GainText(const Gain& gain) {
  if (!gain.error.empty()) return fmt::format("{}: not simulated: {}", gain.relief->text, gain.error);
  constexpr double kNoDifference = 0.0005;
  if (std::abs(gain.share) < kNoDifference) return fmt::format("{}: no difference", gain.relief->text);
  if (gain.share >= 0)
    return fmt::format("{}: {:.1f} % less time ({:.0f} cycles)", gain.relief->text, 100 * gain.share,
                       gain.cycles);
  return fmt::format("{}: {:.1f} % more time ({:.0f} cycles)", gain.relief->text, -100 * gain.share,
                     gain.cycles);
}

std::string Heading(const KernelAnalysis& kernel, double workload_seconds) {
  const double share = workload_seconds > 0 ? kernel.group.seconds / workload_seconds : 1;
  std::string text = fmt::format(
      "{} on {}\n{:5.1f} % of the time: {} in {} launch{} of {} ({} cycles)\n",
      report::ShortName(Demangled(kernel.kernel->name), 100), kernel.machine->name, 100 * share,
      report::HumanSeconds(kernel.group.seconds), kernel.group.launches.size(),
      kernel.group.launches.size() == 1 ? "" : "es",
      report::HumanSeconds(kernel.launch.Seconds(), kernel.launch.IntervalSeconds()), kernel.launch.Cycles());
  if (!kernel.bound.resources.empty())
    text += fmt::format(
        "        lower bound {:.0f} cycles ({:.0f} of launch overhead, then {}): {:.0f} % reached\n",
        kernel.bound.cycles, kernel.bound.fixed_cycles, analysis::Name(kernel.bound.resources[0].resource),
        100 * kernel.bound.reached);
  return text;
}

// What the instruction moves in vain; nothing where it moves what it asks for.
void AppendWaste(const KernelAnalysis& kernel, uint32_t index, std::string* text) {
  if (index >= kernel.counts.per_pc.size()) return;
  const std::string waste = analysis::MemoryText(kernel.counts.per_pc[index].memory, true);
  if (!waste.empty())
    *text += fmt::format("             {:04x} moves {}\n", kernel.kernel->PcOf(index), waste);
}

void AppendCause(const KernelAnalysis& kernel, const BottleneckTree& tree, const Cause& cause,
                 std::string* text) {
  *text += fmt::format("{}  {}: {}\n", Percent(cause.stall.share), analysis::Name(cause.stall.stall),
                       analysis::Text(cause.stall.stall));
  for (const Site& site : cause.sites) {
    if (!cause.IsWait()) break;
    *text += fmt::format("  {}  {}\n", Percent(site.share), InstructionText(kernel, tree, site.index));
    AppendWaste(kernel, site.index, text);
    if (!site.waits_for) continue;
    *text += fmt::format("             for {}\n", InstructionText(kernel, tree, *site.waits_for));
    if (*site.waits_for != site.index) AppendWaste(kernel, *site.waits_for, text);
  }
  constexpr size_t kMostGains = 3;
  for (size_t i = 0; i < std::min(kMostGains, cause.gains.size()); ++i)
    *text += fmt::format("      ->  {}\n", GainText(tree.gains[cause.gains[i]]));
}

}  // namespace

std::string TreeText(const KernelAnalysis& kernel, const BottleneckTree& tree, double workload_seconds) {
  std::string text = Heading(kernel, workload_seconds);
  for (const Cause& cause : tree.causes) AppendCause(kernel, tree, cause, &text);
  for (const Gain& gain : tree.gains)
    if (gain.relief->stalls == "*") text += fmt::format("      ->  {}\n", GainText(gain));
  if (!tree.note.empty()) text += "note: " + tree.note + "\n";
  return text;
}

std::vector<WorkloadGain> RankKernels(const std::vector<KernelAnalysis>& kernels,
                                      const std::vector<BottleneckTree>& trees, double workload_seconds) {
  std::vector<WorkloadGain> ranking;
  for (size_t i = 0; i < std::min(kernels.size(), trees.size()); ++i) {
    if (trees[i].gains.empty() || trees[i].gains[0].share <= 0) continue;
    const Gain& best = trees[i].gains[0];
    const double seconds = best.share * kernels[i].group.seconds;
    ranking.push_back({kernels[i].kernel->name, kernels[i].machine->name, std::string(best.relief->text),
                       seconds, workload_seconds > 0 ? seconds / workload_seconds : 0});
  }
  std::stable_sort(ranking.begin(), ranking.end(),
                   [](const WorkloadGain& a, const WorkloadGain& b) { return a.seconds > b.seconds; });
  return ranking;
}

std::vector<WorkloadGain> RankReliefs(const std::vector<KernelAnalysis>& kernels,
                                      const std::vector<BottleneckTree>& trees, double workload_seconds) {
  std::vector<WorkloadGain> ranking;
  for (const Relief& relief : Reliefs()) {
    WorkloadGain gain;
    gain.relief = relief.text;
    bool tried = false;
    for (size_t i = 0; i < std::min(kernels.size(), trees.size()); ++i) {
      for (const Gain& each : trees[i].gains) {
        if (each.relief != &relief || !each.error.empty()) continue;
        tried = true;
        gain.seconds += each.share * kernels[i].group.seconds;
      }
    }
    gain.share = workload_seconds > 0 ? gain.seconds / workload_seconds : 0;
    if (tried) ranking.push_back(std::move(gain));
  }
  std::stable_sort(ranking.begin(), ranking.end(),
                   [](const WorkloadGain& a, const WorkloadGain& b) { return a.seconds > b.seconds; });
  return ranking;
}

}  // namespace heddle::explain

#include "tools/explain/bottleneck_tree.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/explain/source_lines.h"
#include "tools/report/text.h"

namespace heddle::explain {
namespace {

using analysis::KernelAnalysis;
using isa::Op;
using stats::Stall;

// Whether the instruction has to do with barrier `barrier` of its warp: results or sources that others wait for.
bool Signals(const isa::Instruction& instruction, uint8_t barrier) {
  return instruction.control.write_barrier == barrier || instruction.control.read_barrier == barrier;
}

// The nearest instruction before `index` that `is_it` takes; a loop is entered from its end.
template <typename IsIt>
std::optional<uint32_t> Backwards(const isa::KernelCode& code, uint32_t index, IsIt is_it) {
  const auto count = static_cast<uint32_t>(code.instructions.size());
  for (uint32_t step = 1; step < count; ++step) {
    const uint32_t at = (index + count - step) % count;
    if (is_it(code.instructions[at])) return at;
  }
  return std::nullopt;
}

std::optional<uint32_t> ProducerOf(const isa::KernelCode& code, uint32_t index, Stall stall) {
  if (!code.has_control_bits || index >= code.instructions.size()) return std::nullopt;
  const isa::Instruction& waiter = code.instructions[index];
  if (stall != Stall::k_long_scoreboard && stall != Stall::k_short_scoreboard) return std::nullopt;
  if (waiter.op == Op::kDEPBAR)
    return Backwards(code, index, [](const isa::Instruction& each) {
      return each.op == Op::kLDGSTS || each.op == Op::kUTMASTG || each.op == Op::kUBLKCP;
    });
  constexpr uint8_t kBarriers = 6;
  std::optional<uint32_t> found;
  for (uint8_t barrier = 0; barrier < kBarriers; ++barrier) {
    if ((waiter.control.wait_mask >> barrier & 1) == 0) continue;
    const auto producer =
        Backwards(code, index, [barrier](const isa::Instruction& each) { return Signals(each, barrier); });
    if (!producer) continue;
    // Of several, one of the kind that the stall names.
    const isa::Pipe pipe = isa::PipeOf(code.instructions[*producer].op);
    const bool is_long = pipe == isa::Pipe::kLsu && code.instructions[*producer].op != Op::kLDS &&
                         code.instructions[*producer].op != Op::kLDSM;
    if (!found || is_long == (stall == Stall::k_long_scoreboard)) found = producer;
  }
  return found;
}

// Barrier waits of the launch: by the index of the waiter, that which ended most of its waiting.
std::map<uint32_t, uint32_t> BarrierCauses(const std::vector<analysis::BarrierWait>& waits) {
  std::map<uint32_t, uint32_t> causes;
  for (const analysis::BarrierWait& wait : waits)  // longest first
    if (wait.cause_pc >= 0)
      causes.emplace(wait.pc / isa::kInstructionBytes,
                     static_cast<uint32_t>(wait.cause_pc) / isa::kInstructionBytes);
  return causes;
}

std::vector<Site> SitesOf(const KernelAnalysis& kernel, Stall stall, size_t most) {
  uint64_t all = 0;
  for (const uint64_t slots : kernel.counts.slots) all += slots;
  std::vector<Site> sites;
  for (size_t i = 0; i < kernel.counts.per_pc.size(); ++i) {
    const uint64_t slots = kernel.counts.per_pc[i].slots[static_cast<size_t>(stall)];
    if (slots == 0) continue;
    sites.push_back({static_cast<uint32_t>(i),
                     static_cast<double>(slots) / static_cast<double>(std::max<uint64_t>(all, 1)),
                     std::nullopt});
  }
  std::stable_sort(sites.begin(), sites.end(),
                   [](const Site& a, const Site& b) { return a.share > b.share; });
  sites.resize(std::min(sites.size(), most));
  return sites;
}

// False where nothing of the launch went there.
bool UsesWhatItRelieves(const Relief& relief, const stats::Counters& counters) {
  constexpr std::pair<std::string_view, uint64_t stats::Counters::*> kUses[] = {
      {"tensor", &stats::Counters::sm_ops_tensor},
      {"tma", &stats::Counters::tma_inst_executed},
      {"bank_conflicts", &stats::Counters::smem_bank_conflicts}};
  return std::none_of(std::begin(kUses), std::end(kUses),
                      [&](const auto& use) { return relief.key == use.first && counters.*use.second == 0; });
}

// What is worth trying: by the share of the causes that it may help, but first one for each cause, so that none of the top ones
// is left without a number because another has many reliefs.
std::vector<const Relief*> Candidates(const std::vector<Cause>& causes, const KernelAnalysis& kernel,
                                      size_t most) {
  std::vector<std::pair<double, const Relief*>> weighed;
  for (const Relief& relief : Reliefs()) {
    if (!UsesWhatItRelieves(relief, kernel.counts.counters)) continue;
    double share = 0;
    for (const Cause& cause : causes)
      if (cause.stall.stall != Stall::k_selected && relief.Helps(cause.stall.stall))
        share += cause.stall.share;
    if (relief.stalls == "*") share = 1;  // cheap to try, and never told by a stall
    if (share > 0 && !OverridesOf(relief, kernel.machine->gpu).empty()) weighed.emplace_back(share, &relief);
  }
  std::stable_sort(weighed.begin(), weighed.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<const Relief*> reliefs;
  const auto take = [&](const auto& is_wanted) {
    for (const auto& [share, relief] : weighed) {
      if (reliefs.size() == most) return;
      if (std::find(reliefs.begin(), reliefs.end(), relief) == reliefs.end() && is_wanted(*relief))
        reliefs.push_back(relief);
    }
  };
  take([](const Relief& relief) { return relief.stalls == "*"; });
  for (const Cause& cause : causes) {
    const auto helps = [&](const Relief& relief) {
      return relief.stalls != "*" && relief.Helps(cause.stall.stall);
    };
    const bool helped =
        std::any_of(reliefs.begin(), reliefs.end(), [&](const Relief* relief) { return helps(*relief); });
    bool taken = helped || cause.stall.stall == Stall::k_selected;
    take([&](const Relief& relief) { return !taken && (taken = helps(relief)); });
  }
  take([](const Relief&) { return true; });
  return reliefs;
}

bool Stops(const Error& error) { return error.code == ExitCode::kInterrupted; }

Status Measure(const KernelAnalysis& kernel, Resimulator* resimulator, size_t most, BottleneckTree* tree) {
  auto base_seconds = kernel.launch.Seconds();
  const Result<Resimulator::Outcome> base = resimulator->Simulate(kernel.launch, {});
  if (!base.ok()) {
    if (Stops(base.error())) return base.error();
    tree->note = base.error().ToString();
    return Ok();
  }
  base_seconds = base->seconds;
  if (!base->same_key && base->cycles != static_cast<double>(kernel.launch.Cycles())) {
    tree->note = fmt::format(
        "simulated again the launch takes {:.0f} cycles where the database has {}: another version of the "
        "model, or "
        "other options; gains are of the former",
        base->cycles, kernel.launch.Cycles());
  }
  for (const Relief* relief : Candidates(tree->causes, kernel, most)) {
    Gain gain{relief, 0, 0, ""};
    const Result<Resimulator::Outcome> outcome =
        resimulator->Simulate(kernel.launch, OverridesOf(*relief, kernel.machine->gpu));
    if (outcome.ok()) {
      gain.cycles = outcome->cycles;
      gain.share = base_seconds > 0 ? 1 - outcome->seconds / base_seconds : 0;
    } else if (Stops(outcome.error())) {
      return outcome.error();
    } else {
      gain.error = outcome.error().message;
    }
    tree->gains.push_back(std::move(gain));
  }
  std::stable_sort(tree->gains.begin(), tree->gains.end(),
                   [](const Gain& a, const Gain& b) { return a.share > b.share; });
  return Ok();
}

}  // namespace

Result<BottleneckTree> Explain(analysis::ResultsReader* reader, const KernelAnalysis& kernel,
                               Resimulator* resimulator, const TreeOptions& options) {
  BottleneckTree tree;
  for (const analysis::StallShare& stall : kernel.ladder) {
    if (stall.share < options.least_share) continue;
    tree.causes.push_back({stall, SitesOf(kernel, stall.stall, options.sites), {}});
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<analysis::BarrierWait> waits,
                          reader->WaitsOf(kernel.launch.launch_id));
  const std::map<uint32_t, uint32_t> barrier_causes = BarrierCauses(waits);
  isa::KernelCode code;
  code.has_control_bits = false;
  if (resimulator != nullptr) {
    HEDDLE_RETURN_IF_ERROR(Measure(kernel, resimulator, options.reliefs, &tree));
    if (Result<isa::KernelCode> read = resimulator->CodeOf(kernel.launch); read.ok()) code = std::move(*read);
    if (const auto trace = resimulator->TraceOf(kernel.launch); trace.ok())
      tree.source = SourceLinesOf((*trace)->trace, kernel.launch.ordinal);
  }
  for (Cause& cause : tree.causes) {
    for (Site& site : cause.sites) {
      site.waits_for = ProducerOf(code, site.index, cause.stall.stall);
      if (const auto known = barrier_causes.find(site.index); known != barrier_causes.end())
        site.waits_for = known->second;
    }
    for (size_t i = 0; i < tree.gains.size(); ++i)
      if (tree.gains[i].relief->stalls != "*" && tree.gains[i].relief->Helps(cause.stall.stall))
        cause.gains.push_back(i);
  }
  return tree;
}

}  // namespace heddle::explain

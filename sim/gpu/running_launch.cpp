#include "sim/gpu/running_launch.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/check.h"
#include "sim/gpu/dispatcher.h"
#include "sim/gpu/memory_system.h"
#include "sim/isa/matrix.h"

namespace heddle::gpu {

namespace {

template <typename MakeError>
Status CheckCluster(const config::Gpu& gpu, const LaunchRequest& request, const MakeError& error) {
  const isa::LaunchShape& shape = request.program->shape();
  const Dim3& cluster = shape.cluster;
  if (!gpu.cluster_network) return error(fmt::format("a launch with clusters, {} has none", gpu.name), "");
  if (shape.grid.x % cluster.x != 0 || shape.grid.y % cluster.y != 0 || shape.grid.z % cluster.z != 0)
    return error(fmt::format("the grid {}x{}x{} is no whole number of clusters of {}x{}x{}", shape.grid.x,
                             shape.grid.y, shape.grid.z, cluster.x, cluster.y, cluster.z),
                 "");
  const uint32_t largest_gpc = *std::max_element(gpu.sms_per_gpc.begin(), gpu.sms_per_gpc.end());
  if (cluster.Count() > gpu.cluster_network->max_cluster_ctas || cluster.Count() > isa::kMaxClusterCtas ||
      cluster.Count() > uint64_t{largest_gpc} * sm::MaxResidentCtas(gpu, shape))
    return error(fmt::format("no GPC of {} can host a cluster of {} CTAs", gpu.name, cluster.Count()),
                 "choose a larger machine or a smaller cluster");
  return Ok();
}

}  // namespace

Status CheckLaunch(const config::Gpu& gpu, const LaunchRequest& request, bool allow_foreign_cubins) {
  const auto error = [&](std::string message, std::string next_step) {
    return Error{ExitCode::kTrace, request.name, std::move(message), std::move(next_step)};
  };
  const isa::LaunchShape& shape = request.program->shape();
  const uint32_t version = request.program->code().sm_version;
  if (!allow_foreign_cubins && std::find(gpu.runs_sm_versions.begin(), gpu.runs_sm_versions.end(), version) ==
                                   gpu.runs_sm_versions.end())
    return error(fmt::format("the cubin is for sm_{}, {} runs sm_{}", version, gpu.name,
                             fmt::join(gpu.runs_sm_versions, ", sm_")),
                 "build the trace for one of these, or ask for it: --allow-foreign");
  if (shape.grid.Count() == 0 || shape.block.Count() == 0) return error("the grid or the block is empty", "");
  if (!gpu.sm.tma && sm::NeedsHopperUnits(request.program->code()))
    return error(fmt::format("the kernel needs the bulk-copy unit, mbarriers, cluster barriers or matrix "
                             "instructions of a warpgroup, {} has none",
                             gpu.name),
                 "choose a machine of sm_version 90 or later");
  const auto& code = request.program->code().instructions;
  const auto matrix = std::find_if(code.begin(), code.end(), [](const isa::Instruction& instruction) {
    return isa::IsWarpGroupMatrix(instruction.op);
  });
  if (!gpu.sm.gmma && matrix != code.end())
    return error(fmt::format("the kernel has matrix instructions of a warpgroup ({}), {} has no sm.gmma",
                             isa::Name(matrix->op), gpu.name),
                 "choose a machine of sm_version 90");
  if (sm::MaxResidentCtas(gpu, shape) == 0)
    return error(
        fmt::format(
            "no SM of {} can host a CTA: {} threads, {} registers a thread, {} bytes of shared memory",
            gpu.name, shape.ThreadsPerCta(), shape.registers_per_thread, shape.shared_bytes_per_cta),
        "choose a larger machine or a smaller CTA");
  if (shape.IsCluster()) return CheckCluster(gpu, request, error);
  return Ok();
}

RunningLaunch::RunningLaunch(const config::Gpu& gpu, const LaunchRequest& launch, uint32_t launch_index,
                             uint16_t sums, uint32_t chunks, bool per_pc)
    : request(&launch),
      index(launch_index),
      statistics(sums),
      timing(sm::BuildKernelTiming(gpu, launch.program->code(), launch.program->shape())),
      on_sm(gpu.sm.count),
      chunk_stats(chunks),
      ctas(launch.program->shape().grid.Count()) {
  if (per_pc)
    for (stats::LaunchStats& sums_of_chunk : chunk_stats)
      sums_of_chunk.per_pc.resize(launch.program->code().instructions.size());
}

void RunningLaunch::PlaceStaticData(MemorySystem* memory) const {
  const isa::LaunchShape& shape = request->program->shape();
  memory->PlaceInL2(shape.code_address,
                    request->program->code().instructions.size() * isa::kInstructionBytes);
  if (shape.constant_bank_address[0] != 0)
    memory->PlaceInL2(shape.constant_bank_address[0], sm::kConstantBank0Bytes);
}

void RunningLaunch::StartSampling(const config::Gpu& gpu, uint64_t machine_ctas) {
  if (!request->sampling) return;
  const double lines = static_cast<double>(gpu.l2.size_bytes) / static_cast<double>(gpu.l2.line_bytes);
  sampler.emplace(*request->sampling, request->program->shape(), request->program->code(),
                  SampledMachine{machine_ctas, static_cast<uint64_t>(lines * gpu.l2.dirty_limit_fraction)});
}

RunningLaunch::OnSm& RunningLaunch::Open(sm::Sm* sm, Cycle at) {
  OnSm& on = on_sm[sm->id()];
  if (on.open) return on;
  on.stream = request->program->OpenOnSm(sm->id());
  on.handle = sm->OpenLaunch(timing, request->program->shape(), on.stream.get(),
                             &chunk_stats[uint64_t{sm->id()} * chunk_stats.size() / on_sm.size()], at);
  sm->WarmCaches(on.handle);
  on.open = true;
  return on;
}

void RunningLaunch::Close(std::vector<sm::Sm>* sms, Cycle at) {
  for (uint32_t sm = 0; sm < on_sm.size(); ++sm) {
    if (!on_sm[sm].open) continue;
    (*sms)[sm].CloseLaunch(on_sm[sm].handle, at);
    on_sm[sm] = {};
  }
}

uint64_t RunningLaunch::CtasToLeaveOut(bool alone, const std::vector<sm::Sm>& sms, const MemorySystem& memory,
                                       const Dispatcher& dispatcher) {
  if (!sampler) return 0;
  if (!alone) sampler->Disturb();
  if (!sampler->IsDue()) return 0;
  return sampler->Decide(CountersSoFar(sms, memory), memory.DirtyLines(), dispatcher.Dispatched(index),
                         finished, last_acknowledged);
}

Error RunningLaunch::OverLimit(Cycle max_cycles) const {
  return {ExitCode::kDidNotFinish, request->name,
          fmt::format("has not finished {} cycles after its start: {} of {} CTAs have", max_cycles, finished,
                      ctas),
          "raise the limit of cycles, or look for a spin loop that never ends"};
}

stats::Counters RunningLaunch::CountersSoFar(const std::vector<sm::Sm>& sms,
                                             const MemorySystem& memory) const {
  stats::Counters sum;
  for (uint32_t sm = 0; sm < on_sm.size(); ++sm)
    if (on_sm[sm].open) sum += sms[sm].CountersOf(on_sm[sm].handle);
  memory.AddCounters(statistics, &sum);
  return sum;
}

stats::LaunchStats RunningLaunch::Assemble() const {
  stats::LaunchStats sum;
  sum.per_pc.resize(chunk_stats.front().per_pc.size());
  for (const stats::LaunchStats& chunk : chunk_stats) {
    sum.counters += chunk.counters;
    stats::Add(chunk.waits, &sum.waits);
    for (size_t i = 0; i < sum.slots.size(); ++i) sum.slots[i] += chunk.slots[i];
    for (size_t pc = 0; pc < sum.per_pc.size(); ++pc) {
      sum.per_pc[pc].issued += chunk.per_pc[pc].issued;
      sum.per_pc[pc].memory += chunk.per_pc[pc].memory;
      for (size_t i = 0; i < sum.slots.size(); ++i) sum.per_pc[pc].slots[i] += chunk.per_pc[pc].slots[i];
    }
  }
  const uint64_t slots = std::accumulate(sum.slots.begin(), sum.slots.end(), uint64_t{0});
  HEDDLE_CHECK(slots == sum.counters.smsp_issue_slots, "gpu." + request->name, 0,
               fmt::format("{} slots were charged, {} have passed", slots, sum.counters.smsp_issue_slots));
  HEDDLE_CHECK(sum.counters.sm_ctas_launched == ctas, "gpu." + request->name, 0,
               fmt::format("{} CTAs were launched of {}", sum.counters.sm_ctas_launched, ctas));
  return sum;
}

Cycle LaunchOverheadCycles(const config::Gpu& gpu, const LaunchRequest& request) {
  if (!request.behind_in_graph) return gpu.launch.overhead_cycles;
  return static_cast<Cycle>(std::llround(gpu.launch.graph_overhead_ns * gpu.clocks.sm_mhz / 1e3));
}

}  // namespace heddle::gpu

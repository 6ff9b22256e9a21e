#include "sim/sm/sm.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/base/check.h"
#include "sim/base/prefetch.h"
#include "sim/sm/machine.h"

namespace heddle::sm {

Sm::Machine::Machine(const config::Gpu& gpu, uint32_t sm_id)
    : config(gpu.sm),
      policy(gpu.sm.sub_core.scheduler),
      sm_mhz(gpu.clocks.sm_mhz),
      id(sm_id),
      sub_core_count(gpu.sm.sub_core_count),
      sub_core_shift(static_cast<uint32_t>(std::countr_zero(gpu.sm.sub_core_count))),
      fetch_line_bytes(std::min(gpu.sm.instruction_caches.l0.line_bytes, memory::kLineBytes)),
      fma_quarters(static_cast<uint32_t>(std::lround(4 * gpu.sm.pipes.fma.initiation_interval_cycles))),
      lsu_interval_cycles(static_cast<uint32_t>(std::ceil(gpu.sm.mio.lsu_interval_cycles))),
      tag_cycles_per_line(1 / gpu.sm.l1.tag_lookups_per_cycle),
      shared_bytes_per_cycle(gpu.sm.shared_memory.banks * gpu.sm.shared_memory.bank_bytes),
      copy_extra_cycles(static_cast<uint32_t>(std::lround(gpu.sm.l1.ldgsts_latency_extra_cycles))),
      gmma_issue_quarters(
          gpu.sm.gmma ? static_cast<uint32_t>(std::lround(4 * gpu.sm.gmma->issue_interval_cycles)) : 0),
      sub_cores(gpu.sm.sub_core_count, SubCore(gpu)),
      warps(gpu.sm.max_warps),
      ctas(gpu.sm.max_ctas),
      fetch(gpu.sm.instruction_caches, gpu.sm.sub_core_count),
      constants(gpu.sm.constant_caches, gpu.sm.sub_core_count),
      l1(gpu.sm.l1),
      shared(gpu.sm.shared_memory),
      port(sm_id),
      warp_in_use(gpu.sm.max_warps) {
  if (gpu.sm.tma && gpu.sm.mbarrier && gpu.cluster_network) async = std::make_unique<AsyncUnits>(gpu);
  next_issue.fill(kNever);
  HEDDLE_CHECK(std::has_single_bit(sub_core_count) && sub_core_count <= kMaxSubCores &&
                   gpu.sm.max_warps <= kMaxWarps && gpu.sm.max_warps <= sub_core_count * kWarpsPerSubCore &&
                   gpu.sm.sub_core.register_banks <= kMaxRegisterBanks &&
                   gpu.sm.barriers_per_cta <= kNamedBarriers,
               Path(), 0, "a description beyond what an SM of this model can be");
}

std::string Sm::Machine::Path() const { return fmt::format("gpu[0].sm[{}]", id); }

LaunchHandle Sm::Machine::OpenLaunch(const KernelTiming& timing, const isa::LaunchShape& shape,
                                     isa::WarpStream* stream, stats::LaunchStats* stats, Cycle at) {
  size_t handle = 0;
  while (handle < launches.size() && launches[handle].open) ++handle;
  if (handle == launches.size()) launches.emplace_back();
  Launch& launch = launches[handle];
  launch = Launch{};
  launch.open = true;
  launch.timing = &timing;
  launch.instructions = timing.instructions.data();
  launch.tracks_registers = timing.tracks_registers;
  launch.shape = shape;
  launch.stream = stream;
  launch.stats = stats;
  launch.per_pc = stats->per_pc.empty() ? nullptr : stats->per_pc.data();
  HEDDLE_CHECK(stats->per_pc.empty() || stats->per_pc.size() >= timing.instructions.size(), Path(), at,
               "per-PC sums are not sized to the kernel's code");
  launch.opened = at;
  launch.order = ++launch_order;
  if (open_launches++ == 0) {
    epoch_begin = at;
    epoch_slots = {};
    for (SubCore& sub_core : sub_cores) sub_core.charged_until = at;
  }
  if (timing.counted_barriers != 0) counted.resize(warps.size() * kBarriers);
  if (timing.tracks_registers) register_state.resize(warps.size() * kTrackedRegisters);
  if (timing.scoreboard) {
    sources_released.resize(warps.size() * kTrackedRegisters);
    scoreboard_waits.resize(warps.size());
  }
  return static_cast<LaunchHandle>(handle);
}

void Sm::Machine::CloseLaunch(LaunchHandle handle, Cycle at) {
  Launch& launch = launches[handle];
  HEDDLE_CHECK(launch.open && launch.resident == 0, Path(), at,
               "a launch is closed while CTAs of it are resident");
  for (uint32_t i = 0; i < sub_core_count; ++i) Settle(i, at);
  CheckClosed(launch, at);
  for (size_t i = 0; i < launch.slots.size(); ++i) {
    launch.stats->slots[i] += launch.slots[i];
    launch.counters.smsp_issue_slots += launch.slots[i];
    epoch_slots[i] += launch.slots[i];
  }
  // Fetch is shared by launches that overlap: what happened since the last report goes to the one that
  // closes.
  launch.counters.icc_requests = fetch.requests() - reported_fetch_requests;
  launch.counters.icc_misses = fetch.misses() - reported_fetch_misses;
  launch.counters.idc_misses = constants.misses() - reported_constant_misses;
  reported_fetch_requests = fetch.requests();
  reported_fetch_misses = fetch.misses();
  reported_constant_misses = constants.misses();
  launch.stats->counters += launch.counters;
  stats::Add(launch.waits, &launch.stats->waits);
  if (launch.per_pc != nullptr)
    for (size_t i = 0; i < launch.timing->instructions.size(); ++i)
      launch.per_pc[i].issued = launch.per_pc[i].slots[static_cast<size_t>(stats::Stall::k_selected)];
  launch.open = false;
  --open_launches;
}

void Sm::Machine::StartCta(LaunchHandle handle, Dim3 cta_id, Cycle at, Cluster* cluster, uint32_t rank) {
  Launch& launch = launches[handle];
  HEDDLE_CHECK(between_windows, Path(), at, "a CTA is started before the replies have been taken");
  HEDDLE_CHECK(CanHost(launch.shape), Path(), at, "a CTA is started for which there is no room");
  if (ctas_used == 0) {
    ChooseCarveOut(launch.shape);
    active_since = at;
  }
  TakeResources(launch.shape);
  ++launch.resident;
  announced.push_back({handle, cta_id, cluster, rank});
  if (cluster != nullptr) {
    cluster->members[rank].sm = id;
    cluster->members[rank].launch = handle;
    cluster->members[rank].launch_order = launch.order;
  }
  PushArrival({.cycle = at, .kind = Arrival::Kind::kCta});
}

// Of the CTA that was announced first: starts come in the order in which they are announced.
void Sm::Machine::StartWarps(Cycle at) {
  uint32_t index = 0;
  while (ctas[index].resident) ++index;
  Cta& cta = ctas[index];
  cta.launch = announced.front().launch;
  cta.id = announced.front().id;
  Cluster* const cluster = announced.front().cluster;
  const uint32_t rank = announced.front().rank;
  announced.pop_front();
  Launch& launch = launches[cta.launch];
  ChooseSlots(&cta, launch.shape);
  cta.slot = static_cast<uint32_t>(std::countr_one(launch.slots_in_use));
  launch.slots_in_use |= uint64_t{1} << cta.slot;
  launch.cta_of_slot[cta.slot] = static_cast<uint8_t>(index);
  if (async) {
    AsyncCta& state = async->ctas[index];
    state = AsyncCta{.cluster = cluster, .rank = rank, .generation = ++async->generation, .warpgroups = {}};
    if (cluster != nullptr) {
      cluster->members[rank].cta = index;
      cluster->members[rank].generation = state.generation;
    }
  }
  for (uint32_t i = 0; i < sub_core_count; ++i) Settle(i, at);
  cta.live_warps = cta.undrained_warps = static_cast<uint32_t>(cta.warps.size());
  cta.barriers.Clear();
  launch.counters.sm_ctas_launched += 1;
  launch.counters.smsp_warps_launched += cta.warps.size();
  launch.stream->StartCta(
      {.slot = cta.slot, .cta = cta.id, .sm = id, .first_warp_slot = cta.warps[0], .cycle = at});
  if (launch.timing->has_hopper_units) {
    std::vector<Warpgroup>& groups = async->ctas[index].warpgroups;
    groups.resize(CeilDiv<size_t>(cta.warps.size(), kWarpgroupWarps));
    for (size_t i = 0; i < groups.size(); ++i)
      groups[i].Start(
          static_cast<uint32_t>(std::min<size_t>(kWarpgroupWarps, cta.warps.size() - i * kWarpgroupWarps)));
  }
  for (uint32_t i = 0; i < cta.warps.size(); ++i) StartWarp(index, i, cta.warps[i], at);
  for (uint32_t i = 0; i < sub_core_count; ++i) Select(i);
}

void Sm::Machine::StartWarp(uint32_t cta_index, uint32_t in_cta, uint32_t slot, Cycle at) {
  const Cta& cta = ctas[cta_index];
  Warp& warp = warps[slot];
  SubCore& sub_core = sub_cores[SubCoreOf(slot)];
  warp = Warp{};
  warp.live = true;
  warp.launch = cta.launch;
  warp.cta = cta_index;
  warp.in_cta = in_cta;
  warp.stream_warp = cta.slot * static_cast<uint32_t>(cta.warps.size()) + in_cta;
  warp.started = at;
  const Launch& launch = launches[cta.launch];
  const isa::InstructionRun run = launch.stream->NextRun(warp.stream_warp);
  HEDDLE_CHECK(run.state == isa::WarpState::kRunnable &&
                   uint64_t{run.first} + run.count < launch.timing->instructions.size(),
               Path(), at, "a new warp has nothing to execute");
  StartRun(&warp, run);
  const uint32_t local = LocalOf(slot);
  sub_core.registers.Forget(local);
  // Youngest first, or oldest first where the policy prefers those.
  sub_core.ready.Insert(local, policy == config::SchedulerPolicy::kGreedyThenYoungest);
  if (launch.timing->counted_barriers != 0)
    for (uint32_t barrier = 0; barrier < kBarriers; ++barrier) counted[slot * kBarriers + barrier].Clear();
  if (launch.timing->tracks_registers)
    std::fill_n(register_state.begin() + static_cast<ptrdiff_t>(size_t{slot} * kTrackedRegisters),
                kTrackedRegisters, RegisterState{});
  if (launch.timing->scoreboard)
    std::fill_n(sources_released.begin() + static_cast<ptrdiff_t>(size_t{slot} * kTrackedRegisters),
                kTrackedRegisters, Cycle{0});
  if (async) {
    async->warps[slot] = AsyncWarp{};
    async->queues[slot].Clear();
    async->warps[slot].registers = launch.shape.registers_per_thread;
  }
  warp.branch_until = at;
  StartFetch(slot, at);
  Refresh(slot);
}

void Sm::Machine::AdvanceCalendars(Cycle begin) {
  lsu.AdvanceTo(begin);
  fetch.AdvanceTo(begin);
  for (SubCore& sub_core : sub_cores) sub_core.returns.AdvanceTo(begin);
}

void Sm::Machine::Prefetch() const {
  const memory::Outbox& outbox = port.outbox();
  PrefetchRange(outbox.data(), outbox.data() + outbox.size());
  fetch.Prefetch();
  PrefetchRange(&next_issue, this + 1);
  PrefetchRange(sub_cores.data(), sub_cores.data() + sub_cores.size());
  for (const Warp& warp : warps)
    if (warp_in_use[static_cast<size_t>(&warp - warps.data())] != 0) PrefetchRange(&warp, &warp + 1);
}

void Sm::Machine::PrefetchWarps() const {
  constexpr uint64_t kLinesAhead = 3;
  for (uint32_t id = 0; id < warps.size(); ++id) {
    if (warp_in_use[id] == 0 || !warps[id].live) continue;
    const Warp& warp = warps[id];
    launches[warp.launch].stream->Prefetch(warp.stream_warp);
    for (uint64_t line = warp.fetch_line + 1; line <= warp.fetch_line + kLinesAhead; ++line)
      fetch.Prefetch(SubCoreOf(id), line);
  }
}

Cycle Sm::Machine::NextEventCycle() const {
  const Cycle next =
      std::min({next_event, next_departure, *std::min_element(next_issue.begin(), next_issue.end())});
  return async ? std::min({next, async->next_departure, async->tma.NextRequest()}) : next;
}

void Sm::Machine::FindNextEvent() {
  next_event = arrivals.empty() ? kNever : arrivals.front().cycle;
  if (next_answer < answers.size()) next_event = std::min(next_event, answers[next_answer].cycle);
}

// Of a tie, answers first.
void Sm::Machine::TakeEvent() {
  if (next_answer < answers.size() && answers[next_answer].cycle == next_event) {
    TakeAnswers();
  } else {
    Arrive();
  }
  FindNextEvent();
}

// ---- The public face
// ---------------------------------------------------------------------------------------------

Sm::Sm(const config::Gpu& gpu, uint32_t id) : machine_(std::make_unique<Machine>(gpu, id)) {}
Sm::~Sm() = default;
Sm::Sm(Sm&&) noexcept = default;
Sm& Sm::operator=(Sm&&) noexcept = default;

LaunchHandle Sm::OpenLaunch(const KernelTiming& timing, const isa::LaunchShape& shape,
                            isa::WarpStream* stream, stats::LaunchStats* stats, Cycle at) {
  return machine_->OpenLaunch(timing, shape, stream, stats, at);
}
void Sm::CloseLaunch(LaunchHandle launch, Cycle at) { machine_->CloseLaunch(launch, at); }
bool Sm::CanHost(const isa::LaunchShape& shape) const { return machine_->CanHost(shape); }
void Sm::StartCta(LaunchHandle launch, Dim3 cta, Cycle at, Cluster* cluster, uint32_t rank) {
  machine_->StartCta(launch, cta, at, cluster, rank);
}
void Sm::SetGridReady(LaunchHandle launch, Cycle at) { machine_->SetGridReady(launch, at); }
void Sm::TakeReplies(Cycle begin) { machine_->TakeReplies(begin); }
Cycle Sm::RunWindow(Cycle begin, Cycle end) {
  machine_->RunWindow(begin, end);
  if (machine_->async) machine_->SendBulkRequests(end);
  return std::min(machine_->next_event,
                  *std::min_element(machine_->next_issue.begin(), machine_->next_issue.end()));
}
void Sm::Prefetch() const { machine_->Prefetch(); }
void Sm::PrefetchWarps() const { machine_->PrefetchWarps(); }
memory::Outbox& Sm::outbox() { return machine_->port.outbox(); }
std::vector<FinishedCta>& Sm::finished() { return machine_->finished; }
std::vector<TriggeredCta>& Sm::triggered() { return machine_->triggered; }
ClusterOutbox& Sm::cluster_outbox() { return machine_->async->outbox; }
void Sm::Deliver(const ClusterMessage& message) { machine_->Deliver(message); }
uint32_t Sm::InstructionOf(uint32_t bulk_work) const {
  return machine_->async->tma.work(bulk_work).instruction;
}
Cluster* Sm::ClusterOf(uint32_t bulk_work) const {
  return machine_->async->ctas[machine_->async->tma.work(bulk_work).cta].cluster;
}
bool Sm::FailWaits(Cycle at) { return machine_->FailWaits(at); }

void Sm::ForgetMessages() {
  if (!machine_->async) return;
  HEDDLE_CHECK(Idle(), machine_->Path(), machine_->now, "messages are forgotten while CTAs are resident");
  machine_->arrivals.clear();
  machine_->FindNextEvent();
  machine_->async->inbox.clear();
  machine_->async->free_inbox.clear();
}
Cycle Sm::NextEventCycle() const { return machine_->NextEventCycle(); }
bool Sm::Idle() const { return machine_->ctas_used == 0; }
uint32_t Sm::id() const { return machine_->id; }
std::vector<WarpWait> Sm::DescribeWaits() const { return machine_->DescribeWaits(); }
const stats::Counters& Sm::CountersOf(LaunchHandle launch) const {
  return machine_->launches[launch].counters;
}

void Sm::WarmCaches(LaunchHandle launch) {
  const KernelTiming& timing = *machine_->launches[launch].timing;
  machine_->fetch.Warm(timing.code_address, timing.instructions.size() * isa::kInstructionBytes);
  if (timing.constant_bank_address[0] != 0)
    machine_->constants.Warm(timing.constant_bank_address[0], kConstantBank0Bytes);
}

void Sm::InvalidateCaches(bool everything) {
  machine_->l1.Invalidate();
  if (!everything) return;
  machine_->fetch.Clear();
  machine_->constants.Clear();
}

}  // namespace heddle::sm

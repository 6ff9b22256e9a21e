#include "sim/gpu/gpu.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/check.h"
#include "sim/config/gpu_description.h"
#include "sim/engine/windows.h"
#include "sim/engine/workers.h"
#include "sim/gpu/cluster_traffic.h"
#include "sim/gpu/deadlock.h"
#include "sim/gpu/dispatcher.h"
#include "sim/gpu/launch_graph.h"
#include "sim/gpu/memory_system.h"
#include "sim/gpu/running_launch.h"
#include "sim/isa/memory_image.h"
#include "sim/sm/sm.h"

namespace heddle::gpu {
namespace {

constexpr Cycle kNever = ~Cycle{0};
constexpr uint32_t kChunksPerThread = 8;
constexpr uint32_t kWindowsPerProgress = 256;

}  // namespace

struct Gpu::State {
  State(const config::Gpu& gpu, RunOptions run_options);

  Result<std::vector<stats::LaunchStats>> Run(std::span<const LaunchRequest> requests);
  Cycle NextEvent();
  Cycle NextKnownEvent() const;
  void StartDue(Cycle end);
  void Start(uint32_t launch, Cycle at);
  void ApplyCachePolicy();
  void EndDue(Cycle begin, Cycle end);
  void End(RunningLaunch* launch, Cycle at, Cycle charge_until);
  Cycle EndOf(const RunningLaunch& launch) const;       // of the kernel
  Cycle HeardEndOf(const RunningLaunch& launch) const;  // when what follows may start
  void StartCta(uint32_t sm, uint32_t launch, Dim3 cta, Cycle at);
  Cycle WindowNow() const;
  void Trigger(RunningLaunch* launch);
  bool FailWaits();
  void TakeReplies(uint32_t sm);
  void TakeAllReplies();
  void RunSms(Cycle begin, Cycle end);
  void PublishStores();
  void ServeMemory(Cycle begin, Cycle end);
  void CollectFinished();
  void LeaveOutCtas();
  void SampleTimelines();
  void Report(bool always);
  const RunningLaunch* OverLimit() const;
  RunningLaunch& Running(uint32_t launch);
  uint32_t FirstOf(uint32_t chunk) const {
    return FirstOfChunk(chunk, chunks, static_cast<uint32_t>(sms.size()));
  }
  bool Stopping() const { return options.stop != nullptr && options.stop->load(std::memory_order_relaxed); }

  struct DueStart {
    Cycle cycle;
    uint32_t launch;
  };
  struct Finish {
    Cycle cycle;
    uint32_t sm;
    sm::LaunchHandle handle;
    bool triggered;
    Dim3 cta;
  };

  config::Gpu description;
  RunOptions options;
  Cycle window;
  Cycle cluster_window;  // while launches with clusters are left
  Cycle hearing;         // the whole window: results do not depend on window_fraction
  engine::Workers workers;
  MemorySystem memory;
  std::vector<sm::Sm> sms;
  std::vector<Cycle> next;                       // by SM: its next event, as far as is known
  std::vector<uint8_t> unanswered;               // by SM: it has run and not taken its replies since
  std::vector<std::vector<uint32_t>> launch_of;  // by SM, then handle: index of the launch
  Dispatcher dispatcher;
  std::unique_ptr<ClusterTraffic> clusters;  // of machines that have them
  uint32_t clusters_left = 0;                // launches with clusters that have not ended
  uint32_t failed_waits = 0;                 // rounds since the last end of a CTA
  uint32_t chunks;
  Cycle now = 0;
  bool broken = false;

  // Of the current Run.
  std::span<const LaunchRequest> launches;
  std::unique_ptr<LaunchGraph> graph;
  std::vector<std::unique_ptr<RunningLaunch>> running;  // in the order of their start
  std::vector<DueStart> starts;
  std::vector<uint16_t> free_statistics;
  std::vector<stats::LaunchStats> results;
  std::vector<std::optional<stats::Sampling>> samplings;
  std::vector<stats::Timeline> timelines;
  std::vector<bool> ended;
  uint32_t ended_count = 0;
  Cycle left_out = 0;  // by launches that have ended: later ones start so much later
  uint64_t ctas_total = 0;
  uint64_t ctas_done = 0;
  uint64_t ctas_reported = 0;
  uint32_t windows = 0;
  std::vector<uint32_t> active_chunks;
  std::vector<memory::Outbox*> outboxes;
  std::vector<Finish> finishes;
};

Gpu::State::State(const config::Gpu& gpu, RunOptions run_options)
    : description(gpu),
      options(std::move(run_options)),
      window(engine::WindowLength(gpu, options.window_fraction)),
      cluster_window(engine::ClusterWindowLength(gpu, options.window_fraction)),
      hearing(engine::WindowLength(gpu)),
      workers(std::max(1U, options.threads), options.shuffle_seed),
      memory(gpu, options.placement_seed),
      next(gpu.sm.count, kNever),
      unanswered(gpu.sm.count, 0),
      launch_of(gpu.sm.count),
      dispatcher(
          gpu, PlacementOrder(memory.crossbar()), GpcsOf(memory.crossbar()), hearing,
          {[this](uint32_t sm, uint32_t launch) {
             return sms[sm].CanHost(launches[launch].program->shape());
           },
           [this](uint32_t sm, uint32_t launch, Dim3 cta, Cycle at) { StartCta(sm, launch, cta, at); }}),
      chunks(options.threads <= 1 ? 1 : std::min(gpu.sm.count, kChunksPerThread * options.threads)) {
  for (uint32_t id = 0; id < gpu.sm.count; ++id) {
    sms.emplace_back(description, id);
    outboxes.push_back(&sms.back().outbox());
  }
  if (gpu.cluster_network) clusters = std::make_unique<ClusterTraffic>(gpu);
}

void Gpu::State::StartCta(uint32_t sm, uint32_t launch, Dim3 cta, Cycle at) {
  TakeReplies(sm);
  RunningLaunch& run = Running(launch);
  const bool is_new = !run.on_sm[sm].open;
  const sm::LaunchHandle handle = run.Open(&sms[sm], at).handle;
  if (is_new) {
    if (launch_of[sm].size() <= handle) launch_of[sm].resize(handle + 1);
    launch_of[sm][handle] = launch;
    memory.CountAs(sm, handle, run.statistics);
    if (run.grid_ready != 0) sms[sm].SetGridReady(handle, run.grid_ready);
  }
  if (run.timeline) run.timeline->StartCta(sm, cta, at);
  if (run.sampler) run.sampler->Started(at);
  const isa::LaunchShape& shape = launches[launch].program->shape();
  if (shape.IsCluster()) {
    const uint32_t rank = shape.ClusterRank(cta);
    sms[sm].StartCta(handle, cta, at, clusters->Join(rank, static_cast<uint32_t>(shape.cluster.Count())),
                     rank);
  } else {
    sms[sm].StartCta(handle, cta, at);
  }
  next[sm] = std::min(next[sm], at);
}

Cycle Gpu::State::WindowNow() const { return clusters_left > 0 ? cluster_window : window; }

RunningLaunch& Gpu::State::Running(uint32_t launch) {
  const auto it =
      std::find_if(running.begin(), running.end(), [&](const auto& run) { return run->index == launch; });
  HEDDLE_CHECK(it != running.end(), "gpu", now, "a launch that does not run");
  return **it;
}

Result<std::vector<stats::LaunchStats>> Gpu::State::Run(std::span<const LaunchRequest> requests) {
  if (broken)
    return Error{ExitCode::kDidNotFinish, "", "an earlier launch did not finish on this machine",
                 "make a new one"};
  for (const LaunchRequest& request : requests)
    HEDDLE_RETURN_IF_ERROR(CheckLaunch(description, request, options.allow_foreign_cubins));
  Result<LaunchGraph> built = LaunchGraph::Build(requests);
  if (!built.ok()) return built.error();
  graph = std::make_unique<LaunchGraph>(std::move(built).value());
  launches = requests;
  results.assign(requests.size(), {});
  samplings.assign(requests.size(), std::nullopt);
  timelines.assign(options.timeline ? requests.size() : 0, {});
  ended.assign(requests.size(), false);
  ended_count = 0;
  left_out = 0;
  ctas_total = ctas_done = ctas_reported = 0;
  clusters_left = 0;
  for (const LaunchRequest& request : requests) {
    ctas_total += request.program->shape().grid.Count();
    clusters_left += request.program->shape().IsCluster();
  }
  starts.clear();
  for (uint32_t launch : graph->Roots()) starts.push_back({now, launch});

  while (!running.empty() || (!starts.empty() && !Stopping())) {
    const Cycle event = NextEvent();
    if (event == kNever) {
      if (FailWaits()) continue;
      broken = true;
      return DeadlockError(launches, running, dispatcher, *graph, sms, now);
    }
    const Cycle begin = std::max(now, event);
    const Cycle end = begin + WindowNow();
    EndDue(begin, end);
    StartDue(end);
    dispatcher.Run(begin, end);
    RunSms(begin, end);
    PublishStores();
    ServeMemory(begin, end);
    CollectFinished();
    LeaveOutCtas();
    now = end;
    if (options.timeline) SampleTimelines();
    Report(false);
    if (const RunningLaunch* over = OverLimit()) {
      broken = true;
      return over->OverLimit(options.max_cycles);
    }
  }
  Report(true);
  return std::move(results);
}

Cycle Gpu::State::NextEvent() {
  // Replies can only bring it forward; where something happens now, they are left until their SM runs.
  if (NextKnownEvent() > now) TakeAllReplies();
  return NextKnownEvent();
}

Cycle Gpu::State::NextKnownEvent() const {
  Cycle event = dispatcher.NextEvent(now);
  for (Cycle cycle : next) event = std::min(event, cycle);
  if (!Stopping())
    for (const DueStart& start : starts) event = std::min(event, start.cycle);
  for (const auto& launch : running)
    if (launch->AllFinished()) event = std::min(event, HeardEndOf(*launch));
  return event;
}

void Gpu::State::StartDue(Cycle end) {
  if (Stopping()) return;
  std::sort(starts.begin(), starts.end(), [](const DueStart& a, const DueStart& b) {
    return std::pair(a.cycle, a.launch) < std::pair(b.cycle, b.launch);
  });
  size_t due = 0;
  for (; due < starts.size() && starts[due].cycle < end; ++due) Start(starts[due].launch, starts[due].cycle);
  starts.erase(starts.begin(), starts.begin() + static_cast<std::ptrdiff_t>(due));
}

void Gpu::State::Start(uint32_t launch, Cycle at) {
  if (running.empty()) ApplyCachePolicy();
  uint16_t statistics = static_cast<uint16_t>(running.size());
  if (!free_statistics.empty()) {
    statistics = free_statistics.back();
    free_statistics.pop_back();
  }
  const LaunchRequest& request = launches[launch];
  running.push_back(
      std::make_unique<RunningLaunch>(description, request, launch, statistics, chunks, options.per_pc));
  running.back()->start = at;
  if (options.timeline)
    running.back()->timeline = std::make_unique<TimelineRecorder>(request.program->shape().grid, at);
  if (!graph->WaitsFor(launch).empty()) running.back()->grid_ready = kNever;  // started by a trigger
  running.back()->PlaceStaticData(&memory);
  const isa::LaunchShape& shape = request.program->shape();
  const uint32_t per_sm = sm::MaxResidentCtas(description, shape);
  dispatcher.Add(launch, shape, per_sm,
                 at + (options.launch_overhead ? LaunchOverheadCycles(description, request) : 0));
  running.back()->StartSampling(description, uint64_t{per_sm} * sms.size());
}

void Gpu::State::ApplyCachePolicy() {
  // L1 never outlives a kernel that nothing overlaps.
  const bool warm = options.cache_policy == CachePolicy::kWarm;
  for (sm::Sm& sm : sms) {
    sm.InvalidateCaches(!warm);
    sm.ForgetMessages();
  }
  if (clusters) clusters->Forget();
  if (warm) return;
  memory.InvalidateCaches();
  if (options.cache_policy == CachePolicy::kFlush) memory.FillWithForeignLines();
}

Cycle Gpu::State::EndOf(const RunningLaunch& launch) const {
  const Cycle drain = options.launch_overhead ? description.launch.drain_cycles : 0;
  return std::max(launch.last_finish, launch.last_acknowledged) + drain;
}

Cycle Gpu::State::HeardEndOf(const RunningLaunch& launch) const {
  return std::max(EndOf(launch), launch.last_finish + hearing);
}

void Gpu::State::EndDue(Cycle begin, Cycle end) {
  for (size_t i = 0; i < running.size();) {
    RunningLaunch* launch = running[i].get();
    if (!launch->AllFinished() || HeardEndOf(*launch) >= end) {
      ++i;
      continue;
    }
    TakeAllReplies();
    // Beside others, slots are charged up to what all SMs have reached.
    End(launch, HeardEndOf(*launch), running.size() > 1 ? begin : HeardEndOf(*launch));
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void Gpu::State::End(RunningLaunch* launch, Cycle at, Cycle charge_until) {
  const Cycle end = EndOf(*launch);
  launch->Close(&sms, charge_until);
  stats::LaunchStats& result = results[launch->index];
  result = launch->Assemble();
  memory.TakeCounters(launch->statistics, &result.counters);
  result.start_cycle = launch->start + left_out;
  result.end_cycle = end + left_out;
  result.counters.sm_cycles_elapsed = end - launch->start;
  if (launch->sampler) {
    samplings[launch->index] = launch->sampler->Extrapolate(&result);
    left_out = result.end_cycle - end;
  }
  if (options.launch_overhead) result.counters.lts_t_bytes += description.launch.l2_bytes;
  if (launch->timeline) timelines[launch->index] = launch->timeline->Take(end, result.counters);
  free_statistics.push_back(launch->statistics);
  dispatcher.Remove(launch->index);
  ended[launch->index] = true;
  ++ended_count;
  clusters_left -= launches[launch->index].program->shape().IsCluster();
  for (uint32_t after : graph->Release(launch->index)) starts.push_back({at, after});
  for (const auto& other : running) {
    if (other->grid_ready != kNever || !graph->WaitsFor(other->index).empty()) continue;
    other->grid_ready = at;
    for (uint32_t sm = 0; sm < sms.size(); ++sm) {
      if (!other->on_sm[sm].open) continue;
      sms[sm].SetGridReady(other->on_sm[sm].handle, at);
      next[sm] = std::min(next[sm], sms[sm].NextEventCycle());
    }
  }
}

// All CTAs have triggered or ended: what follows in the stream may start when that has been heard.
void Gpu::State::Trigger(RunningLaunch* launch) {
  if (launch->trigger_heard || launch->triggered < launch->ctas || launch->AllFinished()) return;
  launch->trigger_heard = true;
  for (uint32_t after : graph->Trigger(launch->index))
    starts.push_back({launch->last_trigger + hearing, after});
}

// Nothing can happen any more but that suspended waits time out. A few rounds: a kernel that only polls again hangs.
bool Gpu::State::FailWaits() {
  constexpr uint32_t kRounds = 4;
  if (++failed_waits > kRounds) return false;
  bool any = false;
  for (uint32_t sm = 0; sm < sms.size(); ++sm) {
    if (!sms[sm].FailWaits(now)) continue;
    next[sm] = sms[sm].NextEventCycle();
    any = true;
  }
  return any;
}

void Gpu::State::TakeReplies(uint32_t sm) {
  if (!unanswered[sm]) return;
  sms[sm].TakeReplies(now);
  next[sm] = sms[sm].NextEventCycle();
  unanswered[sm] = 0;
}

void Gpu::State::TakeAllReplies() {
  for (uint32_t sm = 0; sm < sms.size(); ++sm) TakeReplies(sm);
}

// An SM takes its replies when it is about to run: so what belongs to it comes into the processor's caches once a window.
void Gpu::State::RunSms(Cycle begin, Cycle end) {
  const auto is_active = [&](uint32_t sm) { return unanswered[sm] != 0 || next[sm] < end; };
  active_chunks.clear();
  for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
    bool active = false;
    for (uint32_t sm = FirstOf(chunk); sm < FirstOf(chunk + 1) && !active; ++sm) active = is_active(sm);
    if (active) active_chunks.push_back(chunk);
  }
  workers.ForEach(static_cast<uint32_t>(active_chunks.size()), [&](uint32_t i) {
    const uint32_t stop = FirstOf(active_chunks[i] + 1);
    for (uint32_t sm = FirstOf(active_chunks[i]); sm < stop; ++sm) {
      if (sm + 2 < stop && is_active(sm + 2)) sms[sm + 2].Prefetch();
      if (sm + 1 < stop && is_active(sm + 1)) sms[sm + 1].PrefetchWarps();
      TakeReplies(sm);
      if (next[sm] >= end) continue;
      next[sm] = sms[sm].RunWindow(begin, end);
      unanswered[sm] = 1;
    }
  });
}

// Stores come first: a thread's own store must be seen by its later atomic on the same address.
void Gpu::State::PublishStores() {
  for (size_t i = 0; i < running.size(); ++i) {
    isa::MemoryImage* image = &running[i]->request->program->memory();
    bool seen = false;
    for (size_t j = 0; j < i && !seen; ++j) seen = &running[j]->request->program->memory() == image;
    if (!seen) image->PublishStores();
  }
}

void Gpu::State::ServeMemory(Cycle begin, Cycle end) {
  memory.Serve(outboxes, begin, end, &workers);
  if (clusters)
    clusters->Carry(&sms, &memory, end, [&](uint32_t sm, Cycle at) { next[sm] = std::min(next[sm], at); });
  for (const auto& launch : running)
    launch->last_acknowledged =
        std::max(launch->last_acknowledged, memory.LastAcknowledgement(launch->statistics));
}

void Gpu::State::CollectFinished() {
  finishes.clear();
  for (uint32_t sm = 0; sm < sms.size(); ++sm) {
    for (const sm::FinishedCta& cta : sms[sm].finished())
      finishes.push_back({cta.cycle, sm, cta.launch, cta.triggered, cta.cta});
    sms[sm].finished().clear();
    for (const sm::TriggeredCta& cta : sms[sm].triggered()) {
      RunningLaunch& launch = Running(launch_of[sm][cta.launch]);
      ++launch.triggered;
      launch.last_trigger = std::max(launch.last_trigger, cta.cycle);
    }
    sms[sm].triggered().clear();
  }
  std::stable_sort(finishes.begin(), finishes.end(),
                   [](const Finish& a, const Finish& b) { return a.cycle < b.cycle; });
  for (const Finish& finish : finishes) {
    const uint32_t index = launch_of[finish.sm][finish.handle];
    RunningLaunch& launch = Running(index);
    ++launch.finished;
    ++ctas_done;
    if (launch.timeline) launch.timeline->FinishCta(finish.sm, finish.cta, finish.cycle);
    failed_waits = 0;
    launch.last_finish = std::max(launch.last_finish, finish.cycle);
    if (!finish.triggered) {
      ++launch.triggered;
      launch.last_trigger = std::max(launch.last_trigger, finish.cycle);
    }
    dispatcher.Finished(finish.sm, index, finish.cycle);
  }
  for (const auto& launch : running) Trigger(launch.get());
}

void Gpu::State::LeaveOutCtas() {
  for (const auto& launch : running) {
    const uint64_t ctas = launch->CtasToLeaveOut(running.size() == 1, sms, memory, dispatcher);
    if (ctas == 0) continue;
    dispatcher.LeaveOut(launch->index, ctas);
    launch->ctas -= ctas;
    ctas_total -= ctas;
  }
}

// At the window's edge, when everything that left before it has been served.
void Gpu::State::SampleTimelines() {
  for (const auto& launch : running)
    if (launch->timeline->IsDue(now)) launch->timeline->Sample(now, launch->CountersSoFar(sms, memory));
}

void Gpu::State::Report(bool always) {
  if (!options.progress) return;
  if (!always && ++windows % kWindowsPerProgress != 0 && ctas_done == ctas_reported) return;
  ctas_reported = ctas_done;
  options.progress({.cycle = now,
                    .ctas_done = ctas_done,
                    .ctas_total = ctas_total,
                    .launches_done = ended_count,
                    .launches_total = static_cast<uint32_t>(launches.size()),
                    .launch = running.empty() ? 0 : running.front()->index});
}

const RunningLaunch* Gpu::State::OverLimit() const {
  if (options.max_cycles == 0) return nullptr;
  for (const auto& launch : running)
    if (!launch->AllFinished() && now - std::min(now, launch->start) > options.max_cycles)
      return launch.get();
  return nullptr;
}

Gpu::Gpu(const config::Gpu& description, RunOptions options)
    : state_(std::make_unique<State>(description, std::move(options))) {}
Gpu::~Gpu() = default;
Gpu::Gpu(Gpu&&) noexcept = default;
Gpu& Gpu::operator=(Gpu&&) noexcept = default;

Result<std::vector<stats::LaunchStats>> Gpu::Run(std::span<const LaunchRequest> launches) {
  return state_->Run(launches);
}
const std::vector<bool>& Gpu::ended() const { return state_->ended; }
const std::vector<std::optional<stats::Sampling>>& Gpu::samplings() const { return state_->samplings; }
std::vector<stats::Timeline> Gpu::TakeTimelines() { return std::move(state_->timelines); }
Cycle Gpu::now() const { return state_->now; }

}  // namespace heddle::gpu

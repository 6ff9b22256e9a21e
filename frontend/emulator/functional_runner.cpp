#include "frontend/emulator/functional_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "frontend/emulator/emulated_warps.h"
#include "frontend/emulator/pending_effects.h"
#include "frontend/emulator/stream_hash.h"
#include "sim/isa/launch_limits.h"

namespace heddle::emulator {
namespace {

// Long enough that a CTA without partners elsewhere mostly finishes in one turn, while its data are in the
// cache.
constexpr uint64_t kCtaTurn = 1u << 18;
constexpr uint64_t kWarpTurn = 512;
// Values from L2 slices (strong loads, atomics) after which a CTA's turn ends: it may be waiting for another one.
constexpr uint32_t kSliceValuesPerTurn = 64;
constexpr uint64_t kDelayedWarpTurn = 24;  // when the moments of asynchronous effects are to vary
// Attempts to wait for an mbarrier that fail, one after the other, before the launch counts as stuck.
constexpr uint32_t kMaxFailedWaits = 4096;

struct Barrier {
  uint32_t arrived = 0;
  uint32_t expected = 0;  // 0: the live warps
};

struct ResidentCta;

struct Cluster {
  std::vector<ResidentCta*> ctas;
  std::shared_ptr<const ClusterMembers> members;
  uint32_t live_ctas = 0;
  uint32_t phase = 0;    // of the cluster barrier
  uint32_t arrived = 0;  // warps, in this phase
};

struct ResidentCta {
  uint64_t linear = 0;
  uint32_t sm = 0;
  uint32_t slot = 0;
  uint32_t live_warps = 0;
  bool ended = false;
  Cluster* cluster = nullptr;
  std::vector<uint32_t> cluster_arrivals;  // by warp
  std::array<Barrier, kCtaBarriers> barriers{};
  std::vector<isa::WarpState> states;
  std::vector<StreamHash> hashes;
};

struct Place {
  uint32_t sm;
  uint32_t slot;
};

Dim3 CtaAt(const Dim3& grid, uint64_t linear) {
  return {static_cast<uint32_t>(linear % grid.x), static_cast<uint32_t>(linear / grid.x % grid.y),
          static_cast<uint32_t>(linear / (uint64_t{grid.x} * grid.y))};
}

uint64_t LinearOf(const Dim3& grid, const Dim3& cta) {
  return cta.x + uint64_t{grid.x} * (cta.y + uint64_t{grid.y} * cta.z);
}

class Runner {
 public:
  Runner(EmulatedLaunch& launch, const RunnerOptions& options)
      : launch_(launch),
        options_(options),
        warps_per_cta_(launch.shape().WarpsPerCta()),
        cluster_ctas_(static_cast<uint32_t>(launch.shape().cluster.Count())),
        effects_(launch.code(), options.delay_seed),
        streams_(options.sms),
        at_place_(options.sms) {
    uint32_t per_sm = options.ctas_per_sm != 0
                          ? options.ctas_per_sm
                          : ResidentCtasPerSm(launch.shape(), launch.context().sm_version);
    per_sm = std::max(per_sm, CeilDiv(cluster_ctas_, options.sms));
    for (auto& slots : at_place_) slots.resize(std::max(per_sm, 1u));
    // Handed out from the back: SM 0 first, then SM 1, ...
    for (uint32_t slot = std::max(per_sm, 1u); slot-- > 0;)
      for (uint32_t sm = options.sms; sm-- > 0;) free_places_.push_back({sm, slot});
    ChooseClusters();
  }

  Result<RunSummary> Run() {
    while (next_ < clusters_.size() || !resident_.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(bool progress, Turn());
      if (progress || (next_ < clusters_.size() && free_places_.size() >= cluster_ctas_)) continue;
      progress = effects_.One();
      TakeWoken();
      if (!progress && !FailSomeWait()) return Deadlock("no warp can go on");
    }
    effects_.All();
    return summary_;
  }

 private:
  // In the order of the grid: the clusters to run, by the linear index of a CTA in each.
  void ChooseClusters() {
    const Dim3& grid = launch_.shape().grid;
    const Dim3& cluster = launch_.shape().cluster;
    const auto first_of = [&](uint64_t linear) {
      const Dim3 cta = CtaAt(grid, linear);
      return LinearOf(grid,
                      {cta.x - cta.x % cluster.x, cta.y - cta.y % cluster.y, cta.z - cta.z % cluster.z});
    };
    if (options_.only_ctas.empty()) {
      for (uint64_t i = 0; i < grid.Count(); ++i)
        if (cluster_ctas_ == 1 || first_of(i) == i) clusters_.push_back(i);
      return;
    }
    for (const uint64_t linear : options_.only_ctas)
      if (std::find(clusters_.begin(), clusters_.end(), first_of(linear)) == clusters_.end())
        clusters_.push_back(first_of(linear));
  }

  // Every resident CTA gets its turn, then a new one. False when nobody moved.
  Result<bool> Turn() {
    bool progress = false;
    uint32_t starts = 1;  // and one more for each that may be waiting
    for (size_t i = 0; i < resident_.size();) {
      const uint64_t before = summary_.warp_instructions;
      RunCta(*resident_[i]);
      if (options_.by_cta)
        summary_.cta_warp_instructions[resident_[i]->linear] += summary_.warp_instructions - before;
      if (slice_values_ >= kSliceValuesPerTurn) ++starts;
      progress |= summary_.warp_instructions != before;
      if (resident_[i]->live_warps == 0 && !resident_[i]->ended) {
        resident_[i]->ended = true;
        progress = true;
        // The shared memory of a cluster stays until its last CTA has ended.
        if (--resident_[i]->cluster->live_ctas == 0) {
          EndCluster(resident_[i]->cluster);
          continue;
        }
      }
      ++i;
    }
    if (options_.max_warp_instructions != 0 && summary_.warp_instructions > options_.max_warp_instructions)
      return Deadlock(fmt::format("more than {} warp instructions", options_.max_warp_instructions));
    for (; starts > 0 && next_ < clusters_.size() && free_places_.size() >= cluster_ctas_; --starts) {
      StartCluster();
      progress = true;
    }
    return progress;
  }

  EmulatedWarps& StreamOf(uint32_t sm) {
    if (streams_[sm] == nullptr) {
      streams_[sm] = launch_.OpenOnSm(sm);
      opened_sms_ = std::max(opened_sms_, sm + 1);
      static_cast<EmulatedWarps&>(*streams_[sm]).ApplyStoresAtOnce();
    }
    return static_cast<EmulatedWarps&>(*streams_[sm]);
  }

  void StartCluster() {
    const Dim3& grid = launch_.shape().grid;
    const Dim3& shape = launch_.shape().cluster;
    const Dim3 first = CtaAt(grid, clusters_[next_++]);
    auto cluster = std::make_unique<Cluster>();
    auto members = std::make_shared<ClusterMembers>();
    cluster->live_ctas = cluster_ctas_;
    for (uint32_t rank = 0; rank < cluster_ctas_; ++rank) {
      const Dim3 cta{first.x + rank % shape.x, first.y + rank / shape.x % shape.y,
                     first.z + rank / shape.x / shape.y};
      cluster->ctas.push_back(StartCta(cta, cluster.get()));
      members->push_back({&StreamOf(cluster->ctas.back()->sm), cluster->ctas.back()->slot});
    }
    cluster->members = std::move(members);
    running_clusters_.push_back(std::move(cluster));
  }

  ResidentCta* StartCta(const Dim3& at, Cluster* cluster) {
    const Place place = free_places_.back();
    free_places_.pop_back();
    std::unique_ptr<ResidentCta> cta;
    if (spare_.empty()) {
      cta = std::make_unique<ResidentCta>();
    } else {
      cta = std::move(spare_.back());
      spare_.pop_back();
    }
    cta->linear = LinearOf(launch_.shape().grid, at);
    cta->sm = place.sm;
    cta->slot = place.slot;
    cta->live_warps = warps_per_cta_;
    cta->ended = false;
    cta->cluster = cluster;
    cta->cluster_arrivals.assign(warps_per_cta_, 0);
    cta->barriers = {};
    cta->states.assign(warps_per_cta_, isa::WarpState::kRunnable);
    cta->hashes.assign(options_.hash_stream ? warps_per_cta_ : 0, StreamHash{});
    StreamOf(place.sm).StartCta({.slot = place.slot,
                                 .cta = at,
                                 .sm = place.sm,
                                 .first_warp_slot = place.slot * warps_per_cta_,
                                 .cycle = summary_.warp_instructions});
    at_place_[place.sm][place.slot] = cta.get();
    resident_.push_back(std::move(cta));
    return resident_.back().get();
  }

  void EndCluster(Cluster* cluster) {
    effects_.Settle(cluster->members);
    for (auto it = resident_.begin(); it != resident_.end();) {
      if ((*it)->cluster != cluster) {
        ++it;
        continue;
      }
      std::unique_ptr<ResidentCta> cta = std::move(*it);
      it = resident_.erase(it);
      StreamOf(cta->sm).EndCta(cta->slot);
      for (uint32_t w = 0; w < cta->hashes.size(); ++w)
        summary_.stream_hash += cta->hashes[w].Finish(cta->linear, w);
      at_place_[cta->sm][cta->slot] = nullptr;
      free_places_.push_back({cta->sm, cta->slot});
      spare_.push_back(std::move(cta));
    }
    std::erase_if(running_clusters_, [&](const auto& c) { return c.get() == cluster; });
  }

  void RunCta(ResidentCta& cta) {
    EmulatedWarps& stream = StreamOf(cta.sm);
    const uint64_t until = summary_.warp_instructions + kCtaTurn;
    slice_values_ = 0;
    bool moved = true;
    while (moved && cta.live_warps != 0 && summary_.warp_instructions < until &&
           slice_values_ < kSliceValuesPerTurn) {
      moved = false;
      for (uint32_t w = 0; w < warps_per_cta_; ++w) {
        if (cta.states[w] != isa::WarpState::kRunnable) continue;
        RunWarp(cta, stream, w);
        moved = true;
      }
    }
  }

  void RunWarp(ResidentCta& cta, EmulatedWarps& stream, uint32_t w) {
    const uint32_t warp = cta.slot * warps_per_cta_ + w;
    const uint64_t until = summary_.warp_instructions + (effects_.delays() ? kDelayedWarpTurn : kWarpTurn);
    const uint32_t values_until = slice_values_ + 4;  // other warps of the CTA may be what it waits for
    while (summary_.warp_instructions < until && slice_values_ < values_until) {
      const isa::InstructionRun run = stream.NextRun(warp);
      if (run.state != isa::WarpState::kRunnable) {
        SetState(cta, stream, w, run.state);
        return;
      }
      if (effects_.delays()) {
        effects_.Sometimes();
        effects_.BeforeStep(&stream, warp, run);
        TakeWoken();
      }
      stream.Execute(warp, summary_.warp_instructions, &step_);
      summary_.warp_instructions += run.count + 1;
      if (options_.hash_stream) {
        cta.hashes[w].Run(run);
        cta.hashes[w].Step(step_);
      }
      if (options_.observe) options_.observe(run, step_);
      if (step_.kind == isa::StepKind::kMemory) Complete(cta, stream, warp);
      // The state first: a barrier that this step completes makes the warp runnable again.
      if (step_.state != isa::WarpState::kRunnable) SetState(cta, stream, w, step_.state);
      if (step_.kind == isa::StepKind::kBarrier) Arrive(cta, stream);
      if (step_.kind >= isa::StepKind::kMbarrier && step_.kind <= isa::StepKind::kClusterWait) {
        effects_.AfterStep(&stream, warp, step_, cta.cluster->members);
        if (step_.kind == isa::StepKind::kClusterArrive) {
          ++cta.cluster_arrivals[w];
          ++cta.cluster->arrived;
          CheckClusterBarrier(*cta.cluster);
        }
        TakeWoken();
      } else if (effects_.delays()) {
        effects_.AfterStep(&stream, warp, step_, cta.cluster->members);
      }
      if (cta.states[w] != isa::WarpState::kRunnable) return;
    }
  }

  void Complete(ResidentCta& cta, EmulatedWarps& stream, uint32_t warp) {
    ++summary_.memory_instructions;
    const isa::MemoryAccess& access = step_.memory;
    if (access.at_slice && access.kind != isa::AccessKind::kReduction) ++slice_values_;
    if (access.at_slice) stream.PerformAtSlice(access.token, access.lanes, summary_.warp_instructions);
    if (effects_.delays()) return;  // AfterStep sees the step anyway
    if (access.kind == isa::AccessKind::kAsyncCopy)
      stream.CompleteAsyncCopy(access.token, summary_.warp_instructions);
    else if (access.remote != nullptr)
      effects_.AfterStep(&stream, warp, step_, cta.cluster->members);
    if (access.remote != nullptr) TakeWoken();
  }

  // Warps whose mbarrier or cluster barrier has completed are runnable again.
  void TakeWoken() {
    for (uint32_t sm = 0; sm < opened_sms_; ++sm) {
      if (streams_[sm] == nullptr || streams_[sm]->woken().empty()) continue;
      for (const uint32_t warp : streams_[sm]->woken()) {
        ResidentCta* cta = at_place_[sm][warp / warps_per_cta_];
        if (cta != nullptr && cta->states[warp % warps_per_cta_] == isa::WarpState::kBlocked)
          cta->states[warp % warps_per_cta_] = isa::WarpState::kRunnable;
      }
      streams_[sm]->woken().clear();
      failed_waits_ = 0;
    }
  }

  // Complete when every warp of the cluster has arrived in this phase or ended.
  void CheckClusterBarrier(Cluster& cluster) {
    for (const ResidentCta* cta : cluster.ctas)
      for (uint32_t w = 0; w < warps_per_cta_; ++w)
        if (cta->states[w] != isa::WarpState::kFinished && cta->cluster_arrivals[w] <= cluster.phase) return;
    ++cluster.phase;
    cluster.arrived = 0;
    for (const ResidentCta* cta : cluster.ctas) {
      for (const uint32_t arrivals : cta->cluster_arrivals)
        if (arrivals > cluster.phase) ++cluster.arrived;
      if (cta->live_warps != 0) StreamOf(cta->sm).ReleaseClusterBarrier(cta->slot);
    }
    TakeWoken();
  }

  // Nothing else can happen: the attempt of one warp to wait for an mbarrier fails.
  bool FailSomeWait() {
    if (++failed_waits_ > kMaxFailedWaits) return false;
    const uint64_t warps = uint64_t{resident_.size()} * warps_per_cta_;
    for (uint64_t i = 0; i < warps; ++i) {  // in turn
      const uint64_t at = (failed_waits_ + i) % warps;
      ResidentCta& cta = *resident_[at / warps_per_cta_];
      const auto w = static_cast<uint32_t>(at % warps_per_cta_);
      if (cta.states[w] != isa::WarpState::kBlocked ||
          !StreamOf(cta.sm).FailWait(cta.slot * warps_per_cta_ + w, summary_.warp_instructions))
        continue;
      cta.states[w] = isa::WarpState::kRunnable;
      return true;
    }
    return false;
  }

  void SetState(ResidentCta& cta, EmulatedWarps& stream, uint32_t w, isa::WarpState state) {
    cta.states[w] = state;
    if (state != isa::WarpState::kFinished) return;
    --cta.live_warps;
    if (cta.cluster->arrived != 0) CheckClusterBarrier(*cta.cluster);
    // A barrier of all warps does not wait for those that are gone.
    for (uint32_t id = 0; id < kCtaBarriers; ++id)
      if (cta.barriers[id].arrived != 0) ReleaseIfComplete(cta, stream, static_cast<uint8_t>(id));
  }

  void Arrive(ResidentCta& cta, EmulatedWarps& stream) {
    Barrier& barrier = cta.barriers[step_.barrier.id];
    barrier.arrived += step_.barrier.arriving_threads;
    barrier.expected = step_.barrier.expected_threads;
    ReleaseIfComplete(cta, stream, step_.barrier.id);
  }

  void ReleaseIfComplete(ResidentCta& cta, EmulatedWarps& stream, uint8_t id) {
    Barrier& barrier = cta.barriers[id];
    const uint32_t expected = barrier.expected != 0 ? barrier.expected : cta.live_warps * kWarpLanes;
    if (barrier.arrived < expected) return;
    barrier = {};
    stream.ReleaseBarrier(cta.slot, id);
    for (isa::WarpState& state : cta.states)
      if (state == isa::WarpState::kBlocked) state = isa::WarpState::kRunnable;
  }

  Error Deadlock(std::string reason) {
    std::string waiting;
    uint32_t named = 0;
    for (const auto& cta : resident_) {
      for (uint32_t w = 0; w < warps_per_cta_ && named < 8; ++w) {
        if (cta->states[w] == isa::WarpState::kFinished) continue;
        ++named;
        const Warp& warp = StreamOf(cta->sm).warp(cta->slot * warps_per_cta_ + w);
        const auto& instructions = launch_.code().instructions;
        const uint32_t index = warp.Current().index;
        waiting += fmt::format("; CTA {} warp {} {} 0x{:x} {}", cta->linear, w,
                               cta->states[w] == isa::WarpState::kBlocked ? "waits at" : "runs at",
                               index * isa::kInstructionBytes,
                               index < instructions.size() ? ToString(instructions[index]) : "");
      }
    }
    return Error{
        ExitCode::kDidNotFinish, "launch of " + launch_.description().kernel->name,
        fmt::format("{}: {} CTAs are resident, {} have not started{}", reason, resident_.size(),
                    (clusters_.size() - next_) * cluster_ctas_, waiting),
        "a kernel whose CTAs wait for each other needs all of them resident: more SMs, or a smaller grid"};
  }

  EmulatedLaunch& launch_;
  const RunnerOptions& options_;
  const uint32_t warps_per_cta_;
  const uint32_t cluster_ctas_;
  PendingEffects effects_;
  std::vector<std::unique_ptr<isa::WarpStream>> streams_;
  uint32_t opened_sms_ = 0;                          // no stream lies behind
  std::vector<std::vector<ResidentCta*>> at_place_;  // by SM and slot
  std::vector<uint64_t> clusters_;                   // to run: a CTA of each, by its linear index
  std::vector<std::unique_ptr<Cluster>> running_clusters_;
  uint32_t failed_waits_ = 0;  // since a warp was woken
  std::vector<Place> free_places_;
  std::vector<std::unique_ptr<ResidentCta>> resident_;
  std::vector<std::unique_ptr<ResidentCta>> spare_;
  uint32_t slice_values_ = 0;  // in this CTA's turn
  uint64_t next_ = 0;          // of clusters_
  isa::WarpStep step_;
  RunSummary summary_;
};

}  // namespace

uint32_t ResidentCtasPerSm(const isa::LaunchShape& shape, uint32_t sm_version) {
  const isa::LaunchLimits& limits = isa::NearestLaunchLimits(sm_version);
  const uint32_t warps = shape.WarpsPerCta();
  const uint32_t registers_per_warp =
      CeilDiv(std::max(shape.registers_per_thread, 1u) * kWarpLanes, 256u) * 256;
  uint32_t ctas = std::min(limits.max_ctas_per_sm, limits.max_warps_per_sm / warps);
  ctas = std::min(ctas, limits.max_registers_per_cta / (registers_per_warp * warps));
  ctas = std::min(ctas, limits.shared_bytes_per_sm / std::max(shape.shared_bytes_per_cta, 1u));
  return std::max(ctas, 1u);
}

Result<RunSummary> RunFunctionally(EmulatedLaunch& launch, const RunnerOptions& options) {
  return Runner(launch, options).Run();
}

}  // namespace heddle::emulator

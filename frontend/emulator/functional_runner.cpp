#include "frontend/emulator/functional_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "frontend/emulator/emulated_warps.h"
#include "frontend/emulator/stream_hash.h"

namespace heddle::emulator {
namespace {

// Long enough that a CTA without partners elsewhere mostly finishes in one turn, while its data are in the
// cache.
constexpr uint64_t kCtaTurn = 1u << 18;
constexpr uint64_t kWarpTurn = 512;
// Values from L2 slices (strong loads, atomics) after which a CTA's turn ends: it may be waiting for another one.
constexpr uint32_t kSliceValuesPerTurn = 64;

struct Barrier {
  uint32_t arrived = 0;
  uint32_t expected = 0;  // 0: the live warps
};

struct ResidentCta {
  uint64_t linear = 0;
  uint32_t sm = 0;
  uint32_t slot = 0;
  uint32_t live_warps = 0;
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

class Runner {
 public:
  Runner(EmulatedLaunch& launch, const RunnerOptions& options)
      : launch_(launch),
        options_(options),
        warps_per_cta_(launch.shape().WarpsPerCta()),
        streams_(options.sms) {
    const uint32_t per_sm = options.ctas_per_sm != 0
                                ? options.ctas_per_sm
                                : ResidentCtasPerSm(launch.shape(), launch.context().sm_version);
    // Handed out from the back: SM 0 first, then SM 1, ...
    for (uint32_t slot = std::max(per_sm, 1u); slot-- > 0;)
      for (uint32_t sm = options.sms; sm-- > 0;) free_places_.push_back({sm, slot});
    total_ = options.only_ctas.empty() ? launch.shape().grid.Count() : options.only_ctas.size();
  }

  Result<RunSummary> Run() {
    while (next_ < total_ || !resident_.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(const bool progress, Turn());
      if (!progress && (next_ >= total_ || free_places_.empty())) return Deadlock("no warp can go on");
    }
    return summary_;
  }

 private:
  // Every resident CTA gets its turn, then a new one. False when nobody moved.
  Result<bool> Turn() {
    bool progress = false;
    uint32_t starts = 1;  // and one more for each that may be waiting
    for (size_t i = 0; i < resident_.size();) {
      const uint64_t before = summary_.warp_instructions;
      RunCta(*resident_[i]);
      if (slice_values_ >= kSliceValuesPerTurn) ++starts;
      progress |= summary_.warp_instructions != before;
      if (resident_[i]->live_warps != 0) {
        ++i;
        continue;
      }
      EndCta(i);
      progress = true;
    }
    if (options_.max_warp_instructions != 0 && summary_.warp_instructions > options_.max_warp_instructions)
      return Deadlock(fmt::format("more than {} warp instructions", options_.max_warp_instructions));
    for (; starts > 0 && next_ < total_ && !free_places_.empty(); --starts) {
      StartCta();
      progress = true;
    }
    return progress;
  }

  EmulatedWarps& StreamOf(uint32_t sm) {
    if (streams_[sm] == nullptr) {
      streams_[sm] = launch_.OpenOnSm(sm);
      static_cast<EmulatedWarps&>(*streams_[sm]).ApplyStoresAtOnce();
    }
    return static_cast<EmulatedWarps&>(*streams_[sm]);
  }

  void StartCta() {
    const uint64_t linear = options_.only_ctas.empty() ? next_ : options_.only_ctas[next_];
    ++next_;
    const Place place = free_places_.back();
    free_places_.pop_back();
    std::unique_ptr<ResidentCta> cta;
    if (spare_.empty()) {
      cta = std::make_unique<ResidentCta>();
    } else {
      cta = std::move(spare_.back());
      spare_.pop_back();
    }
    cta->linear = linear;
    cta->sm = place.sm;
    cta->slot = place.slot;
    cta->live_warps = warps_per_cta_;
    cta->barriers = {};
    cta->states.assign(warps_per_cta_, isa::WarpState::kRunnable);
    cta->hashes.assign(options_.hash_stream ? warps_per_cta_ : 0, StreamHash{});
    StreamOf(place.sm).StartCta({.slot = place.slot,
                                 .cta = CtaAt(launch_.shape().grid, linear),
                                 .sm = place.sm,
                                 .first_warp_slot = place.slot * warps_per_cta_,
                                 .cycle = summary_.warp_instructions});
    resident_.push_back(std::move(cta));
  }

  void EndCta(size_t index) {
    std::unique_ptr<ResidentCta> cta = std::move(resident_[index]);
    resident_.erase(resident_.begin() + static_cast<std::ptrdiff_t>(index));
    StreamOf(cta->sm).EndCta(cta->slot);
    for (uint32_t w = 0; w < cta->hashes.size(); ++w)
      summary_.stream_hash += cta->hashes[w].Finish(cta->linear, w);
    free_places_.push_back({cta->sm, cta->slot});
    spare_.push_back(std::move(cta));
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
    const uint64_t until = summary_.warp_instructions + kWarpTurn;
    const uint32_t values_until = slice_values_ + 4;  // other warps of the CTA may be what it waits for
    while (summary_.warp_instructions < until && slice_values_ < values_until) {
      const isa::InstructionRun run = stream.NextRun(warp);
      if (run.state != isa::WarpState::kRunnable) {
        SetState(cta, stream, w, run.state);
        return;
      }
      stream.Execute(warp, summary_.warp_instructions, &step_);
      summary_.warp_instructions += run.count + 1;
      if (options_.hash_stream) {
        cta.hashes[w].Run(run);
        cta.hashes[w].Step(step_);
      }
      if (step_.kind == isa::StepKind::kMemory) Complete(stream);
      // The state first: a barrier that this step completes makes the warp runnable again.
      if (step_.state != isa::WarpState::kRunnable) SetState(cta, stream, w, step_.state);
      if (step_.kind == isa::StepKind::kBarrier) Arrive(cta, stream);
      if (cta.states[w] != isa::WarpState::kRunnable) return;
    }
  }

  void Complete(EmulatedWarps& stream) {
    ++summary_.memory_instructions;
    const isa::MemoryAccess& access = step_.memory;
    if (access.at_slice && access.kind != isa::AccessKind::kReduction) ++slice_values_;
    if (access.at_slice)
      stream.PerformAtSlice(access.token, access.lanes, summary_.warp_instructions);
    else if (access.kind == isa::AccessKind::kAsyncCopy)
      stream.CompleteAsyncCopy(access.token, summary_.warp_instructions);
  }

  void SetState(ResidentCta& cta, EmulatedWarps& stream, uint32_t w, isa::WarpState state) {
    cta.states[w] = state;
    if (state != isa::WarpState::kFinished) return;
    --cta.live_warps;
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
                    total_ - next_, waiting),
        "a kernel whose CTAs wait for each other needs all of them resident: more SMs, or a smaller grid"};
  }

  EmulatedLaunch& launch_;
  const RunnerOptions& options_;
  const uint32_t warps_per_cta_;
  std::vector<std::unique_ptr<isa::WarpStream>> streams_;
  std::vector<Place> free_places_;
  std::vector<std::unique_ptr<ResidentCta>> resident_;
  std::vector<std::unique_ptr<ResidentCta>> spare_;
  uint32_t slice_values_ = 0;  // in this CTA's turn
  uint64_t next_ = 0;
  uint64_t total_ = 0;
  isa::WarpStep step_;
  RunSummary summary_;
};

}  // namespace

uint32_t ResidentCtasPerSm(const isa::LaunchShape& shape, uint32_t sm_version) {
  constexpr uint32_t kRegistersPerSm = 65536, kMaxCtas = 32;
  const bool small = sm_version == 86 || sm_version == 89 || sm_version >= 120;  // GA10x, AD10x, GB20x
  const uint32_t max_warps = small ? 48 : 64;
  const uint32_t shared = sm_version >= 90 && !small ? 228u << 10 : small ? 100u << 10 : 164u << 10;
  const uint32_t warps = shape.WarpsPerCta();
  const uint32_t registers_per_warp =
      CeilDiv(std::max(shape.registers_per_thread, 1u) * kWarpLanes, 256u) * 256;
  uint32_t ctas = std::min(kMaxCtas, max_warps / warps);
  ctas = std::min(ctas, kRegistersPerSm / (registers_per_warp * warps));
  const uint32_t reserved =
      sm_version < 90 ? 1024 : 0;  // of each CTA, by the driver; later counted in its static size
  ctas = std::min(ctas, shared / std::max(shape.shared_bytes_per_cta + reserved, 1u));
  return std::max(ctas, 1u);
}

Result<RunSummary> RunFunctionally(EmulatedLaunch& launch, const RunnerOptions& options) {
  return Runner(launch, options).Run();
}

}  // namespace heddle::emulator

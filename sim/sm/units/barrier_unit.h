// The named barriers of one CTA.
#pragma once

#include <array>
#include <cstdint>

namespace heddle::sm {

inline constexpr uint32_t kNamedBarriers = 16;

class BarrierUnit {
 public:
  struct State {
    uint32_t arrived_threads = 0;
    uint32_t expected_threads = 0;  // 0: all threads of the CTA's warps that have not exited
    uint64_t waiting = 0;           // warps of the CTA, by bit
  };

  void Clear() { states_.fill(State{}); }

  // A warp adds `threads`, and stays if `waits`.
  void Arrive(uint32_t id, uint32_t threads, uint32_t expected, uint32_t warp, bool waits) {
    State& state = states_[id % kNamedBarriers];
    state.arrived_threads += threads;
    state.expected_threads = expected;
    if (waits) state.waiting |= uint64_t{1} << warp;
  }

  bool Complete(uint32_t id, uint32_t live_warps) const {
    const State& state = states_[id % kNamedBarriers];
    const uint32_t expected = state.expected_threads != 0 ? state.expected_threads : 32 * live_warps;
    return state.arrived_threads > 0 && state.arrived_threads >= expected;
  }

  // Opens the barrier for its next use; returns the warps that waited.
  uint64_t Release(uint32_t id) {
    const uint64_t waiting = states_[id % kNamedBarriers].waiting;
    states_[id % kNamedBarriers] = State{};
    return waiting;
  }

  const State& state(uint32_t id) const { return states_[id % kNamedBarriers]; }

 private:
  std::array<State, kNamedBarriers> states_{};
};

}  // namespace heddle::sm

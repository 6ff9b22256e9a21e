// When each warp of a sub-core can issue, and which of them goes next.
//
// A warp can issue when it is ready (fetch, stall count, dependence barriers: what Set is told) and the port of its
// next instruction is free. Both are kept together as one key for each warp, cycle above and place below, so that the
// next one is a minimum over a short array without a branch; the keys follow the ports when these are taken.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "sim/base/types.h"
#include "sim/sm/kernel_timing.h"
#include "sim/sm/sm.h"

namespace heddle::sm {

inline constexpr uint32_t kWarpsPerSubCore = 32;
inline constexpr uint32_t kNoIndex = ~0u;

class ReadyList {
 public:
  struct Choice {
    Cycle cycle = kNever;
    uint32_t warp = kNoIndex;
  };

  ReadyList() { key_.fill(kNeverKey); }

  uint32_t live() const { return live_; }
  uint32_t first() const { return order_[0]; }

  // A warp that is not ready yet goes before or behind all others.
  void Insert(uint32_t warp, bool in_front) {
    const uint32_t place = in_front ? 0 : live_;
    for (uint32_t i = live_; i > place; --i) Move(i - 1, i);
    ++live_;
    for (uint32_t& waiting : waiting_) waiting = Below(waiting, place) | (waiting & ~Mask(place)) << 1;
    order_[place] = static_cast<uint8_t>(warp);
    place_[warp] = static_cast<uint8_t>(place);
    port_[place] = static_cast<uint8_t>(IssuePort::kNone);
    waiting_[port_[place]] |= 1u << place;
    ready_[place] = kNever;
    key_[place] = Key(kNever, place);
  }

  void Remove(uint32_t warp) {
    const uint32_t place = place_[warp];
    for (uint32_t& waiting : waiting_) waiting = Below(waiting, place) | (waiting >> 1 & ~Mask(place));
    --live_;
    for (uint32_t i = place; i < live_; ++i) Move(i + 1, i);
    key_[live_] = kNeverKey;
  }

  // What warp `warp` wants to issue next needs `port`; all else that it waits for is there at `ready`.
  void Set(uint32_t warp, Cycle ready, IssuePort port) {
    const uint32_t place = place_[warp];
    const auto index = static_cast<uint8_t>(port);
    ready_[place] = ready;
    if (port_[place] != index) {
      waiting_[port_[place]] &= ~(1u << place);
      waiting_[index] |= 1u << place;
      port_[place] = index;
    }
    key_[place] = Key(std::max(ready, port_free_[index]), place);
  }

  Cycle PortFree(IssuePort port) const { return port_free_[static_cast<size_t>(port)]; }
  // `issuing`: a warp that will be Set or removed before the next choice.
  void SetPortFree(IssuePort port, Cycle free, uint32_t issuing = kNoIndex) {
    const auto index = static_cast<size_t>(port);
    port_free_[index] = free;
    uint32_t left = waiting_[index];
    if (issuing != kNoIndex) left &= ~(1u << place_[issuing]);
    for (; left != 0; left &= left - 1) {
      const auto place = static_cast<uint32_t>(std::countr_zero(left));
      key_[place] = Key(std::max(ready_[place], free), place);
    }
  }

  // The first that can issue, not before `floor`; of a tie `greedy` (kNoIndex: nobody), else who stands in front.
  Choice Next(Cycle floor, uint32_t greedy) const {
    const int64_t now = static_cast<int64_t>(floor) * kPlaces;
    const int64_t preferred = greedy != kNoIndex ? key_[place_[greedy]] : kNeverKey;
    if (preferred < now + kPlaces) return {floor, greedy};
    const int64_t key = Least(now);
    if (key >= kNeverKey) return {};
    const Cycle cycle = static_cast<uint64_t>(key) / kPlaces;
    if (preferred < (key | (kPlaces - 1)) + 1) return {cycle, greedy};
    return {cycle, order_[static_cast<uint64_t>(key) % kPlaces]};
  }

  // The same, but of a tie who stands first behind `last`.
  Choice NextInTurn(Cycle floor, uint32_t last) const {
    uint32_t start = 0;
    while (start < live_ && order_[start] != last) ++start;
    start = start + 1 < live_ ? start + 1 : 0;
    Choice choice;
    for (uint32_t i = 0; i < live_; ++i) {
      const uint32_t place = start + i < live_ ? start + i : start + i - live_;
      const Cycle cycle = std::max(floor, std::max(ready_[place], port_free_[port_[place]]));
      if (cycle < choice.cycle) choice = {cycle, order_[place]};
    }
    return choice;
  }

 private:
  static constexpr int64_t kPlaces = 64;
  static constexpr uint32_t kLanes = 4;
  static constexpr Cycle kLastCycle = (Cycle{1} << 56) - 1;  // stands for kNever

  static constexpr int64_t kNeverKey = static_cast<int64_t>(kLastCycle) * kPlaces;

  // The least key, where none counts as earlier than `now` (a key of place 0). In lanes, so that the compiler takes them
  // together.
  int64_t Least(int64_t now) const {
    std::array<int64_t, kLanes> best, floor;
    for (uint32_t lane = 0; lane < kLanes; ++lane) best[lane] = kNeverKey, floor[lane] = now + lane;
    const int64_t* key = key_.data();
    for (const int64_t* end = key + live_; key < end; key += kLanes) {
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        const int64_t each = key[lane] > floor[lane] ? key[lane] : floor[lane];
        best[lane] = each < best[lane] ? each : best[lane];
        floor[lane] += kLanes;
      }
    }
    return std::min(std::min(best[0], best[1]), std::min(best[2], best[3]));
  }

  static int64_t Key(Cycle cycle, uint32_t place) {
    return static_cast<int64_t>(std::min(cycle, kLastCycle)) * kPlaces + place;
  }
  static uint32_t Mask(uint32_t place) { return static_cast<uint32_t>((uint64_t{1} << place) - 1); }
  static uint32_t Below(uint32_t waiting, uint32_t place) { return waiting & Mask(place); }
  void Move(uint32_t from, uint32_t to) {
    order_[to] = order_[from];
    place_[order_[to]] = static_cast<uint8_t>(to);
    port_[to] = port_[from];
    ready_[to] = ready_[from];
    key_[to] = key_[from] - from + to;
  }

  // By place in the order of preference.
  alignas(32) std::array<int64_t, kWarpsPerSubCore> key_;
  std::array<Cycle, kIssuePortCount> port_free_{};
  std::array<uint32_t, kIssuePortCount> waiting_{};  // places whose next instruction needs the port
  uint32_t live_ = 0;
  std::array<uint8_t, kWarpsPerSubCore> order_{};  // warp
  std::array<uint8_t, kWarpsPerSubCore> port_{};
  std::array<uint8_t, kWarpsPerSubCore> place_{};  // by warp
  std::array<Cycle, kWarpsPerSubCore> ready_{};
};

}  // namespace heddle::sm

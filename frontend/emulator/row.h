// A register of a warp: 32 lanes of 32 bits, and the loops over them that compilers turn into vector code.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "sim/base/types.h"

namespace heddle::emulator {

inline constexpr uint32_t kAllLanes = 0xffffffffu;

struct alignas(64) Row {
  uint32_t lane[kWarpLanes];
};

// In front of a loop over lanes: rows are either the same or disjoint, so iterations never depend on each
// other.
#if defined(__clang__)
#define HEDDLE_LANE_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define HEDDLE_LANE_LOOP _Pragma("GCC ivdep")
#endif

inline float AsFloat(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t AsBits(float value) { return std::bit_cast<uint32_t>(value); }
inline double AsDouble(uint64_t bits) { return std::bit_cast<double>(bits); }
inline uint64_t AsBits(double value) { return std::bit_cast<uint64_t>(value); }
inline uint64_t Pair(uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; }
inline int32_t Signed(uint32_t value) { return static_cast<int32_t>(value); }
inline uint32_t Low(uint64_t value) { return static_cast<uint32_t>(value); }
inline uint32_t High(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

inline void Splat(Row& row, uint32_t value) {
  for (uint32_t i = 0; i < kWarpLanes; ++i) row.lane[i] = value;
}

// Copies the lanes of `mask` from `source` to `destination`.
inline void Blend(Row& destination, const Row& source, uint32_t mask) {
  HEDDLE_LANE_LOOP
  for (uint32_t i = 0; i < kWarpLanes; ++i)
    destination.lane[i] = (mask >> i & 1) != 0 ? source.lane[i] : destination.lane[i];
}

// destination[i] = f(i) for the lanes of `mask`. f is evaluated for all lanes and must not have side effects.
template <typename F>
inline void MapLanes(Row& destination, uint32_t mask, F f) {
  if (mask == kAllLanes) [[likely]] {
    HEDDLE_LANE_LOOP
    for (uint32_t i = 0; i < kWarpLanes; ++i) destination.lane[i] = f(i);
  } else {
    Row result;
    HEDDLE_LANE_LOOP
    for (uint32_t i = 0; i < kWarpLanes; ++i) result.lane[i] = f(i);
    Blend(destination, result, mask);
  }
}

// The same for 64-bit results in two rows.
template <typename F>
inline void MapLanes64(Row& low, Row& high, uint32_t mask, F f) {
  if (mask == kAllLanes) [[likely]] {
    HEDDLE_LANE_LOOP
    for (uint32_t i = 0; i < kWarpLanes; ++i) {
      const uint64_t value = f(i);
      low.lane[i] = Low(value);
      high.lane[i] = High(value);
    }
  } else {
    Row low_result;
    Row high_result;
    HEDDLE_LANE_LOOP
    for (uint32_t i = 0; i < kWarpLanes; ++i) {
      const uint64_t value = f(i);
      low_result.lane[i] = Low(value);
      high_result.lane[i] = High(value);
    }
    Blend(low, low_result, mask);
    Blend(high, high_result, mask);
  }
}

// Bit i of the result is f(i).
template <typename F>
inline uint32_t MaskOf(F f) {
  uint32_t mask = 0;
  for (uint32_t i = 0; i < kWarpLanes; ++i) mask |= static_cast<uint32_t>(f(i) ? 1u : 0u) << i;
  return mask;
}

// Calls f(i) for the set bits of `mask`, in ascending order.
template <typename F>
inline void ForLanes(uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(static_cast<uint32_t>(std::countr_zero(mask)));
}

}  // namespace heddle::emulator

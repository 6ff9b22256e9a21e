// Types that every folder shares.
#pragma once

#include <cstdint>

namespace heddle {

using Cycle = uint64_t;  // of the SM clock unless a name says otherwise

struct Dim3 {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;

  uint64_t Count() const { return uint64_t{x} * y * z; }
  bool operator==(const Dim3&) const = default;
};

inline constexpr uint32_t kWarpLanes = 32;

template <typename T>
constexpr T CeilDiv(T a, T b) {
  return (a + b - 1) / b;
}

}  // namespace heddle

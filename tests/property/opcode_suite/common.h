// What the device side (suite_kernels.cu) and the host side (opcode_suite_test.cpp) of the opcode suite share. The case
// lists, cases_*.inc, are included by both: HEDDLE_CASE(name, device expression, host expression).
#pragma once

#include <stdint.h>

#ifdef __CUDACC__
#define HEDDLE_BOTH __host__ __device__ __noinline__
#else
#define HEDDLE_BOTH [[gnu::noinline]] inline
#endif

namespace suite {

struct Input {
  uint64_t a, b, c;
};

// Code that both sides compile from one source: calls, recursion, loops, jumps.
HEDDLE_BOTH uint32_t Gcd(uint32_t a, uint32_t b) { return b == 0 ? a : Gcd(b, a % b); }

HEDDLE_BOTH uint32_t TreeSum(uint32_t depth, uint32_t seed) {
  if (depth == 0) return seed * 2654435761u;
  if ((seed & 3) == 0) return seed ^ TreeSum(depth - 1, seed >> 1);
  return TreeSum(depth - 1, seed * 3 + 1) + TreeSum(depth - 1, seed >> 2);
}

HEDDLE_BOTH uint32_t Switch(uint32_t selector, uint32_t x) {
  switch (selector & 15) {
    case 0:
      return x + 17;
    case 1:
      return x * 31;
    case 2:
      return x ^ 0x5a5a5a5au;
    case 3:
      return x >> 3;
    case 4:
      return x << 5;
    case 5:
      return ~x;
    case 6:
      return x % 1000;
    case 7:
      return x / 7;
    case 8:
      return x | 0xff00u;
    case 9:
      return x & 0xff00u;
    case 10:
      return 0 - x;
    case 11:
      return x * x;
    default:
      return selector;
  }
}

HEDDLE_BOTH uint32_t Collatz(uint32_t x) {
  uint32_t steps = 0;
  x = (x & 0xffff) + 1;
  while (x != 1 && steps < 200) {
    if (x & 1) {
      x = 3 * x + 1;
      if ((steps & 7) == 5) {
        ++steps;
        continue;
      }
    } else {
      x >>= 1;
    }
    if (x == 1024) break;
    ++steps;
  }
  return steps << 16 | (x & 0xffff);
}

HEDDLE_BOTH uint64_t Sort(uint64_t bytes) {
  uint8_t v[8];
  for (int i = 0; i < 8; ++i) v[i] = static_cast<uint8_t>(bytes >> (8 * i));
  for (int i = 1; i < 8; ++i)
    for (int j = i; j > 0 && v[j - 1] > v[j]; --j) {
      const uint8_t t = v[j];
      v[j] = v[j - 1];
      v[j - 1] = t;
    }
  uint64_t sorted = 0;
  for (int i = 0; i < 8; ++i) sorted |= static_cast<uint64_t>(v[i]) << (8 * i);
  return sorted;
}

}  // namespace suite

// Comparisons as SASS names them, and how a comparison is joined with a predicate.
#pragma once

#include <cstdint>

#include "frontend/emulator/lowering.h"

namespace heddle::emulator {

// Bit 0: less, bit 1: equal, bit 2: greater, bit 3: unordered. A comparison holds when its bit for the relation of the
// operands is set: LT = 1, LE = 3, NE = 5 (ordered), NEU = 13, NAN = 8, NUM = 7.
using Relation = uint32_t;
inline constexpr Relation kLess = 1;
inline constexpr Relation kEqual = 2;
inline constexpr Relation kGreater = 4;
inline constexpr Relation kUnordered = 8;

template <typename T>
inline Relation RelationOf(T a, T b) {
  return a < b ? kLess : a > b ? kGreater : a == b ? kEqual : kUnordered;
}

// Takes the comparison from the modifiers; 0 and failure when there is none.
Relation TakeComparison(Lowering& w, bool is_float);

enum class Join : uint8_t { kAnd, kOr, kXor };
// Takes AND, OR or XOR; fails when there is none.
Join TakeJoin(Lowering& w);

inline uint32_t Apply(Join join, uint32_t a, uint32_t b) {
  return join == Join::kAnd ? a & b : join == Join::kOr ? a | b : a ^ b;
}

// Predicate destinations 0 and 1: `result` and its complement, each joined with source predicate 0.
inline void WriteComparison(const Context& c, const Lowered& l, Join join, uint32_t result) {
  const uint32_t other = c.SourcePredicate(l, 0);
  c.WritePredicate(l, 0, Apply(join, result, other));
  c.WritePredicate(l, 1, Apply(join, ~result, other));
}

}  // namespace heddle::emulator

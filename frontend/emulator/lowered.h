// An instruction as the emulator executes it: a handler and fields that need no further decoding.
#pragma once

#include <array>
#include <cstdint>

#include "frontend/emulator/launch_context.h"
#include "frontend/emulator/row.h"
#include "frontend/emulator/warp.h"
#include "sim/isa/warp_stream.h"

namespace heddle::emulator {

class IssueLog;
class Program;
struct MemoryPort;  // memory as handlers of loads and stores see it
struct Context;
struct Lowered;

using Handler = void (*)(Context&, const Lowered&);

enum class RowBase : uint16_t { kWarp = 0, kPool = 1 };

struct SourceRow {
  uint16_t row = kZeroRow;  // of the first register; the rows of a pair follow each other
  RowBase base = RowBase::kWarp;
};

// The meaning of imm, flags and the spare sources is the handler's own.
struct Lowered {
  Handler run = nullptr;
  std::array<uint16_t, 2> destination{kDiscardRow, kDiscardRow};
  std::array<SourceRow, 4> source{};
  // Modifiers of the sources: value = (row & keep) ^ flip. Integer: ~x has flip = ~0, and a negation adds its
  // 1 in `addend`. Floating point: keep clears the sign (|x|), flip toggles it.
  std::array<uint32_t, 3> keep{kAllLanes, kAllLanes, kAllLanes};
  std::array<uint32_t, 3> flip{};
  std::array<uint32_t, 3> predicate_flip{};  // xor on the mask of source_predicate
  std::array<uint8_t, 3> source_predicate{kTruePredicate, kTruePredicate, kTruePredicate};
  std::array<uint8_t, 2> destination_predicate{kDiscardPredicate, kDiscardPredicate};
  uint8_t guard = kTruePredicate;
  uint8_t width = 1;  // registers of a wide operand
  uint8_t write_barrier = isa::kNoBarrier;
  isa::StepKind step_kind =
      isa::StepKind::kLocal;  // what Execute says when the handler does not say otherwise
  uint32_t guard_flip = 0;
  uint32_t lane_fill = 0;  // all ones: destinations are uniform, every lane of their rows is written
  uint32_t index = 0;      // of the instruction
  uint32_t flags = 0;
  uint64_t imm = 0;
};

// What a handler may touch. One per SM and thread, pointed at another warp for each call of RunAhead or
// StepOne.
struct Context {
  Row* rows = nullptr;                // of the warp
  std::array<const Row*, 2> bases{};  // by RowBase
  uint32_t* predicates = nullptr;     // of the warp
  uint32_t lanes = 0;      // whose destinations are written: executing, or all for uniform destinations
  uint32_t executing = 0;  // active lanes with a true guard; never 0 in a handler
  uint32_t active = 0;     // lanes of the split
  Warp* warp = nullptr;
  CtaState* cta = nullptr;
  const LaunchContext* launch = nullptr;
  const Program* program = nullptr;
  MemoryPort* memory = nullptr;
  IssueLog* issues = nullptr;
  isa::WarpStep* step = nullptr;  // null in RunAhead
  Cycle now = 0;                  // 0 in RunAhead
  // Set by handlers of loads when unknown values are tracked: by register of the result, lanes whose loaded value is unknown. Results
  // of more registers have the last entry for the rest.
  std::array<uint32_t, 4> unknown_result{};

  const Row& Source(const Lowered& l, size_t i) const {
    return bases[static_cast<size_t>(l.source[i].base)][l.source[i].row];
  }
  // Register `offset` of a wide source.
  const Row& Source(const Lowered& l, size_t i, uint32_t offset) const {
    return bases[static_cast<size_t>(l.source[i].base)][l.source[i].row + offset];
  }
  Row& Destination(const Lowered& l, size_t i = 0) const { return rows[l.destination[i]]; }
  // Register `offset` (0..3) of a wide destination; tensor results that are wider must not be RZ.
  Row& Destination(const Lowered& l, size_t i, uint32_t offset) const {
    return rows[l.destination[i] + offset];
  }
  uint32_t SourcePredicate(const Lowered& l, size_t i) const {
    return predicates[l.source_predicate[i]] ^ l.predicate_flip[i];
  }
  void WritePredicate(const Lowered& l, size_t i, uint32_t mask) const {
    uint32_t& p = predicates[l.destination_predicate[i]];
    p = (p & ~lanes) | (mask & lanes);
  }
};

}  // namespace heddle::emulator

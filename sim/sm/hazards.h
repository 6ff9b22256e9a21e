// Registers as numbers and the latencies between instruction classes: what is needed where stall counts
// cannot be trusted, because the machine is slower than the cubin's own or its dependence mode says so.
#pragma once

#include <cstdint>

#include "sim/config/gpu_description.h"
#include "sim/isa/instruction.h"
#include "sim/sm/kernel_timing.h"

namespace heddle::sm {

// Numbers of registers in KernelTiming::register_lists.
inline constexpr uint16_t kFirstUniformRegister = 256;
inline constexpr uint16_t kFirstPredicate = 384;
inline constexpr uint16_t kFirstUniformPredicate = 392;
inline constexpr uint16_t kTrackedRegisters = 400;

// Low nibble: config::DependenceClass of the result, 0 where its consumers wait on a barrier. High nibble:
// index of the consumer class: ALU, FMA, FP16, tensor, memory, other; 6 is the producer's own class.
uint8_t DependenceClassOf(const isa::Instruction& instruction);

DependenceTable DependencesOf(const config::Gpu& gpu);

// What the stall counts of cubins assume (assumed_dependences.def).
DependenceTable AssumedDependences();

// True when a latency of the machine is longer than cubins assume (assumed_dependences.def): their stall counts cannot
// be trusted then.
bool SlowerThanAssumed(const DependenceTable& machine);

// Cycles that a consumer of class byte `consumer` issues after a producer of class byte `producer`; 0: no
// hazard.
inline uint32_t DependenceCycles(const DependenceTable& table, uint8_t producer, uint8_t consumer) {
  const int from = producer & 15;
  const int to = (producer & 15) == (consumer & 15) ? kConsumerClasses - 1 : consumer >> 4;
  return table[static_cast<size_t>(from)][static_cast<size_t>(to)];
}

// Fills register_lists and list_start, and counts in early_reads the reads that stall counts, along
// straight-line code, place before the machine's latency.
void FindHazards(const isa::KernelCode& code, KernelTiming* timing);

// Sets stall counts as a compiler that knows the machine would have, in the cubin's order of instructions: along
// straight-line code, the distance that a stall count leaves for a dependence of fixed latency becomes the machine's
// instead of the assumed one, longer or shorter. What a stall count leaves beyond that is kept. After FindHazards.
void Reschedule(const isa::KernelCode& code, KernelTiming* timing);

}  // namespace heddle::sm

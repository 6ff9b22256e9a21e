// Registers that are waited for one by one: where stall counts cannot be trusted (hazards.h), and the scoreboard of code
// without control bits.
//
// The scoreboard holds an instruction back until what it reads has been written, what it overwrites has been written,
// and what it overwrites has been read by slower instructions before it. Results of fixed latency take the machine's
// dependence latencies, the others are written when they arrive: `written` is that cycle then, kUnknown before it is
// known, and `writer` says in its high nibble what a wait for it is called.
#include <algorithm>

#include "sim/sm/machine.h"

namespace heddle::sm {
namespace {

constexpr uint8_t kShort = 1 << 4;
constexpr uint8_t kLong = 2 << 4;

}  // namespace

Cycle Sm::Machine::HazardUntil(uint32_t id) const {
  const Warp& warp = warps[id];
  const KernelTiming& timing = *launches[warp.launch].timing;
  const uint8_t consumer = timing.instructions[warp.next].dependence_class;
  const RegisterState* state = &register_state[size_t{id} * kTrackedRegisters];
  Cycle until = 0;
  for (uint32_t i = timing.list_start[2 * warp.next]; i < timing.list_start[2 * warp.next + 1]; ++i) {
    const RegisterState& reg = state[timing.register_lists[i]];
    until = std::max(until, reg.written + DependenceCycles(timing.dependences, reg.writer, consumer));
  }
  return until;
}

Cycle Sm::Machine::ScoreboardUntil(uint32_t id) {
  const Warp& warp = warps[id];
  const KernelTiming& timing = *launches[warp.launch].timing;
  const uint8_t consumer = timing.instructions[warp.next].dependence_class;
  const RegisterState* state = &register_state[size_t{id} * kTrackedRegisters];
  const uint32_t writes = timing.list_start[2 * warp.next + 1], end = timing.list_start[2 * warp.next + 2];
  ScoreboardWaits waits;
  for (uint32_t i = timing.list_start[2 * warp.next]; i < end; ++i) {
    const RegisterState& reg = state[timing.register_lists[i]];
    if ((reg.writer & 15) != 0) {
      waits.fixed =
          std::max(waits.fixed, reg.written + DependenceCycles(timing.dependences, reg.writer, consumer));
    } else {
      Cycle& until = reg.writer == kLong ? waits.for_long : waits.for_short;
      until = std::max(until, reg.written);
    }
  }
  const Cycle* released = &sources_released[size_t{id} * kTrackedRegisters];
  for (uint32_t i = writes; i < end; ++i)
    waits.for_short = std::max(waits.for_short, released[timing.register_lists[i]]);
  scoreboard_waits[id] = waits;
  return std::max({waits.fixed, waits.for_short, waits.for_long});
}

void Sm::Machine::NoteWrites(uint32_t id, uint32_t issued, Cycle at) {
  const KernelTiming& timing = *launches[warps[id].launch].timing;
  RegisterState* state = &register_state[size_t{id} * kTrackedRegisters];
  const uint8_t writer = timing.instructions[issued].dependence_class;
  for (uint32_t i = timing.list_start[2 * issued + 1]; i < timing.list_start[2 * issued + 2]; ++i)
    state[timing.register_lists[i]] = {at, writer};
}

// The destinations of `instruction`, of variable latency, are written in cycle `at`; kUnknown: it will be told later.
// `later`: this is what was promised, otherwise the latest of what is told counts.
void Sm::Machine::NoteResult(uint32_t id, uint32_t instruction, Cycle at, bool later) {
  const KernelTiming& timing = *launches[warps[id].launch].timing;
  RegisterState* state = &register_state[size_t{id} * kTrackedRegisters];
  const uint8_t writer = (timing.instructions[instruction].flags & kLongScoreboard) != 0 ? kLong : kShort;
  for (uint32_t i = timing.list_start[2 * instruction + 1]; i < timing.list_start[2 * instruction + 2]; ++i) {
    RegisterState& reg = state[timing.register_lists[i]];
    reg = {later ? at : std::max(reg.written, at), writer};
  }
}

void Sm::Machine::NoteRelease(uint32_t id, uint32_t instruction, Cycle at) {
  const KernelTiming& timing = *launches[warps[id].launch].timing;
  Cycle* released = &sources_released[size_t{id} * kTrackedRegisters];
  for (uint32_t i = timing.list_start[2 * instruction]; i < timing.list_start[2 * instruction + 1]; ++i) {
    Cycle& until = released[timing.register_lists[i]];
    until = std::max(until, at);
  }
}

}  // namespace heddle::sm

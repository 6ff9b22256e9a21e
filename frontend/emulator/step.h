// Drives a warp through its program: what WarpStream::NextRun and Execute do for the registers of one warp.
#pragma once

#include "frontend/emulator/lowered.h"
#include "frontend/emulator/program.h"
#include "frontend/emulator/warp.h"
#include "sim/isa/warp_stream.h"

namespace heddle::emulator {

// `context` has launch, program, memory, issues and bases[kPool] set; the rest is pointed at the warp by
// these functions.

// Loads the rows of the next instructions, as far as no jump is taken.
void PrefetchNext(const Program& program, const Warp& warp);

// Executes the local instructions in front of the warp's next non-local one. Stops before an instruction that
// waits for a pending scoreboard.
isa::InstructionRun RunAhead(Context& context, Warp& warp);

// Executes the warp's next instruction, whatever it is. `step` is complete but for what handlers of memory
// add.
void StepOne(Context& context, Warp& warp, Cycle now, isa::WarpStep* step);

// Splits that wait for CTA barrier `id` may go on.
void ReleaseBarrier(Warp& warp, uint8_t id);

isa::WarpState StateOf(const Warp& warp);

}  // namespace heddle::emulator

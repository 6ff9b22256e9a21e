// Fetch: which line holds a warp's next instruction, and when it is in the buffer.
//
// The buffer of a warp has room for a few instructions, so the line behind the one that it executes is asked
// for that many issues ahead. A jump empties the buffer.
#include "sim/sm/machine.h"

namespace heddle::sm {
namespace {

uint64_t AddressOf(const Launch& launch, uint64_t index) {
  return launch.timing->code_address + index * isa::kInstructionBytes;
}

Cycle Decoded(Cycle arrival, const config::SubCore& config) {
  return arrival == kNever ? kNever : arrival + config.fetch_latency_cycles;
}

}  // namespace

void Sm::Machine::StartFetch(uint32_t id, Cycle at) {
  Warp& warp = warps[id];
  const uint64_t address = AddressOf(launches[warp.launch], warp.next);
  warp.fetch_until = Decoded(fetch.Fetch(SubCoreOf(id), address, at, &port), config.sub_core);
  warp.fetch_line = address / fetch_line_bytes;
  warp.ahead_line = kNoLine;
  const uint64_t last =
      address + uint64_t{config.sub_core.instruction_buffer_entries - 1} * isa::kInstructionBytes;
  if (last / fetch_line_bytes != warp.fetch_line) FetchAhead(id, last, at);
}

void Sm::Machine::FetchAhead(uint32_t id, uint64_t address, Cycle at) {
  Warp& warp = warps[id];
  warp.ahead_until = Decoded(fetch.Fetch(SubCoreOf(id), address, at, &port), config.sub_core);
  warp.ahead_line = address / fetch_line_bytes;
}

void Sm::Machine::AdvanceFetch(uint32_t id, uint32_t issued, Cycle at) {
  Warp& warp = warps[id];
  const Launch& launch = launches[warp.launch];
  const uint32_t flags = launch.instructions[issued].flags;
  const uint64_t next = AddressOf(launch, issued + 1);
  if ((flags & kAsksAhead) != 0)
    FetchAhead(id, next + uint64_t{config.sub_core.instruction_buffer_entries - 1} * isa::kInstructionBytes,
               at);
  if ((flags & kEndsLine) == 0) return;
  warp.fetch_line = next / fetch_line_bytes;
  warp.fetch_until = warp.ahead_line == warp.fetch_line
                         ? warp.ahead_until
                         : Decoded(fetch.Fetch(SubCoreOf(id), next, at, &port), config.sub_core);
}

// L2 has answered for a memory line of instructions.
void Sm::Machine::AnswerFetch(uint64_t line_address, Cycle arrival) {
  const Cycle decoded = fetch.Answer(line_address, arrival) + config.sub_core.fetch_latency_cycles;
  const auto is_of = [&](uint64_t line) {
    return line * fetch_line_bytes / memory::kLineBytes == line_address / memory::kLineBytes;
  };
  for (uint32_t id = 0; id < warps.size(); ++id) {
    Warp& warp = warps[id];
    if (!warp.live) continue;
    if (warp.ahead_line != kNoLine && warp.ahead_until == kNever && is_of(warp.ahead_line))
      warp.ahead_until = decoded;
    if (warp.fetch_until != kNever || !is_of(warp.fetch_line)) continue;
    warp.fetch_until = decoded;
    Touch(id);
  }
}

void Sm::Machine::AnswerConstant(uint64_t line_address, Cycle arrival) {
  constants.Answer(line_address, arrival);
  for (size_t i = 0; i < constant_waiters.size();) {
    if (constant_waiters[i].line_address != line_address) {
      ++i;
      continue;
    }
    AnswerTransaction(constant_waiters[i].transaction, arrival);
    constant_waiters.erase(constant_waiters.begin() + static_cast<ptrdiff_t>(i));
  }
  for (uint32_t id = 0; id < warps.size(); ++id) {
    Warp& warp = warps[id];
    if (!warp.live || warp.block_until != kNever || warp.block_reason != stats::Stall::k_imc_miss) continue;
    if (warp.block_line != line_address) continue;
    warp.block_until = arrival;  // and asks again
    Touch(id);
  }
}

}  // namespace heddle::sm

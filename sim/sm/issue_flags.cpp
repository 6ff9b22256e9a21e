#include "sim/sm/issue_flags.h"

#include <algorithm>

#include "sim/memory/memory_request.h"

namespace heddle::sm {
namespace {

bool IsQuiet(const InstructionTiming& timing) {
  switch (timing.timing_class) {
    case TimingClass::kFixed:
    case TimingClass::kVariable:
    case TimingClass::kDepbar:
      return timing.read_barrier == isa::kNoBarrier && timing.write_barrier == isa::kNoBarrier &&
             (timing.flags & kOnScoreboard) == 0;
    default:
      return false;
  }
}

bool IsPlainPipe(const InstructionTiming& timing) {
  switch (timing.port) {
    case IssuePort::kMio:
    case IssuePort::kGlobal:
    case IssuePort::kNone:
    case IssuePort::kFma:
    case IssuePort::kFmaHeavy:
    case IssuePort::kGmma:
    case IssuePort::kTma:
      return false;
    default:
      return (timing.flags & kSharedPipe) == 0;
  }
}

bool AsksAtIssue(const InstructionTiming& timing) {
  return (timing.flags & (kReadsConstant | kSharedPipe)) != 0 || timing.port == IssuePort::kGlobal;
}

}  // namespace

bool WaitsOnScoreboard(const InstructionTiming& timing) {
  switch (timing.timing_class) {
    case TimingClass::kVariable:
    case TimingClass::kMioOnly:
    case TimingClass::kMemory:
    case TimingClass::kConstant:
    case TimingClass::kAsyncCopy:
      return (timing.dependence_class & 15) == 0;
    default:
      return false;
  }
}

uint16_t IssueFlagsOf(const InstructionTiming& timing) {
  return static_cast<uint16_t>((IsQuiet(timing) ? kIsQuiet : 0) | (AsksAtIssue(timing) ? kAsksAtIssue : 0) |
                               (IsPlainPipe(timing) ? kPlainPipe : 0));
}

uint16_t FetchFlagsOf(const config::Gpu& gpu, uint64_t code_address, uint64_t index) {
  const uint64_t line_bytes = std::min(gpu.sm.instruction_caches.l0.line_bytes, memory::kLineBytes);
  const uint64_t next = code_address + (index + 1) * isa::kInstructionBytes;
  const uint64_t last =
      next + uint64_t{gpu.sm.sub_core.instruction_buffer_entries - 1} * isa::kInstructionBytes;
  const bool ends = next % line_bytes < isa::kInstructionBytes;
  const bool asks = last % line_bytes < isa::kInstructionBytes;
  return static_cast<uint16_t>((ends ? kEndsLine : 0) | (asks ? kAsksAhead : 0));
}

}  // namespace heddle::sm

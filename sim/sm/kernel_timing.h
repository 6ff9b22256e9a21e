// What the SM must know of each instruction of a kernel, decoded once per launch and machine into compact
// records.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/config/gpu_description.h"
#include "sim/isa/instruction.h"
#include "sim/isa/warp_stream.h"

namespace heddle::sm {

// How an instruction's results come about.
enum class TimingClass : uint8_t {
  kFixed,       // after a fixed number of cycles; consumers are held back by stall counts
  kVariable,    // decrements its barriers a fixed time after its pipe took it
  kShared,      // shared memory: LDS, STS, LDSM, STSM, ATOMS
  kGlobal,      // global, local or generic memory
  kAsyncCopy,   // LDGSTS
  kConstant,    // LDC: constant cache behind the MIO
  kDepbar,      // DEPBAR.LE SBx, n
  kGroup,       // LDGDEPBAR: closes a group of asynchronous copies
  kFence,       // MEMBAR
  kInvalidate,  // CCTL.IVALL
  kControl,     // branches, barriers, EXIT, NANOSLEEP: what Execute says
};

// Structural resources that an issue needs. Each has a time at which it is next free, per sub-core.
enum class IssuePort : uint8_t {
  kAlu,
  kFma,
  kFmaHeavy,
  kFp16,
  kFp64,
  kXu,
  kTensor,
  kUniform,
  kCbu,
  kAdu,
  kMio,     // the memory queue of the sub-core has room
  kGlobal,  // and L1 can take another miss
  kNone,
};
inline constexpr int kIssuePortCount = static_cast<int>(IssuePort::kNone) + 1;

enum InstructionFlag : uint16_t {
  kYield = 1 << 0,          // another warp is preferred in the next cycle
  kReadsConstant = 1 << 1,  // an operand c[bank][immediate]: constant_offset, constant_bank
  kHasReuse = 1 << 2,
  kLongScoreboard = 1 << 3,  // consumers wait for L1 or beyond
  kStore = 1 << 4,           // needs an acknowledgement before a fence passes
  kUniformAddress = 1 << 5,  // the address comes from a uniform register
  kCountedBarrier = 1 << 6,  // its write barrier is one that a DEPBAR.LE with n > 0 waits for
  kSystemScope = 1 << 7,     // MEMBAR.SYS
  kCtaScope = 1 << 8,        // MEMBAR.CTA
  kUncertainDistance = 1 << 9,
};

struct alignas(32) InstructionTiming {
  TimingClass timing_class = TimingClass::kFixed;
  IssuePort port = IssuePort::kNone;
  uint8_t stall_cycles = 1;
  uint8_t wait_mask = 0;
  uint8_t write_barrier = isa::kNoBarrier;
  uint8_t read_barrier = isa::kNoBarrier;
  uint16_t flags = 0;                  // InstructionFlag
  uint16_t interval_quarters = 4;      // occupation of the port, in quarter cycles
  uint16_t result_cycles = 0;          // issue to write-back, uncontended
  uint16_t source_release_cycles = 0;  // issue to the release of the sources
  uint16_t constant_offset = 0;        // byte offset in the bank
  uint8_t constant_bank = 0;
  uint8_t depbar_count = 0;                    // n of DEPBAR.LE; its barrier in write_barrier
  uint8_t depbar_zero_mask = 0;                // {5,4,3} of DEPBAR: barriers that must be 0
  uint8_t reads_per_bank[2] = {0, 0};          // register reads, reuse cache not counted
  uint8_t slot_register[3] = {255, 255, 255};  // operand slots that the reuse cache serves; 255: none
  uint8_t reuse = 0;                           // bit i: keep the register of slot i
  uint8_t reserved = 0;
};
static_assert(sizeof(InstructionTiming) == 32);

struct KernelTiming {
  std::vector<InstructionTiming> instructions;  // by index, as in isa::KernelCode
  std::vector<uint32_t> tensor_ops;             // by index: multiply-adds times two of a matrix instruction
  uint8_t counted_barriers = 0;                 // barriers named by a DEPBAR.LE with n > 0
  bool interlocked = false;  // registers are tracked: the machine is slower than the cubin assumes
  uint64_t code_address = 0;
  std::array<uint64_t, 5> constant_bank_address{};
  std::vector<uint16_t> register_lists;  // interlocked: see RegisterListOf
  std::vector<uint32_t> register_list_start;
};

// Takes the control bits of `code` and the latencies of `gpu`.
KernelTiming BuildKernelTiming(const config::Gpu& gpu, const isa::KernelCode& code,
                               const isa::LaunchShape& shape);

}  // namespace heddle::sm

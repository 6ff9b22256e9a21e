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
  kFixed,       // operands are read in a fixed window, results come a fixed number of cycles later
  kVariable,    // the same, but operands are read when ports are free; consumers wait on barriers
  kMioOnly,     // through the memory queue and the LSU without an address: SHFL, ...
  kMemory,      // addresses from Execute: global, local, shared, generic
  kConstant,    // LDC
  kAsyncCopy,   // LDGSTS
  kGroup,       // LDGDEPBAR: closes a group of asynchronous copies
  kFence,       // MEMBAR
  kInvalidate,  // CCTL.IVALL
  kControl,     // branches, barriers, EXIT, NANOSLEEP: what Execute says
  kMbarrier,    // SYNCS, ARRIVES: through the memory queue; Execute says what it did
  kBulk,        // UTMALDG and the others that the bulk-copy unit takes
  kBulkGroup,   // UTMACMDFLUSH: closes a group of bulk stores
  // From here on: what must have happened before it issues is not told by control bits alone (Machine::SpecialUntil).
  kDepbar,        // DEPBAR.LE SBx, n
  kMatrixGroup,   // HGMMA, QGMMA, IGMMA: asynchronous, on the tensor cores of a warpgroup
  kMatrixWait,    // WARPGROUP.DEPBAR.LE gsb0, n
  kRegisterPool,  // USETMAXREG
  kGridWait,      // ACQBULK
};
inline constexpr TimingClass kFirstSpecialWait = TimingClass::kDepbar;

// What an issue needs free. Each port of a sub-core has a time at which it is next free.
enum class IssuePort : uint8_t {
  kAlu,
  kFma,
  kFmaHeavy,  // integer multiply-adds: the heavy half of FMA, and FMA itself
  kFp16,
  kFp64,
  kXu,
  kTensor,
  kUniform,
  kCbu,
  kAdu,
  kMio,     // the memory queue of the sub-core has room
  kGlobal,  // it has, and L1 can take another miss
  kGmma,    // matrix instructions of a warpgroup: the sub-core can take another
  kTma,     // the bulk-copy unit can
  kNone,
};
inline constexpr int kIssuePortCount = static_cast<int>(IssuePort::kNone) + 1;

enum InstructionFlag : uint16_t {
  kYield = 1 << 0,            // the warp lets another one issue in the next cycle
  kReadsConstant = 1 << 1,    // an operand c[bank][immediate]
  kLongScoreboard = 1 << 2,   // its consumers wait for L1 or beyond
  kCtaScope = 1 << 4,         // MEMBAR.CTA
  kSystemScope = 1 << 5,      // MEMBAR.SYS
  kSharedPipe = 1 << 6,       // the pipe serves all sub-cores
  kConstantAddress = 1 << 7,  // LDC: constant_bank and constant_offset are its address
  kIsQuiet = 1 << 8,          // takes its pipe and its operands and does nothing else that the SM must note
  kEndsLine = 1 << 9,         // the next instruction lies in another line of L0
  kAsksAhead = 1 << 10,       // when it has left the buffer, there is room for the first of another line
  kAsksAtIssue =
      1 << 11,  // what it needs may have gone since it was selected, or is only looked for at issue
  kClosesGroup = 1 << 12,   // kMatrixGroup: gsb0
  kAllocates = 1 << 13,     // USETMAXREG.TRY_ALLOC
  kPlainPipe = 1 << 14,     // takes a pipe of its sub-core and no other
  kOnScoreboard = 1 << 15,  // its registers are waited for until the cycle at which they are read or written
};

inline constexpr uint32_t kMaxRegisterBanks = 4;
inline constexpr int kOperandSlots = 3;

struct alignas(32) InstructionTiming {
  TimingClass timing_class = TimingClass::kFixed;
  IssuePort port = IssuePort::kNone;
  uint8_t stall_cycles = 1;  // to the warp's next issue, yield included
  uint8_t wait_mask = 0;
  uint8_t write_barrier = isa::kNoBarrier;
  uint8_t read_barrier = isa::kNoBarrier;
  uint16_t flags = 0;                  // InstructionFlag
  uint16_t interval_quarters = 4;      // occupation of the port, in quarter cycles
  uint16_t result_cycles = 0;          // issue to write-back, uncontended
  uint16_t source_release_cycles = 0;  // issue to the release of the sources
  // Byte offset in the bank. kMatrixGroup: bytes of shared memory that the warpgroup reads. kRegisterPool: registers of a
  // thread afterwards.
  uint16_t constant_offset = 0;
  uint8_t constant_bank = 0;
  uint8_t depbar_barrier = isa::kNoBarrier;  // x and n of DEPBAR.LE SBx, n
  uint8_t depbar_count = 0;                  // also of WARPGROUP.DEPBAR
  uint8_t reuse = 0;                         // bit i: keep the register of slot i
  std::array<uint8_t, kOperandSlots> slot_register{255, 255,
                                                   255};  // operand slots of the reuse cache; 255: none
  uint8_t dependence_class = 0;                      // producer class (low nibble), consumer class (high)
  std::array<uint16_t, kOperandSlots> slot_reads{};  // reads of each slot, a nibble for each bank
  uint16_t reads = 0;                                // of slots and others together, likewise
};
static_assert(sizeof(InstructionTiming) == 32);

// Latencies from a producer class to a consumer class (hazards.h); only used where registers are tracked.
inline constexpr int kProducerClasses = 12;  // config::DependenceClass; 0: no fixed-latency result
inline constexpr int kConsumerClasses = 7;
using DependenceTable = std::array<std::array<uint8_t, kConsumerClasses>, kProducerClasses>;

struct KernelTiming {
  std::vector<InstructionTiming> instructions;  // by index, as in isa::KernelCode
  std::vector<uint32_t> tensor_ops;             // by index: multiply-adds times two of a matrix instruction
  uint8_t counted_barriers = 0;                 // barriers named by a DEPBAR.LE with n > 0
  bool has_async_copies = false;
  bool has_hopper_units = false;  // see NeedsHopperUnits
  uint64_t code_address = 0;
  std::array<uint64_t, 5> constant_bank_address{};

  // Instructions that stall counts alone would let read a register before this machine has written it, and
  // whether registers are therefore tracked (always so when the machine's dependence mode is not
  // control_bits).
  uint32_t early_reads = 0;
  bool tracks_registers = false;
  bool ignores_stall_counts = false;
  bool scoreboard = false;  // code without control bits: registers decide alone (stages/scoreboard.cpp)
  DependenceTable dependences{};
  // With tracks_registers: what instruction i reads lies in register_lists[list_start[2i] .. list_start[2i +
  // 1]), what it writes in [list_start[2i + 1] .. list_start[2i + 2]). Numbers as in hazards.h.
  std::vector<uint16_t> register_lists;
  std::vector<uint32_t> list_start;
};

// Takes the control bits of `code` and the latencies of `gpu`.
KernelTiming BuildKernelTiming(const config::Gpu& gpu, const isa::KernelCode& code,
                               const isa::LaunchShape& shape);

// Which issue port an instruction takes and for how long, whatever its control bits. Of a matrix instruction of a
// warpgroup: its tensor cores, for as long as it has them to itself.
struct PortUse {
  IssuePort port = IssuePort::kNone;
  double interval_cycles = 0;
  bool is_shared = false;  // by the sub-cores of the SM
};
PortUse PortUseOf(const config::Gpu& gpu, const isa::Instruction& instruction);

// Whether the code has instructions of sm.tma, sm.mbarrier, sm.gmma or the cluster network, without which an SM cannot run
// it.
bool NeedsHopperUnits(const isa::KernelCode& code);

}  // namespace heddle::sm

// The code of a recorded function: each instruction once, found by what the lines of a trace say of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/import/recorded_format.h"
#include "frontend/import/traceg.h"
#include "sim/isa/instruction.h"

namespace heddle::importer {

// What a recorded instruction has in the tokens of a warp.
enum class RecordKind : uint8_t { kNone, kAccess, kBarrier };
RecordKind RecordOf(const isa::Instruction& instruction);

// How a line could be understood.
struct Understood {
  isa::Instruction instruction;
  const char* fault = nullptr;  // what is not understood; `instruction` is what stands for it then
};
// One destination, vector registers only: what an instruction lacks of the operands that it has is left out, and widths
// follow from the opcode. An opcode that is not known, or whose recorded form says too little (bulk copies, matrix
// instructions of a warpgroup, mbarriers), becomes a load or a store where the line has addresses, a NOP otherwise.
Understood Understand(const TracegInstruction& line);

class StaticCode {
 public:
  static constexpr CodeKey kNone = ~CodeKey{0};

  struct Found {
    CodeKey key = kNone;  // kNone: cannot be kept; `fault` says why
    uint32_t id = 0;      // dense, in the order of appearance
    RecordKind record = RecordKind::kNone;
    const char* fault = nullptr;  // every time
  };
  // The instruction of a line, new if it has not been seen.
  Found Find(const TracegInstruction& line);

  const isa::Instruction& instruction(uint32_t id) const { return entries_[id].instruction; }
  uint32_t stride() const { return stride_; }  // places of a variant

  // All variants, and the EXIT behind them. Places without an instruction are NOPs.
  isa::KernelCode ToKernelCode(const std::string& name, uint32_t sm_version) const;

 private:
  struct Entry {
    TracegInstruction line;  // without addresses, mask and opcode text
    std::string opcode;
    isa::Instruction instruction;
    const char* fault = nullptr;
    CodeKey key = 0;
    RecordKind record = RecordKind::kNone;
    uint32_t next = kNone;  // the next variant of this place
  };
  static bool Same(const Entry& entry, const TracegInstruction& line);

  std::vector<Entry> entries_;
  std::vector<uint32_t> first_;  // by place: id of the first variant
  uint32_t stride_ = 1;
  uint32_t variants_ = 1;
};

}  // namespace heddle::importer

// The code of a recorded launch, prepared for replay: what each instruction asks of the stream that walks over it.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/import/recorded_format.h"
#include "frontend/import/static_code.h"
#include "sim/base/result.h"
#include "sim/isa/instruction.h"
#include "sim/isa/warp_stream.h"

namespace heddle::importer {

struct ReplayedInstruction {
  RecordKind record = RecordKind::kNone;
  bool stops = false;  // ends a run: the simulator must execute it, and ask what follows
  bool is_exit = false;
  bool is_branch = false;
  bool is_generic = false;      // LD, ST, ATOM: lanes are in the window that their address says
  uint32_t access = 0;          // dense number among those with RecordKind::kAccess
  uint32_t matrix_lanes = ~0u;  // LDSM, STSM: whose addresses are read
  uint32_t sleep_ns = 0;
  // Of an access: all that addresses and lanes do not change.
  isa::MemorySpace space = isa::MemorySpace::kGlobal;
  isa::AccessKind kind = isa::AccessKind::kLoad;
  uint8_t bytes_per_lane = 4;
  bool at_slice = false;
  bool bypass_l1 = false;
  isa::BarrierAccess barrier;
};

class RecordedCode {
 public:
  // Errors (kTrace): code that is not of `stride` instructions a variant and an EXIT.
  static Result<RecordedCode> Make(const isa::KernelCode& code, uint32_t stride, const std::string& place);

  const ReplayedInstruction& operator[](uint32_t index) const { return instructions_[index]; }
  uint32_t size() const { return static_cast<uint32_t>(instructions_.size()); }
  uint32_t last_exit() const { return size() - 1; }  // the one that was not recorded
  uint32_t stride() const { return stride_; }
  uint32_t variants() const { return variants_; }
  uint32_t accesses() const { return accesses_; }
  // From `index` on, the first instruction that stops a run.
  uint32_t NextStop(uint32_t index) const { return next_stop_[index]; }
  // The instruction of a key; size() where there is none.
  uint32_t IndexOf(CodeKey key) const {
    const uint64_t index = uint64_t{VariantOf(key)} * stride_ + PlaceOf(key);
    return PlaceOf(key) < stride_ && VariantOf(key) < variants_ ? static_cast<uint32_t>(index) : size();
  }

 private:
  std::vector<ReplayedInstruction> instructions_;
  std::vector<uint32_t> next_stop_;
  uint32_t stride_ = 1;
  uint32_t variants_ = 1;
  uint32_t accesses_ = 0;
};

}  // namespace heddle::importer

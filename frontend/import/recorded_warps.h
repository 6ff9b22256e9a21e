// The warps of a recorded launch on one SM: tokens (recorded_format.h) become runs and steps as the simulator asks for
// them. What is kept is a few words an access instruction and warp, and the chunks of the blocks that run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "frontend/import/chunk_store.h"
#include "frontend/import/recorded_launch.h"
#include "sim/isa/warp_stream.h"

namespace heddle::importer {

class RecordedWarps final : public isa::WarpStream {
 public:
  RecordedWarps(RecordedLaunch* launch, uint32_t sm);

  void StartCta(const isa::CtaStart& start) override;
  void EndCta(uint32_t slot) override;
  isa::InstructionRun NextRun(uint32_t warp) override;
  void Execute(uint32_t warp, Cycle now, isa::WarpStep* step) override;
  void ReleaseBarrier(uint32_t slot, uint8_t id) override;
  // Nothing is loaded or stored: addresses are all there is.
  void CompleteAsyncCopy(uint32_t, Cycle) override {}
  void PerformAtSlice(uint32_t, uint32_t, Cycle) override {}

 private:
  struct LastAccess {
    uint64_t base = 0;
    uint64_t step = 0;
    uint32_t shape = 0;
    bool known = false;
  };
  struct Warp {
    NumberReader tokens;
    std::span<const First> firsts;
    size_t next_first = 0;
    uint32_t at = 0;     // next instruction
    uint32_t left = 0;   // of the run of the token, `at` included
    uint32_t count = 0;  // in front of the one that Execute is for
    uint32_t mask = ~0u;
    uint32_t variant = 0;
    uint32_t place = 0;  // behind the run
    isa::WarpState state = isa::WarpState::kRunnable;
    uint8_t barrier = 0;
    uint64_t local_address = 0;
    std::vector<LastAccess> accesses;
  };

  void ReadToken(Warp* warp);
  void GiveUp(Warp* warp);  // the tokens cannot be read: the warp ends
  bool ReadAccess(Warp* warp, const ReplayedInstruction& instruction, isa::MemoryAccess* access);
  void Resolve(const Warp& warp, const ReplayedInstruction& instruction, isa::MemoryAccess* access) const;
  void ToLocal(const Warp& warp, uint32_t lane, uint64_t* address) const;

  RecordedLaunch& launch_;
  const RecordedCode& code_;
  uint32_t sm_;
  uint32_t warps_per_cta_;
  std::vector<Warp> warps_;
  std::vector<std::shared_ptr<const Chunk>> chunks_;  // by slot
};

}  // namespace heddle::importer

// The warps of one emulated launch on one SM.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "frontend/emulator/issue_log.h"
#include "frontend/emulator/lowered.h"
#include "frontend/emulator/memory_port.h"
#include "sim/isa/warp_stream.h"

namespace heddle::emulator {

class EmulatedLaunch;

class EmulatedWarps final : public isa::WarpStream {
 public:
  EmulatedWarps(EmulatedLaunch& launch, uint32_t sm, std::shared_ptr<IssueLog> issues);
  ~EmulatedWarps() override;

  void StartCta(const isa::CtaStart& start) override;
  void EndCta(uint32_t slot) override;
  void Prefetch(uint32_t warp) const override;
  isa::InstructionRun NextRun(uint32_t warp) override;
  void Execute(uint32_t warp, Cycle now, isa::WarpStep* step) override;
  void ReleaseBarrier(uint32_t slot, uint8_t id) override;
  void CompleteAsyncCopy(uint32_t token, Cycle now) override;
  void PerformAtSlice(uint32_t token, uint32_t lanes, Cycle now) override;
  void ReleaseClusterBarrier(uint32_t slot) override;
  void ArriveAfterCopies(uint32_t token, Cycle now) override;
  void CompleteBulk(isa::BulkOperation& operation, uint32_t slot, uint32_t rank, uint32_t first,
                    uint32_t count, Cycle now) override;
  void ReadBulkSource(isa::BulkOperation& operation, uint32_t first, uint32_t count, Cycle now) override;
  void PerformBulkAtSlice(isa::BulkOperation& operation, uint32_t piece, uint32_t offset, uint32_t bytes,
                          Cycle now) override;
  void PerformRemote(isa::RemoteOperation& operation, uint32_t slot, uint32_t rank, Cycle now) override;
  void CompleteRemote(isa::RemoteOperation& operation, Cycle now) override;
  bool FailWait(uint32_t warp, Cycle now) override;

  // From now on stores are visible to everyone at once instead of at PublishStores(): for runs without a timing model.
  void ApplyStoresAtOnce() { port_.stores = nullptr; }
  const Warp& warp(uint32_t index) const { return *warps_[index]; }

 private:
  struct Slot {
    CtaMemory cta;
    std::vector<Row> rows;
    std::vector<uint32_t> unknown;
    std::vector<Warp> warps;
    std::vector<uint8_t> shared;
    std::vector<uint8_t> local;
  };
  Slot& SlotAt(uint32_t slot);
  CtaMemory* CtaOfSlot(uint32_t slot);  // nullptr of isa::kEndedCta

  EmulatedLaunch& launch_;
  const uint32_t sm_;
  const uint32_t warps_per_cta_;
  std::shared_ptr<IssueLog> issues_;
  MemoryPort port_;
  Context context_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Warp*> warps_;  // slot * warps_per_cta_ + index
};

}  // namespace heddle::emulator

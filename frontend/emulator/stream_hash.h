// A hash of what a warp executes, for comparing two ways of executing it.
#pragma once

#include <bit>
#include <cstdint>

#include "sim/isa/warp_stream.h"

namespace heddle::emulator {

class StreamHash {
 public:
  void Run(const isa::InstructionRun& run) {
    Mix(uint64_t{run.first} << 32 | run.count);
    Mix(run.lanes);
  }

  void Step(const isa::WarpStep& step) {
    Mix(uint64_t{step.index} << 32 | step.lanes);
    if (step.kind == isa::StepKind::kMemory) Memory(step.memory);
    if (step.kind == isa::StepKind::kBarrier)
      Mix(uint64_t{step.barrier.id} << 32 | step.barrier.expected_threads << 1 |
          (step.barrier.op == isa::BarrierOp::kArrive ? 1u : 0u));
    if (step.kind == isa::StepKind::kMbarrier) Mbarrier(step.mbarrier);
    if (step.kind == isa::StepKind::kBulk && step.bulk != nullptr) Bulk(*step.bulk);
  }

  // Of the warp's place in the grid and all that was mixed in.
  uint64_t Finish(uint64_t cta, uint32_t warp) const {
    StreamHash hash = *this;
    hash.Mix(cta);
    hash.Mix(warp);
    return hash.state_;
  }

 private:
  void Remote(const isa::RemoteOperation& remote) {
    Mix(uint64_t{remote.lanes} << 32 | uint64_t{remote.bytes_per_lane} << 8 |
        static_cast<uint32_t>(remote.kind));
    for (uint32_t lanes = remote.lanes; lanes != 0; lanes &= lanes - 1) {
      const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
      Mix(uint64_t{remote.rank[lane]} << 32 | remote.shared_address[lane]);
    }
  }

  void Mbarrier(const isa::MbarrierAccess& access) {
    Mix(uint64_t{access.lanes} << 32 | static_cast<uint32_t>(access.op) << 1 | (access.parity ? 1u : 0u));
    if (access.remote != nullptr) Remote(*access.remote);
  }

  void Bulk(const isa::BulkOperation& bulk) {
    Mix(uint64_t{bulk.destination_ranks} << 40 | uint64_t{bulk.mbarrier} << 8 |
        static_cast<uint32_t>(bulk.kind));
    for (const isa::BulkPiece& piece : bulk.pieces) {
      Mix(piece.global_address);
      Mix(uint64_t{piece.global_bytes} << 32 | piece.shared_bytes);
      Mix(piece.shared_address);
    }
  }

  void Mix(uint64_t value) { state_ = std::rotl((state_ ^ value) * 0x9E3779B97F4A7C15ull, 29); }

  void Memory(const isa::MemoryAccess& access) {
    Mix(uint64_t{access.lanes} << 32 | access.shared_lanes);
    Mix(uint64_t{access.zero_fill_lanes} << 32 | static_cast<uint32_t>(access.space) << 16 |
        static_cast<uint32_t>(access.kind) << 8 | access.bytes_per_lane);
    if (access.remote != nullptr) Remote(*access.remote);
    for (uint32_t lanes = access.lanes; lanes != 0; lanes &= lanes - 1)
      Mix(access.address[static_cast<uint32_t>(std::countr_zero(lanes))]);
    const uint32_t shared =
        access.shared_lanes |
        (access.kind == isa::AccessKind::kAsyncCopy ? access.lanes | access.zero_fill_lanes : 0);
    for (uint32_t lanes = shared; lanes != 0; lanes &= lanes - 1)
      Mix(access.shared_address[static_cast<uint32_t>(std::countr_zero(lanes))]);
  }

  uint64_t state_ = 0x243F6A8885A308D3ull;
};

}  // namespace heddle::emulator

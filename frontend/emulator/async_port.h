// What a stream has handed out and that has yet to take effect: bulk copies, and accesses to other CTAs of the cluster.
//
// Records are made and reused by the stream's own thread. Other threads may perform parts of them (CompleteBulk and
// PerformRemote at another SM, PerformBulkAtSlice between windows); the last part hands the record back.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "frontend/emulator/atomics.h"
#include "frontend/emulator/mbarrier.h"
#include "frontend/emulator/row.h"
#include "sim/isa/tensor_map.h"
#include "sim/isa/warp_stream.h"

namespace heddle::emulator {

struct CtaState;
struct CtaMemory;
struct Warp;

class AsyncPort;

struct BulkRecord : isa::BulkOperation {
  AsyncPort* owner = nullptr;
  uint32_t instruction = 0;
  bool in_use = false;
  bool skips_data = false;  // skeleton mode
  bool fills_nan = false;
  bool combines_halves = false;  // elements of 16 bits: `type` is the packed pair
  uint8_t element_bytes = 1;     // tensors and reductions
  isa::TensorSwizzle swizzle = isa::TensorSwizzle::kNone;
  AtomicOp op = AtomicOp::kAdd;  // kReduce, and kExchange with `combines`
  AtomicType type = AtomicType::kU32;
  bool combines = false;
  const CtaMemory* source = nullptr;  // nullptr once it has ended
  int32_t source_shift = 0;           // kExchange: what it reads lies so far behind where it goes
  // Of each piece: bytes outside the tensor in front of the first byte that moves; where its row starts in `data`.
  std::vector<uint32_t> lead;
  std::vector<uint32_t> row_offset;
  std::vector<uint8_t> data;           // what ReadBulkSource has read
  std::atomic<uint64_t> remaining{0};  // bytes that have yet to be performed, over all destinations

  void AddPiece(const isa::BulkPiece& piece, uint32_t lead_bytes);
};

struct RemoteRecord : isa::RemoteOperation {
  AsyncPort* owner = nullptr;
  uint32_t instruction = 0;
  bool in_use = false;
  bool skips_data = false;
  bool sign_extend = false;
  bool completes_transactions = false;  // STAS: the bytes count at `mbarrier`
  uint8_t scoreboards = 0;
  AtomicOp op = AtomicOp::kAdd;
  AtomicType type = AtomicType::kU32;
  Warp* warp = nullptr;  // nullptr once its CTA has ended
  Row* destination = nullptr;
  std::array<Row, 4> operand;  // values stored or combined; CAS: operand, then from row 2 on what it swaps in
  std::array<Row, 4> result;   // by PerformRemote, for CompleteRemote
  std::array<MbarrierArrival, kWarpLanes> arrival{};  // is_arrival
  std::array<uint32_t, kWarpLanes> mbarrier{};        // STAS: offset
  std::atomic<uint32_t> ranks_left{0};
};

class AsyncPort {
 public:
  BulkRecord& NewBulk(uint32_t instruction);
  RemoteRecord& NewRemote(uint32_t instruction);

  // `bytes` of the operation, respectively the lanes of `rank`, have been performed. By any thread.
  void Performed(BulkRecord& record, uint64_t bytes);
  void Performed(RemoteRecord& record, uint32_t rank);
  // Values of a remote access have been delivered. By the stream's own thread.
  void Recycle(RemoteRecord& record);

  // Takes back what has been performed. By the stream's own thread.
  void Drain() {
    if (has_done_.load(std::memory_order_acquire)) [[unlikely]]
      TakeBack();
  }
  void Forget(const CtaState* cta);

  std::vector<uint32_t>* woken = nullptr;  // of the stream

 private:
  void TakeBack();

  std::deque<BulkRecord> bulks_;
  std::deque<RemoteRecord> remotes_;
  std::vector<BulkRecord*> free_bulks_;
  std::vector<RemoteRecord*> free_remotes_;
  uint32_t outstanding_ = 0;
  std::mutex done_mutex_;
  std::vector<BulkRecord*> done_bulks_;
  std::vector<RemoteRecord*> done_remotes_;
  std::atomic<bool> has_done_{false};
};

}  // namespace heddle::emulator

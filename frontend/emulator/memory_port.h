// Memory as the handlers of loads, stores and atomics see it: one MemoryPort per stream (a launch on an SM).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "frontend/emulator/async_port.h"
#include "frontend/emulator/atomics.h"
#include "frontend/emulator/device_memory.h"

#include "frontend/emulator/launch_context.h"
#include "frontend/emulator/mbarrier.h"
#include "frontend/emulator/warp.h"
#include "sim/isa/warp_stream.h"

namespace heddle::emulator {

// Generic addresses with these high words are windows onto shared and local memory. The low word is the
// offset.
inline constexpr uint32_t kSharedWindowHigh = 1;
inline constexpr uint32_t kLocalWindowHigh = 2;
// Address of an instruction that has nothing left to perform; the pool never hands it out.
inline constexpr uint32_t kNoToken = 0xffffffffu;
inline constexpr uint32_t kScoreboards = 6;

// The memory of a resident CTA, and who waits for its mbarriers.
struct CtaMemory : CtaState {
  bool resident = false;
  uint32_t generation = 0;  // of the slot: counts the CTAs that it has held
  std::vector<MbarrierWait> waits;
  uint8_t* shared = nullptr;
  uint32_t shared_bytes = 0;
  // Local memory of warp w starts at local + w * local_bytes_per_lane * 32. Words are interleaved: word k of
  // lane l is at (32 * k + l) * 4. local_address is where the same bytes lie in the address space.
  uint8_t* local = nullptr;
  uint64_t local_address = 0;
  uint32_t local_bytes_per_lane = 0;
};

// An access that is performed later than it was issued: at an L2 slice, or when an asynchronous copy has
// arrived.
struct PendingAccess {
  enum class Kind : uint8_t { kFree, kLoad, kAtomic, kAsyncCopy, kArrival };
  Kind kind = Kind::kFree;
  uint8_t bytes = 4;
  bool sign_extend = false;
  bool transactions = false;  // kArrival: completes one transaction instead of arriving
  uint8_t scoreboards = 0;    // of the warp, that its results hold up
  AtomicOp op = AtomicOp::kAdd;
  AtomicType type = AtomicType::kU32;
  std::atomic<uint32_t> remaining{0};  // lanes not yet performed
  uint32_t zero_fill = 0;              // kAsyncCopy
  Row* destination = nullptr;          // of the warp; nullptr when nobody wants the result
  Warp* warp = nullptr;                // nullptr once its CTA has ended
  CtaMemory* cta = nullptr;            // kAsyncCopy
  std::array<uint64_t, kWarpLanes> address;
  std::array<uint32_t, kWarpLanes> shared_address;  // kAsyncCopy
  std::array<Row, 4>
      operand;  // kAtomic: value, then the value to swap in for CAS (two rows each when 64-bit)
};

struct MemoryPort {
  DeviceMemory* device = nullptr;
  StorePort* stores = nullptr;  // nullptr: stores become visible at once (runs without a timing model)
  bool skips_data =
      false;  // skeleton mode: reads of memory that a skipped store would have changed are reported
  std::array<uint64_t, kConstantBanks> bank_address{};
  AsyncPort async;  // bulk copies and accesses to other CTAs
  // By instruction: the buffer that it accessed last.
  std::vector<DeviceMemory::Range> sites;

  // Returns a free record; token names it.
  PendingAccess& NewPending(uint32_t* token);
  PendingAccess& Pending(uint32_t token) { return pool_[token]; }
  // Performs the lanes of a load or atomic on device memory. Several threads may do so for different lanes.
  void Perform(uint32_t token, uint32_t lanes);
  void CompleteCopy(uint32_t token);
  // The values of a remote access go to the registers.
  void Deliver(const RemoteRecord& record);
  // Lanes arrive at their mbarriers: the copies in front have.
  void CompleteArrival(uint32_t token);
  // Hands results that have arrived to their warps' scoreboards. By the stream's own thread, before it runs a
  // warp.
  void Drain() {
    async.Drain();
    if (has_completed_.load(std::memory_order_acquire)) [[unlikely]]
      DrainCompleted();
  }
  // Results for the warps of this CTA are dropped from now on.
  void Forget(const CtaState* cta);
  // The warp may not pass an instruction that waits for `scoreboards` until the access is performed.
  void HoldUp(Warp& warp, uint8_t scoreboards);
  uint32_t outstanding() const { return outstanding_; }

 private:
  void DrainCompleted();
  static void Settle(Warp& warp, uint8_t scoreboards);
  void Release(uint32_t token);

  std::deque<PendingAccess> pool_;
  std::vector<uint32_t> free_;
  uint32_t outstanding_ = 0;
  std::mutex completed_mutex_;
  std::vector<uint32_t> completed_;
  std::atomic<bool> has_completed_{false};
};

}  // namespace heddle::emulator

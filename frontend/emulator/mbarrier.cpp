#include "frontend/emulator/mbarrier.h"

#include <algorithm>
#include <cstring>

#include "frontend/emulator/memory_port.h"
#include "frontend/emulator/splits.h"
#include "frontend/emulator/step.h"

namespace heddle::emulator {
namespace {

constexpr uint32_t kCountBits = 20;
constexpr uint64_t kCountMask = (uint64_t{1} << kCountBits) - 1;
constexpr uint32_t kExpectedShift = 1, kPendingShift = 43, kTransactionShift = 21, kTransactionBits = 22;
constexpr uint64_t kTransactionMask = (uint64_t{1} << kTransactionBits) - 1;
constexpr uint64_t kParityBit = uint64_t{1} << 63;

uint64_t Load(const CtaMemory& cta, uint32_t address) {
  uint64_t word;
  std::memcpy(&word, cta.shared + address, sizeof word);
  return word;
}

// The lanes go on; the others of the warp stay where they are.
void Release(const MbarrierWait& wait, const Warp* running, std::vector<uint32_t>* woken) {
  Warp& warp = *wait.warp;
  const bool was_blocked = StateOf(warp) == isa::WarpState::kBlocked;
  for (uint32_t i = 0; i < warp.split_count; ++i) {
    Split& split = warp.splits[i];
    if (split.state == SplitState::kAtMbarrier && split.lanes == wait.lanes) split.state = SplitState::kReady;
  }
  if (&warp == running) return;
  Reschedule(warp, Turn::kKeep);
  if (was_blocked && woken != nullptr) woken->push_back(warp.cta->slot * warp.cta->warps + warp.id_in_cta);
}

void SetPredicate(const MbarrierWait& wait, uint32_t complete) {
  uint32_t& predicate = wait.warp->predicates[wait.predicate];
  predicate = (predicate & ~wait.lanes) | (complete & wait.lanes);
}

void WakeWaiting(CtaMemory& cta, uint32_t address, const Warp* running, std::vector<uint32_t>* woken) {
  for (size_t i = 0; i < cta.waits.size();) {
    MbarrierWait& wait = cta.waits[i];
    if (wait.blocked_on != address) {
      ++i;
      continue;
    }
    const uint32_t missing = wait.lanes & ~CompleteLanes(cta, wait.lanes, wait.parity, wait.address.data());
    if (missing != 0) {
      wait.blocked_on = wait.address[static_cast<size_t>(std::countr_zero(missing))];
      ++i;
      continue;
    }
    SetPredicate(wait, kAllLanes);
    const MbarrierWait done = wait;
    cta.waits.erase(cta.waits.begin() + static_cast<std::ptrdiff_t>(i));  // in the order of their coming
    Release(done, running, woken);
  }
}

}  // namespace

uint64_t Arrive(uint64_t word, const MbarrierArrival& arrival, bool* completed) {
  const uint64_t transactions =
      (word >> kTransactionShift) + static_cast<uint64_t>(int64_t{arrival.transactions});
  word = (word & ~(kTransactionMask << kTransactionShift)) | (transactions & kTransactionMask)
                                                                 << kTransactionShift;
  if (arrival.drops) {
    const uint64_t expected = (word >> kExpectedShift) + arrival.arrivals;
    word = (word & ~(kCountMask << kExpectedShift)) | (expected & kCountMask) << kExpectedShift;
  }
  // Pending arrivals count up to 2^20, where they read as 0 until the transactions are there too.
  const uint64_t field = word >> kPendingShift & kCountMask;
  const uint64_t pending = arrival.arrivals == 0 ? field : (field + arrival.arrivals) & kCountMask;
  word = (word & ~(kCountMask << kPendingShift)) | pending << kPendingShift;
  *completed = pending == 0 && (transactions & kTransactionMask) == 0;
  if (*completed) {
    const uint64_t expected = word >> kExpectedShift & kCountMask;
    word = ((word & ~(kCountMask << kPendingShift)) | expected << kPendingShift) ^ kParityBit;
  }
  return word;
}

uint32_t CompleteLanes(const CtaMemory& cta, uint32_t lanes, uint32_t parity, const uint32_t* address) {
  uint32_t complete = 0;
  ForLanes(lanes, [&](uint32_t i) {
    if (PhaseParity(Load(cta, address[i])) != ((parity >> i & 1) != 0)) complete |= 1u << i;
  });
  return complete;
}

uint64_t ArriveAt(CtaMemory& cta, uint32_t address, const MbarrierArrival& arrival, const Warp* running,
                  std::vector<uint32_t>* woken) {
  const uint64_t before = Load(cta, address);
  bool completed = false;
  const uint64_t after = Arrive(before, arrival, &completed);
  std::memcpy(cta.shared + address, &after, sizeof after);
  if (completed && !cta.waits.empty()) WakeWaiting(cta, address, running, woken);
  return before;
}

bool FailMbarrierWaits(CtaMemory& cta, Warp& warp) {
  bool found = false;
  for (size_t i = 0; i < cta.waits.size();) {
    if (cta.waits[i].warp != &warp) {
      ++i;
      continue;
    }
    const MbarrierWait wait = cta.waits[i];
    cta.waits.erase(cta.waits.begin() + static_cast<std::ptrdiff_t>(i));
    SetPredicate(wait, CompleteLanes(cta, wait.lanes, wait.parity, wait.address.data()));
    Release(wait, nullptr, nullptr);
    found = true;
  }
  return found;
}

}  // namespace heddle::emulator

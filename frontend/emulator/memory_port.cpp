#include "frontend/emulator/memory_port.h"

#include <bit>
#include <cstring>

#include "frontend/emulator/access.h"

namespace heddle::emulator {

PendingAccess& MemoryPort::NewPending(uint32_t* token) {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(pool_.size()));
    pool_.emplace_back();
  }
  *token = free_.back();
  free_.pop_back();
  ++outstanding_;
  PendingAccess& pending = pool_[*token];
  pending.destination = nullptr;
  pending.warp = nullptr;
  pending.cta = nullptr;
  pending.scoreboards = 0;
  pending.zero_fill = 0;
  return pending;
}

void MemoryPort::Release(uint32_t token) {
  pool_[token].kind = PendingAccess::Kind::kFree;
  free_.push_back(token);
  --outstanding_;
}

void MemoryPort::Perform(uint32_t token, uint32_t lanes) {
  if (token == kNoToken) return;
  PendingAccess& p = pool_[token];
  const uint32_t words = p.bytes <= 4 ? 1 : p.bytes / 4u;
  ForLanes(lanes, [&](uint32_t i) {
    uint8_t* at = device->Locate(p.address[i], p.bytes);
    if (at == nullptr) return;  // the buffer was freed meanwhile
    uint32_t old[4] = {};
    std::memcpy(old, at, p.bytes);
    if (p.kind == PendingAccess::Kind::kAtomic) {
      const bool wide = p.bytes == 8;
      const uint64_t before = wide ? Pair(old[0], old[1]) : old[0];
      const uint64_t value = wide ? Pair(p.operand[0].lane[i], p.operand[1].lane[i]) : p.operand[0].lane[i];
      const uint64_t swap = wide ? Pair(p.operand[2].lane[i], p.operand[3].lane[i]) : p.operand[2].lane[i];
      const uint64_t after = ApplyAtomic(p.op, p.type, before, value, swap);
      device->Store(p.address[i], reinterpret_cast<const uint8_t*>(&after), p.bytes);
    } else {
      old[0] = Extend(old[0], p.bytes, p.sign_extend);
    }
    if (p.destination == nullptr) return;
    for (uint32_t k = 0; k < words; ++k) p.destination[k].lane[i] = old[k];
  });
  if ((p.remaining.fetch_and(~lanes, std::memory_order_acq_rel) & ~lanes) != 0) return;
  const std::lock_guard lock(completed_mutex_);
  completed_.push_back(token);
  has_completed_.store(true, std::memory_order_release);
}

void MemoryPort::DrainCompleted() {
  const std::lock_guard lock(completed_mutex_);
  for (const uint32_t token : completed_) {
    PendingAccess& p = pool_[token];
    if (p.warp != nullptr && p.destination != nullptr) Settle(*p.warp, p.scoreboards);
    Release(token);
  }
  completed_.clear();
  has_completed_.store(false, std::memory_order_relaxed);
}

void MemoryPort::CompleteCopy(uint32_t token) {
  if (token == kNoToken) return;
  PendingAccess& p = pool_[token];
  if (p.cta != nullptr) {
    uint8_t* shared = p.cta->shared;
    ForLanes(p.remaining.load(std::memory_order_relaxed), [&](uint32_t i) {
      const uint8_t* from = device->Locate(p.address[i], p.bytes);
      uint8_t* to = shared + p.shared_address[i];
      if (from == nullptr) return;
      std::memcpy(to, from, p.bytes);
      if (stores != nullptr && !stores->empty()) stores->Overlay(p.address[i], to, p.bytes);
    });
    ForLanes(p.zero_fill, [&](uint32_t i) { std::memset(shared + p.shared_address[i], 0, p.bytes); });
  }
  Release(token);
}

void MemoryPort::Settle(Warp& warp, uint8_t scoreboards) {
  for (uint32_t s = 0; s < kScoreboards; ++s)
    if ((scoreboards >> s & 1) != 0 && --warp.pending_results[s] == 0)
      warp.pending_scoreboards &= static_cast<uint8_t>(~(1u << s));
}

void MemoryPort::Deliver(const RemoteRecord& record) {
  if (record.warp == nullptr || record.destination == nullptr) return;
  const uint32_t words = record.bytes_per_lane <= 4 ? 1 : record.bytes_per_lane / 4u;
  for (uint32_t k = 0; k < words; ++k) Blend(record.destination[k], record.result[k], record.lanes);
  Settle(*record.warp, record.scoreboards);
}

void MemoryPort::CompleteArrival(uint32_t token) {
  if (token == kNoToken) return;
  PendingAccess& p = pool_[token];
  const MbarrierArrival arrival =
      p.transactions ? MbarrierArrival{.transactions = -1} : MbarrierArrival{.arrivals = 1};
  if (p.cta != nullptr)
    ForLanes(p.remaining.load(std::memory_order_relaxed),
             [&](uint32_t i) { ArriveAt(*p.cta, p.shared_address[i], arrival, nullptr, async.woken); });
  Release(token);
}

void MemoryPort::Forget(const CtaState* cta) {
  async.Forget(cta);
  if (outstanding_ == 0) return;
  Drain();
  for (PendingAccess& p : pool_) {
    if (p.kind == PendingAccess::Kind::kFree || p.warp == nullptr || p.warp->cta != cta) continue;
    p.warp = nullptr;
    p.cta = nullptr;
    p.destination = nullptr;
  }
}

void MemoryPort::HoldUp(Warp& warp, uint8_t scoreboards) {
  warp.pending_scoreboards |= scoreboards;
  for (uint32_t s = 0; s < kScoreboards; ++s)
    if (scoreboards >> s & 1) ++warp.pending_results[s];
}

}  // namespace heddle::emulator

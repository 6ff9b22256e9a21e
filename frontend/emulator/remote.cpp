#include "frontend/emulator/remote.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "frontend/emulator/bulk_issue.h"
#include "frontend/emulator/issue_log.h"

namespace heddle::emulator {
namespace {

uint64_t Operand(const RemoteRecord& record, size_t row, uint32_t lane) {
  const uint32_t low = record.operand[row].lane[lane];
  return record.bytes_per_lane == 8 ? Pair(low, record.operand[row + 1].lane[lane]) : low;
}

void Combine(RemoteRecord& record, CtaMemory& cta, uint32_t lane) {
  uint8_t* at = cta.shared + record.shared_address[lane];
  uint64_t old = 0;
  std::memcpy(&old, at, record.bytes_per_lane);
  const uint64_t result =
      ApplyAtomic(record.op, record.type, old, Operand(record, 0, lane), Operand(record, 2, lane));
  std::memcpy(at, &result, record.bytes_per_lane);
  record.result[0].lane[lane] = Low(old);
  record.result[1].lane[lane] = High(old);
}

void Store(const RemoteRecord& record, CtaMemory& cta, uint32_t lane) {
  uint32_t words[4];
  for (size_t k = 0; k < 4; ++k) words[k] = record.operand[k].lane[lane];
  std::memcpy(cta.shared + record.shared_address[lane], words, record.bytes_per_lane);
}

void Load(RemoteRecord& record, const CtaMemory& cta, uint32_t lane) {
  uint32_t words[4] = {};
  std::memcpy(words, cta.shared + record.shared_address[lane], record.bytes_per_lane);
  words[0] = Extend(words[0], record.bytes_per_lane, record.sign_extend);
  for (size_t k = 0; k < 4; ++k) record.result[k].lane[lane] = words[k];
}

}  // namespace

RemoteRecord* BeginRemote(Context& c, const Lowered& l, uint32_t lanes, const uint32_t* address,
                          uint32_t bytes) {
  uint32_t good = 0;
  ForLanes(lanes, [&](uint32_t i) {
    const uint32_t rank = address[i] >> kRankShift, offset = address[i] & kSharedOffsetMask;
    if (offset % bytes != 0)
      c.issues->Report("misaligned_address", l.index,
                       fmt::format("lane {}, shared address 0x{:x}", i, address[i]));
    else if (rank >= c.cta->cluster_ctas || offset + bytes > CtaOf(c).shared_bytes)
      c.issues->Report("out_of_bounds", l.index,
                       fmt::format("lane {}, address 0x{:x} of a cluster of {} CTAs with 0x{:x} bytes each",
                                   i, address[i], c.cta->cluster_ctas, CtaOf(c).shared_bytes));
    else
      good |= 1u << i;
  });
  if (good == 0) return nullptr;
  RemoteRecord& record = c.memory->async.NewRemote(l.index);
  record.bytes_per_lane = static_cast<uint8_t>(bytes);
  record.skips_data = (l.flags & kDataSkipped) != 0;
  record.warp = c.warp;
  record.lanes = good;
  ForLanes(good, [&](uint32_t i) {
    record.rank[i] = static_cast<uint8_t>(address[i] >> kRankShift);
    record.shared_address[i] = address[i] & kSharedOffsetMask;
    record.ranks |= static_cast<uint16_t>(1u << record.rank[i]);
  });
  return &record;
}

void IssueRemote(RemoteRecord& record) { record.ranks_left.store(record.ranks, std::memory_order_relaxed); }

void PerformRemoteAt(RemoteRecord& record, CtaMemory* cta, uint32_t rank, IssueLog& issues,
                     std::vector<uint32_t>* woken) {
  if (cta == nullptr || !cta->resident) {
    issues.Report("remote_access_after_exit", record.instruction, "the CTA that it names has ended");
    ForLanes(record.lanes, [&](uint32_t i) {
      if (record.rank[i] != rank) return;
      for (Row& row : record.result) row.lane[i] = 0;
    });
    return;
  }
  ForLanes(record.lanes, [&](uint32_t i) {
    if (record.rank[i] != rank) return;
    if (record.is_arrival) {
      ArriveAt(*cta, record.shared_address[i], record.arrival[i], nullptr, woken);
      return;
    }
    if (!record.skips_data) {
      if (record.kind == isa::AccessKind::kLoad)
        Load(record, *cta, i);
      else if (record.kind == isa::AccessKind::kStore)
        Store(record, *cta, i);
      else
        Combine(record, *cta, i);
    }
    if (record.completes_transactions)
      ArriveAt(*cta, record.mbarrier[i], {.transactions = -int32_t{record.bytes_per_lane}}, nullptr, woken);
  });
}

void LoadRemote(Context& c, const Lowered& l, uint32_t lanes, const uint32_t* address) {
  RemoteRecord* record = BeginRemote(c, l, lanes, address, c.step->memory.bytes_per_lane);
  if (record == nullptr) return;
  c.step->memory.remote = record;
  record->kind = isa::AccessKind::kLoad;
  record->sign_extend = (l.flags & kSignExtends) != 0;
  record->returns = true;
  if (!record->skips_data && l.destination[0] != kDiscardRow) {
    record->destination = &c.Destination(l);
    record->scoreboards = ScoreboardsOf(l);
    c.memory->HoldUp(*c.warp, record->scoreboards);
  }
  IssueRemote(*record);
}

void StoreRemote(Context& c, const Lowered& l, uint32_t lanes, const uint32_t* address) {
  RemoteRecord* record = BeginRemote(c, l, lanes, address, c.step->memory.bytes_per_lane);
  if (record == nullptr) return;
  c.step->memory.remote = record;
  record->kind = isa::AccessKind::kStore;
  const uint32_t words = WordsPerLane(l);
  for (uint32_t k = 0; k < words; ++k) record->operand[k] = c.Source(l, 2, k);
  IssueRemote(*record);
}

void AtomicRemote(Context& c, const Lowered& l, uint32_t lanes, const uint32_t* address, AtomicOp op,
                  AtomicType type, bool returns) {
  const uint32_t bytes = BytesOf(type);
  RemoteRecord* record = BeginRemote(c, l, lanes, address, bytes);
  if (record == nullptr) return;
  c.step->memory.remote = record;
  record->kind = returns ? isa::AccessKind::kAtomic : isa::AccessKind::kReduction;
  record->op = op;
  record->type = type;
  record->returns = returns;
  for (uint32_t k = 0; k < bytes / 4 && k < 2; ++k) {
    record->operand[k] = c.Source(l, 2, k);
    if (op == AtomicOp::kCas) record->operand[2 + k] = c.Source(l, 3, k);
  }
  if (returns && !record->skips_data) {
    record->destination = &c.Destination(l);
    record->scoreboards = ScoreboardsOf(l);
    c.memory->HoldUp(*c.warp, record->scoreboards);
  }
  IssueRemote(*record);
}

}  // namespace heddle::emulator

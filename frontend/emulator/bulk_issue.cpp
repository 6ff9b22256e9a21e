#include "frontend/emulator/bulk_issue.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "frontend/emulator/issue_log.h"

namespace heddle::emulator {

BulkRecord& BeginBulk(Context& c, const Lowered& l) {
  BulkRecord& record = c.memory->async.NewBulk(l.index);
  record.kind = BulkKindOf(l);
  record.skips_data = (l.flags & kDataSkipped) != 0;
  record.combines = (l.flags & kCombines) != 0;
  record.op = static_cast<AtomicOp>(l.flags >> kOpShift & 15);
  record.type = static_cast<AtomicType>(l.flags >> kTypeShift & 15);
  record.warp = c.cta->slot * c.cta->warps + c.warp->id_in_cta;
  return record;
}

bool SetDestinations(Context& c, const Lowered& l, BulkRecord& record, uint32_t address, uint32_t mbarrier) {
  const uint32_t ranks =
      l.flags & kMulticasts ? UniformWord(c, l, 2) >> 16 : 1u << (address >> kRankShift & 31);
  if (ranks == 0 || ranks >> c.cta->cluster_ctas != 0 || address >> kRankShift >= isa::kMaxClusterCtas) {
    c.issues->Report("out_of_bounds", l.index,
                     fmt::format("CTA mask 0x{:x}, address 0x{:x} in a cluster of {}", ranks, address,
                                 c.cta->cluster_ctas));
    return false;
  }
  record.destination_ranks = static_cast<uint16_t>(ranks);
  record.mbarrier = mbarrier & kSharedOffsetMask;
  return CheckBulkShared(c, l, record.mbarrier, kMbarrierBytes, kMbarrierBytes);
}

bool CheckBulkShared(Context& c, const Lowered& l, uint32_t address, uint64_t bytes, uint32_t alignment) {
  const uint32_t size = CtaOf(c).shared_bytes;
  if (address % alignment != 0)
    c.issues->Report("misaligned_address", l.index,
                     fmt::format("shared address 0x{:x} is no multiple of {}", address, alignment));
  else if (address + bytes > size)
    c.issues->Report("out_of_bounds", l.index,
                     fmt::format("shared address 0x{:x}, {} bytes, of 0x{:x} bytes", address, bytes, size));
  else
    return true;
  return false;
}

void ClipToBuffers(Context& c, const Lowered& l, BulkRecord& record) {
  DeviceMemory::Range range = c.memory->sites[l.index];
  for (isa::BulkPiece& piece : record.pieces) {
    if (piece.global_bytes == 0) continue;
    const uint64_t end = piece.global_address + piece.global_bytes;
    if (range.contains(piece.global_address, end)) continue;
    range = c.memory->device->RangeAround(piece.global_address);
    if (range.contains(piece.global_address, end)) continue;
    c.issues->Report(
        "out_of_bounds", l.index,
        fmt::format("{} bytes at 0x{:x} lie in no buffer", piece.global_bytes, piece.global_address));
    piece.global_bytes = 0;
  }
  c.memory->sites[l.index] = range;
}

void IssueBulk(Context& c, BulkRecord& record) {
  using isa::BulkKind;
  uint64_t moved = 0;
  for (const isa::BulkPiece& piece : record.pieces) moved += piece.global_bytes;
  uint64_t work = moved;
  if (record.kind == BulkKind::kLoad || record.kind == BulkKind::kExchange)
    work = record.total_shared_bytes * static_cast<uint64_t>(std::popcount(record.destination_ranks));
  c.step->kind = isa::StepKind::kBulk;
  c.step->bulk = work == 0 ? nullptr : &record;
  record.remaining.store(work, std::memory_order_relaxed);
  if (work == 0) c.memory->async.Performed(record, work);
}

void DropBulk(Context& c, BulkRecord& record) {
  record.pieces.clear();
  record.total_shared_bytes = 0;
  record.kind = isa::BulkKind::kStore;
  IssueBulk(c, record);
}

void TakeUniformList(Lowering& w, size_t source) {
  const isa::Operand& operand = w.Next();
  const bool is_list = operand.kind == isa::OperandKind::kMemory && operand.reg == isa::kNoRegister &&
                       operand.value == 0 && operand.scale <= 1;
  if (!is_list && operand.kind != isa::OperandKind::kUniformRegister)
    return w.Fail("an operand is no list of uniform registers");
  const uint8_t reg = is_list ? operand.uniform_reg : operand.reg;
  if (reg == isa::kNoRegister) return w.Fail("a list of uniform registers is empty");
  w.out.source[source] = {w.layout.UniformReadRow(reg), RowBase::kWarp};
}

void SkipCachePolicy(Lowering& w) {
  if (w.NextIs(isa::OperandKind::kDescriptor)) w.Next();
}

}  // namespace heddle::emulator

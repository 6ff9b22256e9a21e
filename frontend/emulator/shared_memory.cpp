// Loads and stores of shared memory, by lane (LDS, STS) and by matrix (LDSM, STSM, MOVM), and its atomics.
#include <cstring>

#include "frontend/emulator/access.h"
#include "frontend/emulator/matrix.h"

namespace heddle::emulator {
namespace {

using isa::AccessKind;
using isa::MemoryAccess;
using isa::MemorySpace;
using isa::Mod;

constexpr uint32_t kMatrixRowBytes = 16;
constexpr uint32_t kMatrixRows = 8;

MemoryAccess& BeginShared(Context& c, const Lowered& l, AccessKind kind, uint32_t* offset) {
  MemoryAccess& access = BeginAccess(c, l, MemorySpace::kShared, kind);
  Addresses32(c, l, 0, 1, Low(l.imm), offset);
  for (uint32_t i = 0; i < kWarpLanes; ++i) access.address[i] = offset[i];
  return access;
}

void RunLoadShared(Context& c, const Lowered& l) {
  uint32_t offset[kWarpLanes];
  MemoryAccess& access = BeginShared(c, l, AccessKind::kLoad, offset);
  access.lanes = CheckShared(c, l, c.executing, offset, access.bytes_per_lane);
  if (l.flags & kDataSkipped) return;
  ReadShared(CtaOf(c).shared, access.lanes, offset, access.bytes_per_lane, (l.flags & kSignExtends) != 0,
             &c.Destination(l));
}

void RunStoreShared(Context& c, const Lowered& l) {
  uint32_t offset[kWarpLanes];
  MemoryAccess& access = BeginShared(c, l, AccessKind::kStore, offset);
  access.lanes = CheckShared(c, l, c.executing, offset, access.bytes_per_lane);
  if (l.flags & kDataSkipped) return;
  WriteShared(CtaOf(c).shared, access.lanes, offset, access.bytes_per_lane, &c.Source(l, 2));
}

// Matrix i of an LDSM or STSM has its eight row addresses in lanes 8i to 8i + 7, whatever lanes are active.
uint32_t MatrixLanes(const Lowered& l) {
  return l.width == 4 ? kAllLanes : (1u << (kMatrixRows * l.width)) - 1;
}

void RunLoadMatrix(Context& c, const Lowered& l) {
  uint32_t offset[kWarpLanes];
  MemoryAccess& access = BeginShared(c, l, AccessKind::kLoad, offset);
  access.bytes_per_lane = kMatrixRowBytes;
  access.lanes = CheckShared(c, l, MatrixLanes(l), offset, kMatrixRowBytes);
  if (l.flags & kDataSkipped) return;
  const uint8_t* shared = CtaOf(c).shared;
  Row rows[4];
  for (uint32_t m = 0; m < l.width; ++m) {
    auto* bytes = reinterpret_cast<uint8_t*>(rows[m].lane);
    for (uint32_t i = 0; i < kMatrixRows; ++i) {
      const uint32_t lane = m * kMatrixRows + i;
      if (access.lanes >> lane & 1)
        std::memcpy(bytes + i * kMatrixRowBytes, shared + offset[lane], kMatrixRowBytes);
      else
        std::memset(bytes + i * kMatrixRowBytes, 0, kMatrixRowBytes);
    }
    if (l.flags & kTransposes) TransposeHalfTile(rows[m].lane, rows[m].lane);
  }
  for (uint32_t m = 0; m < l.width; ++m) Blend(c.Destination(l, 0, m), rows[m], c.lanes);
}

void RunStoreMatrix(Context& c, const Lowered& l) {
  uint32_t offset[kWarpLanes];
  MemoryAccess& access = BeginShared(c, l, AccessKind::kStore, offset);
  access.bytes_per_lane = kMatrixRowBytes;
  access.lanes = CheckShared(c, l, MatrixLanes(l), offset, kMatrixRowBytes);
  if (l.flags & kDataSkipped) return;
  uint8_t* shared = CtaOf(c).shared;
  for (uint32_t m = 0; m < l.width; ++m) {
    Row row = c.Source(l, 2, m);
    if (l.flags & kTransposes) TransposeHalfTile(row.lane, row.lane);
    const auto* bytes = reinterpret_cast<const uint8_t*>(row.lane);
    for (uint32_t i = 0; i < kMatrixRows; ++i) {
      const uint32_t lane = m * kMatrixRows + i;
      if (access.lanes >> lane & 1)
        std::memcpy(shared + offset[lane], bytes + i * kMatrixRowBytes, kMatrixRowBytes);
    }
  }
}

void RunMoveMatrix(Context& c, const Lowered& l) {
  Row row = c.Source(l, 0);
  TransposeHalfTile(row.lane, row.lane);
  Blend(c.Destination(l), row, c.lanes);
}

// Lanes in ascending order; on hardware the order among lanes that name one address is not defined.
void RunAtomicShared(Context& c, const Lowered& l) {
  uint32_t offset[kWarpLanes];
  MemoryAccess& access = BeginShared(c, l, AccessKind::kAtomic, offset);
  const auto op = static_cast<AtomicOp>(l.flags >> kOpShift & 15);
  const auto type = static_cast<AtomicType>(l.flags >> kTypeShift & 15);
  const uint32_t bytes = BytesOf(type);
  access.bytes_per_lane = static_cast<uint8_t>(bytes);
  if (l.destination[0] == kDiscardRow) access.kind = AccessKind::kReduction;
  access.lanes = CheckShared(c, l, c.executing, offset, bytes);
  if (l.flags & kDataSkipped) return;
  uint8_t* shared = CtaOf(c).shared;
  const auto operand = [&](size_t source, uint32_t lane) {
    const uint32_t low = c.Source(l, source).lane[lane];
    return bytes == 8 ? Pair(low, c.Source(l, source, 1).lane[lane]) : low;
  };
  ForLanes(access.lanes, [&](uint32_t i) {
    uint64_t old = 0;
    std::memcpy(&old, shared + offset[i], bytes);
    const uint64_t value = operand(2, i);
    const uint64_t result = ApplyAtomic(op, type, old, value, operand(3, i));
    std::memcpy(shared + offset[i], &result, bytes);
    if (op == AtomicOp::kCast) {
      c.Destination(l).lane[i] = old == value ? 1 : 0;
    } else {
      c.Destination(l).lane[i] = Low(old);
      if (bytes == 8) c.Destination(l, 0, 1).lane[i] = High(old);
    }
  });
}

void TakeMatrixShape(Lowering& w) {
  w.Take(Mod::k16);
  const int layout = w.TakeOneOf({Mod::kM88, Mod::kMT88});
  if (layout < 0) w.Fail("an unknown matrix layout");
  if (layout == 1) w.out.flags |= kTransposes;
}

void TakeMatrixCount(Lowering& w) {
  w.out.width = w.Take(Mod::k4) ? 4 : w.Take(Mod::k2) ? 2 : 1;
  w.Take(Mod::k1);
  w.out.flags |= 4;  // 16 bytes per address
}

}  // namespace

void LowerLds(Lowering& w) {
  w.Take(Mod::kU);  // .U: no alignment assumption about the width
  TakeWidth(w);
  w.Destination(0);
  TakeAddress(w);
  w.out.run = &RunLoadShared;
}

void LowerSts(Lowering& w) {
  TakeWidth(w);
  TakeAddress(w);
  StoreValue(w, 2);
  w.out.run = &RunStoreShared;
}

void LowerLdsm(Lowering& w) {
  TakeMatrixShape(w);
  TakeMatrixCount(w);
  w.Destination(0);
  TakeAddress(w);
  w.out.run = &RunLoadMatrix;
}

void LowerStsm(Lowering& w) {
  TakeMatrixShape(w);
  TakeMatrixCount(w);
  TakeAddress(w);
  w.Source(2, w.out.width);
  w.out.run = &RunStoreMatrix;
}

void LowerMovm(Lowering& w) {
  TakeMatrixShape(w);
  if (!(w.out.flags & kTransposes)) w.Fail("only MOVM.MT88");
  w.Destination(0);
  w.Source(0);
  w.out.run = &RunMoveMatrix;
}

void LowerAtoms(Lowering& w) {
  const bool counts = w.instruction.Has(Mod::kPOPC);
  const int op = TakeAtomicOp(w);
  if (op < 0) return w.Fail("an unknown atomic operation");
  const AtomicType type = TakeAtomicType(w);
  w.out.flags |= static_cast<uint32_t>(counts ? AtomicOp::kAdd : static_cast<AtomicOp>(op)) << kOpShift;
  w.out.flags |= static_cast<uint32_t>(type) << kTypeShift;
  const uint32_t words = BytesOf(type) / 4;
  if (words > 2) return w.Fail("a 128-bit shared atomic");
  if (w.instruction.op == isa::Op::kATOMS) w.Destination(0);
  TakeAddress(w);
  if (counts)
    w.out.source[2] = {w.pool.Immediate(1), RowBase::kPool};
  else
    w.Source(2, words);
  if (w.Peek() != nullptr) w.Source(3, words);
  w.out.run = &RunAtomicShared;
}

}  // namespace heddle::emulator

// Bulk copies without a tensor map: UBLKCP, UBLKRED, UBLKPF.
//
// Sources: 0 the destination {shared address, mbarrier} or the global address; 1 the source, a global address or a
// shared one; 2 the size in units of 16 bytes in its lower half, the mask of a multicast in its upper half.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/emulator/bulk_issue.h"
#include "frontend/emulator/issue_log.h"

namespace heddle::emulator {
namespace {

using isa::BulkKind;
using isa::Mod;

constexpr uint32_t kUnitBytes = 16;
constexpr uint32_t kPieceBytes = 1024;  // a long copy is cut into pieces that end at multiples of this

void AddPieces(BulkRecord& record, uint64_t global, uint32_t shared, uint32_t bytes, bool has_global) {
  while (bytes != 0) {
    const uint64_t reference = has_global ? global : shared;
    const auto here = static_cast<uint32_t>(std::min<uint64_t>(bytes, kPieceBytes - reference % kPieceBytes));
    record.AddPiece({.global_address = has_global ? global : 0,
                     .global_bytes = has_global ? here : 0,
                     .shared_bytes = here,
                     .shared_address = shared},
                    0);
    global += here;
    shared += here;
    bytes -= here;
  }
}

bool CheckGlobalAlignment(Context& c, const Lowered& l, uint64_t address) {
  if (address % kUnitBytes == 0) return true;
  c.issues->Report("misaligned_address", l.index,
                   fmt::format("address 0x{:x} is no multiple of 16", address));
  return false;
}

// The rows of an exchange are described by where they go.
bool FillBulkCopy(Context& c, const Lowered& l, BulkRecord& record) {
  const uint32_t bytes = (UniformWord(c, l, 2) & 0xffff) * kUnitBytes;
  if (record.kind == BulkKind::kPrefetch) {
    AddPieces(record, Pair(UniformWord(c, l, 0), UniformWord(c, l, 0, 1)), 0, bytes, true);
    ClipToBuffers(c, l, record);
    return true;
  }
  const bool to_shared = record.kind == BulkKind::kLoad || record.kind == BulkKind::kExchange;
  const bool has_global = record.kind != BulkKind::kExchange;
  const size_t global_source = to_shared ? 1 : 0;
  const uint64_t global =
      has_global ? Pair(UniformWord(c, l, global_source), UniformWord(c, l, global_source, 1)) : 0;
  const uint32_t address = UniformWord(c, l, to_shared ? 0 : 1);
  const uint32_t shared = address & kSharedOffsetMask;
  if (!CheckBulkShared(c, l, shared, bytes, kUnitBytes)) return false;
  if (has_global && !CheckGlobalAlignment(c, l, global)) return false;
  if (to_shared && !SetDestinations(c, l, record, address, UniformWord(c, l, 0, 1))) return false;
  if (record.combines)
    record.combines_halves = record.type == AtomicType::kF16x2 || record.type == AtomicType::kBF16x2;
  if (record.kind == BulkKind::kExchange) {
    const uint32_t from = UniformWord(c, l, 1) & kSharedOffsetMask;
    if (!CheckBulkShared(c, l, from, bytes, kUnitBytes)) return false;
    record.source_shift = static_cast<int32_t>(from) - static_cast<int32_t>(shared);
  }
  if (record.kind != BulkKind::kLoad) record.source = &CtaOf(c);
  AddPieces(record, global, shared, bytes, has_global);
  ClipToBuffers(c, l, record);
  return true;
}

void RunBulkCopy(Context& c, const Lowered& l) {
  BulkRecord& record = BeginBulk(c, l);
  if (FillBulkCopy(c, l, record))
    IssueBulk(c, record);
  else
    DropBulk(c, record);
}

// .S.G, .G.S or .S.S: destination, then source. `Take` finds a modifier twice at once.
bool TakeDirection(Lowering& w, bool combines) {
  const isa::Instruction& i = w.instruction;
  if (i.modifier_count < 2) return false;
  const Mod to = i.modifiers[0], from = i.modifiers[1];
  w.Take(Mod::kS);
  w.Take(Mod::kG);
  BulkKind kind;
  if (to == Mod::kS && from == Mod::kG && !combines)
    kind = BulkKind::kLoad;
  else if (to == Mod::kG && from == Mod::kS)
    kind = combines ? BulkKind::kReduce : BulkKind::kStore;
  else if (to == Mod::kS && from == Mod::kS)
    kind = BulkKind::kExchange;
  else
    return false;
  w.out.flags |= static_cast<uint32_t>(kind) << kBulkKindShift;
  return true;
}

void TakeBulkOperands(Lowering& w) {
  TakeUniformList(w, 0);
  TakeUniformList(w, 1);
  TakeUniformList(w, 2);
  if (w.Take(Mod::kMULTICAST)) w.out.flags |= kMulticasts;
  SkipCachePolicy(w);
  w.out.run = &RunBulkCopy;
}

}  // namespace

void LowerUblkcp(Lowering& w) {
  if (!TakeDirection(w, false)) return w.Fail("an unknown direction");
  TakeBulkOperands(w);
}

void LowerUblkred(Lowering& w) {
  if (!TakeDirection(w, true)) return w.Fail("an unknown direction");
  const int op = TakeAtomicOp(w);
  if (op < 0) return w.Fail("an unknown reduction");
  AtomicType type;
  if (w.Take(Mod::kF16)) {
    w.Take(Mod::kRN);
    type = AtomicType::kF16x2;
  } else if (w.Take(Mod::kBF16)) {
    w.Take(Mod::kRN);
    type = AtomicType::kBF16x2;
  } else {
    type = TakeAtomicType(w);
  }
  w.out.flags |=
      kCombines | static_cast<uint32_t>(op) << kOpShift | static_cast<uint32_t>(type) << kTypeShift;
  TakeBulkOperands(w);
}

void LowerUblkpf(Lowering& w) {
  w.Take(Mod::kL2);
  w.out.flags |= static_cast<uint32_t>(BulkKind::kPrefetch) << kBulkKindShift;
  TakeUniformList(w, 0);
  TakeUniformList(w, 2);
  SkipCachePolicy(w);
  w.out.run = &RunBulkCopy;
}

}  // namespace heddle::emulator

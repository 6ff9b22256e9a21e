// Atomics and reductions on global memory and generic addresses: ATOM, ATOMG, RED, REDG. Lanes in global
// memory are performed at their L2 slice; lanes in the shared window at once.
#include <algorithm>
#include <cstring>

#include "frontend/emulator/access.h"
#include "frontend/emulator/bulk_issue.h"
#include "frontend/emulator/issue_log.h"
#include "frontend/emulator/remote.h"

namespace heddle::emulator {
namespace {

using isa::AccessKind;
using isa::MemoryAccess;
using isa::MemorySpace;
using isa::Mod;

// flags of the lowered record beyond AccessFlag
constexpr uint32_t kHasPredicate = 1u << 23;  // the packed half form: false where it could not be performed
constexpr uint32_t kReduces = 1u << 24;

void AtomicsInSharedWindow(Context& c, const Lowered& l, MemoryAccess& access, uint32_t lanes, AtomicOp op,
                           AtomicType type, bool returns) {
  const uint32_t bytes = access.bytes_per_lane;
  for (uint32_t i = 0; i < kWarpLanes; ++i) access.shared_address[i] = Low(access.address[i]);
  const uint32_t remote =
      lanes & MaskOf([&](uint32_t i) { return access.shared_address[i] >> kRankShift != c.cta->rank; });
  if (remote != 0 && bytes <= 8) AtomicRemote(c, l, remote, access.shared_address.data(), op, type, returns);
  lanes &= ~remote;
  for (uint32_t& address : access.shared_address) address &= kSharedOffsetMask;
  if (lanes == 0) return;
  access.shared_lanes = CheckShared(c, l, lanes, access.shared_address.data(), bytes);
  if (l.flags & kDataSkipped || bytes > 8) return;
  uint8_t* shared = CtaOf(c).shared;
  const auto operand = [&](size_t source, uint32_t lane) {
    const uint32_t low = c.Source(l, source).lane[lane];
    return bytes == 8 ? Pair(low, c.Source(l, source, 1).lane[lane]) : low;
  };
  ForLanes(access.shared_lanes, [&](uint32_t i) {
    uint64_t old = 0;
    std::memcpy(&old, shared + access.shared_address[i], bytes);
    const uint64_t result = ApplyAtomic(op, type, old, operand(2, i), operand(3, i));
    std::memcpy(shared + access.shared_address[i], &result, bytes);
    c.Destination(l).lane[i] = Low(old);
    if (bytes == 8) c.Destination(l, 0, 1).lane[i] = High(old);
  });
}

void RunAtomicGlobal(Context& c, const Lowered& l) {
  const auto type = static_cast<AtomicType>(l.flags >> kTypeShift & 15);
  const auto op = static_cast<AtomicOp>(l.flags >> kOpShift & 15);
  const bool returns = l.destination[0] != kDiscardRow && !(l.flags & kReduces);
  // ATOM answers even where nobody wants the value: its barrier says that it has been performed.
  MemoryAccess& access = BeginAccess(c, l, MemorySpace::kGlobal,
                                     l.flags & kReduces ? AccessKind::kReduction : AccessKind::kAtomic);
  access.bytes_per_lane = static_cast<uint8_t>(BytesOf(type));
  access.at_slice = true;
  access.bypass_l1 = true;
  Addresses64(c, l, access.address.data());
  uint32_t lanes = c.executing;
  if (l.flags & kGenericSpace) {
    const uint32_t shared =
        lanes & MaskOf([&](uint32_t i) { return High(access.address[i]) == kSharedWindowHigh; });
    lanes &= ~shared;
    if (l.flags & kHasPredicate)
      c.WritePredicate(l, 0, ~shared);
    else if (shared != 0)
      AtomicsInSharedWindow(c, l, access, shared, op, type, returns);
  }
  access.lanes = CheckGlobal(c, l, lanes, access.address.data(), access.bytes_per_lane);
  if (access.lanes == 0) {
    access.at_slice = false;
    return;
  }
  if (l.flags & kDataSkipped) {
    ForLanes(access.lanes,
             [&](uint32_t i) { c.memory->device->MarkStale(access.address[i], access.bytes_per_lane); });
    return;
  }
  PendingAccess& pending = c.memory->NewPending(&access.token);
  pending.kind = PendingAccess::Kind::kAtomic;
  pending.bytes = access.bytes_per_lane;
  pending.op = op;
  pending.type = type;
  pending.address = access.address;
  pending.remaining.store(access.lanes, std::memory_order_relaxed);
  const uint32_t words = access.bytes_per_lane / 4;
  for (uint32_t k = 0; k < std::min(words, 2u); ++k) {
    pending.operand[k] = c.Source(l, 2, k);
    if (op == AtomicOp::kCas) pending.operand[2 + k] = c.Source(l, 3, k);
  }
  pending.warp = c.warp;
  pending.destination = returns ? &c.Destination(l) : nullptr;
  if (!returns) return;
  pending.scoreboards = ScoreboardsOf(l);
  c.memory->HoldUp(*c.warp, pending.scoreboards);
}

}  // namespace

void LowerAtom(Lowering& w) {
  using isa::Op;
  const Op opcode = w.instruction.op;
  const bool reduces = opcode == Op::kRED || opcode == Op::kREDG;
  TakeAddressWidth(w);
  const int op = TakeAtomicOp(w);
  if (op < 0) return w.Fail("an unknown atomic operation");
  const AtomicType type = TakeAtomicType(w);
  if (type == AtomicType::kB128) return w.Fail("a 128-bit atomic");
  TakeCacheModifiers(w);
  const bool is_generic = opcode == Op::kATOM || opcode == Op::kRED;
  const bool is_packed = type == AtomicType::kF16x2 || type == AtomicType::kBF16x2;
  w.out.flags &= ~static_cast<uint32_t>(kLogBytesMask);
  w.out.flags |= (BytesOf(type) == 8 ? 3u : 2u) | static_cast<uint32_t>(op) << kOpShift |
                 static_cast<uint32_t>(type) << kTypeShift | (is_generic ? kGenericSpace : 0u) |
                 (is_generic && is_packed ? kHasPredicate : 0u) | (reduces ? kReduces : 0u);
  const uint32_t words = BytesOf(type) / 4;
  w.TakeDestinationPredicate(0);
  if (!reduces) w.Destination(0);
  TakeAddress(w);
  w.Source(2, words);
  if (w.Peek() != nullptr) w.Source(3, words);
  w.out.run = &RunAtomicGlobal;
}

}  // namespace heddle::emulator

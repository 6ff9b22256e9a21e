// mbarriers: SYNCS and ARRIVES.
//
// Sources: 0 and 1 the address with imm as offset, as of any access; 2 the operand: a count of arrivals or of
// transactions, or the parity of a phase in bit 31.
#include <bit>
#include <cstring>

#include "frontend/emulator/bulk_issue.h"
#include "frontend/emulator/issue_log.h"
#include "frontend/emulator/remote.h"
#include "frontend/emulator/splits.h"

namespace heddle::emulator {
namespace {

using isa::MbarrierOp;
using isa::Mod;

// What an arrival counts. .A1: one arrival; .AR: as many as the register says; .A0 none. .T0, .T1, .TR likewise for
// transactions, .TX completes them. Without a suffix: .A1TR.
enum class Form : uint32_t { kA1TR, kA1T0, kArT0, kA0TR, kA0TX, kA0T1 };
constexpr uint32_t kFormShift = 23;  // of flags, 3 bits
constexpr uint32_t kDrops = 1u << 26;
constexpr uint32_t kWaits = 1u << 27;         // PHASECHK..TRYWAIT
constexpr uint32_t kCompletesOne = 1u << 28;  // ARRIVES..TRANSCNT: a transaction, not an arrival

struct Place {
  uint32_t local = 0;   // lanes with an mbarrier of the own CTA
  uint32_t remote = 0;  // of another one
  uint32_t offset[kWarpLanes];
  uint32_t address[kWarpLanes];
};

Place PlaceOf(Context& c, const Lowered& l) {
  Place place;
  const Row& base = c.Source(l, 0);
  const uint32_t add = Low(l.imm) + c.Source(l, 1).lane[0];
  for (uint32_t i = 0; i < kWarpLanes; ++i) {
    place.address[i] = base.lane[i] + add;
    place.offset[i] = place.address[i] & kSharedOffsetMask;
  }
  place.remote =
      c.executing & MaskOf([&](uint32_t i) { return place.address[i] >> kRankShift != c.cta->rank; });
  place.local = CheckShared(c, l, c.executing & ~place.remote, place.offset, kMbarrierBytes);
  return place;
}

isa::MbarrierAccess& Begin(Context& c, MbarrierOp op, const Place& place, uint32_t lanes) {
  c.step->kind = isa::StepKind::kMbarrier;
  isa::MbarrierAccess& access = c.step->mbarrier;
  access = {.op = op, .lanes = lanes};
  if (lanes != 0) access.shared_address = place.offset[std::countr_zero(lanes)];
  return access;
}

void RunInit(Context& c, const Lowered& l) {
  const Place place = PlaceOf(c, l);
  Begin(c, MbarrierOp::kInit, place, place.local);
  const Row& low = c.Source(l, 2, 0);
  const Row& high = c.Source(l, 2, 1);
  ForLanes(place.local, [&](uint32_t i) {
    const uint64_t word = Pair(low.lane[i], high.lane[i]);
    uint64_t before;
    std::memcpy(&before, CtaOf(c).shared + place.offset[i], sizeof before);
    std::memcpy(CtaOf(c).shared + place.offset[i], &word, sizeof word);
    if (l.lane_fill != 0) {
      Splat(c.Destination(l, 0, 0), Low(before));
      Splat(c.Destination(l, 0, 1), High(before));
    } else {
      c.Destination(l, 0, 0).lane[i] = Low(before);
      c.Destination(l, 0, 1).lane[i] = High(before);
    }
  });
}

MbarrierArrival ArrivalOf(const Context& c, const Lowered& l, uint32_t lane) {
  const uint32_t value = c.Source(l, 2).lane[lane];
  const auto count = static_cast<int32_t>(value);
  MbarrierArrival arrival;
  arrival.drops = (l.flags & kDrops) != 0;
  switch (static_cast<Form>(l.flags >> kFormShift & 7)) {
    case Form::kA1TR:
      arrival.arrivals = 1;
      arrival.transactions = count;
      break;
    case Form::kA1T0:
      arrival.arrivals = 1;
      break;
    case Form::kArT0:
      arrival.arrivals = value;
      break;
    case Form::kA0TR:
      arrival.transactions = count;
      break;
    case Form::kA0TX:
      arrival.transactions = static_cast<int32_t>(-value);
      break;
    case Form::kA0T1:
      arrival.transactions = 1;
      break;
  }
  return arrival;
}

void ArriveRemotely(Context& c, const Lowered& l, const Place& place, isa::MbarrierAccess& access) {
  RemoteRecord* record = BeginRemote(c, l, place.remote, place.address, kMbarrierBytes);
  if (record == nullptr) return;
  record->kind = isa::AccessKind::kReduction;
  record->is_arrival = true;
  ForLanes(record->lanes, [&](uint32_t i) { record->arrival[i] = ArrivalOf(c, l, i); });
  IssueRemote(*record);
  access.remote = record;
}

void RunArrive(Context& c, const Lowered& l) {
  const Place place = PlaceOf(c, l);
  isa::MbarrierAccess& access = Begin(c, MbarrierOp::kArrive, place, place.local);
  const bool returns = l.destination[0] != kDiscardRow;
  ForLanes(place.local, [&](uint32_t i) {
    const uint64_t before =
        ArriveAt(CtaOf(c), place.offset[i], ArrivalOf(c, l, i), c.warp, c.memory->async.woken);
    if (!returns) return;
    c.Destination(l, 0, 0).lane[i] = Low(before);
    c.Destination(l, 0, 1).lane[i] = High(before);
  });
  if (place.remote != 0) ArriveRemotely(c, l, place, access);
}

void RunPhaseCheck(Context& c, const Lowered& l) {
  const Place place = PlaceOf(c, l);
  const Row& operand = c.Source(l, 2);
  const uint32_t parity = MaskOf([&](uint32_t i) { return operand.lane[i] >> 31 != 0; });
  const uint32_t complete = CompleteLanes(CtaOf(c), place.local, parity, place.offset);
  const bool waits = (l.flags & kWaits) != 0;
  isa::MbarrierAccess& access = Begin(c, waits ? MbarrierOp::kWait : MbarrierOp::kTest, place, place.local);
  const uint32_t missing = place.local & ~complete;
  // Lanes that name no mbarrier of this CTA have been reported: they are let go.
  const uint32_t bad = c.executing & ~place.local;
  const auto first = static_cast<uint32_t>(std::countr_zero(missing | (missing == 0 ? c.executing : 0)));
  access.parity = (parity >> first & 1) != 0;
  if (!waits || missing == 0) {
    c.WritePredicate(l, 0, complete | bad);
    return;
  }
  access.blocked = true;
  access.shared_address = place.offset[first];
  MbarrierWait wait{.warp = c.warp,
                    .lanes = c.executing,
                    .parity = parity,
                    .blocked_on = place.offset[first],
                    .predicate = l.destination_predicate[0]};
  for (uint32_t i = 0; i < kWarpLanes; ++i)
    wait.address[i] = place.local >> i & 1 ? place.offset[i] : place.offset[first];
  if (bad != 0) wait.parity = (wait.parity & ~bad) | (parity >> first & 1 ? bad : 0);
  CtaOf(c).waits.push_back(wait);
  BlockLanes(*c.warp, c.executing, SplitState::kAtMbarrier, 0, 0);
}

// The arrival takes place when the copies that the warp has issued so far have arrived.
void RunArriveAfterCopies(Context& c, const Lowered& l) {
  const Place place = PlaceOf(c, l);
  isa::MbarrierAccess& access = Begin(c, MbarrierOp::kArriveAfterCopies, place, place.local);
  PendingAccess& pending = c.memory->NewPending(&access.token);
  pending.kind = PendingAccess::Kind::kArrival;
  pending.cta = &CtaOf(c);
  pending.warp = c.warp;
  pending.transactions = (l.flags & kCompletesOne) != 0;
  pending.remaining.store(place.local, std::memory_order_relaxed);
  for (uint32_t i = 0; i < kWarpLanes; ++i) pending.shared_address[i] = place.offset[i];
}

void TakeMbarrierAddress(Lowering& w) {
  TakeAddress(w);
  w.out.flags &= ~static_cast<uint32_t>(kBase64 | kUniformPair);
}

}  // namespace

void LowerSyncs(Lowering& w) {
  if (w.Take(Mod::kCCTL)) {  // invalidation: the word may be used otherwise
    w.TakeAllModifiers();
    while (w.Peek() != nullptr) w.Next();
    w.out.run = &RunNothing;
    return;
  }
  if (w.Take(Mod::kEXCH)) {
    w.Take(Mod::k64);
    w.Destination(0);
    TakeMbarrierAddress(w);
    w.Source(2, 2);
    w.out.run = &RunInit;
    return;
  }
  w.Take(Mod::kTRANS64);
  if (w.Take(Mod::kPHASECHK)) {
    if (w.Take(Mod::kTRYWAIT)) w.out.flags |= kWaits;
    w.DestinationPredicate(0);
    TakeMbarrierAddress(w);
    w.Source(2);
    w.out.run = &RunPhaseCheck;
    return;
  }
  if (!w.Take(Mod::kARRIVE)) return w.Fail("an unknown operation on an mbarrier");
  w.Take(Mod::kRED);
  if (w.Take(Mod::kOPTOUT)) w.out.flags |= kDrops;
  const int form = w.TakeOneOf({Mod::kA1T0, Mod::kART0, Mod::kA0TR, Mod::kA0TX, Mod::kA0T1});
  w.out.flags |= static_cast<uint32_t>(form + 1) << kFormShift;
  w.Destination(0);
  TakeMbarrierAddress(w);
  w.Source(2);
  w.out.run = &RunArrive;
}

void LowerArrives(Lowering& w) {
  if (!w.Take(Mod::kLDGSTSBAR)) return w.Fail("an unknown arrival");
  w.Take(Mod::k64);
  if (w.Take(Mod::kTRANSCNT))
    w.out.flags |= kCompletesOne;
  else if (!w.Take(Mod::kARVCNT))
    return w.Fail("an unknown count");
  TakeMbarrierAddress(w);
  w.out.run = &RunArriveAfterCopies;
}

}  // namespace heddle::emulator

// Clusters: UCGABAR_ARV, UCGABAR_WAIT, STAS, REDAS, and programmatic dependent launch: PREEXIT.
#include "frontend/emulator/issue_log.h"
#include "frontend/emulator/remote.h"
#include "frontend/emulator/splits.h"

namespace heddle::emulator {
namespace {

using isa::Mod;

void RunClusterArrive(Context& c, const Lowered&) {
  ++c.warp->cluster_arrivals;
  c.step->kind = isa::StepKind::kClusterArrive;
}

void RunClusterWait(Context& c, const Lowered&) {
  c.step->kind = isa::StepKind::kClusterWait;
  if (c.cta->cluster_phases < c.warp->cluster_arrivals)
    BlockLanes(*c.warp, c.executing, SplitState::kAtCluster, 0, 0);
}

void RunTrigger(Context& c, const Lowered&) { c.step->kind = isa::StepKind::kTrigger; }

// Source 0: {address, mbarrier} in the cluster's window; source 2: the value. An own CTA is reached in the same way.
void RunAsyncStore(Context& c, const Lowered& l) {
  isa::MemoryAccess& access = BeginAccess(c, l, isa::MemorySpace::kShared, isa::AccessKind::kStore);
  const Row& address = c.Source(l, 0);
  const Row& mbarrier = c.Source(l, 0, 1);
  uint32_t lanes = 0;
  ForLanes(c.executing, [&](uint32_t i) {
    const uint32_t offset = mbarrier.lane[i] & 0xffffff;
    if (offset % kMbarrierBytes != 0 || offset + kMbarrierBytes > CtaOf(c).shared_bytes)
      c.issues->Report("out_of_bounds", l.index, "an mbarrier outside shared memory");
    else
      lanes |= 1u << i;
  });
  const auto type = static_cast<AtomicType>(l.flags >> kTypeShift & 15);
  const bool combines = (l.flags >> kOpShift & 15) != 15;
  RemoteRecord* record = BeginRemote(c, l, lanes, address.lane, access.bytes_per_lane);
  if (record == nullptr) return;
  access.remote = record;
  record->kind = combines ? isa::AccessKind::kReduction : isa::AccessKind::kStore;
  record->op = static_cast<AtomicOp>(l.flags >> kOpShift & 15);
  record->type = type;
  record->completes_transactions = true;
  for (uint32_t i = 0; i < kWarpLanes; ++i) record->mbarrier[i] = mbarrier.lane[i] & 0xffffff;
  const uint32_t words = WordsPerLane(l);
  for (uint32_t k = 0; k < words; ++k) record->operand[k] = c.Source(l, 2, k);
  IssueRemote(*record);
}

void TakeAsyncAddress(Lowering& w) {
  const isa::Operand& operand = w.Next();
  if (operand.kind != isa::OperandKind::kMemory || operand.reg == isa::kNoRegister || operand.value != 0 ||
      operand.uniform_reg < isa::kNoRegister)
    return w.Fail("an operand is no pair of addresses");
  w.out.source[0] = {w.layout.ReadRow(operand.reg), RowBase::kWarp};
}

}  // namespace

void LowerUcgabarArv(Lowering& w) { w.out.run = &RunClusterArrive; }
void LowerUcgabarWait(Lowering& w) { w.out.run = &RunClusterWait; }
void LowerPreexit(Lowering& w) { w.out.run = &RunTrigger; }

void LowerStas(Lowering& w) {
  TakeWidth(w);
  w.out.flags |= 15u << kOpShift;
  TakeAsyncAddress(w);
  StoreValue(w, 2);
  w.out.run = &RunAsyncStore;
}

void LowerRedas(Lowering& w) {
  const int op = TakeAtomicOp(w);
  if (op < 0) return w.Fail("an unknown atomic operation");
  const AtomicType type = TakeAtomicType(w);
  w.out.width = static_cast<uint8_t>(BytesOf(type) / 4);
  w.out.flags |= (BytesOf(type) == 8 ? 3u : 2u) | static_cast<uint32_t>(op) << kOpShift |
                 static_cast<uint32_t>(type) << kTypeShift;
  TakeAsyncAddress(w);
  StoreValue(w, 2);
  w.out.run = &RunAsyncStore;
}

void LowerLdgmc(Lowering& w) {
  w.Fail(
      "multimem needs a multicast object over several GPUs; a single GPU is simulated, so run the kernel's "
      "variant for one GPU");
}

}  // namespace heddle::emulator

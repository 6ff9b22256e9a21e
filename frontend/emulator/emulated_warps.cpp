#include "frontend/emulator/emulated_warps.h"

#include <algorithm>

#include "frontend/emulator/bulk_transfer.h"
#include "frontend/emulator/launch_program.h"
#include "frontend/emulator/remote.h"
#include "frontend/emulator/splits.h"
#include "frontend/emulator/step.h"

namespace heddle::emulator {

EmulatedWarps::EmulatedWarps(EmulatedLaunch& launch, uint32_t sm, std::shared_ptr<IssueLog> issues)
    : launch_(launch), sm_(sm), warps_per_cta_(launch.shape().WarpsPerCta()), issues_(std::move(issues)) {
  port_.device = &launch.memory();
  port_.stores = launch.description().immediate_stores ? nullptr : &launch.memory().PortOfSm(sm);
  const auto& slice = launch.description().slice;
  port_.skips_data =
      launch.description().mode == Mode::kSkeleton && slice != nullptr && slice->kind != SliceKind::kFull;
  port_.bank_address = launch.shape().constant_bank_address;
  port_.sites.resize(launch.program()->size());
  context_.bases[static_cast<size_t>(RowBase::kPool)] = launch.pool().rows();
  context_.launch = &launch.context();
  context_.program = launch.program().get();
  context_.memory = &port_;
  context_.issues = issues_.get();
  port_.async.woken = &woken_;
}

EmulatedWarps::~EmulatedWarps() = default;

EmulatedWarps::Slot& EmulatedWarps::SlotAt(uint32_t index) {
  if (slots_.size() <= index) {
    slots_.resize(index + 1);
    warps_.resize(slots_.size() * warps_per_cta_);
  }
  if (slots_[index] != nullptr) return *slots_[index];
  auto slot = std::make_unique<Slot>();
  const RowLayout& layout = launch_.program()->layout();
  slot->warps.resize(warps_per_cta_);
  slot->rows.resize(size_t{layout.count} * warps_per_cta_);
  if (launch_.description().track_unknown) slot->unknown.resize(slot->rows.size());
  slot->shared.resize(launch_.context().shared_bytes);
  slot->local.resize(size_t{launch_.local_bytes_per_lane()} * kWarpLanes * warps_per_cta_);
  for (uint32_t w = 0; w < warps_per_cta_; ++w) {
    slot->warps[w].rows = slot->rows.data() + size_t{layout.count} * w;
    if (!slot->unknown.empty()) slot->warps[w].unknown = slot->unknown.data() + size_t{layout.count} * w;
    warps_[index * warps_per_cta_ + w] = &slot->warps[w];
  }
  slots_[index] = std::move(slot);
  return *slots_[index];
}

void EmulatedWarps::StartCta(const isa::CtaStart& start) {
  Slot& slot = SlotAt(start.slot);
  // What a CTA finds in memory that it has not written is undefined; here it does not depend on who was here
  // before.
  std::fill(slot.shared.begin(), slot.shared.end(), uint8_t{0});
  std::fill(slot.local.begin(), slot.local.end(), uint8_t{0});
  const uint32_t generation = slot.cta.generation;
  slot.cta = CtaMemory{};
  slot.cta.resident = true;
  slot.cta.generation = generation + 1;
  slot.cta.rank = launch_.shape().ClusterRank(start.cta);
  slot.cta.cluster_ctas = static_cast<uint32_t>(launch_.shape().cluster.Count());
  slot.cta.cta = start.cta;
  slot.cta.slot = start.slot;
  slot.cta.sm = start.sm;
  slot.cta.warps = warps_per_cta_;
  slot.cta.shared = slot.shared.data();
  slot.cta.shared_bytes = static_cast<uint32_t>(slot.shared.size());
  slot.cta.local = slot.local.data();
  slot.cta.local_address = launch_.LocalAddress(sm_, start.slot * warps_per_cta_);
  slot.cta.local_bytes_per_lane = launch_.local_bytes_per_lane();
  const uint32_t threads = launch_.shape().ThreadsPerCta();
  for (uint32_t w = 0; w < warps_per_cta_; ++w) {
    Warp& warp = slot.warps[w];
    const uint32_t left = threads - w * kWarpLanes;
    ResetWarp(warp, launch_.program()->layout(), left >= kWarpLanes ? kAllLanes : (1u << left) - 1,
              launch_.entry());
    warp.cta = &slot.cta;
    warp.id_in_cta = w;
    warp.slot_on_sm = start.first_warp_slot + w;
  }
}

void EmulatedWarps::EndCta(uint32_t slot) {
  slots_[slot]->cta.resident = false;
  port_.Forget(&slots_[slot]->cta);
}

void EmulatedWarps::Prefetch(uint32_t warp) const { PrefetchNext(*context_.program, *warps_[warp]); }

isa::InstructionRun EmulatedWarps::NextRun(uint32_t warp) {
  port_.Drain();
  return RunAhead(context_, *warps_[warp]);
}

void EmulatedWarps::Execute(uint32_t warp, Cycle now, isa::WarpStep* step) {
  port_.Drain();
  StepOne(context_, *warps_[warp], now, step);
}

void EmulatedWarps::ReleaseBarrier(uint32_t slot, uint8_t id) {
  Slot& s = *slots_[slot];
  CompleteBarrier(s.cta, id);
  for (Warp& warp : s.warps) emulator::ReleaseBarrier(warp, id);
}

void EmulatedWarps::CompleteAsyncCopy(uint32_t token, Cycle) { port_.CompleteCopy(token); }

void EmulatedWarps::PerformAtSlice(uint32_t token, uint32_t lanes, Cycle) { port_.Perform(token, lanes); }

void EmulatedWarps::ReleaseClusterBarrier(uint32_t slot) {
  Slot& s = *slots_[slot];
  ++s.cta.cluster_phases;
  for (Warp& warp : s.warps) {
    if (warp.live == 0) continue;
    const bool was_blocked = StateOf(warp) == isa::WarpState::kBlocked;
    for (uint32_t i = 0; i < warp.split_count; ++i)
      if (warp.splits[i].state == SplitState::kAtCluster && warp.cluster_arrivals <= s.cta.cluster_phases)
        warp.splits[i].state = SplitState::kReady;
    Reschedule(warp, Turn::kKeep);
    if (was_blocked && StateOf(warp) == isa::WarpState::kRunnable)
      woken_.push_back(slot * warps_per_cta_ + warp.id_in_cta);
  }
}

void EmulatedWarps::ArriveAfterCopies(uint32_t token, Cycle) { port_.CompleteArrival(token); }

CtaMemory* EmulatedWarps::CtaOfSlot(uint32_t slot) {
  return slot == isa::kEndedCta ? nullptr : &slots_[slot]->cta;
}

void EmulatedWarps::CompleteBulk(isa::BulkOperation& operation, uint32_t slot, uint32_t, uint32_t first,
                                 uint32_t count, Cycle) {
  auto& record = static_cast<BulkRecord&>(operation);
  MoveRowsToShared(record, CtaOfSlot(slot), *port_.device, first, count, *issues_, &woken_);
  uint64_t bytes = 0;
  for (uint32_t i = first; i < first + count; ++i) bytes += record.pieces[i].shared_bytes;
  record.owner->Performed(record, bytes);
}

void EmulatedWarps::ReadBulkSource(isa::BulkOperation& operation, uint32_t first, uint32_t count, Cycle) {
  auto& record = static_cast<BulkRecord&>(operation);
  if (record.kind == isa::BulkKind::kPrefetch) return record.owner->Performed(record, record.remaining);
  ReadRowsOfSource(record, first, count, *issues_);
}

void EmulatedWarps::PerformBulkAtSlice(isa::BulkOperation& operation, uint32_t piece, uint32_t offset,
                                       uint32_t bytes, Cycle) {
  auto& record = static_cast<BulkRecord&>(operation);
  MoveRowToGlobal(record, *port_.device, piece, offset, bytes);
  record.owner->Performed(record, bytes);
}

void EmulatedWarps::PerformRemote(isa::RemoteOperation& operation, uint32_t slot, uint32_t rank, Cycle) {
  auto& record = static_cast<RemoteRecord&>(operation);
  PerformRemoteAt(record, CtaOfSlot(slot), rank, *issues_, &woken_);
  record.owner->Performed(record, rank);
}

void EmulatedWarps::CompleteRemote(isa::RemoteOperation& operation, Cycle) {
  auto& record = static_cast<RemoteRecord&>(operation);
  port_.Deliver(record);
  port_.async.Recycle(record);
}

bool EmulatedWarps::FailWait(uint32_t warp, Cycle) {
  return FailMbarrierWaits(slots_[warp / warps_per_cta_]->cta, *warps_[warp]);
}

}  // namespace heddle::emulator

#include "frontend/emulator/emulated_warps.h"

#include <algorithm>

#include "frontend/emulator/launch_program.h"
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
  slot->shared.resize(launch_.shape().shared_bytes_per_cta);
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
  slot.cta = CtaMemory{};
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

void EmulatedWarps::EndCta(uint32_t slot) { port_.Forget(&slots_[slot]->cta); }

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

}  // namespace heddle::emulator

#include "frontend/import/recorded_warps.h"

#include <algorithm>
#include <bit>

#include "frontend/import/recorded_barrier.h"

namespace heddle::importer {
namespace {

using isa::MemorySpace;
using isa::StepKind;
using isa::WarpState;

// Of local memory, which a trace does not place: far from what a process is given.
constexpr uint64_t kLocalAddress = 0x7c00'0000'0000;
constexpr uint32_t kWarpsPerSmBits = 12;  // for local memory: more than slots times warps can be

void Place(uint64_t base, const uint64_t* offset, uint32_t mask, isa::MemoryAccess* access) {
  if (mask == ~0u) {
    for (uint32_t i = 0; i < kWarpLanes; ++i) access->address[i] = base + offset[i];
    return;
  }
  for (uint32_t left = mask; left != 0; left &= left - 1)
    access->address[static_cast<size_t>(std::countr_zero(left))] = base + *offset++;
}

}  // namespace

RecordedWarps::RecordedWarps(RecordedLaunch* launch, uint32_t sm)
    : launch_(*launch), code_(launch->code_), sm_(sm), warps_per_cta_(launch->shape().WarpsPerCta()) {}

void RecordedWarps::StartCta(const isa::CtaStart& start) {
  const size_t first = size_t{start.slot} * warps_per_cta_;
  if (warps_.size() < first + warps_per_cta_) warps_.resize(first + warps_per_cta_);
  if (chunks_.size() <= start.slot) chunks_.resize(start.slot + size_t{1});
  const uint64_t block = launch_.PositionOf(start.cta);
  std::shared_ptr<const Chunk>& chunk = chunks_[start.slot];
  chunk = block < launch_.recording().blocks ? launch_.chunks_->Of(block) : nullptr;
  if (block < launch_.recording().blocks && (chunk == nullptr || chunk->damaged())) launch_.NoteDamage();
  const uint64_t local_bytes = launch_.recording().local_high - launch_.recording().local_low;
  for (uint32_t w = 0; w < warps_per_cta_; ++w) {
    Warp& warp = warps_[first + w];
    const WarpPart part = chunk == nullptr ? WarpPart{} : chunk->Part(block, w);
    warp.tokens = NumberReader(part.tokens);
    warp.firsts = part.firsts;
    warp.next_first = 0;
    warp.left = warp.count = warp.variant = warp.place = 0;
    warp.mask = ~0u;
    warp.state = WarpState::kRunnable;
    warp.local_address =
        kLocalAddress + (uint64_t{sm_} << kWarpsPerSmBits | (first + w)) * kWarpLanes * local_bytes;
    warp.accesses.assign(code_.accesses(), LastAccess{});
    if (!part.tokens.empty()) continue;
    warp.at = code_.last_exit();
    warp.left = 1;
  }
}

void RecordedWarps::EndCta(uint32_t slot) { chunks_[slot].reset(); }

void RecordedWarps::GiveUp(Warp* warp) {
  launch_.NoteDamage();
  warp->tokens = NumberReader();
  warp->at = code_.last_exit();
  warp->left = 1;
}

void RecordedWarps::ReadToken(Warp* warp) {
  const uint64_t header = warp->tokens.Next();
  const uint64_t count = header >> 3;
  uint64_t place = warp->place;
  if ((header & 1) != 0) place += warp->tokens.NextSigned();
  if ((header & 4) != 0) warp->variant = static_cast<uint32_t>(warp->tokens.Next());
  if ((header & 2) != 0) warp->mask ^= static_cast<uint32_t>(warp->tokens.Next());
  const uint32_t stride = code_.stride();
  if (!warp->tokens.good() || count == 0 || place >= stride || count > stride - place ||
      warp->variant >= code_.variants())
    return GiveUp(warp);
  warp->at = warp->variant * stride + static_cast<uint32_t>(place);
  warp->left = static_cast<uint32_t>(count);
  warp->place = static_cast<uint32_t>(place + count);
}

isa::InstructionRun RecordedWarps::NextRun(uint32_t id) {
  Warp& warp = warps_[id];
  if (warp.state != WarpState::kRunnable) return {0, 0, 0, warp.state};
  if (warp.left == 0) ReadToken(&warp);
  warp.count = std::min(code_.NextStop(warp.at), warp.at + warp.left - 1) - warp.at;
  return {warp.at, warp.count, warp.mask, WarpState::kRunnable};
}

void RecordedWarps::Execute(uint32_t id, Cycle, isa::WarpStep* step) {
  Warp& warp = warps_[id];
  const uint32_t index = warp.at + warp.count;
  const ReplayedInstruction& instruction = code_[index];
  warp.left -= warp.count + 1;
  warp.at = index + 1;
  step->kind = StepKind::kLocal;
  step->state = WarpState::kRunnable;
  step->taken = false;
  step->index = index;
  step->lanes = warp.mask;
  if (warp.mask != 0) {
    if (instruction.record == RecordKind::kAccess) {
      if (ReadAccess(&warp, instruction, &step->memory))
        step->kind = StepKind::kMemory;
      else
        GiveUp(&warp);
    } else if (instruction.record == RecordKind::kBarrier) {
      if (warp.tokens.Next() != 0) {
        step->kind = StepKind::kBarrier;
        step->barrier = instruction.barrier;
      }
    } else if (instruction.is_exit) {
      step->kind = StepKind::kExit;
    } else if (instruction.sleep_ns != 0) {
      step->kind = StepKind::kSleep;
      step->sleep_ns = instruction.sleep_ns;
    }
  }
  if (warp.left == 0 && warp.tokens.AtEnd()) {
    // Nothing was recorded behind it, whatever it is.
    if (step->kind == StepKind::kBarrier) step->kind = StepKind::kExit;
    warp.state = WarpState::kFinished;
  } else if (step->kind == StepKind::kBarrier && step->barrier.op != isa::BarrierOp::kArrive) {
    warp.state = WarpState::kBlocked;
    warp.barrier = step->barrier.id;
  } else if (instruction.is_branch && warp.left == 0) {
    NumberReader next = warp.tokens;
    step->kind = StepKind::kBranch;
    step->taken = (next.Next() & 1) != 0;
  }
  step->state = warp.state;
}

// What the tokens say of an access, and its lanes' addresses in the space that they lie in.
bool RecordedWarps::ReadAccess(Warp* warp, const ReplayedInstruction& instruction,
                               isa::MemoryAccess* access) {
  LastAccess& last = warp->accesses[instruction.access];
  uint32_t shape = 0;
  if (!last.known) {
    if (warp->next_first == warp->firsts.size()) return false;
    const First& first = warp->firsts[warp->next_first++];
    shape = first.shape;
    last = {first.base, 0, shape, true};
  } else {
    const uint64_t header = warp->tokens.Next();
    last.step += warp->tokens.Residual(header, 2);
    last.base += last.step;
    shape = (header & 1) != 0 ? static_cast<uint32_t>(warp->tokens.Next()) : last.shape;
    if (shape != 0) last.shape = shape;
  }
  const auto lanes = static_cast<uint32_t>(std::popcount(warp->mask));
  if (shape == 0) {
    std::array<uint64_t, kWarpLanes> offset{};
    for (uint32_t i = 1; i < lanes; ++i) offset[i] = offset[i - 1] + warp->tokens.NextSigned();
    Place(last.base, offset.data(), warp->mask, access);
  } else {
    if (shape > launch_.shapes_.size()) return false;
    const Shape& known = launch_.shapes_[shape - 1];
    if (known.lanes < lanes) return false;
    Place(last.base, known.offset.data(), warp->mask, access);
  }
  if (!warp->tokens.good()) return false;
  Resolve(*warp, instruction, access);
  return true;
}

void RecordedWarps::ToLocal(const Warp& warp, uint32_t lane, uint64_t* address) const {
  const trace::RecordingHeader& recording = launch_.recording();
  const uint32_t bytes = recording.local_high - recording.local_low;
  const uint32_t offset = LocalOffset(*address, recording.local_base) - recording.local_low;
  // An offset that the header does not know is none of ours.
  *address = warp.local_address + isa::InterleavedLocal(offset < bytes ? offset : 0, lane);
}

void RecordedWarps::Resolve(const Warp& warp, const ReplayedInstruction& instruction,
                            isa::MemoryAccess* access) const {
  access->Begin(instruction.space, instruction.kind, instruction.bytes_per_lane);
  access->at_slice = instruction.at_slice;
  access->bypass_l1 = instruction.bypass_l1;
  access->lanes = warp.mask & instruction.matrix_lanes;
  const trace::RecordingHeader& recording = launch_.recording();
  if (!instruction.is_generic) {
    if (instruction.space == MemorySpace::kGlobal) return;
    for (uint32_t left = access->lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<uint32_t>(std::countr_zero(left));
      uint64_t& address = access->address[lane];
      if (instruction.space == MemorySpace::kLocal)
        ToLocal(warp, lane, &address);
      else
        address = (InWindow(address, recording.shared_base) ? address - recording.shared_base : address) &
                  (kWindowBytes - 1);
    }
    return;
  }
  // Without windows all generic accesses are taken for shared ones, as Accel-Sim does.
  const bool no_windows = recording.shared_base == 0 && recording.local_base == 0;
  uint32_t local = 0, global = 0;
  for (uint32_t left = access->lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(left));
    const uint64_t address = access->address[lane];
    if (no_windows || InWindow(address, recording.shared_base)) {
      access->shared_lanes |= 1u << lane;
      access->shared_address[lane] =
          static_cast<uint32_t>((address - recording.shared_base) & (kWindowBytes - 1));
    } else if (InWindow(address, recording.local_base)) {
      local |= 1u << lane;
    } else {
      global |= 1u << lane;
    }
  }
  // Lanes in local memory next to lanes in global memory: the backing store is global memory, and cached alike.
  access->space = global == 0 && local != 0 ? MemorySpace::kLocal : MemorySpace::kGlobal;
  for (uint32_t left = local; left != 0; left &= left - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(left));
    ToLocal(warp, lane, &access->address[lane]);
  }
  access->lanes = local | global;
  if (access->lanes == 0 || access->space == MemorySpace::kLocal) access->at_slice = false;
}

void RecordedWarps::ReleaseBarrier(uint32_t slot, uint8_t id) {
  for (uint32_t w = 0; w < warps_per_cta_; ++w) {
    Warp& warp = warps_[size_t{slot} * warps_per_cta_ + w];
    if (warp.state == WarpState::kBlocked && warp.barrier == id) warp.state = WarpState::kRunnable;
  }
}

}  // namespace heddle::importer

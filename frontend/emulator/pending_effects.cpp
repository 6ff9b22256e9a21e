#include "frontend/emulator/pending_effects.h"

#include <algorithm>
#include <bit>

namespace heddle::emulator {
namespace {

// Steps after which an effect takes place on average, by seed: hasty and slow machines.
constexpr uint64_t kOneIn[] = {16, 256, 4096, 64};
constexpr uint32_t kChunksPerBox = 3;  // parts of a box that arrive one by one
constexpr uint32_t kAll = ~0u;

}  // namespace

uint64_t PendingEffects::Random() {
  // xorshift64*
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  return random_ * 0x2545F4914F6CDD1Dull;
}

void PendingEffects::BeforeStep(const EmulatedWarps* stream, uint32_t warp, const isa::InstructionRun& run) {
  if (!delays()) return;
  for (uint32_t i = run.first; i <= run.first + run.count && i < code_.instructions.size(); ++i) {
    const isa::Instruction& instruction = code_.instructions[i];
    if (instruction.control.wait_mask != 0) WaitFor(stream, warp, instruction.control.wait_mask, 0);
    switch (instruction.op) {
      case isa::Op::kLDGDEPBAR:
        Close(Category::kCopies, stream, warp, instruction.control.write_barrier);
        break;
      case isa::Op::kDEPBAR: {
        uint32_t mask = 0, allowed = 0;
        for (size_t k = 0; k < instruction.operand_count; ++k) {
          const isa::Operand& operand = instruction.operands[k];
          if (operand.kind == isa::OperandKind::kScoreboard) mask |= 1u << (operand.reg & 7);
          if (operand.kind == isa::OperandKind::kScoreboardSet)
            WaitFor(stream, warp, Low(static_cast<uint64_t>(operand.value)), 0);
          if (operand.kind == isa::OperandKind::kImmediate)
            allowed = Low(static_cast<uint64_t>(operand.value));
        }
        WaitFor(stream, warp, mask, allowed);
        break;
      }
      case isa::Op::kMEMBAR:  // what was written to other CTAs is there
      case isa::Op::kUCGABAR_ARV:
        PerformUpTo(Category::kRemote, stream, warp, kAll);
        break;
      default:
        break;
    }
  }
}

void PendingEffects::AfterStep(EmulatedWarps* stream, uint32_t warp, const isa::WarpStep& step,
                               const std::shared_ptr<const ClusterMembers>& members) {
  const auto remote = [&](isa::RemoteOperation* operation) {
    if (operation == nullptr) return;
    Add({.category = Category::kRemote,
         .stream = stream,
         .warp = warp,
         .remote = operation,
         .members = members});
    // Nothing here waits for the values of loads.
    if (operation->returns) PerformUpTo(Category::kRemote, stream, warp, kAll);
  };
  switch (step.kind) {
    case isa::StepKind::kMemory:
      if (step.memory.kind == isa::AccessKind::kAsyncCopy)
        Add({.category = Category::kCopies,
             .stream = stream,
             .warp = warp,
             .token = step.memory.token,
             .members = members});
      remote(step.memory.remote);
      break;
    case isa::StepKind::kMbarrier:
      if (step.mbarrier.op == isa::MbarrierOp::kArriveAfterCopies)
        Add({.category = Category::kCopies,
             .stream = stream,
             .warp = warp,
             .token = step.mbarrier.token,
             .arrives = true,
             .members = members});
      remote(step.mbarrier.remote);
      break;
    case isa::StepKind::kBulk:
      if (step.bulk != nullptr) AddBulk(stream, warp, step.bulk, members);
      break;
    default:
      if (delays() && step.lanes != 0 && code_.instructions[step.index].op == isa::Op::kUTMACMDFLUSH)
        Close(Category::kBulkStores, stream, warp, code_.instructions[step.index].control.read_barrier);
      break;
  }
}

void PendingEffects::AddBulk(EmulatedWarps* stream, uint32_t warp, isa::BulkOperation* bulk,
                             const std::shared_ptr<const ClusterMembers>& members) {
  using isa::BulkKind;
  const auto rows = static_cast<uint32_t>(bulk->pieces.size());
  if (bulk->kind == BulkKind::kPrefetch) return stream->ReadBulkSource(*bulk, 0, rows, 0);
  if (bulk->kind == BulkKind::kStore || bulk->kind == BulkKind::kReduce)
    return Add({.category = Category::kBulkStores,
                .stream = stream,
                .warp = warp,
                .bulk = bulk,
                .members = members});
  const uint32_t chunk = delays() ? CeilDiv(rows, kChunksPerBox) : rows;
  // The operation may be reused once its last part has been performed: its ranks are read before.
  for (uint32_t ranks = bulk->destination_ranks; ranks != 0; ranks &= ranks - 1)
    for (uint32_t first = 0; first < rows; first += chunk)
      Add({.category = Category::kBulkLoads,
           .stream = stream,
           .warp = warp,
           .bulk = bulk,
           .rank = static_cast<uint32_t>(std::countr_zero(ranks)),
           .first = first,
           .count = std::min(chunk, rows - first),
           .members = members});
}

void PendingEffects::Add(Effect effect) {
  if (!delays()) return Perform(effect);
  if (static_cast<size_t>(effect.category) < kGrouped)
    effect.group = Groups(effect.category, effect.stream, effect.warp).open;
  pending_.push_back(std::move(effect));
}

void PendingEffects::Perform(const Effect& effect) {
  switch (effect.category) {
    case Category::kCopies:
      if (effect.arrives)
        effect.stream->ArriveAfterCopies(effect.token, 0);
      else
        effect.stream->CompleteAsyncCopy(effect.token, 0);
      break;
    case Category::kBulkStores: {
      isa::BulkOperation& bulk = *effect.bulk;
      const auto rows = static_cast<uint32_t>(bulk.pieces.size());
      effect.stream->ReadBulkSource(bulk, 0, rows, 0);
      for (uint32_t i = 0; i < rows; ++i)
        if (bulk.pieces[i].global_bytes != 0)
          effect.stream->PerformBulkAtSlice(bulk, i, 0, bulk.pieces[i].global_bytes, 0);
      break;
    }
    case Category::kRemote: {
      isa::RemoteOperation& remote = *effect.remote;
      const bool returns = remote.returns;
      for (uint32_t ranks = remote.ranks; ranks != 0; ranks &= ranks - 1) {
        const auto rank = static_cast<uint32_t>(std::countr_zero(ranks));
        const ClusterMember& member = (*effect.members)[rank];
        member.stream->PerformRemote(remote, member.slot, rank, 0);
      }
      if (returns) effect.stream->CompleteRemote(remote, 0);
      break;
    }
    case Category::kBulkLoads: {
      const ClusterMember& member = (*effect.members)[effect.rank];
      if (effect.bulk->kind == isa::BulkKind::kExchange)
        effect.stream->ReadBulkSource(*effect.bulk, effect.first, effect.count, 0);
      member.stream->CompleteBulk(*effect.bulk, member.slot, effect.rank, effect.first, effect.count, 0);
      break;
    }
  }
}

void PendingEffects::PerformAt(size_t index) {
  const Effect effect = std::move(pending_[index]);
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(index));
  Perform(effect);
}

void PendingEffects::PerformUpTo(Category category, const EmulatedWarps* stream, uint32_t warp,
                                 uint32_t group) {
  for (size_t i = 0; i < pending_.size();) {
    const Effect& effect = pending_[i];
    if (effect.category == category && effect.stream == stream && effect.warp == warp &&
        effect.group <= group)
      PerformAt(i);
    else
      ++i;
  }
}

void PendingEffects::Close(Category category, const EmulatedWarps* stream, uint32_t warp, uint8_t barrier) {
  WarpGroups& groups = Groups(category, stream, warp);
  groups.closed.push_back({barrier, groups.open++});
}

void PendingEffects::WaitFor(const EmulatedWarps* stream, uint32_t warp, uint32_t mask, uint32_t allowed) {
  for (size_t c = 0; c < kGrouped; ++c) {
    const auto found = groups_[c].find({stream, warp});
    if (found == groups_[c].end()) continue;
    std::vector<Closed>& closed = found->second.closed;
    for (size_t left = static_cast<size_t>(
             std::count_if(closed.begin(), closed.end(),
                           [&](const Closed& group) { return (mask >> group.barrier & 1) != 0; }));
         left > allowed; --left) {
      const auto oldest = std::find_if(closed.begin(), closed.end(),
                                       [&](const Closed& group) { return (mask >> group.barrier & 1) != 0; });
      PerformUpTo(static_cast<Category>(c), stream, warp, oldest->group);
      closed.erase(oldest);
    }
  }
}

void PendingEffects::Sometimes() {
  if (delays() && !pending_.empty() && Random() % kOneIn[seed_ % std::size(kOneIn)] == 0) One();
}

bool PendingEffects::One() {
  if (pending_.empty()) return false;
  size_t index = Random() % pending_.size();
  const Effect& chosen = pending_[index];
  // Remote accesses of a warp keep their order, and so do arrivals behind copies.
  if (chosen.category == Category::kRemote || chosen.arrives)
    index = static_cast<size_t>(std::find_if(pending_.begin(), pending_.end(),
                                             [&](const Effect& effect) {
                                               return effect.category == chosen.category &&
                                                      effect.stream == chosen.stream &&
                                                      effect.warp == chosen.warp;
                                             }) -
                                pending_.begin());
  PerformAt(index);
  return true;
}

void PendingEffects::Settle(const std::shared_ptr<const ClusterMembers>& members) {
  if (!delays()) return;
  for (size_t i = 0; i < pending_.size();) {
    if (pending_[i].members == members && pending_[i].category != Category::kBulkStores)
      PerformAt(i);
    else
      ++i;
  }
}

void PendingEffects::All() {
  while (!pending_.empty()) PerformAt(0);
}

}  // namespace heddle::emulator

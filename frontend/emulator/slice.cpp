#include "frontend/emulator/slice.h"

#include <algorithm>
#include <optional>

#include "frontend/emulator/control_flow_graph.h"
#include "frontend/emulator/expanded_slice.h"
#include "frontend/emulator/slice_variables.h"
#include "sim/isa/matrix.h"

namespace heddle::emulator {
namespace {

using isa::Effect;
using isa::Op;

constexpr std::string_view kSlowPathPrefix = "$__internal_";

// Life of a variable: dead, live under one guard (SliceVariables::Use::guard), or always live.
using Life = uint8_t;
constexpr Life kDead = 0;
constexpr Life kAlways = 255;

Life Join(Life a, Life b) { return a == b || b == kDead ? a : a == kDead ? b : kAlways; }
// Guards are numbered from 1 in pairs of a predicate and its negation.
Life Opposite(int guard) { return static_cast<Life>(((guard - 1) ^ 1) + 1); }
int PredicateOf(Life guard) { return (guard - 1) / 2; }

bool IsGlobalStore(Op op) { return op == Op::kSTG || op == Op::kST; }
bool IsGlobalAtomic(Op op) {
  return op == Op::kATOM || op == Op::kATOMG || op == Op::kRED || op == Op::kREDG;
}
bool IsSharedWrite(Op op) {
  return op == Op::kSTS || op == Op::kSTSM || op == Op::kATOMS || op == Op::kREDS || op == Op::kLDGSTS ||
         op == Op::kSTAS || op == Op::kREDAS || op == Op::kUTMALDG || op == Op::kUBLKCP || op == Op::kUBLKRED;
}
// fence.proxy.tensormap: the kernel uses a tensor map that it, or one before it, has written.
bool AcquiresTensorMap(const isa::Instruction& i) { return i.op == Op::kUTMACCTL && i.Has(isa::Mod::kIV); }
bool IsSharedRead(Op op) {
  return op == Op::kLDS || op == Op::kLDSM || op == Op::kATOMS || isa::IsWarpGroupMatrix(op);
}
bool CombinesFloats(const isa::Instruction& i) {
  return i.Has(isa::Mod::kF32) || i.Has(isa::Mod::kF64) || i.Has(isa::Mod::kF16x2) ||
         i.Has(isa::Mod::kBF16x2) || i.Has(isa::Mod::kBF16_V2);
}

class Slicer {
 public:
  Slicer(const isa::KernelCode& code, const Successors& successors, SliceKind kind)
      : code_(code),
        variables_(code),
        kind_(kind),
        count_(static_cast<uint32_t>(code.instructions.size())),
        needed_(count_),
        successors_(successors),
        predecessors_(count_),
        live_(size_t{count_} * variables_.count()) {
    for (const isa::Instruction& instruction : code.instructions) effects_.push_back(EffectOf(instruction));
    edits_maps_ = std::any_of(code.instructions.begin(), code.instructions.end(), AcquiresTensorMap);
    for (uint32_t i = 0; i < count_; ++i)
      for (const uint32_t s : successors_[i]) predecessors_[s].push_back(i);
  }

  std::vector<bool> Run(const std::vector<bool>& assumed) {
    assumed_ = &assumed;
    std::vector<uint32_t> work(count_);
    for (uint32_t i = 0; i < count_; ++i) work[i] = i;
    std::vector<bool> queued(count_, true);
    // From the end of the code backwards: most edges point forward.
    do {
      while (!work.empty()) {
        const uint32_t i = work.back();
        work.pop_back();
        queued[i] = false;
        if (!Transfer(i)) continue;
        for (const uint32_t p : predecessors_[i]) {
          if (queued[p]) continue;
          queued[p] = true;
          work.push_back(p);
        }
      }
      for (const uint32_t i : FollowMemory()) {
        queued[i] = true;
        work.push_back(i);
      }
    } while (!work.empty());
    return needed_;
  }

 private:
  Life* LiveBefore(uint32_t index) { return &live_[size_t{index} * variables_.count()]; }

  // Recomputes what is live in front of the instruction; true when that has grown.
  bool Transfer(uint32_t index) {
    const SliceVariables::Use& use = variables_.at(index);
    state_.assign(variables_.count(), kDead);
    for (const uint32_t s : successors_[index]) {
      const Life* next = LiveBefore(s);
      for (uint32_t v = 0; v < variables_.count(); ++v) state_[v] = Join(state_[v], next[v]);
    }

    DropQualifications(use);
    // Under which guard is the result wanted?
    Life wanted = kDead;
    for (const uint16_t v : use.defined)
      if (use.guard == 0 || state_[v] != Opposite(use.guard)) wanted = Join(wanted, state_[v]);
    if (forced_.size() == count_ && forced_[index]) wanted = kAlways;
    Kill(use);
    Generate(index, wanted);

    Life* before = LiveBefore(index);
    bool grown = false;
    for (uint32_t v = 0; v < variables_.count(); ++v) {
      const Life joined = Join(before[v], state_[v]);
      grown |= joined != before[v];
      before[v] = joined;
    }
    return grown;
  }

  // Adds what the instruction reads, if it must be executed.
  void Generate(uint32_t index, Life wanted) {
    const isa::Instruction& instruction = code_.instructions[index];
    const SliceVariables::Use& use = variables_.at(index);
    const Effect effect = effects_[index];
    const bool is_assumed = (*assumed_)[index];
    if (effect == Effect::kControl || effect == Effect::kSync) {
      needed_[index] = true;
      if (is_assumed) return;
      Gen(use.address, kAlways);
      Gen(use.data, kAlways);
      if (use.guard != 0) GenGuard(use.guard, kAlways);
      return;
    }
    const bool is_memory =
        effect == Effect::kMemory && instruction.op != Op::kCCTL && instruction.op != Op::kCCTLL;
    if (wanted != kDead) needed_[index] = true;
    if (!is_memory && !needed_[index]) return;
    if (use.guard != 0) GenGuard(use.guard, kAlways);
    // Uses matter where the result does; a guard narrows that further.
    const Life guarded = use.guard != 0 && !use.crosses_lanes ? static_cast<Life>(use.guard) : kAlways;
    Life under = use.crosses_lanes || use.guard != 0 || wanted == kDead ? guarded : wanted;
    if (Redefines(use, under)) under = kAlways;
    Gen(use.address, is_memory ? guarded : under);
    if (needed_[index]) Gen(use.data, under);
  }

  void Kill(const SliceVariables::Use& use) {
    if (use.partial) return;
    for (const uint16_t v : use.defined) {
      if (use.guard == 0)
        state_[v] = kDead;
      else if (state_[v] == use.guard)
        state_[v] = kDead;
      else if (state_[v] == kAlways)
        state_[v] = Opposite(use.guard);
    }
  }

  // In front of a definition of P, "live under P" speaks of another P.
  void DropQualifications(const SliceVariables::Use& use) {
    for (const uint16_t d : use.defined) {
      if (d < SliceVariables::kFirstPredicate || d >= SliceVariables::kFirstBarrier) continue;
      const int predicate = d - SliceVariables::kFirstPredicate;
      for (Life& life : state_)
        if (life != kDead && life != kAlways && PredicateOf(life) == predicate) life = kAlways;
    }
  }

  // Would a use under `guard` speak of a predicate that the instruction itself defines?
  bool Redefines(const SliceVariables::Use& use, Life guard) const {
    if (guard == kDead || guard == kAlways || guard == use.guard) return false;
    return std::find(use.defined.begin(), use.defined.end(),
                     SliceVariables::kFirstPredicate + PredicateOf(guard)) != use.defined.end();
  }

  void Gen(const std::vector<uint16_t>& used, Life life) {
    for (const uint16_t v : used) state_[v] = Join(state_[v], life);
  }
  void GenGuard(int guard, Life life) {
    const auto v =
        static_cast<size_t>(SliceVariables::kFirstPredicate + PredicateOf(static_cast<Life>(guard)));
    state_[v] = Join(state_[v], life);
  }

  // What needed reads of memory ask of writes. Returns instructions whose data have become needed.
  std::vector<uint32_t> FollowMemory() {
    bool reads_shared = false, reads_local = false, reads_strong = false, shared_atomic = false,
         reads_generic = false;
    for (uint32_t i = 0; i < count_; ++i) {
      if (!needed_[i] || effects_[i] != Effect::kMemory) continue;
      const isa::Instruction& instruction = code_.instructions[i];
      const bool wanted = !variables_.at(i).defined.empty();
      reads_shared |= IsSharedRead(instruction.op) && wanted;
      shared_atomic |= instruction.op == Op::kATOMS && wanted;
      reads_local |= instruction.op == Op::kLDL;
      reads_generic |= instruction.op == Op::kLD;
      reads_strong |= (IsGlobalAtomic(instruction.op) && wanted) ||
                      ((instruction.op == Op::kLDG || instruction.op == Op::kLD) && instruction.IsStrong());
    }
    std::vector<uint32_t> added;
    for (uint32_t i = 0; i < count_; ++i) {
      if (needed_[i] || effects_[i] != Effect::kMemory) continue;
      const isa::Instruction& instruction = code_.instructions[i];
      const Op op = instruction.op;
      bool need = false;
      // A tensor map is made in shared memory and copied to global memory by exchanges or stores.
      if (edits_maps_)
        need = op == Op::kSTS || IsGlobalStore(op) || (IsGlobalAtomic(op) && !CombinesFloats(instruction));
      // Semaphores: what atomics and strong stores leave, and words that plain stores reset.
      if (reads_strong && IsGlobalAtomic(op)) need |= !CombinesFloats(instruction);
      if (reads_strong && IsGlobalStore(op)) need |= instruction.IsStrong() || variables_.at(i).data.empty();
      if (shared_atomic && IsSharedWrite(op))
        need |= op == Op::kATOMS || op == Op::kREDS || (op == Op::kSTS && variables_.at(i).data.empty());
      if (kind_ == SliceKind::kSound && (reads_shared || reads_generic) && IsSharedWrite(op)) need = true;
      if (kind_ == SliceKind::kSound && (reads_shared || (reads_generic && variables_.stack_escapes())) &&
          op == Op::kST)
        need = true;
      if (op == Op::kSTL && !variables_.stack_is_tracked())
        need |= reads_local || (variables_.stack_escapes() && reads_generic);
      if (op == Op::kST && variables_.stack_escapes() && reads_local) need = true;
      if (!need) continue;
      needed_[i] = true;
      if (forced_.empty()) forced_.resize(count_);
      forced_[i] = true;
      added.push_back(i);
    }
    return added;
  }

  const isa::KernelCode& code_;
  SliceVariables variables_;
  SliceKind kind_;
  bool edits_maps_ = false;
  uint32_t count_;
  std::vector<bool> needed_;
  std::vector<bool> forced_;  // needed because of what flows through memory
  const Successors& successors_;
  Successors predecessors_;
  std::vector<Effect> effects_;
  std::vector<Life> live_;  // in front of every instruction
  std::vector<Life> state_;
  const std::vector<bool>* assumed_ = nullptr;
};

// A branch around a call of a slow path: one way leads, without another branch, to the call.
bool LeadsToSlowPath(const isa::KernelCode& code, const std::vector<bool>& is_slow_entry, uint32_t index) {
  constexpr uint32_t kFurthest = 64;
  for (uint32_t i = index; i < code.instructions.size() && i < index + kFurthest; ++i) {
    const isa::Instruction& instruction = code.instructions[i];
    if (instruction.op == Op::kCALL && !instruction.IsPredicated()) {
      const auto target = TargetOf(code, instruction);
      return target && is_slow_entry[*target];
    }
    if (instruction.op == Op::kBRA || instruction.op == Op::kEXIT || instruction.op == Op::kRET ||
        instruction.op == Op::kCALL || instruction.op == Op::kBSYNC ||
        EffectOf(instruction) == Effect::kMemory)
      return false;
  }
  return false;
}

std::vector<Slice::AssumedBranch> FindAssumedBranches(const isa::KernelCode& code,
                                                      const sass::CubinKernel& kernel) {
  std::vector<bool> is_slow_entry(code.instructions.size());
  for (const sass::FunctionSymbol& function : kernel.functions)
    if (function.name.starts_with(kSlowPathPrefix) &&
        function.offset / isa::kInstructionBytes < is_slow_entry.size())
      is_slow_entry[function.offset / isa::kInstructionBytes] = true;
  std::vector<Slice::AssumedBranch> found;
  for (uint32_t i = 0; i + 1 < code.instructions.size(); ++i) {
    const isa::Instruction& instruction = code.instructions[i];
    if (!instruction.IsPredicated()) continue;
    const auto target = TargetOf(code, instruction);
    if (!target) continue;
    if (instruction.op == Op::kCALL) {
      if (is_slow_entry[*target]) found.push_back({i, false});
    } else if (instruction.op == Op::kBRA && instruction.operand_count == 1) {
      const bool falls = LeadsToSlowPath(code, is_slow_entry, i + 1);
      const bool jumps = LeadsToSlowPath(code, is_slow_entry, *target);
      if (falls != jumps) found.push_back({i, falls});
    }
  }
  return found;
}

// Leaves one way of each assumed branch; says which instructions those are.
std::vector<bool> Assume(const isa::KernelCode& code, const std::vector<Slice::AssumedBranch>& branches,
                         Successors* successors) {
  std::vector<bool> assumed(code.instructions.size());
  for (const Slice::AssumedBranch& branch : branches) {
    assumed[branch.index] = true;
    const auto target = TargetOf(code, code.instructions[branch.index]);
    (*successors)[branch.index] = {branch.taken ? *target : branch.index + 1};
  }
  return assumed;
}

}  // namespace

std::string_view Name(SliceKind kind) {
  return kind == SliceKind::kOptimistic ? "optimistic" : kind == SliceKind::kSound ? "sound" : "full";
}

std::optional<ExpandedSlice> ComputeExpandedSlice(const isa::KernelCode& code,
                                                  const sass::CubinKernel& kernel, SliceKind kind) {
  std::optional<Successors> successors = BuildControlFlow(code, kernel);
  if (!successors) return std::nullopt;
  const std::vector<bool> assumed = Assume(code, FindAssumedBranches(code, kernel), &*successors);
  ExpandedSlice slice{ExpandCalls(code, *successors), {}};
  std::vector<bool> assumed_there;
  for (const uint32_t i : slice.expanded.original) assumed_there.push_back(assumed[i]);
  if (kind != SliceKind::kFull)
    slice.needed = Slicer(slice.expanded.code, slice.expanded.successors, kind).Run(assumed_there);
  return slice;
}

Slice ComputeSlice(const isa::KernelCode& code, const sass::CubinKernel& kernel, SliceKind kind) {
  Slice slice;
  if (kind == SliceKind::kFull) return slice;
  std::optional<Successors> successors = BuildControlFlow(code, kernel);
  if (!successors) return slice;
  slice.kind = kind;
  slice.assumed = FindAssumedBranches(code, kernel);
  const std::vector<bool> assumed = Assume(code, slice.assumed, &*successors);
  slice.needed = Slicer(code, *successors, kind).Run(assumed);
  slice.needed_count = static_cast<uint32_t>(std::count(slice.needed.begin(), slice.needed.end(), true));
  return slice;
}

}  // namespace heddle::emulator

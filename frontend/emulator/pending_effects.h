// Asynchronous effects of a run without a timing model: bulk copies, LDGSTS, and accesses to other CTAs' shared memory.
//
// Without a seed they take effect when they are issued. With one they are held back: an effect takes place at a random
// moment, in an order that hardware is free to choose, and at the latest when the program waits for it or nothing else
// can go on. A kernel that lacks a wait then reads what was there before.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "frontend/emulator/emulated_warps.h"
#include "sim/isa/warp_stream.h"

namespace heddle::emulator {

// Where a CTA of a cluster lives.
struct ClusterMember {
  EmulatedWarps* stream = nullptr;
  uint32_t slot = 0;
};
using ClusterMembers = std::vector<ClusterMember>;  // by rank

class PendingEffects {
 public:
  PendingEffects(const isa::KernelCode& code, uint64_t seed) : code_(code), seed_(seed), random_(seed) {}

  bool delays() const { return seed_ != 0; }

  // Before a warp executes `run` and the instruction behind it: what those wait for takes place.
  void BeforeStep(const EmulatedWarps* stream, uint32_t warp, const isa::InstructionRun& run);
  // After a step. `members`: the cluster of the warp's CTA; it must live until Flush of one of its streams.
  void AfterStep(EmulatedWarps* stream, uint32_t warp, const isa::WarpStep& step,
                 const std::shared_ptr<const ClusterMembers>& members);

  // Perhaps lets an effect take place; called between steps.
  void Sometimes();
  // Lets one take place. False: none is pending.
  bool One();
  // Everything that reaches the shared memory of these CTAs or was issued by them, but for stores to global memory.
  void Settle(const std::shared_ptr<const ClusterMembers>& members);
  void All();

 private:
  // What a program waits for in the same way; within a category groups complete in order.
  enum class Category : uint8_t { kCopies, kBulkStores, kRemote, kBulkLoads };
  static constexpr size_t kGrouped = 2;  // categories with groups
  struct Effect {
    Category category;
    EmulatedWarps* stream;
    uint32_t warp;
    uint32_t group = 0;
    uint32_t token = 0;    // kCopies
    bool arrives = false;  // kCopies: an arrival that follows the copies
    isa::BulkOperation* bulk = nullptr;
    isa::RemoteOperation* remote = nullptr;
    uint32_t rank = 0, first = 0, count = 0;  // kBulkLoads
    std::shared_ptr<const ClusterMembers> members;
  };
  struct Closed {
    uint8_t barrier;
    uint32_t group;
  };
  struct WarpGroups {
    uint32_t open = 0;
    std::vector<Closed> closed;
  };
  using WarpKey = std::pair<const EmulatedWarps*, uint32_t>;

  WarpGroups& Groups(Category category, const EmulatedWarps* stream, uint32_t warp) {
    return groups_[static_cast<size_t>(category)][{stream, warp}];
  }
  void Add(Effect effect);
  void AddBulk(EmulatedWarps* stream, uint32_t warp, isa::BulkOperation* bulk,
               const std::shared_ptr<const ClusterMembers>& members);
  void Perform(const Effect& effect);
  void PerformAt(size_t index);
  // All of a warp's category up to a group.
  void PerformUpTo(Category category, const EmulatedWarps* stream, uint32_t warp, uint32_t group);
  void Close(Category category, const EmulatedWarps* stream, uint32_t warp, uint8_t barrier);
  // Groups on the barriers of `mask`, but for the newest `allowed`.
  void WaitFor(const EmulatedWarps* stream, uint32_t warp, uint32_t mask, uint32_t allowed);
  uint64_t Random();

  const isa::KernelCode& code_;
  const uint64_t seed_;
  uint64_t random_;
  std::vector<Effect> pending_;
  std::map<WarpKey, WarpGroups> groups_[kGrouped];
};

}  // namespace heddle::emulator

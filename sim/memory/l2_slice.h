// Tags and state of one L2 slice: lines whose home it is, and replicas of lines whose home is in another
// partition. It knows no time of its own beyond "this line's data arrive at cycle c"; SliceGroup owns the
// order of things.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "sim/base/match.h"
#include "sim/base/prefetch.h"
#include "sim/base/types.h"
#include "sim/config/gpu_description.h"
#include "sim/memory/address_map.h"

namespace heddle::memory {

inline constexpr uint32_t kMaxL2Ways = 16;

// One set. Sectors that are `valid` are complete; a sector that is dirty but not valid has been written in part, and
// `written` counts its bytes in units of 2 (four bits a sector). A hit looks at the first two cache lines only.
struct alignas(64) L2Set {
  std::array<uint32_t, kMaxL2Ways> tag{};  // 0: empty
  std::array<uint8_t, kMaxL2Ways> valid{};
  std::array<uint8_t, kMaxL2Ways> dirty{};
  std::array<uint8_t, kMaxL2Ways> pending{};
  uint64_t order = 0;    // ways from most to least recently used, four bits each, lowest first
  uint16_t queued = 0;   // ways that have an entry in the slice's list of dirty lines
  uint16_t partial = 0;  // ways whose `written` means something
  alignas(64)
      std::array<Cycle, kMaxL2Ways> ready{};  // when the pending sectors arrive; stale when there are none
  std::array<uint16_t, kMaxL2Ways> written{};
};

struct LineKey {
  uint64_t index = 0;  // Location::index
  uint32_t home = 0;
  bool operator==(const LineKey&) const = default;
};

// Where a line lies in its slice; the same in the slices of every partition.
struct Place {
  uint32_t set = 0;
  uint32_t tag = 0;
};

// Lines to sets, by permutation: every run of as many lines of a slice as it has sets visits each set once.
class L2Geometry {
 public:
  explicit L2Geometry(const config::Gpu& gpu);
  Place PlaceOf(uint64_t index, uint32_t home) const {
    const uint64_t round = by_sets_.Divide(index);
    uint64_t set = index - round * by_sets_.divisor() + Shift(round);
    if (set >= by_sets_.divisor()) set -= by_sets_.divisor();
    return {static_cast<uint32_t>(set), static_cast<uint32_t>(round * partitions_ + home + 1)};
  }
  LineKey KeyOf(const Place& place) const;
  uint32_t sets() const { return by_sets_.divisor(); }
  uint32_t lines() const { return lines_; }

 private:
  uint64_t Shift(uint64_t round) const { return ((MixBits(round) & 0xffffffff) * by_sets_.divisor()) >> 32; }
  uint32_t partitions_;
  uint32_t lines_;
  FastDivider by_sets_;
};

struct Way {
  L2Set* set = nullptr;
  uint32_t way = 0;

  uint8_t& valid() const { return set->valid[way]; }
  uint8_t& dirty() const { return set->dirty[way]; }
  uint8_t& pending() const { return set->pending[way]; }
  uint16_t written() const { return ((set->partial >> way) & 1) != 0 ? set->written[way] : uint16_t{0}; }
  void SetWritten(uint32_t units) const {
    if (units == 0) {
      set->partial = static_cast<uint16_t>(set->partial & ~(1U << way));
    } else {
      set->partial = static_cast<uint16_t>(set->partial | 1U << way);
      set->written[way] = static_cast<uint16_t>(units);
    }
  }
  Cycle& ready() const { return set->ready[way]; }
};

// What left to make room, or was cleaned: sectors that must be written to DRAM.
struct Dirt {
  LineKey key;
  uint8_t complete = 0;  // sectors
  uint8_t partial = 0;   // sectors of which only some bytes are known
  bool Any() const { return (complete | partial) != 0; }
};

class L2Slice {
 public:
  L2Slice(const config::Gpu& gpu, uint64_t seed);

  // The line's way, or set == nullptr. Does not touch the replacement order.
  Way Find(const Place& place) {
    L2Set& set = sets_[place.set];
    const uint32_t match = Match16(set.tag.data(), place.tag);
    if (match == 0) return {};
    return {&set, static_cast<uint32_t>(std::countr_zero(match))};
  }
  void Touch(const Way& way) {
    if ((way.set->order & 0xf) != way.way) MoveInOrder(way.set, way.way, 0);
  }

  // Makes room for a line that is not there and enters it without sectors. `dirt`: what left.
  Way Allocate(const Place& place, Dirt* dirt);

  // The line leaves without being written back.
  void Drop(const Way& way);

  void MarkDirty(const Way& way, const Place& place, uint8_t sectors);

  // When more lines are dirty than the limit allows: cleans the one that has been dirty for longest.
  bool CleanOldest(Dirt* dirt);
  uint32_t dirty_lines() const { return dirty_lines_; }

  void Reset();
  // As if another buffer, never used again, had been written through: full of lines whose home it is, the slice of partition `home`,
  // dirty up to the limit.
  void FillWithForeignLines(uint32_t home);

  // Loads the set's memory ahead of its use.
  void Prefetch(const Place& place) const {
    const L2Set& set = sets_[place.set];
    heddle::Prefetch(&set.tag);
    heddle::Prefetch(&set.valid);
    PrefetchRange(&set.ready, &set.ready + 1);
  }

  const L2Geometry& geometry() const { return geometry_; }

 private:
  uint32_t ChooseVictim(const L2Set& set);
  void MoveInOrder(L2Set* set, uint32_t way, uint32_t position);
  Dirt TakeDirt(L2Set* set, uint32_t set_index, uint32_t way);

  L2Geometry geometry_;
  uint32_t ways_;
  uint32_t insert_position_;  // in the order, 0: most recently used
  uint32_t candidates_;       // a victim is one of that many least recently used
  uint32_t dirty_limit_;      // lines
  uint32_t dirty_lines_ = 0;
  uint64_t seed_;
  uint64_t random_;
  std::vector<L2Set> sets_;
  // Lines in the order in which they became dirty: a ring with at most one entry a way. An entry outlives its
  // line.
  struct DirtyEntry {
    uint32_t set = 0;
    uint32_t way = 0;
    uint32_t tag = 0;
  };
  std::vector<DirtyEntry> dirty_ring_;
  uint64_t dirty_head_ = 0;
  uint64_t dirty_tail_ = 0;
};

}  // namespace heddle::memory

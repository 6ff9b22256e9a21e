#include "sim/memory/l2_slice.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/base/check.h"
#include "sim/memory/memory_request.h"

namespace heddle::memory {
namespace {

constexpr uint64_t kIdentityOrder = 0xfedcba9876543210ULL;

uint32_t LinesPerSlice(const config::L2& l2) {
  return static_cast<uint32_t>(l2.size_bytes / l2.slices / kLineBytes);
}

uint32_t InsertPosition(const config::L2& l2) {
  if (l2.replacement != config::Replacement::kProtectedLru) return 0;
  const double position = l2.protected_fraction.value_or(0) * l2.ways;
  return std::min(l2.ways - 1, static_cast<uint32_t>(std::lround(position)));
}

uint32_t Candidates(const config::L2& l2) {
  if (l2.replacement == config::Replacement::kLru) return 1;
  if (l2.replacement == config::Replacement::kRandomReplacement) return l2.ways;
  return std::clamp(l2.victim_candidates.value_or(1), 1U, l2.ways);
}

}  // namespace

L2Geometry::L2Geometry(const config::Gpu& gpu)
    : partitions_(gpu.l2.partitions),
      lines_(LinesPerSlice(gpu.l2)),
      by_sets_(std::max(1U, lines_ / gpu.l2.ways)) {}

LineKey L2Geometry::KeyOf(const Place& place) const {
  const uint64_t round = (place.tag - 1) / partitions_;
  const uint64_t shift = Shift(round);
  const uint64_t in_round = place.set >= shift ? place.set - shift : place.set + sets() - shift;
  return {round * sets() + in_round, (place.tag - 1) % partitions_};
}

L2Slice::L2Slice(const config::Gpu& gpu, uint64_t seed)
    : geometry_(gpu),
      ways_(gpu.l2.ways),
      insert_position_(InsertPosition(gpu.l2)),
      candidates_(Candidates(gpu.l2)),
      dirty_limit_(std::max(1U, static_cast<uint32_t>(LinesPerSlice(gpu.l2) * gpu.l2.dirty_limit_fraction))),
      seed_(MixBits(seed + 1)),
      random_(seed_),
      sets_(geometry_.sets()),
      dirty_ring_(std::bit_ceil(sets_.size() * ways_)) {
  HEDDLE_CHECK(ways_ >= 1 && ways_ <= kMaxL2Ways, "gpu.l2", 0, "l2.ways is more than the model holds");
  Reset();
}

void L2Slice::Reset() {
  std::fill(sets_.begin(), sets_.end(), L2Set{});
  for (L2Set& set : sets_) set.order = kIdentityOrder;
  random_ = seed_;
  dirty_lines_ = 0;
  dirty_head_ = dirty_tail_ = 0;
}

// Takes `way` out of the order and puts it back at `position`, counted from the most recently used.
void L2Slice::MoveInOrder(L2Set* set, uint32_t way, uint32_t position) {
  uint64_t order = set->order;
  const uint64_t difference = order ^ (way * 0x1111111111111111ULL);
  // The lowest nibble that is zero is where `way` stands; lower ones are not zero, so borrows cannot reach
  // it.
  const uint64_t zero = (difference - 0x1111111111111111ULL) & ~difference & 0x8888888888888888ULL;
  const uint32_t at = static_cast<uint32_t>(std::countr_zero(zero)) & ~3U;
  const uint64_t below = (uint64_t{1} << at) - 1;
  const uint64_t above = at == 60 ? 0 : order >> (at + 4) << at;
  order = (order & below) | above;  // 15 nibbles, without `way`
  const uint32_t to = 4 * position;
  const uint64_t low = (uint64_t{1} << to) - 1;
  const uint64_t high = to == 60 ? 0 : (order & ~low) << 4;
  set->order = (order & low) | uint64_t{way} << to | high;
}

uint32_t L2Slice::ChooseVictim(const L2Set& set) {
  const uint32_t empty = Match16(set.tag.data(), 0) & ((1U << ways_) - 1);
  if (empty != 0) return static_cast<uint32_t>(std::countr_zero(empty));
  uint32_t skip = 0;
  if (candidates_ > 1) {
    random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
    skip = static_cast<uint32_t>(((random_ >> 32) * candidates_) >> 32);
  }
  return (set.order >> (4 * (ways_ - 1 - skip))) & 0xf;
}

Dirt L2Slice::TakeDirt(L2Set* set, uint32_t set_index, uint32_t way) {
  Dirt dirt;
  if (set->dirty[way] == 0) return dirt;
  dirt.key = geometry_.KeyOf({set_index, set->tag[way]});
  dirt.complete = set->dirty[way] & set->valid[way];
  dirt.partial = set->dirty[way] & static_cast<uint8_t>(~set->valid[way]);
  set->dirty[way] = 0;
  --dirty_lines_;
  return dirt;
}

Way L2Slice::Allocate(const Place& place, Dirt* dirt) {
  L2Set& set = sets_[place.set];
  const uint32_t way = ChooseVictim(set);
  *dirt = TakeDirt(&set, place.set, way);
  set.tag[way] = place.tag;
  set.valid[way] = set.pending[way] = 0;
  Way{&set, way}.SetWritten(0);
  MoveInOrder(&set, way, std::min(insert_position_, ways_ - 1));
  return {&set, way};
}

void L2Slice::Drop(const Way& way) {
  if (way.dirty() != 0) --dirty_lines_;
  way.dirty() = way.valid() = way.pending() = 0;
  way.set->tag[way.way] = 0;
  MoveInOrder(way.set, way.way, ways_ - 1);
}

void L2Slice::MarkDirty(const Way& way, const Place& place, uint8_t sectors) {
  if (way.dirty() == 0) {
    ++dirty_lines_;
    if (((way.set->queued >> way.way) & 1) == 0) {
      way.set->queued = static_cast<uint16_t>(way.set->queued | 1U << way.way);
      dirty_ring_[dirty_tail_++ & (dirty_ring_.size() - 1)] = {static_cast<uint32_t>(place.set), way.way,
                                                               place.tag};
    }
  }
  way.dirty() |= sectors;
}

bool L2Slice::CleanOldest(Dirt* dirt) {
  if (dirty_lines_ <= dirty_limit_) return false;
  const uint64_t mask = dirty_ring_.size() - 1;
  while (dirty_head_ < dirty_tail_) {
    DirtyEntry entry = dirty_ring_[dirty_head_++ & mask];
    L2Set& set = sets_[entry.set];
    if (set.dirty[entry.way] != 0 && set.tag[entry.way] != entry.tag) {
      // Another line took the way since and is dirty for less long: it goes to the end.
      entry.tag = set.tag[entry.way];
      dirty_ring_[dirty_tail_++ & mask] = entry;
      continue;
    }
    set.queued = static_cast<uint16_t>(set.queued & ~(1U << entry.way));
    if (set.dirty[entry.way] == 0) continue;
    const uint8_t partial = set.dirty[entry.way] & static_cast<uint8_t>(~set.valid[entry.way]);
    *dirt = TakeDirt(&set, entry.set, entry.way);
    // What was written in part has been merged with DRAM on its way out and is not known here.
    if (partial != 0) Way{&set, entry.way}.SetWritten(0);
    return true;
  }
  HEDDLE_CHECK(false, "gpu.l2", 0, "more dirty lines than entries");
  return false;
}

void L2Slice::FillWithForeignLines(uint32_t home) {
  Reset();
  // Lines of the highest rounds: no kernel's buffer lies there.
  const uint64_t rounds = ways_;
  const uint64_t last_round = uint64_t{1} << 27;
  for (uint64_t i = 0; i < rounds * geometry_.sets(); ++i) {
    const Place place = geometry_.PlaceOf((last_round - rounds) * geometry_.sets() + i, home);
    Dirt none;
    const Way way = Allocate(place, &none);
    way.valid() = 0xf;
    MarkDirty(way, place, 0xf);
    CleanOldest(&none);
  }
}

}  // namespace heddle::memory

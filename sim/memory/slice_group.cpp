#include "sim/memory/slice_group.h"

#include <algorithm>
#include <bit>

#include "sim/isa/warp_stream.h"

namespace heddle::memory {
namespace {

uint32_t Sectors(uint8_t mask) { return static_cast<uint32_t>(std::popcount(mask)); }
uint32_t Bytes(uint8_t mask) { return Sectors(mask) * kSectorBytes; }

// Four nibbles as four bytes.
uint32_t Unpacked(uint32_t nibbles) {
  const uint32_t pairs = (nibbles | nibbles << 8) & 0x00ff00ff;
  return (pairs | pairs << 4) & 0x0f0f0f0f;
}

// Adds the bytes of a write to what is known of each sector; a sector that is complete becomes valid.
void RecordWrite(const Way& way, const MemoryRequest& request) {
  const uint8_t sectors = request.sector_mask;
  const bool is_even = request.complete_sectors == 0 && request.written_pairs == 0;
  if (request.complete_sectors == sectors || (is_even && request.payload_bytes >= Bytes(sectors))) {
    way.valid() |= sectors;
    return;
  }
  way.valid() |= request.complete_sectors;
  // All four sectors at once, a byte each, in units of 2 bytes: what is known is below 16, and so is what comes.
  constexpr uint32_t kOnes = 0x01010101;
  const uint32_t comes =
      is_even ? request.payload_bytes / (2 * Sectors(sectors)) * kOnes : Unpacked(request.written_pairs);
  const uint32_t changed = (uint32_t{sectors} & ~uint32_t{way.valid()}) * 0x00204081 & kOnes;
  const uint32_t known = Unpacked(way.written()) + (comes & changed * 0xff);
  const uint32_t complete = known >> 4 & kOnes;
  way.valid() |= static_cast<uint8_t>((complete * 0x10204080) >> 28);
  const uint32_t left = known & ~(complete * 0xff);
  const uint32_t packed = (left | left >> 4) & 0x00ff00ff;
  way.SetWritten((packed | packed >> 8) & 0xffff);
}

// The sectors of `wanted` that are on their way arrive at the returned cycle; `at` when none is.
Cycle WaitForPending(const Way& way, uint8_t wanted, Cycle at) {
  if ((way.pending() & wanted) == 0) return at;
  if (way.ready() > at) return way.ready();
  way.pending() = 0;
  return at;
}

// Sector operations of an atomic: one for each sector, and one for each lane beyond the 4-byte words that
// these hold (such lanes share a word with another one).
uint32_t AtomicOperations(const MemoryRequest& request) {
  const uint32_t sectors = Sectors(request.sector_mask);
  const uint32_t words = sectors * (kSectorBytes / 4);
  const uint32_t lanes = static_cast<uint32_t>(std::popcount(request.lanes));
  return sectors + (lanes > words ? lanes - words : 0);
}

}  // namespace

SliceGroup::Slice::Slice(const config::Gpu& gpu, uint64_t seed)
    : lines(gpu, seed),
      data(gpu.l2.slice_bytes_per_cycle, 16),
      atomics(1 / gpu.l2.atomic_interval_cycles, 16),
      inbound(gpu.interconnect.partition_bytes_per_cycle * gpu.l2.partitions / gpu.l2.slices, 16) {}

SliceGroup::SliceGroup(const config::Gpu& gpu, uint32_t id)
    : partitions_(gpu.l2.partitions),
      hit_latency_(gpu.l2.hit_latency_cycles),
      atomic_latency_(gpu.l2.atomic_latency_cycles),
      link_there_(gpu.interconnect.partition_latency_cycles / 2),
      link_back_(gpu.interconnect.partition_latency_cycles - link_there_),
      replicate_far_(gpu.l2.replicate_far) {
  const AddressMap map(gpu);
  slices_per_partition_ = map.slices_per_group();
  const uint32_t channels = map.channels_per_group();
  channels_per_partition_ = FastDivider(channels);
  for (uint32_t i = 0; i < partitions_ * slices_per_partition_; ++i)
    slices_.emplace_back(gpu, uint64_t{id} << 16 | i);
  for (uint32_t i = 0; i < partitions_ * channels; ++i)
    channels_.emplace_back(gpu, id * partitions_ * channels + i);
}

inline Way SliceGroup::FindOrAllocateHome(Slice* home, const SliceRequest& request, Cycle at,
                                          stats::Counters* counters) {
  Way way = home->lines.Find(request.place);
  if (way.set != nullptr) {
    home->lines.Touch(way);
    return way;
  }
  Dirt dirt;
  way = home->lines.Allocate(request.place, &dirt);
  WriteBack(dirt, request.location.slice, at, counters);
  return way;
}

inline Cycle SliceGroup::Fetch(const Location& where, const Way& way, uint8_t sectors, Cycle at,
                               stats::Counters* counters) {
  const uint8_t missing = sectors & static_cast<uint8_t>(~way.valid());
  const Cycle ready = WaitForPending(way, sectors, at);
  return missing == 0 ? ready : std::max(ready, ReadFromDram(where, way, missing, at, counters));
}

Cycle SliceGroup::Serve(const SliceRequest& request, stats::Counters* counters) {
  const MemoryRequest& what = *request.request;
  const bool reads = what.kind == RequestKind::kRead || what.kind == RequestKind::kPrefetch;
  const bool at_home = !reads || what.stream != nullptr;
  if (!at_home) return ReadNear(request, counters);
  // Writes and atomics travel there with their data.
  const Location& where = request.location;
  const bool far = where.home != request.partition;
  Cycle arrival = request.arrival;
  if (far) {
    arrival = Move(&At(where.home, where.slice).inbound, arrival, what.payload_bytes) + link_there_;
    counters->lts_fabric_bytes += what.payload_bytes;
    // What is written passes a slice of the near partition, which counts it too: with it ReLU's L2 bytes on an A100 are met.
    if (what.payload_bytes != 0) counters->lts_t_bytes += Bytes(what.sector_mask);
  }
  Cycle moved = 0;
  switch (what.kind) {
    case RequestKind::kRead:
    case RequestKind::kPrefetch:
      moved = ReadHome(request, what.sector_mask, arrival, counters);
      break;
    case RequestKind::kWrite:
      moved = WriteHome(request, arrival, counters);
      break;
    case RequestKind::kAtomic:
    case RequestKind::kReduction:
      moved = AtomicHome(request, arrival, counters) + atomic_latency_;
      break;
  }
  if (what.bulk != nullptr && what.stream != nullptr) {
    what.stream->PerformBulkAtSlice(*what.bulk->operation, what.token, what.lanes, what.payload_bytes, moved);
  } else if (what.stream != nullptr) {
    what.stream->PerformAtSlice(what.token, what.lanes, moved);
  }
  if (far && what.kind == RequestKind::kRead) {
    moved = Move(&At(request.partition, where.slice).inbound, moved, Bytes(what.sector_mask));
    counters->lts_fabric_bytes += Bytes(what.sector_mask);
  }
  return moved + hit_latency_ + (far ? link_back_ : 0);
}

Cycle SliceGroup::ReadNear(const SliceRequest& request, stats::Counters* counters) {
  const Location& where = request.location;
  const uint8_t wanted = request.request->sector_mask;
  const Cycle arrival = request.arrival;
  if (where.home == request.partition) return ReadHome(request, wanted, arrival, counters) + hit_latency_;

  Slice& near = At(request.partition, where.slice);
  Cycle ready = arrival;
  uint8_t missing = wanted;
  Way way;
  if (replicate_far_) {
    counters->lts_lookups_sector += Sectors(wanted);
    counters->lts_t_bytes += Bytes(wanted);
    way = near.lines.Find(request.place);
    if (way.set != nullptr) {
      near.lines.Touch(way);
      missing = wanted & static_cast<uint8_t>(~way.valid());
      ready = WaitForPending(way, wanted, arrival);
    }
    counters->lts_hits_sector += Sectors(wanted) - Sectors(missing);
  }
  if (missing == 0) return Move(&near.data, ready, Bytes(wanted)) + hit_latency_;

  const Cycle at_home = ReadHome(request, missing, arrival + link_there_, counters);
  const Cycle back = Move(&near.inbound, at_home, Bytes(missing)) + link_back_;
  counters->lts_fabric_bytes += Bytes(missing);
  if (!replicate_far_) return back + hit_latency_;
  if (way.set == nullptr) {
    Dirt dirt;
    way = near.lines.Allocate(request.place, &dirt);
    WriteBack(dirt, where.slice, arrival, counters);
  }
  way.valid() |= missing;
  way.pending() |= missing;
  way.ready() = std::max(way.ready(), back);  // a stale one lies before
  counters->lts_t_bytes += Bytes(missing);
  return Move(&near.data, std::max(ready, back), Bytes(wanted)) + hit_latency_;
}

Cycle SliceGroup::ReadHome(const SliceRequest& request, uint8_t sectors, Cycle arrival,
                           stats::Counters* counters) {
  const Location& where = request.location;
  Slice& home = At(where.home, where.slice);
  const Way way = FindOrAllocateHome(&home, request, arrival, counters);
  counters->lts_lookups_sector += Sectors(sectors);
  counters->lts_t_bytes += Bytes(sectors);
  counters->lts_hits_sector += Sectors(sectors & way.valid());
  return Move(&home.data, Fetch(where, way, sectors, arrival, counters), Bytes(sectors));
}

Cycle SliceGroup::WriteHome(const SliceRequest& request, Cycle arrival, stats::Counters* counters) {
  const Location& where = request.location;
  const uint8_t sectors = request.request->sector_mask;
  Slice& home = At(where.home, where.slice);
  const Way way = FindOrAllocateHome(&home, request, arrival, counters);
  counters->lts_lookups_sector += Sectors(sectors);
  counters->lts_hits_sector += Sectors(sectors);  // a write needs nothing from DRAM
  counters->lts_t_bytes += Bytes(sectors);
  RecordWrite(way, *request.request);
  home.lines.MarkDirty(way, request.place, sectors);
  DropReplicas(request);
  LimitDirty(&home, where.slice, arrival, counters);
  return Move(&home.data, arrival, Bytes(sectors));
}

Cycle SliceGroup::AtomicHome(const SliceRequest& request, Cycle arrival, stats::Counters* counters) {
  const Location& where = request.location;
  const uint8_t sectors = request.request->sector_mask;
  Slice& home = At(where.home, where.slice);
  const Way way = FindOrAllocateHome(&home, request, arrival, counters);
  counters->lts_lookups_sector += Sectors(sectors);
  counters->lts_t_bytes += Bytes(sectors);
  ++counters->lts_atomics;
  counters->lts_hits_sector += Sectors(sectors & way.valid());
  const Cycle data = Fetch(where, way, sectors, arrival, counters);
  home.lines.MarkDirty(way, request.place, sectors);
  DropReplicas(request);
  LimitDirty(&home, where.slice, arrival, counters);
  return Move(&home.atomics, data, AtomicOperations(*request.request));
}

Cycle SliceGroup::ReadFromDram(const Location& where, const Way& way, uint8_t missing, Cycle at,
                               stats::Counters* counters) {
  uint64_t line = 0;
  DramChannel& channel = ChannelOf(where.home, where.slice, where.index, &line);
  const Cycle filled = channel.Read(line, Sectors(missing), at, counters);
  way.valid() |= missing;
  way.pending() |= missing;
  if (uint32_t written = way.written(); written != 0) {
    for (uint32_t sector = 0; sector < 4; ++sector)
      if ((missing >> sector) & 1) written &= ~(0xfU << (4 * sector));
    way.SetWritten(written);
  }
  way.ready() = std::max(way.ready(), filled);
  return filled;
}

void SliceGroup::DropReplicas(const SliceRequest& request) {
  const Location& location = request.location;
  if (!replicate_far_) return;
  for (uint32_t partition = 0; partition < partitions_; ++partition) {
    if (partition == location.home) continue;
    L2Slice& lines = At(partition, location.slice).lines;
    const Way way = lines.Find(request.place);
    if (way.set != nullptr) lines.Drop(way);
  }
}

void SliceGroup::LimitDirty(Slice* slice, uint32_t slice_number, Cycle at, stats::Counters* counters) {
  Dirt dirt;
  while (slice->lines.CleanOldest(&dirt)) WriteBack(dirt, slice_number, at, counters);
}

void SliceGroup::WriteBack(const Dirt& dirt, uint32_t slice_number, Cycle at, stats::Counters* counters) {
  if (!dirt.Any()) return;
  uint64_t line = 0;
  DramChannel& channel = ChannelOf(dirt.key.home, slice_number, dirt.key.index, &line);
  // ECC covers whole sectors: what is known in part must be merged.
  if (dirt.partial != 0) channel.Read(line, Sectors(dirt.partial), at, counters);
  channel.Write(line, Sectors(dirt.complete | dirt.partial), at, counters);
}

DramChannel& SliceGroup::ChannelOf(uint32_t home, uint32_t slice, uint64_t index, uint64_t* line) {
  const uint64_t linear = index * slices_per_partition_ + slice;
  *line = channels_per_partition_.Divide(linear);
  const uint64_t channel = linear - *line * channels_per_partition_.divisor();
  DramChannel& found = channels_[home * channels_per_partition_.divisor() + channel];
  found.AdvanceTo(horizon_);
  return found;
}

void SliceGroup::InvalidateCaches() {
  for (Slice& slice : slices_) slice.lines.Reset();
}

void SliceGroup::FillWithForeignLines() {
  // Each slice writes its lines back to the channels of its own partition.
  for (uint32_t i = 0; i < slices_.size(); ++i)
    slices_[i].lines.FillWithForeignLines(i / slices_per_partition_);
}

void SliceGroup::PlaceLine(const Location& location, const Place& place) {
  L2Slice& lines = At(location.home, location.slice).lines;
  Way way = lines.Find(place);
  if (way.set == nullptr) {
    Dirt forgotten;
    way = lines.Allocate(place, &forgotten);
  }
  way.valid() = 0xf;
}

void SliceGroup::Reset() {
  for (Slice& slice : slices_) {
    slice.lines.Reset();
    slice.data.Reset();
    slice.atomics.Reset();
    slice.inbound.Reset();
  }
  for (DramChannel& channel : channels_) channel.Reset();
  horizon_ = 0;
}

uint64_t SliceGroup::DirtyLines() const {
  uint64_t lines = 0;
  for (const Slice& slice : slices_) lines += slice.lines.dirty_lines();
  return lines;
}

}  // namespace heddle::memory

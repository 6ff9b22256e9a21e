#include "sim/sm/units/coalescer.h"

#include <algorithm>
#include <array>
#include <bit>

namespace heddle::sm {
namespace {

constexpr uint64_t kLineMask = memory::kLineBytes - 1;
constexpr uint32_t kSectorShift = std::countr_zero(memory::kSectorBytes);
static_assert(memory::kLineBytes == 4 * memory::kSectorBytes);

// What is to be known of all lanes, as bits by lane: found for all of them at once, without a branch.
struct LaneBits {
  uint32_t same_line = 0;    // as the lane before it
  uint32_t odd_sector = 0;   // bit 0 of the sector in its line
  uint32_t high_sector = 0;  // bit 1
};

LaneBits BitsOf(const uint64_t* address) {
  uint64_t same = 0;
  uint64_t sectors = 0;
  for (uint64_t lane = 1; lane < kWarpLanes; ++lane)
    same |= uint64_t{((address[lane] ^ address[lane - 1]) & ~kLineMask) == 0} << lane;
  for (uint64_t lane = 0; lane < kWarpLanes; ++lane) {
    const uint64_t sector = address[lane] >> kSectorShift;
    sectors |= ((sector & 1) | (sector & 2) << 31) << lane;
  }
  return {static_cast<uint32_t>(same), static_cast<uint32_t>(sectors), static_cast<uint32_t>(sectors >> 32)};
}

// Of all lanes, active or not: that is cheaper to ask, and the other way is as right.
bool AreAligned(const uint64_t* address, uint32_t bytes) {
  uint64_t low = 0;
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane) low |= address[lane];
  return std::has_single_bit(bytes) && (low & (bytes - 1)) == 0;
}

LineAccess& LineOf(uint64_t line_address, LineAccesses* out) {
  for (uint32_t i = out->count; i > 0; --i)
    if (out->lines[i - 1].line_address == line_address) return out->lines[i - 1];
  LineAccess& line = out->lines[out->count++];
  line = LineAccess{};
  line.line_address = line_address;
  return line;
}

void Add(LineAccess* line, uint32_t lanes, uint32_t sectors, uint32_t bytes) {
  line->lanes |= lanes;
  line->sector_mask = static_cast<uint8_t>(line->sector_mask | sectors);
  line->bytes = static_cast<uint16_t>(line->bytes + bytes);
}

void AddToSector(LineAccess* line, uint32_t sector, uint32_t bytes) {
  line->sector_bytes[sector] =
      static_cast<uint8_t>(std::min(memory::kSectorBytes, line->sector_bytes[sector] + bytes));
}

// Bytes [first, last], of one line.
void AddToSectors(LineAccess* line, uint64_t first, uint64_t last) {
  while (first <= last) {
    const uint64_t end = std::min(last, first | (memory::kSectorBytes - 1));
    AddToSector(line, static_cast<uint32_t>(first & kLineMask) >> kSectorShift,
                static_cast<uint32_t>(end - first + 1));
    first = end + 1;
  }
}

uint32_t SectorsOf(uint64_t first_byte, uint64_t last_byte) {
  const uint32_t first = static_cast<uint32_t>(first_byte & kLineMask) >> kSectorShift;
  const uint32_t last = static_cast<uint32_t>(last_byte & kLineMask) >> kSectorShift;
  return (2u << last) - (1u << first);
}

// Lane by lane: accesses may cross a line.
void CoalesceUnaligned(const uint64_t* address, uint32_t lanes, uint32_t bytes_per_lane, LineAccesses* out) {
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(left));
    const uint64_t first = address[lane];
    const uint64_t last = first + bytes_per_lane - 1;
    const uint64_t here = std::min(last, first | kLineMask);
    const auto bytes = static_cast<uint32_t>(here - first + 1);
    LineAccess& line = LineOf(first & ~kLineMask, out);
    Add(&line, 1u << lane, SectorsOf(first, here), bytes);
    AddToSectors(&line, first, here);
    if (here == last) continue;
    LineAccess& next = LineOf(last & ~kLineMask, out);
    Add(&next, 1u << lane, SectorsOf(here + 1, last), bytes_per_lane - bytes);
    AddToSectors(&next, here + 1, last);
  }
}

}  // namespace

void Coalesce(const uint64_t* address, uint32_t lanes, uint32_t bytes_per_lane, LineAccesses* out,
              bool by_sector) {
  out->count = 0;
  if (!AreAligned(address, bytes_per_lane)) {
    CoalesceUnaligned(address, lanes, bytes_per_lane, out);
    return;
  }
  // An aligned access lies in one sector. Neighbours in the same line are taken together.
  const LaneBits bits = BitsOf(address);
  const uint32_t joined = bits.same_line & lanes & lanes << 1;
  for (uint32_t starts = lanes & ~joined; starts != 0; starts &= starts - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(starts));
    const auto count = 1 + static_cast<uint32_t>(std::countr_one(joined >> lane >> 1));
    const auto run = static_cast<uint32_t>((uint64_t{1} << count) - 1) << lane;
    const uint32_t odd = run & bits.odd_sector;
    const uint32_t even = run & ~bits.odd_sector;
    const std::array<uint32_t, 4> in = {even & ~bits.high_sector, odd & ~bits.high_sector,
                                        even & bits.high_sector, odd & bits.high_sector};
    const uint32_t sectors = uint32_t{in[0] != 0} | uint32_t{in[1] != 0} << 1 | uint32_t{in[2] != 0} << 2 |
                             uint32_t{in[3] != 0} << 3;
    LineAccess& line = LineOf(address[lane] & ~kLineMask, out);
    Add(&line, run, sectors, count * bytes_per_lane);
    for (uint32_t sector = 0; by_sector && sector < in.size(); ++sector)
      AddToSector(&line, sector, static_cast<uint32_t>(std::popcount(in[sector])) * bytes_per_lane);
  }
}

}  // namespace heddle::sm

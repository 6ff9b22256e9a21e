#include "sim/sm/units/coalescer.h"

#include <algorithm>
#include <bit>

namespace heddle::sm {
namespace {

constexpr uint64_t kLineMask = memory::kLineBytes - 1;
constexpr uint32_t kAllLanes = ~0u;

// Lane i accesses address[0] + i * bytes: the commonest pattern, and its lines follow from arithmetic.
bool IsDense(const uint64_t* address, uint32_t bytes_per_lane) {
  uint64_t different = address[0] & (bytes_per_lane - 1);
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane)
    different |= address[lane] ^ (address[0] + uint64_t{lane} * bytes_per_lane);
  return different == 0;
}

uint8_t SectorsOf(uint64_t first_byte, uint64_t last_byte) {
  const uint32_t first = static_cast<uint32_t>(first_byte & kLineMask) / memory::kSectorBytes;
  const uint32_t last = static_cast<uint32_t>(last_byte & kLineMask) / memory::kSectorBytes;
  return static_cast<uint8_t>((2u << last) - (1u << first));
}

void CoalesceDense(uint64_t first, uint32_t bytes_per_lane, LineAccesses* out) {
  const uint64_t end = first + uint64_t{kWarpLanes} * bytes_per_lane;
  for (uint64_t at = first; at < end;) {
    const uint64_t next = std::min(end, (at | kLineMask) + 1);
    LineAccess& line = out->lines[out->count++];
    line.line_address = at & ~kLineMask;
    const auto first_lane = static_cast<uint32_t>((at - first) / bytes_per_lane);
    const auto lanes = static_cast<uint32_t>((next - at) / bytes_per_lane);
    line.lanes = static_cast<uint32_t>((uint64_t{1} << lanes) - 1) << first_lane;
    line.sector_mask = SectorsOf(at, next - 1);
    line.bytes = static_cast<uint16_t>(next - at);
    at = next;
  }
}

LineAccess& LineOf(uint64_t line_address, LineAccesses* out) {
  for (uint32_t i = out->count; i > 0; --i)
    if (out->lines[i - 1].line_address == line_address) return out->lines[i - 1];
  LineAccess& line = out->lines[out->count++];
  line = LineAccess{line_address, 0, 0, 0};
  return line;
}

}  // namespace

void Coalesce(const uint64_t* address, uint32_t lanes, uint32_t bytes_per_lane, LineAccesses* out) {
  out->count = 0;
  if (lanes == kAllLanes && std::has_single_bit(bytes_per_lane) && IsDense(address, bytes_per_lane)) {
    CoalesceDense(address[0], bytes_per_lane, out);
    return;
  }
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(left));
    const uint64_t first = address[lane];
    const uint64_t last = first + bytes_per_lane - 1;
    LineAccess& line = LineOf(first & ~kLineMask, out);
    line.lanes |= 1u << lane;
    const bool crosses = ((first ^ last) & ~kLineMask) != 0;
    const uint64_t here = crosses ? first | kLineMask : last;
    line.sector_mask = static_cast<uint8_t>(line.sector_mask | SectorsOf(first, here));
    line.bytes = static_cast<uint16_t>(line.bytes + (here - first + 1));
    if (!crosses) continue;
    LineAccess& next = LineOf(last & ~kLineMask, out);
    next.lanes |= 1u << lane;
    next.sector_mask = static_cast<uint8_t>(next.sector_mask | SectorsOf(last & ~kLineMask, last));
    next.bytes = static_cast<uint16_t>(next.bytes + (last & kLineMask) + 1);
  }
}

}  // namespace heddle::sm

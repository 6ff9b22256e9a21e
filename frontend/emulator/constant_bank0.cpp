#include "frontend/emulator/constant_bank0.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "sim/isa/launch_limits.h"

namespace heddle::emulator {
namespace {

// Byte offsets; 0xffff where an architecture has no such word.
struct Layout {
  uint32_t block, grid, stack, total_shared, descriptor, local_window, shared_window, param_address;
  uint32_t is_cluster, cluster_dims, cluster_reciprocals, cluster_grid, cluster_count, reserved_shared;
};
constexpr uint32_t kNone = 0xffff;
constexpr Layout kAmpere = {0x0,   0xc,   0x28,  0x2c,  0x118, 0x20,  0x18,
                            kNone, kNone, kNone, kNone, kNone, kNone, kNone};
constexpr Layout kHopper = {0x0,   0xc,   0x28,  0x2c,  0x208, 0x20,  0x18,
                            0x198, 0x140, 0x144, 0x150, 0x15c, 0x188, 0x114};
constexpr Layout kBlackwell = {0x360, 0x370, 0x37c, 0x16c, 0x358, 0x2f8, kNone,
                               0x348, 0x36c, kNone, kNone, kNone, kNone, kNone};

const Layout& LayoutOf(uint32_t sm_version) {
  return sm_version < 90 ? kAmpere : sm_version < 100 ? kHopper : kBlackwell;
}

class Words {
 public:
  explicit Words(std::vector<uint8_t>& bytes) : bytes_(bytes) {}
  void Set(uint32_t offset, uint32_t value) {
    if (offset == kNone || offset + 4 > bytes_.size()) return;
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
  }
  void Set64(uint32_t offset, uint64_t value) {
    if (offset == kNone) return;
    Set(offset, static_cast<uint32_t>(value));
    Set(offset + 4, static_cast<uint32_t>(value >> 32));
  }
  void Set(uint32_t offset, const Dim3& dim) {
    if (offset == kNone) return;
    Set(offset, dim.x);
    Set(offset + 4, dim.y);
    Set(offset + 8, dim.z);
  }

 private:
  std::vector<uint8_t>& bytes_;
};

}  // namespace

std::vector<uint8_t> MakeBank0(const Bank0Contents& c) {
  std::vector<uint8_t> bytes(std::max<size_t>(c.size_bytes, c.param_base + c.parameters.size()));
  Words words(bytes);
  const Layout& layout = LayoutOf(c.sm_version);
  words.Set(layout.block, c.block);
  words.Set(layout.grid, c.grid);
  words.Set(layout.stack, c.stack_pointer);
  words.Set(layout.total_shared, c.shared_bytes);
  words.Set64(layout.local_window, c.local_window);
  words.Set64(layout.shared_window, c.shared_window);
  words.Set64(layout.param_address, c.address + c.param_base);
  words.Set(layout.is_cluster, c.is_cluster_launch ? 1 : 0);
  words.Set(layout.cluster_dims, c.cluster);
  if (layout.cluster_reciprocals != kNone) {
    const uint32_t dims[3] = {c.cluster.x, c.cluster.y, c.cluster.z};
    for (uint32_t i = 0; i < 3; ++i)
      words.Set(layout.cluster_reciprocals + 4 * i,
                std::bit_cast<uint32_t>(1.0f / static_cast<float>(dims[i])));
  }
  words.Set(layout.cluster_grid,
            Dim3{c.grid.x / c.cluster.x, c.grid.y / c.cluster.y, c.grid.z / c.cluster.z});
  words.Set(layout.cluster_count, static_cast<uint32_t>(c.cluster.Count()));
  words.Set(layout.reserved_shared, isa::kReservedSharedBytes);
  // The global memory descriptor (desc[UR]) is a cache policy: any value means the default one here.
  words.Set64(layout.descriptor, 0);
  if (!c.parameters.empty())
    std::memcpy(bytes.data() + c.param_base, c.parameters.data(), c.parameters.size());
  return bytes;
}

}  // namespace heddle::emulator

#include "frontend/emulator/group_matrix.h"

#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "frontend/emulator/matrix_blocks.h"

namespace heddle::emulator {
namespace {

constexpr uint32_t kUnitBytes = 16;
constexpr uint32_t kKTiles = 2;  // 32 bytes
constexpr uint32_t kMaxBlocks = kMaxGroupColumns / 8;

// Where the core matrices of one operand lie.
class Tiles {
 public:
  Tiles(uint64_t descriptor, bool transposed) {
    const auto field = [&](uint32_t shift) {
      return static_cast<uint32_t>(descriptor >> shift & 0x3fff) << 4;
    };
    start_ = field(0);
    const uint32_t leading = field(16), stride = field(32);
    const auto swizzle = static_cast<uint32_t>(descriptor >> 62);
    base_ = static_cast<uint32_t>(descriptor >> 49 & 7) << 7;
    const uint32_t units = swizzle == 0 ? 1 : 16u >> swizzle;  // 8, 4, 2
    toggles_ = units - 1;
    row_pitch_ = units * kUnitBytes;
    if (swizzle == 0) {
      inner_ = 1;
      outer_step_ = stride;
      tile_step_ = leading;
    } else if (!transposed) {
      inner_ = 1;
      outer_step_ = stride;
      tile_step_ = kUnitBytes;
    } else {
      inner_ = units;
      outer_step_ = leading;
      tile_step_ = stride;
    }
  }

  // Copies core matrix (block, tile): eight rows of 16 bytes.
  bool Copy(SharedBytes shared, uint32_t block, uint32_t tile, FragmentRow& out) const {
    auto* bytes = reinterpret_cast<uint8_t*>(out);
    bool inside = true;
    for (uint32_t row = 0; row < 8; ++row) {
      const uint32_t address = AddressOf(block, tile, row);
      if (uint64_t{address} + kUnitBytes <= shared.size) [[likely]] {
        std::memcpy(bytes + row * kUnitBytes, shared.data + address, kUnitBytes);
      } else {
        std::memset(bytes + row * kUnitBytes, 0, kUnitBytes);
        inside = false;
      }
    }
    return inside;
  }

  // Whether it lies inside and is `known`.
  bool Equals(SharedBytes shared, uint32_t block, uint32_t tile, const FragmentRow& known) const {
    uint64_t difference = 0;
    for (uint32_t row = 0; row < 8; ++row) {
      const uint32_t address = AddressOf(block, tile, row);
      if (uint64_t{address} + kUnitBytes > shared.size) return false;
      uint64_t here[2], there[2];
      std::memcpy(here, shared.data + address, kUnitBytes);
      std::memcpy(there, known + 4 * row, kUnitBytes);
      difference |= (here[0] ^ there[0]) | (here[1] ^ there[1]);
    }
    return difference == 0;
  }

 private:
  uint32_t AddressOf(uint32_t block, uint32_t tile, uint32_t row) const {
    const uint32_t address = start_ + block % inner_ * kUnitBytes + block / inner_ * outer_step_ +
                             tile * tile_step_ + row * row_pitch_;
    return address ^ ((address - base_) >> 7 & toggles_) << 4;
  }

  uint32_t start_ = 0;
  uint32_t base_ = 0;
  uint32_t toggles_ = 0;
  uint32_t row_pitch_ = 0;
  uint32_t inner_ = 1;  // blocks that lie side by side within a swizzled row
  uint32_t outer_step_ = 0;
  uint32_t tile_step_ = 0;
};

// B of one product, widened. The four warps of a group, and groups that share B, find what the first of them made.
// Contents are compared, so nothing has to be told when shared memory changes.
struct WidenedB {
  MatrixFloat type = MatrixFloat::kF16;
  bool transposed = false;
  uint32_t blocks = 0;
  alignas(64) FragmentRow bytes[kKTiles * kMaxBlocks];  // as they lie in memory
  EightColumns columns[kMaxBlocks * kMaxBlockK];
};

constexpr size_t kCacheEntries = 16;  // 0.7 MB a thread: the products of a k-loop's step

WidenedB& CacheEntry(SharedBytes shared, uint64_t descriptor, MatrixFloat type) {
  thread_local const auto cache = std::make_unique<std::array<WidenedB, kCacheEntries>>();
  // Descriptors of neighbouring products differ in their low bits.
  const uint64_t key = descriptor ^ descriptor >> 6 ^ std::bit_cast<uintptr_t>(shared.data) >> 10 ^
                       static_cast<uint64_t>(type) << 5;
  return (*cache)[(key >> 1) % kCacheEntries];
}

bool Holds(const WidenedB& entry, const GroupMatrixShape& shape, SharedBytes shared, const Tiles& tiles) {
  const uint32_t blocks = shape.n / 8;
  if (entry.blocks != blocks || entry.type != shape.b || entry.transposed != shape.transposed_b) return false;
  for (uint32_t block = 0; block < blocks; ++block)
    for (uint32_t tile = 0; tile < kKTiles; ++tile)
      if (!tiles.Equals(shared, block, tile, entry.bytes[kKTiles * block + tile])) return false;
  return true;
}

const EightColumns* Widen(const GroupMatrixShape& shape, SharedBytes shared, uint64_t descriptor,
                          bool* inside) {
  const Tiles tiles(descriptor, shape.transposed_b);
  WidenedB& entry = CacheEntry(shared, descriptor, shape.b);
  if (Holds(entry, shape, shared, tiles)) return entry.columns;
  entry.blocks = shape.n / 8;
  entry.type = shape.b;
  entry.transposed = shape.transposed_b;
  const int width = ElementsPerTileRow(shape.b) * static_cast<int>(kKTiles);
  for (uint32_t block = 0; block < entry.blocks; ++block) {
    FragmentRow pair[kKTiles];
    for (uint32_t tile = 0; tile < kKTiles; ++tile) {
      FragmentRow& bytes = entry.bytes[kKTiles * block + tile];
      *inside &= tiles.Copy(shared, block, tile, bytes);
      if (shape.transposed_b)
        TransposeHalfTile(bytes, pair[tile]);
      else
        std::memcpy(pair[tile], bytes, sizeof bytes);
    }
    WidenColumns(shape.b, kKTiles, pair, entry.columns + block * static_cast<uint32_t>(width));
  }
  return entry.columns;
}

// Row m of tile t of a fragment: 128 bits as two words of 64.
uint64_t Word64(const FragmentRow& tile, uint32_t row, uint32_t word) {
  uint64_t value;
  std::memcpy(&value, tile + 4 * row + 2 * word, sizeof value);
  return value;
}

bool MultiplyBinary(const GroupMatrixShape& shape, const FragmentRow* a, SharedBytes shared,
                    uint64_t descriptor, const FragmentRow* c, FragmentRow* d) {
  const Tiles tiles(descriptor, false);
  bool inside = true;
  for (uint32_t block = 0; block < shape.n / 8u; ++block) {
    FragmentRow b[kKTiles];
    for (uint32_t tile = 0; tile < kKTiles; ++tile) inside &= tiles.Copy(shared, block, tile, b[tile]);
    for (uint32_t row = 0; row < 16; ++row) {
      const uint32_t half = row / 8, m = row % 8;
      for (uint32_t n = 0; n < 8; ++n) {
        int count = 0;
        for (uint32_t tile = 0; tile < kKTiles; ++tile)
          for (uint32_t word = 0; word < 2; ++word)
            count += std::popcount(Word64(a[2 * tile + half], m, word) & Word64(b[tile], n, word));
        const uint32_t reg = 4 * block + 2 * half + n % 2, lane = 4 * m + n / 2;
        d[reg][lane] = (c == nullptr ? 0 : c[reg][lane]) + static_cast<uint32_t>(count);
      }
    }
  }
  return inside;
}

}  // namespace

bool LoadGroupRows(const GroupMatrixShape& shape, SharedBytes shared, uint64_t descriptor, uint32_t warp,
                   FragmentRow* a) {
  const Tiles tiles(descriptor, shape.transposed_a);
  bool inside = true;
  for (uint32_t tile = 0; tile < kKTiles; ++tile) {
    for (uint32_t half = 0; half < 2; ++half) {
      FragmentRow& row = a[2 * tile + half];
      inside &= tiles.Copy(shared, 2 * warp + half, tile, row);
      if (shape.transposed_a) TransposeHalfTile(row, row);
    }
  }
  return inside;
}

bool MultiplyGroup(const GroupMatrixShape& shape, const FragmentRow* a, SharedBytes shared,
                   uint64_t descriptor_b, const FragmentRow* c, FragmentRow* d) {
  if (shape.is_binary) return MultiplyBinary(shape, a, shared, descriptor_b, c, d);
  bool inside = true;
  const EightColumns* columns = Widen(shape, shared, descriptor_b, &inside);
  WidenedRows rows;
  WidenRows(shape.a, kKTiles, a, shape.negated, &rows);
  const int k_count = ElementsPerTileRow(shape.a) * static_cast<int>(kKTiles);
  const uint32_t registers = shape.accumulator == MatrixAccumulator::kF16 ? 2 : 4;
  for (uint32_t block = 0; block < shape.n / 8u; ++block)
    MultiplyBlock(rows, columns + block * static_cast<uint32_t>(k_count), k_count, shape.accumulator,
                  c == nullptr ? nullptr : c + registers * block, d + registers * block);
  return inside;
}

}  // namespace heddle::emulator

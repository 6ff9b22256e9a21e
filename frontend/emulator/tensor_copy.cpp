// Tensor memory accelerator: UTMALDG, UTMASTG, UTMAREDG, UTMAPF.
//
// Sources: 0 the list {shared address, mbarrier, coordinates} (loads), {shared address, coordinates} (stores) or
// {coordinates} (prefetches); 1 the address of the tensor map; 2 the mask of a multicast in its upper half.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "frontend/emulator/bulk_issue.h"
#include "frontend/emulator/bulk_transfer.h"
#include "frontend/emulator/issue_log.h"

namespace heddle::emulator {
namespace {

using isa::BulkKind;
using isa::Mod;
using isa::TensorMap;

constexpr uint32_t kTensorSharedAlignment = 128;
constexpr uint32_t kMaxBoxBytes = 1u << 20;  // more than any shared memory holds

// What a thread of the SM reads there: its own stores that others cannot see yet included.
bool ReadMap(Context& c, const Lowered& l, uint64_t address, TensorMap* map) {
  isa::TensorMapBytes bytes;
  for (uint32_t i = 0; i < isa::kTensorMapBytes; i += 16) {
    const uint8_t* at = address % 64 == 0 ? c.memory->device->Locate(address + i, 16) : nullptr;
    if (at == nullptr) {
      c.issues->Report("bad_tensor_map", l.index, fmt::format("there is no tensor map at 0x{:x}", address));
      return false;
    }
    auto* to = reinterpret_cast<uint8_t*>(bytes.data()) + i;
    std::memcpy(to, at, 16);
    if (c.memory->stores != nullptr && !c.memory->stores->empty())
      c.memory->stores->Overlay(address + i, to, 16);
  }
  if (c.memory->skips_data &&
      (c.memory->device->IsStale(address) || c.memory->device->IsStale(address + isa::kTensorMapBytes - 1)))
    c.issues->Report("skipped_data", l.index, fmt::format("tensor map at 0x{:x}", address));
  *map = isa::DecodeTensorMap(bytes);
  if (const std::string fault = CheckTensorMap(*map); !fault.empty()) {
    c.issues->Report("bad_tensor_map", l.index, fmt::format("map at 0x{:x}: {}", address, fault));
    return false;
  }
  return true;
}

// The rows of the box at `origin`, outermost dimension slowest.
void AddRows(const TensorMap& map, const std::array<int64_t, isa::kMaxTensorDimensions>& origin,
             uint32_t shared, BulkRecord& record) {
  const uint32_t element = BytesOf(map.element);
  const uint32_t row_bytes = map.RowBytes();
  const int64_t first = std::clamp<int64_t>(origin[0], 0, static_cast<int64_t>(map.size[0]));
  const int64_t last = std::clamp<int64_t>(origin[0] + map.box[0], first, static_cast<int64_t>(map.size[0]));
  const auto inside = static_cast<uint32_t>(last - first) * element;
  const uint32_t lead = inside == 0 ? 0 : static_cast<uint32_t>(first - origin[0]) * element;
  std::array<uint32_t, isa::kMaxTensorDimensions> at{};
  while (true) {
    bool exists = inside != 0;
    uint64_t address = map.address + static_cast<uint64_t>(first) * element;
    for (uint32_t d = 1; d < map.rank; ++d) {
      const int64_t index = origin[d] + int64_t{at[d]} * map.element_stride[d];
      exists &= index >= 0 && index < static_cast<int64_t>(map.size[d]);
      address += static_cast<uint64_t>(index) * map.stride_bytes[d];
    }
    record.AddPiece({.global_address = exists ? address : 0,
                     .global_bytes = exists ? inside : 0,
                     .shared_bytes = row_bytes,
                     .shared_address = shared},
                    exists ? lead : 0);
    shared += row_bytes;
    uint32_t d = 1;
    while (d < map.rank && ++at[d] == map.BoxCount(d)) at[d++] = 0;
    if (d >= map.rank) return;
  }
}

uint64_t BoxBytes(const TensorMap& map) {
  uint64_t bytes = map.RowBytes();
  for (uint32_t d = 1; d < map.rank; ++d) bytes *= map.BoxCount(d);
  return bytes;
}

// The operations of tensor reductions by element type; halves are combined in the packed type.
bool SetReduction(Context& c, const Lowered& l, const TensorMap& map, BulkRecord& record) {
  using isa::TensorElement;
  const AtomicOp op = record.op;
  const bool is_bitwise = op == AtomicOp::kAnd || op == AtomicOp::kOr || op == AtomicOp::kXor;
  const bool counts = op == AtomicOp::kInc || op == AtomicOp::kDec;
  bool good = !counts;
  switch (map.element) {
    case TensorElement::kU32:
      record.type = AtomicType::kU32;
      good = true;
      break;
    case TensorElement::kS32:
      record.type = AtomicType::kS32;
      break;
    case TensorElement::kU64:
      record.type = AtomicType::kU64;
      break;
    case TensorElement::kS64:
      record.type = AtomicType::kS64;
      break;
    case TensorElement::kF16:
    case TensorElement::kBF16:
      record.type = map.element == TensorElement::kF16 ? AtomicType::kF16x2 : AtomicType::kBF16x2;
      record.combines_halves = true;
      good &= !is_bitwise;
      break;
    case TensorElement::kF32:
      record.type = AtomicType::kF32;
      good = op == AtomicOp::kAdd;
      break;
    case TensorElement::kF32Ftz:
      record.type = AtomicType::kF32Ftz;
      good = op == AtomicOp::kAdd;
      break;
    case TensorElement::kF64:
      record.type = AtomicType::kF64;
      good = op == AtomicOp::kAdd;
      break;
    default:
      good = false;
  }
  if (!good)
    c.issues->Report("bad_tensor_map", l.index,
                     fmt::format("elements of type {} have no such reduction", Name(map.element)));
  return good;
}

// Everything behind the addresses; false when the operation is malformed.
bool FillTensorCopy(Context& c, const Lowered& l, BulkRecord& record) {
  TensorMap map;
  record.tensor_map_address = Pair(UniformWord(c, l, 1), UniformWord(c, l, 1, 1));
  if (!ReadMap(c, l, record.tensor_map_address, &map)) return false;
  const uint32_t dimensions = l.flags >> kDimensionShift & 7;
  record.is_tensor = true;
  record.dimensions = static_cast<uint8_t>(dimensions);
  if (map.rank != dimensions) {
    c.issues->Report("bad_tensor_map", l.index,
                     fmt::format("the map has rank {}, the copy {}", map.rank, dimensions));
    return false;
  }
  const bool is_load = record.kind == BulkKind::kLoad;
  const bool uses_shared = record.kind != BulkKind::kPrefetch;
  const uint32_t first_coordinate = is_load ? 2 : uses_shared ? 1 : 0;
  std::array<int64_t, isa::kMaxTensorDimensions> origin{};
  for (uint32_t d = 0; d < dimensions; ++d)
    origin[d] = static_cast<int32_t>(UniformWord(c, l, 0, first_coordinate + d));

  const uint64_t bytes = BoxBytes(map);
  const uint32_t address = uses_shared ? UniformWord(c, l, 0) : 0;
  const uint32_t shared = address & kSharedOffsetMask;
  if (bytes > kMaxBoxBytes) {
    c.issues->Report("bad_tensor_map", l.index, fmt::format("a box of {} bytes", bytes));
    return false;
  }
  if (uses_shared && !CheckBulkShared(c, l, shared, bytes, kTensorSharedAlignment)) return false;
  if (is_load && !SetDestinations(c, l, record, address, UniformWord(c, l, 0, 1))) return false;
  if (record.kind == BulkKind::kReduce && !SetReduction(c, l, map, record)) return false;
  record.element_bytes = static_cast<uint8_t>(BytesOf(map.element));
  record.fills_nan = map.fill == isa::TensorFill::kNan;
  record.swizzle = map.swizzle;
  record.swizzled = map.swizzle != isa::TensorSwizzle::kNone;
  if (uses_shared && !is_load) record.source = &CtaOf(c);
  AddRows(map, origin, shared, record);
  // Swizzling stays within lines of 128 bytes, the last of which must be whole.
  if (record.swizzled && shared + CeilDiv(static_cast<uint32_t>(bytes), 128u) * 128 > CtaOf(c).shared_bytes)
    return CheckBulkShared(c, l, shared, bytes + 128, kTensorSharedAlignment);
  ClipToBuffers(c, l, record);
  return true;
}

void RunTensorCopy(Context& c, const Lowered& l) {
  BulkRecord& record = BeginBulk(c, l);
  if (FillTensorCopy(c, l, record))
    IssueBulk(c, record);
  else
    DropBulk(c, record);
}

void LowerTensorCopy(Lowering& w, BulkKind kind) {
  if (w.instruction.Has(Mod::kIM2COL))
    return w.Fail(
        "im2col copies are not supported: no kernel of a language model is known to use them; "
        "describe the tensor by a tiled map");
  if (w.instruction.Has(Mod::kGATHER4))
    return w.Fail("gathers are not supported: they come with Blackwell (sm_100)");
  const int dimensions = w.TakeOneOf({Mod::k1D, Mod::k2D, Mod::k3D, Mod::k4D, Mod::k5D});
  if (dimensions < 0) return w.Fail("an unknown number of dimensions");
  w.out.flags |= static_cast<uint32_t>(kind) << kBulkKindShift | static_cast<uint32_t>(dimensions + 1)
                                                                     << kDimensionShift;
  TakeUniformList(w, 0);
  TakeUniformList(w, 1);
  if (w.Take(Mod::kMULTICAST)) {
    w.out.flags |= kMulticasts;
    TakeUniformList(w, 2);
  }
  SkipCachePolicy(w);
  w.out.run = &RunTensorCopy;
}

}  // namespace

void LowerUtmaldg(Lowering& w) { LowerTensorCopy(w, BulkKind::kLoad); }
void LowerUtmastg(Lowering& w) { LowerTensorCopy(w, BulkKind::kStore); }
void LowerUtmapf(Lowering& w) {
  w.Take(Mod::kL2);
  LowerTensorCopy(w, BulkKind::kPrefetch);
}
void LowerUtmaredg(Lowering& w) {
  const int op = TakeAtomicOp(w);
  if (op < 0) return w.Fail("an unknown reduction");
  w.out.flags |= kCombines | static_cast<uint32_t>(op) << kOpShift;
  LowerTensorCopy(w, BulkKind::kReduce);
}

}  // namespace heddle::emulator

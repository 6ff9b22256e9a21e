#include "frontend/capture/tensor_maps.h"

#include <cstring>
#include <optional>

#include "frontend/capture/record.pb.h"

namespace heddle::capture {
namespace {

// A CUtensorMap lies at a multiple of 64 bytes in the constant bank, where parameters begin at a multiple of 16 (0x210 on sm_90).
constexpr size_t kStep = 16;

// From CUtensorMapDataType.
std::optional<isa::TensorElement> Element(uint32_t type) {
  using E = isa::TensorElement;
  constexpr E kElements[] = {E::kU8,  E::kU16, E::kU32,  E::kS32,    E::kU64,  E::kS64,    E::kF16,
                             E::kF32, E::kF64, E::kBF16, E::kF32Ftz, E::kTF32, E::kTF32Ftz};
  if (type >= std::size(kElements)) return std::nullopt;
  return kElements[type];
}

template <typename Values>
std::vector<trace::Expr> Exprs(const Values& values) {
  std::vector<trace::Expr> exprs;
  for (const auto value : values) exprs.emplace_back(static_cast<int64_t>(value));
  return exprs;
}

}  // namespace

bool TensorMaps::Add(const pb::TensorMap& map) {
  if (!map.replaces().empty()) {
    const auto before = maps_.find(map.replaces());
    if (before == maps_.end() || map.map().size() != isa::kTensorMapBytes) return false;
    trace::TensorMap moved = before->second;
    moved.offset = trace::Expr(static_cast<int64_t>(map.address()));
    maps_[map.map()] = std::move(moved);
    return true;
  }
  if (map.form() != pb::TensorMap::tiled) return false;
  const std::optional<isa::TensorElement> element = Element(map.type());
  if (!element || map.swizzle() > 3 || map.interleave() > 2 || map.promotion() > 3 || map.fill() > 1 ||
      map.map().size() != isa::kTensorMapBytes)
    return false;
  const int rank = map.size_size();
  if (rank < 1 || rank > static_cast<int>(isa::kMaxTensorDimensions) || map.stride_bytes_size() != rank - 1 ||
      map.box_size() != rank || map.element_stride_size() != rank)
    return false;
  trace::TensorMap out;
  out.offset = trace::Expr(static_cast<int64_t>(map.address()));
  out.element = *element;
  out.size = Exprs(map.size());
  out.stride_bytes = Exprs(map.stride_bytes());
  out.box = Exprs(map.box());
  out.element_stride = Exprs(map.element_stride());
  out.swizzle = static_cast<isa::TensorSwizzle>(map.swizzle());
  out.interleave = static_cast<isa::TensorInterleave>(map.interleave());
  out.fill = static_cast<isa::TensorFill>(map.fill());
  out.promotion = static_cast<isa::TensorPromotion>(map.promotion());
  maps_[map.map()] = std::move(out);
  return true;
}

void TensorMaps::FindIn(trace::Trace* trace) const {
  if (maps_.empty() || trace->launches.empty()) return;
  const std::vector<std::byte>& parameters = trace->launches.back().parameters;
  for (size_t at = 0; at + isa::kTensorMapBytes <= parameters.size(); at += kStep) {
    const std::string bytes(reinterpret_cast<const char*>(parameters.data() + at), isa::kTensorMapBytes);
    const auto found = maps_.find(bytes);
    if (found == maps_.end()) continue;
    trace::TensorMap map = found->second;
    map.launch = static_cast<uint32_t>(trace->launches.size() - 1);
    map.parameter_offset = static_cast<uint32_t>(at);
    trace->tensor_maps.push_back(std::move(map));
  }
}

}  // namespace heddle::capture

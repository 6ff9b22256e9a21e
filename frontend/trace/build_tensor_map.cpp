// Tensor maps of launch descriptions.
#include <fmt/format.h>

#include "frontend/trace/build_launches.h"

namespace heddle::trace {
namespace {

using isa::TensorElement;

Error Bad(std::string place, std::string message, std::string next_step) {
  return Error{ExitCode::kTrace, std::move(place), std::move(message), std::move(next_step)};
}

constexpr TensorElement kNoElement = static_cast<TensorElement>(255);

TensorElement ElementOf(DType type) {
  switch (type) {
    case DType::kF64:
      return TensorElement::kF64;
    case DType::kF32:
      return TensorElement::kF32;
    case DType::kTf32:
      return TensorElement::kTF32;
    case DType::kF16:
      return TensorElement::kF16;
    case DType::kBf16:
      return TensorElement::kBF16;
    case DType::kU16:
    case DType::kI16:
      return TensorElement::kU16;
    case DType::kI32:
      return TensorElement::kS32;
    case DType::kU32:
      return TensorElement::kU32;
    case DType::kI64:
      return TensorElement::kS64;
    case DType::kU64:
      return TensorElement::kU64;
    case DType::kE4m3:
    case DType::kE5m2:
    case DType::kI8:
    case DType::kU8:
    case DType::kBoolean:
      return TensorElement::kU8;
    case DType::kUnspecified:
      break;
  }
  return kNoElement;
}

TensorElement ElementFromName(std::string_view name) {
  for (uint8_t i = 0; i <= static_cast<uint8_t>(TensorElement::kTF32Ftz); ++i)
    if (isa::Name(static_cast<TensorElement>(i)) == name) return static_cast<TensorElement>(i);
  return kNoElement;
}

}  // namespace

Status LaunchBuilder::SetTensorMap(const pb::TensorMap& map, const Locator& at, uint32_t offset,
                                   uint32_t size_bytes) {
  if (size_bytes != isa::kTensorMapBytes)
    return Bad(at.Place("tensor_map"),
               fmt::format("the parameter has {} bytes, a tensor map 128", size_bytes),
               "`heddle trace info` lists the parameters; inside a struct give `at`");
  TensorMap out;
  out.parameter_offset = offset;
  HEDDLE_ASSIGN_OR_RETURN(out.buffer, FindBuffer(map.buffer(), at.Place("buffer")));
  out.element =
      map.element().empty() ? ElementOf(trace_->buffers[out.buffer].type) : ElementFromName(map.element());
  if (out.element == kNoElement)
    return Bad(at.Place("element"), fmt::format("there is no element type '{}'", map.element()),
               "one of u8, u16, u32, s32, u64, s64, f16, f32, f32_ftz, f64, bf16, tf32, tf32_ftz");
  if (!map.offset().empty()) {
    HEDDLE_ASSIGN_OR_RETURN(out.offset, MakeExpr(map.offset(), scope_, at.Place("offset")));
  }
  const int rank = map.size_size();
  if (rank < 1 || rank > static_cast<int>(isa::kMaxTensorDimensions))
    return Bad(at.Place("size"), fmt::format("{} dimensions", rank),
               "a tensor has 1 to 5, the innermost first");
  const auto read = [&](const auto& texts, std::string_view field, int count,
                        std::vector<Expr>* exprs) -> Status {
    if (texts.size() != count)
      return Bad(at.Place(field),
                 fmt::format("{} has {} entries for {} dimensions", field, texts.size(), rank),
                 fmt::format("give {}", count));
    for (int i = 0; i < count; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(Expr expr, MakeExpr(texts.Get(i), scope_, at.Place(field, i)));
      exprs->push_back(std::move(expr));
    }
    return Ok();
  };
  HEDDLE_RETURN_IF_ERROR(read(map.size(), "size", rank, &out.size));
  HEDDLE_RETURN_IF_ERROR(read(map.box(), "box", rank, &out.box));
  if (map.element_stride_size() == 0)
    out.element_stride.assign(static_cast<size_t>(rank), Expr{1});
  else
    HEDDLE_RETURN_IF_ERROR(read(map.element_stride(), "element_stride", rank, &out.element_stride));
  if (map.stride_size() != 0) {
    HEDDLE_RETURN_IF_ERROR(read(map.stride(), "stride", rank - 1, &out.stride_bytes));
  } else {
    std::string dense = fmt::format("{}", isa::BytesOf(out.element));
    for (int d = 0; d + 1 < rank; ++d) {
      dense += fmt::format(" * ({})", map.size(d));
      HEDDLE_ASSIGN_OR_RETURN(Expr expr, MakeExpr(dense, scope_, at.Place("size", d)));
      out.stride_bytes.push_back(std::move(expr));
    }
  }
  out.swizzle = static_cast<isa::TensorSwizzle>(map.swizzle());
  out.interleave = static_cast<isa::TensorInterleave>(map.interleave());
  out.fill = static_cast<isa::TensorFill>(map.fill());
  out.promotion = static_cast<isa::TensorPromotion>(map.promotion());
  maps_.push_back(std::move(out));
  return Ok();
}

Status LaunchBuilder::SetTritonDescriptor(const pb::TensorMap& map, const Locator& at, uint32_t ordinal,
                                          const Function& function, std::vector<bool>* given, Launch* out) {
  const auto rank = static_cast<uint32_t>(map.size_size());
  const TensorMap& fields = maps_.back();
  if (ordinal + 2 * rank >= function.parameters.size())
    return Bad(at.Place("size"), fmt::format("the kernel takes no descriptor of {} dimensions here", rank),
               "Triton's kernels take the map, the shape and the strides of a descriptor");
  // Slowest dimension first; strides in elements, that of the innermost is 1.
  for (uint32_t i = 0; i < rank; ++i) {
    const uint32_t d = rank - 1 - i;
    const auto add = [&](uint32_t place, Expr value) -> Status {
      const ParameterSlot& slot = function.parameters[place];
      if (slot.size_bytes != 4 && slot.size_bytes != 8)
        return Bad(at.Place("size"), fmt::format("parameter {} has {} bytes", place, slot.size_bytes),
                   "Triton's kernels take the map, the shape and the strides of a descriptor");
      (*given)[place] = true;
      out->patches.push_back(
          {slot.offset, slot.size_bytes == 4 ? DType::kI32 : DType::kI64, kNone, std::move(value), ""});
      return Ok();
    };
    HEDDLE_RETURN_IF_ERROR(add(ordinal + 1 + i, fields.size[d]));
    Expr stride{1};
    if (d > 0) {
      const Expr& bytes = fields.stride_bytes[d - 1];
      const std::string text = bytes.text.empty() ? fmt::format("{}", bytes.value) : bytes.text;
      HEDDLE_ASSIGN_OR_RETURN(stride, MakeExpr(fmt::format("({}) / {}", text, isa::BytesOf(fields.element)),
                                               scope_, at.Place("stride")));
    }
    HEDDLE_RETURN_IF_ERROR(add(ordinal + 1 + rank + i, std::move(stride)));
  }
  return Ok();
}

}  // namespace heddle::trace

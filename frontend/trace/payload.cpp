#include "frontend/trace/payload.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <limits>

#include "frontend/trace/payload.pb.h"

namespace heddle::trace {
namespace {

bool Parse(std::span<const std::byte> bytes, google::protobuf::MessageLite* message) {
  if (bytes.size() > std::numeric_limits<int>::max()) return false;
  return message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

void ToStored(const Expr& in, pb::StoredExpr* out) {
  if (in.text.empty())
    out->set_value(in.value);
  else
    out->set_text(in.text);
}

Expr FromStored(const pb::StoredExpr& in) { return in.has_text() ? Expr{in.text()} : Expr{in.value()}; }

bool ToDType(uint32_t number, DType* out) {
  if (number == 0 || number >= static_cast<uint32_t>(kDTypeCount)) return false;
  *out = static_cast<DType>(number);
  return true;
}

template <typename Repeated>
bool FromStored3(const Repeated& in, std::array<Expr, 3>* out) {
  if (in.size() != 3) return false;
  for (int i = 0; i < 3; ++i) (*out)[static_cast<size_t>(i)] = FromStored(in.Get(i));
  return true;
}

std::string_view View(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> Bytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::string Serialize(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream sink(&bytes);
  google::protobuf::io::CodedOutputStream coded(&sink);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

std::string EncodePayload(const Expr& expr) {
  pb::StoredExpr stored;
  ToStored(expr, &stored);
  return Serialize(stored);
}

bool DecodePayload(std::span<const std::byte> bytes, Expr* expr) {
  pb::StoredExpr stored;
  if (!Parse(bytes, &stored)) return false;
  *expr = FromStored(stored);
  return true;
}

std::string EncodePayload(const Device& device) {
  pb::StoredDevice stored;
  for (const auto& [name, value] : device.attributes) {
    pb::StoredDevice::Attribute* attribute = stored.add_attribute();
    attribute->set_name(name);
    attribute->set_value(value);
  }
  return Serialize(stored);
}

bool DecodePayload(std::span<const std::byte> bytes, Device* device) {
  pb::StoredDevice stored;
  if (!Parse(bytes, &stored)) return false;
  for (const auto& attribute : stored.attribute()) device->attributes[attribute.name()] = attribute.value();
  return true;
}

std::string EncodePayload(const Function& function) {
  pb::StoredFunction stored;
  for (const ParameterSlot& slot : function.parameters) {
    pb::StoredFunction::Slot* out = stored.add_parameter();
    out->set_ordinal(slot.ordinal);
    out->set_offset(slot.offset);
    out->set_size_bytes(slot.size_bytes);
  }
  stored.set_parameter_bytes(function.parameter_bytes);
  stored.set_registers(function.registers);
  stored.set_static_shared_bytes(function.static_shared_bytes);
  stored.set_local_bytes(function.local_bytes);
  stored.set_barriers(function.barriers);
  stored.set_max_threads(function.max_threads);
  return Serialize(stored);
}

bool DecodePayload(std::span<const std::byte> bytes, Function* function) {
  pb::StoredFunction stored;
  if (!Parse(bytes, &stored)) return false;
  for (const auto& slot : stored.parameter())
    function->parameters.push_back({slot.ordinal(), slot.offset(), slot.size_bytes()});
  function->parameter_bytes = stored.parameter_bytes();
  function->registers = stored.registers();
  function->static_shared_bytes = stored.static_shared_bytes();
  function->local_bytes = stored.local_bytes();
  function->barriers = stored.barriers();
  function->max_threads = stored.max_threads();
  return true;
}

std::string EncodePayload(const Buffer& buffer) {
  pb::StoredBuffer stored;
  stored.set_type(static_cast<uint32_t>(buffer.type));
  for (const Expr& dim : buffer.shape) ToStored(dim, stored.add_shape());
  ToStored(buffer.alignment, stored.mutable_alignment());
  return Serialize(stored);
}

bool DecodePayload(std::span<const std::byte> bytes, Buffer* buffer) {
  pb::StoredBuffer stored;
  if (!Parse(bytes, &stored) || !ToDType(stored.type(), &buffer->type)) return false;
  for (const auto& dim : stored.shape()) buffer->shape.push_back(FromStored(dim));
  buffer->alignment = FromStored(stored.alignment());
  return true;
}

std::string EncodePayload(const Content& content) {
  pb::StoredContent stored;
  ToStored(content.offset_bytes, stored.mutable_offset_bytes());
  stored.set_type(static_cast<uint32_t>(content.rule.type));
  stored.set_seed(content.rule.seed);
  stored.set_a(content.rule.a);
  stored.set_b(content.rule.b);
  stored.set_period(content.rule.period);
  stored.set_repeat(content.rule.repeat);
  stored.set_copy_buffer(content.rule.copy_buffer);
  stored.set_copy_offset_bytes(content.rule.copy_offset_bytes);
  stored.set_copy_bytes(content.rule.copy_bytes);
  return Serialize(stored);
}

bool DecodePayload(std::span<const std::byte> bytes, Content* content) {
  pb::StoredContent stored;
  if (!Parse(bytes, &stored) || !ToDType(stored.type(), &content->rule.type)) return false;
  content->offset_bytes = FromStored(stored.offset_bytes());
  content->rule.seed = stored.seed();
  content->rule.a = stored.a();
  content->rule.b = stored.b();
  content->rule.period = stored.period();
  content->rule.repeat = stored.repeat();
  content->rule.copy_buffer = stored.copy_buffer();
  content->rule.copy_offset_bytes = stored.copy_offset_bytes();
  content->rule.copy_bytes = stored.copy_bytes();
  return true;
}

std::string EncodePayload(const TensorMap& map) {
  pb::StoredTensorMap stored;
  stored.set_element(static_cast<uint32_t>(map.element));
  ToStored(map.offset, stored.mutable_offset());
  for (const Expr& e : map.size) ToStored(e, stored.add_size());
  for (const Expr& e : map.stride_bytes) ToStored(e, stored.add_stride());
  for (const Expr& e : map.box) ToStored(e, stored.add_box());
  for (const Expr& e : map.element_stride) ToStored(e, stored.add_element_stride());
  stored.set_swizzle(static_cast<uint32_t>(map.swizzle));
  stored.set_interleave(static_cast<uint32_t>(map.interleave));
  stored.set_fill(static_cast<uint32_t>(map.fill));
  stored.set_promotion(static_cast<uint32_t>(map.promotion));
  return Serialize(stored);
}

bool DecodePayload(std::span<const std::byte> bytes, TensorMap* map) {
  pb::StoredTensorMap stored;
  if (!Parse(bytes, &stored)) return false;
  if (stored.element() > static_cast<uint32_t>(isa::TensorElement::kTF32Ftz) || stored.swizzle() > 3 ||
      stored.interleave() > 2 || stored.fill() > 1 || stored.promotion() > 3)
    return false;
  map->element = static_cast<isa::TensorElement>(stored.element());
  map->offset = FromStored(stored.offset());
  for (const auto& e : stored.size()) map->size.push_back(FromStored(e));
  for (const auto& e : stored.stride()) map->stride_bytes.push_back(FromStored(e));
  for (const auto& e : stored.box()) map->box.push_back(FromStored(e));
  for (const auto& e : stored.element_stride()) map->element_stride.push_back(FromStored(e));
  map->swizzle = static_cast<isa::TensorSwizzle>(stored.swizzle());
  map->interleave = static_cast<isa::TensorInterleave>(stored.interleave());
  map->fill = static_cast<isa::TensorFill>(stored.fill());
  map->promotion = static_cast<isa::TensorPromotion>(stored.promotion());
  return true;
}

std::string EncodePayload(const Launch& launch) {
  pb::StoredLaunch stored;
  for (const Expr& e : launch.grid) ToStored(e, stored.add_grid());
  for (const Expr& e : launch.block) ToStored(e, stored.add_block());
  for (const Expr& e : launch.cluster) ToStored(e, stored.add_cluster());
  ToStored(launch.dynamic_shared_bytes, stored.mutable_dynamic_shared_bytes());
  stored.set_parameters(std::string(View(launch.parameters)));
  for (const ParameterPatch& patch : launch.patches) {
    pb::StoredLaunch::Patch* out = stored.add_patch();
    out->set_offset(patch.offset);
    out->set_type(static_cast<uint32_t>(patch.type));
    if (patch.buffer != kNone) out->set_buffer(patch.buffer);
    ToStored(patch.value, out->mutable_value());
    out->set_real(patch.real);
  }
  stored.set_programmatic(launch.programmatic);
  stored.set_frozen_grid(launch.frozen_grid);
  return Serialize(stored);
}

bool DecodePayload(std::span<const std::byte> bytes, Launch* launch) {
  pb::StoredLaunch stored;
  if (!Parse(bytes, &stored)) return false;
  if (!FromStored3(stored.grid(), &launch->grid) || !FromStored3(stored.block(), &launch->block) ||
      !FromStored3(stored.cluster(), &launch->cluster))
    return false;
  launch->dynamic_shared_bytes = FromStored(stored.dynamic_shared_bytes());
  launch->parameters = Bytes(stored.parameters());
  for (const auto& in : stored.patch()) {
    ParameterPatch patch;
    patch.offset = in.offset();
    if (!ToDType(in.type(), &patch.type)) return false;
    if (in.has_buffer()) patch.buffer = in.buffer();
    patch.value = FromStored(in.value());
    patch.real = in.real();
    launch->patches.push_back(std::move(patch));
  }
  launch->programmatic = stored.programmatic();
  launch->frozen_grid = stored.frozen_grid();
  return true;
}

}  // namespace heddle::trace

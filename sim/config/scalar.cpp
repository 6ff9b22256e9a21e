#include "sim/config/scalar.h"

#include <fmt/core.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "sim/base/suggest.h"
#include "sim/config/describe.h"

namespace heddle::config {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

struct Suffix {
  std::string_view text;
  uint64_t factor;
};
constexpr Suffix kSuffixes[] = {
    {"Ki", 1ull << 10}, {"Mi", 1ull << 20}, {"Gi", 1ull << 30},   {"Ti", 1ull << 40},
    {"k", 1'000},       {"M", 1'000'000},   {"G", 1'000'000'000}, {"T", 1'000'000'000'000},
};

// Takes the suffix off `text`.
uint64_t TakeSuffix(std::string_view* text) {
  for (const Suffix& suffix : kSuffixes) {
    if (text->size() > suffix.text.size() && text->ends_with(suffix.text)) {
      text->remove_suffix(suffix.text.size());
      return suffix.factor;
    }
  }
  return 1;
}

}  // namespace

std::optional<double> ParseNumber(std::string_view text) {
  const uint64_t factor = TakeSuffix(&text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value * static_cast<double>(factor);
}

namespace {

// 123, 0x7b, 1.5Ki: whole after the suffix is applied.
std::optional<uint64_t> ToUnsigned(std::string_view text) {
  const std::string_view whole = text;
  const uint64_t factor = TakeSuffix(&text);
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (hex) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (error == std::errc() && end == text.data() + text.size()) {
    if (value > std::numeric_limits<uint64_t>::max() / factor) return std::nullopt;
    return value * factor;
  }
  constexpr double kExact = 9007199254740992.0;  // 2^53: every whole number up to here has its own double
  const std::optional<double> real = hex ? std::nullopt : ParseNumber(whole);
  if (!real || *real < 0 || *real > kExact || *real != std::floor(*real)) return std::nullopt;
  return static_cast<uint64_t>(*real);
}

std::string Quoted(const ScalarText& value) { return "\"" + value.text + "\""; }

std::string SetUnsigned(const ScalarText& value, const FieldDescriptor& field, int index, Message* message) {
  const std::optional<uint64_t> number =
      value.kind == ScalarText::Kind::kNumber ? ToUnsigned(value.text) : std::nullopt;
  if (!number) return "expects a whole number, not " + Quoted(value);
  const Reflection& reflection = *message->GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
    if (index == kSingular) reflection.SetUInt64(message, &field, *number);
    if (index == kAppend) reflection.AddUInt64(message, &field, *number);
    if (index >= 0) reflection.SetRepeatedUInt64(message, &field, index, *number);
    return "";
  }
  if (*number > std::numeric_limits<uint32_t>::max()) return "does not fit in 32 bits: " + value.text;
  const auto narrow = static_cast<uint32_t>(*number);
  if (index == kSingular) reflection.SetUInt32(message, &field, narrow);
  if (index == kAppend) reflection.AddUInt32(message, &field, narrow);
  if (index >= 0) reflection.SetRepeatedUInt32(message, &field, index, narrow);
  return "";
}

std::string SetDouble(const ScalarText& value, const FieldDescriptor& field, int index, Message* message) {
  const std::optional<double> number =
      value.kind == ScalarText::Kind::kNumber ? ParseNumber(value.text) : std::nullopt;
  if (!number) return "expects a number, not " + Quoted(value);
  const Reflection& reflection = *message->GetReflection();
  if (index == kSingular) reflection.SetDouble(message, &field, *number);
  if (index == kAppend) reflection.AddDouble(message, &field, *number);
  if (index >= 0) reflection.SetRepeatedDouble(message, &field, index, *number);
  return "";
}

std::string SetBool(const ScalarText& value, const FieldDescriptor& field, Message* message) {
  const bool is_word = value.kind == ScalarText::Kind::kWord;
  if (!is_word || (value.text != "true" && value.text != "false")) {
    return "expects true or false, not " + Quoted(value);
  }
  message->GetReflection()->SetBool(message, &field, value.text == "true");
  return "";
}

std::string SetEnum(const ScalarText& value, const FieldDescriptor& field, Message* message) {
  const EnumDescriptor& type = *field.enum_type();
  std::vector<std::string> names;
  for (int i = 1; i < type.value_count(); ++i) names.push_back(type.value(i)->name());  // 0 is "unspecified"
  if (value.kind == ScalarText::Kind::kWord &&
      std::find(names.begin(), names.end(), value.text) != names.end()) {
    message->GetReflection()->SetEnum(message, &field, type.FindValueByName(value.text));
    return "";
  }
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return fmt::format("expects one of {}, not {}{}", list, Quoted(value), DidYouMean(value.text, names));
}

std::string SetString(const ScalarText& value, const FieldDescriptor& field, int index, Message* message) {
  if (value.kind != ScalarText::Kind::kString) return "expects a string in quotes, not " + Quoted(value);
  const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (!std::all_of(value.text.begin(), value.text.end(), printable)) return "expects printable ASCII";
  const Reflection& reflection = *message->GetReflection();
  if (index == kSingular) reflection.SetString(message, &field, value.text);
  if (index == kAppend) reflection.AddString(message, &field, value.text);
  if (index >= 0) reflection.SetRepeatedString(message, &field, index, value.text);
  return "";
}

}  // namespace

std::string SetScalar(const ScalarText& value, const FieldDescriptor& field, int index, Message* message) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return SetUnsigned(value, field, index, message);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return SetDouble(value, field, index, message);
    case FieldDescriptor::CPPTYPE_BOOL:
      return SetBool(value, field, message);
    case FieldDescriptor::CPPTYPE_ENUM:
      return SetEnum(value, field, message);
    default:
      return SetString(value, field, index, message);
  }
}

std::string ScalarToString(const Message& message, const FieldDescriptor& field, int index) {
  std::string text;
  google::protobuf::TextFormat::PrintFieldValueToString(message, &field, index, &text);
  return text;
}

std::vector<std::string> FieldNames(const google::protobuf::Descriptor& message) {
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) names.push_back(message.field(i)->name());
  return names;
}

}  // namespace heddle::config

#include "sim/config/describe.h"

#include <fmt/core.h>

#include <map>
#include <set>

#include "sim/config/convert.h"
#include "sim/config/draft.h"
#include "sim/config/override.h"
#include "sim/config/scalar.h"

namespace heddle::config {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool IsMessage(const FieldDescriptor& field) { return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE; }

void AddValue(const Message& message, const FieldDescriptor& field, int index, const std::string& path,
              std::vector<Value>* values) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    const auto& reflection = *message.GetReflection();
    values->push_back({path,
                       index == kSingular ? reflection.GetString(message, &field)
                                          : reflection.GetRepeatedString(message, &field, index),
                       false});
    return;
  }
  const bool is_word =
      field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM || field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL;
  values->push_back({path, ScalarToString(message, field, index), !is_word});
}

void AddValues(const Message& message, const std::string& path, std::vector<Value>* values) {
  const auto& reflection = *message.GetReflection();
  const Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string field_path = Join(path, field.name());
    if (!field.is_repeated()) {
      if (!reflection.HasField(message, &field)) continue;
      if (IsMessage(field)) {
        AddValues(reflection.GetMessage(message, &field), field_path, values);
      } else {
        AddValue(message, field, kSingular, field_path, values);
      }
      continue;
    }
    for (int j = 0; j < reflection.FieldSize(message, &field); ++j) {
      if (!IsMessage(field)) {
        AddValue(message, field, j, Element(field_path, j), values);
        continue;
      }
      const Message& item = reflection.GetRepeatedMessage(message, &field, j);
      const std::string key = KeyOf(item);
      AddValues(item, key.empty() ? Element(field_path, j) : field_path + "[" + key + "]", values);
    }
  }
}

std::string TypeName(const FieldDescriptor& field) {
  std::string name;
  if (IsMessage(field)) {
    name = fmt::format("[{}](#{})", field.message_type()->name(), field.message_type()->name());
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    for (int i = 1; i < field.enum_type()->value_count(); ++i) {
      name += (name.empty() ? "`" : ", `") + field.enum_type()->value(i)->name() + "`";
    }
  } else {
    name = field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE ? "number" : field.type_name();
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32) name = "whole number";
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64) name = "whole number";
  }
  return field.is_repeated() ? "list of " + name : name;
}

std::string RangeOf(const pb::Rule& rule) {
  std::string range;
  if (rule.has_min() && rule.has_max() && rule.min() == rule.max()) {
    range = fmt::format("{}", rule.min());
  } else if (rule.has_min() || rule.has_max()) {
    range = fmt::format("{} to {}", rule.min(), rule.has_max() ? fmt::format("{}", rule.max()) : "any");
  }
  if (rule.pow2()) range += range.empty() ? "power of two" : ", power of two";
  return range;
}

void AddMessage(const Descriptor& type, std::set<std::string>* seen, std::string* out) {
  if (!seen->insert(type.full_name()).second) return;
  *out += fmt::format("\n## {}\n\n| field | type | unit | range | meaning |\n|---|---|---|---|---|\n",
                      type.name());
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const pb::Rule& rule = field.options().GetExtension(pb::rule);
    *out += fmt::format("| `{}`{} | {} | {} | {} | {} |\n", field.name(),
                        rule.may_be_absent() ? " (optional)" : "", TypeName(field), rule.unit(),
                        RangeOf(rule), rule.doc());
  }
  for (int i = 0; i < type.field_count(); ++i) {
    if (IsMessage(*type.field(i))) AddMessage(*type.field(i)->message_type(), seen, out);
  }
}

}  // namespace

std::vector<Value> Flatten(const Gpu& gpu) {
  pb::Gpu message;
  ToProto(gpu, &message);
  std::vector<Value> values;
  AddValues(message, "", &values);
  return values;
}

std::vector<Difference> Compare(const Gpu& left, const Gpu& right) {
  std::map<std::string, std::string> rights;
  for (const Value& value : Flatten(right)) rights.emplace(value.path, value.text);
  std::set<std::string> seen;
  std::vector<Difference> differences;
  for (const Value& value : Flatten(left)) {
    seen.insert(value.path);
    const auto found = rights.find(value.path);
    const std::string other = found == rights.end() ? "-" : found->second;
    if (other != value.text) differences.push_back({value.path, value.text, other});
  }
  for (const Value& value : Flatten(right)) {
    if (!seen.contains(value.path)) differences.push_back({value.path, "-", value.text});
  }
  return differences;
}

std::string ParamsMarkdown() {
  std::string out =
      "# Parameters of a machine description\n\n"
      "Generated by `heddle arch params` from `sim/config/gpu.proto`; do not edit. A description is a text "
      "file that\n"
      "starts with the fields of `Gpu`. Every field must be given unless it is marked optional; numbers are "
      "never\n"
      "negative. `--set` takes paths such as `sm.l1.sets=64`, list elements as `sms_per_gpc[0]=18` or by "
      "their key\n"
      "fields as `sm.operations[LDS.64.regular].result_cycles=30`, and the suffixes k M G T Ki Mi Gi Ti.\n";
  std::set<std::string> seen;
  AddMessage(*pb::Gpu::descriptor(), &seen, &out);
  return out;
}

}  // namespace heddle::config

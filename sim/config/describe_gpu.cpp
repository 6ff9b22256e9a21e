// Build tool: writes the plain structs of sim/config/gpu_description.h, and the functions that copy them from
// and to the messages of gpu.proto, from that file's descriptors.
#include <fmt/core.h>
#include <google/protobuf/descriptor.h>

#include <cctype>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "sim/config/gpu.pb.h"

namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

const heddle::config::pb::Rule& RuleOf(const FieldDescriptor& field) {
  return field.options().GetExtension(heddle::config::pb::rule);
}

bool IsMessage(const FieldDescriptor& field) { return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE; }
bool IsEnum(const FieldDescriptor& field) { return field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM; }

// control_bits -> kControlBits
std::string EnumeratorName(const std::string& value) {
  std::string name = "k";
  bool start = true;
  for (char c : value) {
    if (c == '_') {
      start = true;
    } else {
      name += start ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
      start = false;
    }
  }
  return name;
}

std::string ElementType(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return field.message_type()->name();
    case FieldDescriptor::CPPTYPE_ENUM:
      return field.enum_type()->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return "std::string";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "bool";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "double";
    case FieldDescriptor::CPPTYPE_UINT64:
      return "uint64_t";
    case FieldDescriptor::CPPTYPE_UINT32:
      return "uint32_t";
    default:
      fmt::print(stderr, "{}: type {} has no plain counterpart\n", field.full_name(), field.cpp_type_name());
      std::exit(1);
  }
}

std::string MemberType(const FieldDescriptor& field) {
  if (field.is_repeated()) return "std::vector<" + ElementType(field) + ">";
  if (RuleOf(field).may_be_absent()) return "std::optional<" + ElementType(field) + ">";
  return ElementType(field);
}

// Messages and enums that `root` uses, each after what it needs.
struct Types {
  std::vector<const Descriptor*> messages;
  std::vector<const EnumDescriptor*> enums;
  std::set<std::string> seen;

  void Visit(const Descriptor& message) {
    if (!seen.insert(message.full_name()).second) return;
    for (int i = 0; i < message.field_count(); ++i) {
      const FieldDescriptor& field = *message.field(i);
      if (IsMessage(field)) Visit(*field.message_type());
      if (IsEnum(field) && seen.insert(field.enum_type()->full_name()).second)
        enums.push_back(field.enum_type());
    }
    messages.push_back(&message);
  }
};

std::string Header(const Types& types) {
  std::string out =
      "// Generated from sim/config/gpu.proto by describe_gpu. Do not edit.\n#pragma once\n\n#include "
      "<cstdint>\n"
      "#include <optional>\n#include <string>\n#include <string_view>\n#include <vector>\n\nnamespace "
      "heddle::config {\n";
  for (const EnumDescriptor* type : types.enums) {
    out += fmt::format("\nenum class {} : uint8_t {{\n", type->name());
    for (int i = 1; i < type->value_count(); ++i) {
      out += fmt::format("  {} = {},\n", EnumeratorName(type->value(i)->name()), type->value(i)->number());
    }
    out += fmt::format("}};\nstd::string_view Name({} value);\n", type->name());
  }
  for (const Descriptor* message : types.messages) {
    out += fmt::format("\nstruct {} {{\n", message->name());
    for (int i = 0; i < message->field_count(); ++i) {
      const FieldDescriptor& field = *message->field(i);
      const auto& rule = RuleOf(field);
      if (rule.source_only()) continue;
      const std::string unit = rule.unit().empty() ? "" : "; " + rule.unit();
      out += fmt::format("  {} {}{{}};  // {}{}\n", MemberType(field), field.name(), rule.doc(), unit);
    }
    out += fmt::format("\n  bool operator==(const {}&) const = default;\n}};\n", message->name());
  }
  return out + "\n}  // namespace heddle::config\n";
}

// One field of FromProto, or with `back` of ToProto.
std::string CopyField(const FieldDescriptor& field, bool back) {
  const std::string& name = field.name();
  const std::string element = ElementType(field);
  const std::string cast =
      IsEnum(field) ? "static_cast<" + std::string(back ? "pb::" : "") + element + ">" : "";
  const auto value = [&](const std::string& from) { return cast.empty() ? from : cast + "(" + from + ")"; };
  if (field.is_repeated()) {
    const std::string source = back ? "in." + name : "in." + name + "()";
    if (IsMessage(field)) {
      const std::string target = back ? "*out->add_" + name + "()" : "out->" + name + ".emplace_back()";
      return fmt::format("  for (const auto& item : {}) {}(item, &{});\n", source,
                         back ? "ToProto" : "FromProto", target);
    }
    return fmt::format("  for (const auto& item : {}) out->{}({});\n", source,
                       back ? "add_" + name : name + ".push_back", value("item"));
  }
  const bool optional = RuleOf(field).may_be_absent();
  const std::string guard = back ? (optional ? "if (in." + name + ") " : "") : "if (in.has_" + name + "()) ";
  const std::string source = back ? (optional ? "*in." + name : "in." + name) : "in." + name + "()";
  if (IsMessage(field)) {
    const std::string plain = optional ? "out->" + name + ".emplace()" : "out->" + name;
    const std::string target = back ? "out->mutable_" + name + "()" : "&" + plain;
    return fmt::format("  {}{}({}, {});\n", guard, back ? "ToProto" : "FromProto", source, target);
  }
  if (back) return fmt::format("  {}out->set_{}({});\n", guard, name, value(source));
  return fmt::format("  {}out->{} = {};\n", guard, name, value(source));
}

std::string Copies(const Types& types) {
  std::string out =
      "// Generated from sim/config/gpu.proto by describe_gpu. Do not edit.\n#include "
      "\"sim/config/convert.h\"\n\n"
      "namespace heddle::config {\n";
  for (const EnumDescriptor* type : types.enums) {
    out += fmt::format("\nstd::string_view Name({} value) {{\n  switch (value) {{\n", type->name());
    for (int i = 1; i < type->value_count(); ++i) {
      const std::string& name = type->value(i)->name();
      out +=
          fmt::format("    case {}::{}:\n      return \"{}\";\n", type->name(), EnumeratorName(name), name);
    }
    out += "  }\n  return \"?\";\n}\n";
  }
  for (const Descriptor* message : types.messages) {
    const bool root = message->name() == "Gpu";
    for (bool back : {false, true}) {
      const std::string plain = message->name(), proto = "pb::" + plain;
      out += fmt::format("\n{}void {}(const {}& in, {}* out) {{\n", root ? "" : "static ",
                         back ? "ToProto" : "FromProto", back ? plain : proto, back ? proto : plain);
      for (int i = 0; i < message->field_count(); ++i) {
        if (!RuleOf(*message->field(i)).source_only()) out += CopyField(*message->field(i), back);
      }
      out += "}\n";
    }
  }
  return out + "\n}  // namespace heddle::config\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: describe_gpu HEADER SOURCE\n");
    return 2;
  }
  Types types;
  types.Visit(*heddle::config::pb::Gpu::descriptor());
  std::ofstream(argv[1]) << Header(types);
  std::ofstream(argv[2]) << Copies(types);
  return 0;
}

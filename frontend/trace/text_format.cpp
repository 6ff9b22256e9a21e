#include "frontend/trace/text_format.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>

#include "frontend/trace/expression.h"
#include "sim/base/suggest.h"

namespace heddle::trace {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

// Keeps the first error: those behind it are often its consequences.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!message_.empty()) return;
    line_ = line + 1;
    column_ = column + 1;
    message_ = message;
  }
  std::string message_;
  int line_ = 0;
  int column_ = 0;
};

const Descriptor* FindMessage(const Descriptor* root, const std::string& full_name) {
  return root->file()->FindMessageTypeByName(full_name.substr(full_name.rfind('.') + 1));
}

// `Message type "heddle.trace.pb.Buffer" has no field named "shpae".` -> "did you mean 'shape'?"
std::string SuggestField(const Descriptor* root, const std::string& message) {
  const size_t type_begin = message.find('"');
  const size_t type_end = message.find('"', type_begin + 1);
  const size_t name_begin = message.find("no field named \"");
  if (type_begin == std::string::npos || type_end == std::string::npos || name_begin == std::string::npos)
    return "";
  const Descriptor* type = FindMessage(root, message.substr(type_begin + 1, type_end - type_begin - 1));
  if (type == nullptr) return "";
  std::string name = message.substr(name_begin + 16);
  name = name.substr(0, name.find('"'));
  std::vector<std::string> known;
  for (int i = 0; i < type->field_count(); ++i) known.push_back(type->field(i)->name());
  const std::string near = Suggest(name, known);
  return near.empty() ? fmt::format("its fields are {}", fmt::join(known, ", "))
                      : fmt::format("did you mean '{}'?", near);
}

}  // namespace

std::string Locator::Place(std::string_view field, int index) const {
  const FieldDescriptor* descriptor = message_->GetDescriptor()->FindFieldByName(std::string(field));
  if (tree_ != nullptr && descriptor != nullptr) {
    const TextFormat::ParseLocation at =
        tree_->GetLocation(descriptor, descriptor->is_repeated() ? index : -1);
    if (at.line >= 0) return fmt::format("{}:{}:{}", *file_, at.line + 1, at.column + 1);
  }
  return own_place_.empty() ? *file_ : own_place_;
}

Locator Locator::Sub(std::string_view field, int index, const google::protobuf::Message& message) const {
  const FieldDescriptor* descriptor = message_->GetDescriptor()->FindFieldByName(std::string(field));
  const Tree* nested = tree_ == nullptr || descriptor == nullptr
                           ? nullptr
                           : tree_->GetTreeForNested(descriptor, descriptor->is_repeated() ? index : -1);
  Locator sub(*file_, nested, message);
  sub.own_place_ = Place(field, index);
  return sub;
}

std::string UnnamedEnum(const google::protobuf::Message& message) {
  const google::protobuf::Reflection* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
        const int value = field->is_repeated() ? reflection->GetRepeatedEnumValue(message, field, i)
                                               : reflection->GetEnumValue(message, field);
        if (field->enum_type()->FindValueByNumber(value) == nullptr) return field->name();
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        const std::string inner =
            UnnamedEnum(field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                             : reflection->GetMessage(message, field));
        if (!inner.empty()) return fmt::format("{}.{}", field->name(), inner);
      }
    }
  }
  return "";
}

Status ParseText(const std::string& text, const std::string& file, google::protobuf::Message* message,
                 Locator::Tree* tree) {
  TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(tree);
  parser.SetRecursionLimit(32);
  if (parser.ParseFromString(text, message)) {
    const std::string unnamed = UnnamedEnum(*message);
    if (unnamed.empty()) return Ok();
    return Error{ExitCode::kTrace, file, fmt::format("{} is a number that has no name", unnamed),
                 "write one of the names that frontend/trace/launch.proto lists"};
  }
  std::string what = error.message_.empty() ? "cannot be read" : error.message_;
  if (what.ends_with('.')) what.pop_back();
  const std::string suggestion = SuggestField(message->GetDescriptor(), what);
  return Error{ExitCode::kTrace, fmt::format("{}:{}:{}", file, error.line_, error.column_), std::move(what),
               suggestion.empty() ? "frontend/trace/launch.proto says what a launch description may hold"
                                  : suggestion};
}

}  // namespace heddle::trace

#include "sim/config/validate.h"

#include <fmt/core.h>

#include <cmath>
#include <map>
#include <string>

#include "sim/base/check.h"
#include "sim/config/override.h"
#include "sim/config/scalar.h"

namespace heddle::config {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

double NumberOf(const Message& message, const FieldDescriptor& field, int index) {
  const auto& reflection = *message.GetReflection();
  const bool single = index == kSingular;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return single ? reflection.GetUInt32(message, &field)
                    : reflection.GetRepeatedUInt32(message, &field, index);
    case FieldDescriptor::CPPTYPE_UINT64:
      return static_cast<double>(single ? reflection.GetUInt64(message, &field)
                                        : reflection.GetRepeatedUInt64(message, &field, index));
    default:
      return single ? reflection.GetDouble(message, &field)
                    : reflection.GetRepeatedDouble(message, &field, index);
  }
}

bool IsNumber(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32 ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64 ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
}

bool IsPowerOfTwo(double value) {
  int exponent = 0;
  return value > 0 && std::frexp(value, &exponent) == 0.5;
}

class RuleWalk {
 public:
  explicit RuleWalk(Draft* draft) : draft_(*draft) {}

  void Walk(const Message& message, const std::string& path) {
    const auto& type = *message.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const std::string field_path = Join(path, field.name());
      field.is_repeated() ? List(message, field, field_path) : Single(message, field, field_path);
    }
  }

 private:
  static const pb::Rule& RuleOf(const FieldDescriptor& field) {
    return field.options().GetExtension(pb::rule);
  }
  static bool IsMessage(const FieldDescriptor& field) {
    return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  }

  void Single(const Message& message, const FieldDescriptor& field, const std::string& path) {
    if (!message.GetReflection()->HasField(message, &field)) return Missing(field, path);
    if (IsMessage(field)) return Walk(message.GetReflection()->GetMessage(message, &field), path);
    Number(message, field, kSingular, path);
  }

  void List(const Message& message, const FieldDescriptor& field, const std::string& path) {
    const auto& reflection = *message.GetReflection();
    const int size = reflection.FieldSize(message, &field);
    if (size == 0) return Missing(field, path);
    std::map<std::string, std::string> keys;  // key -> path of the first element that has it
    for (int i = 0; i < size; ++i) {
      const std::string element = Element(path, i);
      if (!IsMessage(field)) {
        Number(message, field, i, element);
        continue;
      }
      const Message& item = reflection.GetRepeatedMessage(message, &field, i);
      Walk(item, element);
      const std::string key = KeyOf(item);
      if (const auto [first, fresh] = keys.emplace(key, element); !fresh && !key.empty()) {
        draft_.Report(element, fmt::format("a second entry for \"{}\", first at {}", key,
                                           draft_.LocationOf(first->second).ToString()));
      }
    }
  }

  void Missing(const FieldDescriptor& field, const std::string& path) {
    if (RuleOf(field).may_be_absent() || draft_.IsBroken(path)) return;
    draft_.Report(path, "missing (" + RuleOf(field).doc() + ")");
  }

  void Number(const Message& message, const FieldDescriptor& field, int index, const std::string& path) {
    if (!IsNumber(field)) return;
    const pb::Rule& rule = RuleOf(field);
    const double value = NumberOf(message, field, index);
    const std::string text = ScalarToString(message, field, index);
    const std::string unit = rule.unit().empty() ? "" : " " + rule.unit();
    const double least = rule.has_min() ? rule.min() : 0;
    if (value < least) {
      draft_.Report(path, fmt::format("must be at least {}{}, not {}", least, unit, text));
    } else if (rule.has_max() && value > rule.max()) {
      draft_.Report(path, fmt::format("must be at most {}{}, not {}", rule.max(), unit, text));
    } else if (rule.pow2() && !IsPowerOfTwo(value)) {
      draft_.Report(path, fmt::format("must be a power of two, not {}", text));
    }
  }

  Draft& draft_;
};

}  // namespace

void FillOldResults(Message* message) {
  const auto& reflection = *message->GetReflection();
  const auto& type = *message->GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    const std::string& old = field.options().GetExtension(pb::rule).in_old_results();
    if (field.is_repeated()) {
      for (int element = 0; is_message && element < reflection.FieldSize(*message, &field); ++element)
        FillOldResults(reflection.MutableRepeatedMessage(message, &field, element));
    } else if (reflection.HasField(*message, &field)) {
      if (is_message) FillOldResults(reflection.MutableMessage(message, &field));
    } else if (!old.empty()) {
      const bool is_number = old.find_first_not_of("0123456789.") == std::string::npos;
      const ScalarText value{is_number ? ScalarText::Kind::kNumber : ScalarText::Kind::kWord, old};
      const std::string fault = SetScalar(value, field, kSingular, message);
      HEDDLE_CHECK(fault.empty(), "config.in_old_results", 0, field.full_name());
    }
  }
}

void CheckRules(Draft* draft) { RuleWalk(draft).Walk(draft->gpu, ""); }

}  // namespace heddle::config

#include "sim/config/override.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/suggest.h"
#include "sim/config/describe.h"
#include "sim/config/scalar.h"

namespace heddle::config {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool IsMessage(const FieldDescriptor& field) { return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE; }

struct Step {
  std::string name;
  std::optional<std::string> key;  // what stands in brackets
};

// "sm.tensor[HMMA.16.8.16.f16.f32].latency_cycles" -> three steps; nothing if it is no path.
std::optional<std::vector<Step>> SplitPath(std::string_view path) {
  std::vector<Step> steps;
  while (!path.empty()) {
    const size_t end = std::min(path.find_first_of(".["), path.size());
    Step step{std::string(path.substr(0, end)), std::nullopt};
    path.remove_prefix(end);
    if (path.starts_with("[")) {
      const size_t close = path.find(']');
      if (close == std::string_view::npos) return std::nullopt;
      step.key = std::string(path.substr(1, close - 1));
      path.remove_prefix(close + 1);
    }
    if (step.name.empty() || (!path.empty() && path[0] != '.')) return std::nullopt;
    if (path == ".") return std::nullopt;
    if (!path.empty()) path.remove_prefix(1);
    steps.push_back(std::move(step));
  }
  return steps.empty() ? std::nullopt : std::optional(std::move(steps));
}

// What papers and data sheets say, and what gpu.proto calls it. A name that ends with a dot stands for all fields below it.
constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {{"hbm.", "dram."},
                                                                       {"l2.slice_count", "l2.slices"}};

class Override {
 public:
  Override(const std::string& text, Draft* draft) : place_{"--set " + text, 0, 0}, draft_(*draft) {}

  void Apply(const std::string& path, const std::string& value) {
    const auto steps = SplitPath(path);
    if (!steps) return Fail("expects a path such as sm.l1.sets before \"=\"");
    Message* message = &draft_.gpu;
    for (size_t i = 0; i < steps->size(); ++i) {
      const Step& step = (*steps)[i];
      const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(step.name);
      if (field == nullptr) {
        const std::string owner = path_.empty() ? "" : path_ + ": ";
        return Fail(owner + "no field \"" + step.name + "\"" +
                    DidYouMean(step.name, FieldNames(*message->GetDescriptor())));
      }
      path_ = Join(path_, step.name);
      if (field->options().GetExtension(pb::rule).source_only()) return Fail(path_ + " belongs in a file");
      const bool last = i + 1 == steps->size();
      if (!IsMessage(*field)) {
        return last ? SetValue(message, *field, step, value) : Fail(path_ + " is a value and has no fields");
      }
      message = Enter(message, *field, step, last);
      if (message == nullptr) return;
    }
  }

 private:
  void Fail(const std::string& message) { draft_.ReportAt(place_, "", message); }

  // The message that `step` leads to; null after a fault.
  Message* Enter(Message* message, const FieldDescriptor& field, const Step& step, bool last) {
    const auto& reflection = *message->GetReflection();
    if (field.is_repeated()) {
      const std::optional<int> index = Index(*message, field, step);
      if (!index) return nullptr;
      path_ = Element(path_, *index);
      message = reflection.MutableRepeatedMessage(message, &field, *index);
    } else if (step.key) {
      Fail(path_ + " is no list");
      return nullptr;
    } else {
      message = reflection.MutableMessage(message, &field);
    }
    if (!last) return message;
    const std::vector<std::string> names = FieldNames(*message->GetDescriptor());
    Fail(fmt::format("{} holds fields: give one of them, as in {}.{}=...", path_, path_, names.front()));
    return nullptr;
  }

  std::optional<int> Index(const Message& message, const FieldDescriptor& field, const Step& step) {
    const auto& reflection = *message.GetReflection();
    const int size = reflection.FieldSize(message, &field);
    if (!step.key) {
      Fail(path_ + " is a list: say which element, as in " + path_ + "[0]");
      return std::nullopt;
    }
    int index = 0;
    const char* end = step.key->data() + step.key->size();
    if (const auto [stop, error] = std::from_chars(step.key->data(), end, index);
        error == std::errc() && stop == end) {
      if (index >= 0 && index < size) return index;
      Fail(fmt::format("{} has {} elements, [0] to [{}]", path_, size, size - 1));
      return std::nullopt;
    }
    std::vector<std::string> keys;
    for (int i = 0; IsMessage(field) && i < size; ++i) {
      keys.push_back(KeyOf(reflection.GetRepeatedMessage(message, &field, i)));
      if (keys.back() == *step.key) return i;
    }
    Fail(fmt::format("{} has no element \"{}\"{}", path_, *step.key, DidYouMean(*step.key, keys)));
    return std::nullopt;
  }

  void SetValue(Message* message, const FieldDescriptor& field, const Step& step, const std::string& value) {
    if (!field.is_repeated()) {
      if (step.key) return Fail(path_ + " is no list");
      return SetOne(message, field, kSingular, value);
    }
    if (value.starts_with("[") && value.ends_with("]") && !step.key) return SetList(message, field, value);
    if (const std::optional<int> index = Index(*message, field, step)) {
      path_ = Element(path_, *index);
      SetOne(message, field, *index, value);
    }
  }

  void SetList(Message* message, const FieldDescriptor& field, const std::string& value) {
    message->GetReflection()->ClearField(message, &field);
    draft_.ForgetElements(path_);
    draft_.SetLocation(path_, place_);
    for (size_t begin = 1; begin + 1 < value.size();) {
      const size_t end = std::min(value.find(',', begin), value.size() - 1);
      SetOne(message, field, kAppend, value.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  void SetOne(Message* message, const FieldDescriptor& field, int index, std::string value) {
    value.erase(0, value.find_first_not_of(' '));
    const bool number =
        !value.empty() && std::string_view("0123456789.-").find(value[0]) != std::string_view::npos;
    ScalarText text{number ? ScalarText::Kind::kNumber : ScalarText::Kind::kWord, value};
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) text.kind = ScalarText::Kind::kString;
    const std::string fault = SetScalar(text, field, index, message);
    if (!fault.empty()) return draft_.ReportAt(place_, path_, fault);
    draft_.SetLocation(path_, place_);
  }

  const Location place_;
  Draft& draft_;
  std::string path_;  // as far as the steps have come
};

}  // namespace

std::string CanonicalPath(const std::string& path) {
  for (const auto& [synonym, name] : kSynonyms) {
    if (path == synonym || (synonym.ends_with('.') && path.starts_with(synonym)))
      return std::string(name) + path.substr(synonym.size());
  }
  return path;
}

void ApplyOverride(const std::string& text, Draft* draft) {
  const size_t equals = text.find('=');
  const std::string path = CanonicalPath(text.substr(0, equals));
  if (equals == std::string::npos || equals + 1 == text.size()) {
    return draft->ReportAt({"--set " + text, 0, 0}, "", "expects path=value, as in l2.size_bytes=100Mi");
  }
  Override(text, draft).Apply(path, text.substr(equals + 1));
}

std::string KeyOf(const Message& element) {
  std::string key;
  const auto& type = *element.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (!field.options().GetExtension(pb::rule).key() || !element.GetReflection()->HasField(element, &field))
      continue;
    std::string value;
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      value = element.GetReflection()->GetString(element, &field);
    } else {
      value = ScalarToString(element, field, kSingular);
    }
    key += (key.empty() ? "" : ".") + value;
  }
  return key;
}

}  // namespace heddle::config

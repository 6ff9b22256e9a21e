#include "sim/config/text_parser.h"

#include <fmt/core.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <set>
#include <string>

#include "sim/base/suggest.h"
#include "sim/config/scalar.h"

namespace heddle::config {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::io::Tokenizer;

bool IsMessage(const FieldDescriptor& field) { return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE; }

// Every function that returns bool returns false once a syntax error has been reported.
class TextParser : private google::protobuf::io::ErrorCollector {
 public:
  TextParser(std::string_view text, std::string_view file, Draft* draft)
      : file_(file),
        draft_(*draft),
        input_(text.data(), static_cast<int>(text.size())),
        tokenizer_(&input_, this) {
    tokenizer_.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
  }

  bool Parse() {
    tokenizer_.Next();
    if (!Fields(&draft_.gpu, "", "")) return false;
    return !failed_;
  }

 private:
  Location Here() { return {file_, tokenizer_.current().line + 1, tokenizer_.current().column + 1}; }
  bool LookingAt(std::string_view text) {
    return tokenizer_.current().text == text && tokenizer_.current().type == Tokenizer::TYPE_SYMBOL;
  }
  bool AtEnd() { return tokenizer_.current().type == Tokenizer::TYPE_END; }

  bool Accept(std::string_view symbol) {
    if (!LookingAt(symbol)) return false;
    tokenizer_.Next();
    return true;
  }

  bool SyntaxError(const Location& location, const std::string& message) {
    if (!failed_) draft_.ReportSyntaxError(location, message);
    failed_ = true;
    return false;
  }

  bool Expected(const std::string& what) {
    const std::string found = AtEnd() ? "the end of the file" : "\"" + tokenizer_.current().text + "\"";
    return SyntaxError(Here(), fmt::format("expected {}, found {}", what, found));
  }

  // The tokenizer's own complaints: unfinished strings, stray characters.
  void AddError(int line, int column, const std::string& message) override {
    SyntaxError({file_, line + 1, column + 1}, message);
  }

  // Fields up to `closing`, which is consumed; up to the end of the file if that is empty.
  bool Fields(Message* message, const std::string& path, std::string_view closing) {
    while (!failed_) {
      if (closing.empty() ? AtEnd() : Accept(closing)) return !failed_;
      if (!Field(message, path)) return false;
      if (!Accept(",")) Accept(";");
    }
    return false;
  }

  bool Field(Message* message, const std::string& path) {
    if (tokenizer_.current().type != Tokenizer::TYPE_IDENTIFIER) return Expected("the name of a field");
    const Location location = Here();
    const std::string name = tokenizer_.current().text;
    tokenizer_.Next();
    const auto& type = *message->GetDescriptor();
    const FieldDescriptor* field = type.FindFieldByName(name);
    if (field == nullptr) {
      Unknown(location, name, path, type);
      return SkipValue(name);
    }
    const std::string field_path = Join(path, name);
    const bool again = !given_.insert(field_path).second;
    if (again && !field->is_repeated()) {
      draft_.ReportAt(location, field_path,
                      fmt::format("given twice, first at line {}", draft_.LocationOf(field_path).line));
      return SkipValue(name);
    }
    draft_.SetLocation(field_path, location);
    if (field->is_repeated() && !again) {
      message->GetReflection()->ClearField(message, field);
      draft_.ForgetElements(field_path);
    }
    return IsMessage(*field) ? MessageValue(message, *field, field_path, location)
                             : ScalarValue(message, *field, field_path, location);
  }

  void Unknown(const Location& location, const std::string& name, const std::string& path,
               const google::protobuf::Descriptor& type) {
    const std::vector<std::string> names = FieldNames(type);
    draft_.ReportAt(location, Join(path, name), "no such field" + DidYouMean(name, names));
    // What was meant is there, under another name: not missing.
    if (const std::string meant = Suggest(name, names); !meant.empty()) draft_.MarkBroken(Join(path, meant));
  }

  bool MessageValue(Message* message, const FieldDescriptor& field, const std::string& path,
                    const Location& location) {
    Accept(":");
    if (LookingAt("[") && field.is_repeated()) {
      tokenizer_.Next();
      if (Accept("]")) return true;
      do {
        if (!OneMessage(message, field, path, Here())) return false;
      } while (Accept(","));
      return Accept("]") || Expected("\",\" or \"]\"");
    }
    if (!LookingAt("{")) {
      draft_.ReportAt(location, path, fmt::format("holds fields: write {} {{ ... }}", field.name()));
      return SkipValue(field.name(), /*after_colon=*/true);
    }
    return OneMessage(message, field, path, location);
  }

  bool OneMessage(Message* message, const FieldDescriptor& field, const std::string& path,
                  const Location& location) {
    if (!Accept("{")) return Expected("\"{\"");
    const auto& reflection = *message->GetReflection();
    if (!field.is_repeated()) return Fields(reflection.MutableMessage(message, &field), path, "}");
    const std::string element = Element(path, reflection.FieldSize(*message, &field));
    draft_.SetLocation(element, location);
    return Fields(reflection.AddMessage(message, &field), element, "}");
  }

  bool ScalarValue(Message* message, const FieldDescriptor& field, const std::string& path,
                   const Location& location) {
    if (LookingAt("{")) {
      draft_.ReportAt(location, path, fmt::format("holds one value: write {}: ...", field.name()));
      return SkipValue(field.name());
    }
    if (!Accept(":")) return Expected(fmt::format("\":\" after \"{}\"", field.name()));
    if (!LookingAt("[")) return OneScalar(message, field, path);
    if (!field.is_repeated()) {
      draft_.ReportAt(location, path, "holds one value, not a list");
      return SkipValue(field.name(), /*after_colon=*/true);
    }
    tokenizer_.Next();
    if (Accept("]")) return true;
    do {
      if (!OneScalar(message, field, path)) return false;
    } while (Accept(","));
    return Accept("]") || Expected("\",\" or \"]\"");
  }

  bool OneScalar(Message* message, const FieldDescriptor& field, const std::string& path) {
    const Location location = Here();
    ScalarText value;
    if (!Scalar(&value)) return false;
    std::string value_path = path;
    if (field.is_repeated()) {
      value_path = Element(path, message->GetReflection()->FieldSize(*message, &field));
      draft_.SetLocation(value_path, location);
    }
    const std::string fault = SetScalar(value, field, field.is_repeated() ? kAppend : kSingular, message);
    if (!fault.empty()) draft_.ReportAt(location, value_path, fault);
    return true;
  }

  bool Scalar(ScalarText* value) {
    const bool negative = Accept("-");
    switch (tokenizer_.current().type) {
      case Tokenizer::TYPE_INTEGER:
      case Tokenizer::TYPE_FLOAT:
        *value = {ScalarText::Kind::kNumber, (negative ? "-" : "") + tokenizer_.current().text};
        tokenizer_.Next();
        return true;
      case Tokenizer::TYPE_IDENTIFIER:
        if (negative) break;
        *value = {ScalarText::Kind::kWord, tokenizer_.current().text};
        tokenizer_.Next();
        return true;
      case Tokenizer::TYPE_STRING:
        if (negative) break;
        value->kind = ScalarText::Kind::kString;
        while (tokenizer_.current().type == Tokenizer::TYPE_STRING && !failed_) {
          Tokenizer::ParseStringAppend(tokenizer_.current().text, &value->text);
          tokenizer_.Next();
        }
        return !failed_;
      default:
        break;
    }
    return Expected("a value");
  }

  // Passes over what follows the name of a field that cannot be used.
  bool SkipValue(const std::string& name, bool after_colon = false) {
    const bool colon = after_colon || Accept(":");
    if (!LookingAt("{") && !LookingAt("[")) {
      ScalarText ignored;
      return colon ? Scalar(&ignored) : Expected(fmt::format("\":\" or \"{{\" after \"{}\"", name));
    }
    std::string open;  // closing brackets that are due, innermost last
    do {
      if (failed_) return false;
      if (AtEnd()) return Expected(fmt::format("\"{}\"", open.back()));
      if (LookingAt("{")) open += '}';
      if (LookingAt("[")) open += ']';
      if (LookingAt("}") || LookingAt("]")) {
        if (tokenizer_.current().text[0] != open.back()) return Expected(fmt::format("\"{}\"", open.back()));
        open.pop_back();
      }
      tokenizer_.Next();
    } while (!open.empty());
    return !failed_;
  }

  const std::string file_;
  Draft& draft_;
  google::protobuf::io::ArrayInputStream input_;
  Tokenizer tokenizer_;
  std::set<std::string> given_;  // paths that this text has set
  bool failed_ = false;
};

}  // namespace

bool ParseText(std::string_view text, std::string_view file, Draft* draft) {
  constexpr size_t kMostBytes = 16u << 20;
  if (text.size() > kMostBytes) {
    draft->ReportSyntaxError({std::string(file), 0, 0}, "longer than 16 MiB: not a machine description");
    return false;
  }
  return TextParser(text, file, draft).Parse();
}

}  // namespace heddle::config

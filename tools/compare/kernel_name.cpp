#include "tools/compare/kernel_name.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "sim/base/demangle.h"

namespace heddle::compare {
namespace {

void ReplaceAll(std::string* text, std::string_view from, std::string_view to) {
  for (size_t at = text->find(from); at != std::string::npos; at = text->find(from, at + to.size())) {
    text->replace(at, from.size(), to);
  }
}

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// "(instance 2)" -> "#2".
void NumberInstances(std::string* text) {
  constexpr std::string_view kStart = "(instance ";
  for (size_t at = text->find(kStart); at != std::string::npos; at = text->find(kStart, at + 1)) {
    const size_t end = text->find(')', at);
    if (end == std::string::npos) return;
    text->replace(at, end - at + 1, "#" + text->substr(at + kStart.size(), end - at - kStart.size()));
  }
}

// "[lambda...]" -> "{lambda...}".
void BraceLambdas(std::string* text) {
  for (size_t at = text->find("[lambda"); at != std::string::npos; at = text->find("[lambda", at + 1)) {
    int depth = 0;
    for (size_t i = at; i < text->size(); ++i) {
      depth += (*text)[i] == '[' ? 1 : (*text)[i] == ']' ? -1 : 0;
      if (depth != 0) continue;
      (*text)[at] = '{';
      (*text)[i] = '}';
      break;
    }
    if (depth != 0) return;
  }
}

std::string WithoutParentheses(std::string_view text) {
  std::string out;
  int depth = 0;
  for (const char c : text) {
    if (c == '(') ++depth;
    if (depth == 0) out += c;
    if (c == ')' && depth > 0) --depth;
  }
  return out;
}

// Behind the last space that is in no brackets.
std::string_view WithoutReturnType(std::string_view text) {
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<' || c == '{' || c == '(' || c == '[') ++depth;
    if ((c == '>' || c == '}' || c == ')' || c == ']') && depth > 0) --depth;
    if (c == ' ' && depth == 0) start = i + 1;
  }
  return text.substr(start);
}

// Words that demanglers write differently: "const" goes, booleans become numbers, numbers lose their suffix.
std::string PlainWords(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (!IsWord(text[i])) {
      if (text[i] != ' ') out += text[i];
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && IsWord(text[end])) ++end;
    std::string word(text.substr(i, end - i));
    if (std::isdigit(static_cast<unsigned char>(word[0]))) {
      while (word.size() > 1 &&
             (word.back() == 'u' || word.back() == 'l' || word.back() == 'U' || word.back() == 'L')) {
        word.pop_back();
      }
    }
    if (word == "true") word = "1";
    if (word == "false") word = "0";
    if (word != "const") out += word;
    i = end;
  }
  return out;
}

}  // namespace

std::string CanonicalKernelName(std::string_view name) {
  std::string text = Demangled(std::string(name));
  ReplaceAll(&text, "<unnamed>", "{anonymous}");
  ReplaceAll(&text, "(anonymous namespace)", "{anonymous}");
  NumberInstances(&text);
  BraceLambdas(&text);
  return PlainWords(WithoutReturnType(WithoutParentheses(text)));
}

std::string FunctionName(std::string_view canonical) {
  int depth = 0;
  size_t start = 0, end = canonical.size();
  for (size_t i = 0; i < canonical.size(); ++i) {
    const char c = canonical[i];
    if (c == '<' && depth == 0) end = i;
    if (c == '<' || c == '{') ++depth;
    if ((c == '>' || c == '}') && depth > 0) --depth;
    if (depth == 0 && c == ':' && i + 1 < canonical.size()) start = i + 1, end = canonical.size();
  }
  return std::string(canonical.substr(start, end < start ? std::string::npos : end - start));
}

std::string DisplayName(std::string_view name) {
  std::string text = Demangled(std::string(name));
  ReplaceAll(&text, "(anonymous namespace)", "<unnamed>");
  // Parameters stand in the last parentheses that are in no brackets.
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<' || text[i] == '{' || text[i] == '[') ++depth;
    if ((text[i] == '>' || text[i] == '}' || text[i] == ']') && depth > 0) --depth;
    if (text[i] == '(' && depth == 0) {
      text.resize(i);
      break;
    }
  }
  return std::string(WithoutReturnType(text));
}

std::string_view CategoryOf(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
#define HEDDLE_CATEGORY(word, kind) {word, kind},
#include "tools/compare/categories.def"
#undef HEDDLE_CATEGORY
  };
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const auto& [word, kind] : kWords) {
    if (lower.find(word) != std::string::npos) return kind;
  }
  return "other";
}

}  // namespace heddle::compare

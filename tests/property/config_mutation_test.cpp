// Damaged machine descriptions: each is refused with an error that names a place, or is a description that survives its
// own canonical text. Never a crash, never an error without words.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "sim/config/load.h"

namespace heddle::config {
namespace {

using Random = std::mt19937_64;

size_t Below(Random* random, size_t bound) {
  return static_cast<size_t>((*random)() % std::max<size_t>(bound, 1));
}

std::string OriginalText() {
  std::ifstream in(std::string(HEDDLE_SOURCE_DIR) + "/arch_configs/h100_sxm5.textproto", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Without comments: damage should meet the language.
std::string WithoutComments(const std::string& text) {
  std::string out;
  bool comment = false;
  for (char c : text) {
    if (c == '#') comment = true;
    if (c == '\n') comment = false;
    if (!comment) out += c;
  }
  return out;
}

size_t TokenEnd(const std::string& text, size_t at) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  size_t end = at + 1;
  while (end < text.size() && is_word(text[at]) && is_word(text[end])) ++end;
  return end;
}

void Damage(std::string* text, Random* random) {
  static const std::string snippets[] = {"{",
                                         "}",
                                         "[",
                                         "]",
                                         ":",
                                         "-",
                                         "\"",
                                         "0",
                                         "4294967296",
                                         "1e400",
                                         "nan",
                                         "true",
                                         "\\",
                                         "# ",
                                         "\n",
                                         "sm {",
                                         "base: \"h100_sxm5\"",
                                         std::string(1, '\0'),
                                         "\xff",
                                         "99999999999999999999",
                                         "0x",
                                         "1.5"};
  const size_t at = Below(random, text->size());
  const size_t length = TokenEnd(*text, at) - at;
  const std::string& snippet = snippets[Below(random, std::size(snippets))];
  switch (Below(random, 9)) {
    case 0:
      text->erase(at, length);
      break;
    case 1:
      text->insert(at, snippet);
      break;
    case 2:
      text->replace(at, length, snippet);
      break;
    case 3:
      text->resize(at);
      break;
    case 4:
      (*text)[at] = static_cast<char>((*random)());
      break;
    case 5:
      text->insert(Below(random, text->size()), text->substr(at, Below(random, 200)));
      break;
    case 6:
      text->erase(at, Below(random, 200));
      break;
    default:  // another digit: often still a machine
      if (const size_t digit = text->find_first_of("0123456789", at); digit != std::string::npos) {
        (*text)[digit] = static_cast<char>('0' + Below(random, 10));
      }
      break;
  }
  if (text->empty()) *text = " ";
}

TEST(ConfigMutation, DamagedDescriptionsAreRefusedOrSound) {
  const std::string original = WithoutComments(OriginalText());
  ASSERT_TRUE(ParseGpu(original, "t.textproto").ok());
  Random random(20240917);
  int refused = 0, accepted = 0;
  for (int i = 0; i < 800; ++i) {
    std::string text = original;
    for (size_t n = 1 + Below(&random, 2); n > 0; --n) Damage(&text, &random);
    const auto gpu = ParseGpu(text, "t.textproto");
    if (gpu.ok()) {
      ++accepted;
      const auto again = ParseGpu(CanonicalText(*gpu), "again.textproto");
      ASSERT_TRUE(again.ok()) << again.error().ToString() << "\nfrom:\n" << text;
      ASSERT_EQ(*again, *gpu) << text;
    } else {
      ++refused;
      ASSERT_EQ(gpu.error().code, ExitCode::kConfiguration);
      ASSERT_NE(gpu.error().message.find(".textproto"), std::string::npos) << gpu.error().ToString();
    }
  }
  // Both outcomes must be common, or the test asks nothing.
  EXPECT_GT(refused, 200);
  EXPECT_GT(accepted, 50);
}

TEST(ConfigMutation, DamagedOverridesAreRefusedOrSound) {
  const std::string originals[] = {"sm.operations[LDS.64.regular].result_cycles=30", "l2.size_bytes=100Mi",
                                   "sms_per_gpc=[18,18,16,16,16,16,16,16]",
                                   "launch.cta_dispatch_interval_cycles=2.5"};
  const std::string name = "h100_sxm5";
  const Gpu base = *LoadGpu(name);
  const std::string text = CanonicalText(base);
  Random random(7);
  for (int i = 0; i < 300; ++i) {
    std::string change = originals[Below(&random, std::size(originals))];
    for (size_t n = 1 + Below(&random, 2); n > 0; --n) Damage(&change, &random);
    const std::vector<std::string> overrides{change};
    const auto gpu = ParseGpu(text, "t.textproto", overrides);
    if (!gpu.ok()) {
      ASSERT_NE(gpu.error().message.find("--set "), std::string::npos) << change << "\n"
                                                                       << gpu.error().ToString();
    }
  }
}

}  // namespace
}  // namespace heddle::config

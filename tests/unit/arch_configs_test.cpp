// The descriptions that are shipped: they load, they are plain protobuf text format, and every number names its source.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "sim/config/convert.h"
#include "sim/config/describe.h"
#include "sim/config/load.h"

namespace heddle::config {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<fs::path> ShippedDescriptions() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(HEDDLE_SOURCE_DIR) / "arch_configs")) {
    if (entry.path().extension() == ".textproto") files.push_back(entry.path());
  }
  return files;
}

// What a comment must contain to count as a source. "assumed", "derived" and "what-if" are honest ones; so is
// "fitted to", which says to what.
bool NamesSource(const std::string& comment) {
  static const std::regex source(
      "Huerta|Luo|Jin|RRZE|MT4G|NAK|ptxas|whitepaper|data "
      "sheet|CUDA|JEDEC|Accel-Sim|LLMCompass|AMALI|FlashGPU-Sim|"
      "H100 port|derived|fitted to|assumed|what-if");
  return std::regex_search(comment, source);
}

// "line N: text" for each line that has a number but no source: neither in a comment at its end, nor in comment lines
// above it in the same paragraph.
std::vector<std::string> NumbersWithoutSource(const std::string& text) {
  static const std::regex number("[:\\[,]\\s*-?\\.?[0-9]");
  static const std::regex quoted("\"[^\"]*\"");
  std::vector<std::string> bad;
  std::istringstream lines(text);
  std::string line, above;
  bool last_was_comment = false;
  for (int i = 1; std::getline(lines, line); ++i) {
    const std::string code = std::regex_replace(line.substr(0, line.find('#')), quoted, "\"\"");
    const std::string comment = line.find('#') == std::string::npos ? "" : line.substr(line.find('#'));
    const bool blank = code.find_first_not_of(' ') == std::string::npos;
    if (blank && comment.empty()) above.clear();
    if (blank && !comment.empty()) above = last_was_comment ? above + comment : comment;
    last_was_comment = blank && !comment.empty();
    if (!std::regex_search(code, number)) continue;
    if (!NamesSource(comment) && !NamesSource(above))
      bad.push_back("line " + std::to_string(i) + ": " + line);
  }
  return bad;
}

TEST(ArchConfigs, LintFindsNumbersWithoutSource) {
  using testing::ElementsAre;
  using testing::IsEmpty;
  EXPECT_THAT(NumbersWithoutSource("a: 1"), ElementsAre("line 1: a: 1"));
  EXPECT_THAT(NumbersWithoutSource("a: 1  # see there"), ElementsAre("line 1: a: 1  # see there"));
  EXPECT_THAT(NumbersWithoutSource("a: [b, 1]\nc { d: -2 }\n"),
              ElementsAre("line 1: a: [b, 1]", "line 2: c { d: -2 }"));
  EXPECT_THAT(NumbersWithoutSource("a: 1  # Luo"), IsEmpty());
  EXPECT_THAT(NumbersWithoutSource("a: \"x: 1\""), IsEmpty());
  EXPECT_THAT(NumbersWithoutSource("# Luo\na: 1\nb: 2"), IsEmpty());
  EXPECT_THAT(NumbersWithoutSource("# Luo\n# and so on\na: 1"), IsEmpty());
  // A paragraph's comment ends with the paragraph, and with the next comment.
  EXPECT_THAT(NumbersWithoutSource("# Luo\na: 1\n\nb: 2"), ElementsAre("line 4: b: 2"));
  EXPECT_THAT(NumbersWithoutSource("# Luo\na: 1\n# and\nb: 2"), ElementsAre("line 4: b: 2"));
}

TEST(ArchConfigs, EveryNumberNamesItsSource) {
  const std::vector<fs::path> files = ShippedDescriptions();
  EXPECT_GE(files.size(), 3u);
  for (const fs::path& file : files) {
    EXPECT_THAT(NumbersWithoutSource(ReadFile(file)), testing::IsEmpty()) << file;
  }
}

TEST(ArchConfigs, AllLoad) {
  for (const fs::path& file : ShippedDescriptions()) {
    const auto gpu = LoadGpu(file.string());
    EXPECT_TRUE(gpu.ok()) << (gpu.ok() ? "" : gpu.error().ToString());
  }
}

// Other programs may read the descriptions with protobuf's own parser: both must see the same.
TEST(ArchConfigs, ProtobufReadsTheSame) {
  for (const fs::path& file : ShippedDescriptions()) {
    const auto gpu = LoadGpu(file.string());
    ASSERT_TRUE(gpu.ok());
    pb::Gpu theirs;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(ReadFile(file), &theirs)) << file;
    if (theirs.has_base()) continue;  // inheritance is ours
    Gpu plain;
    FromProto(theirs, &plain);
    if (plain.sms_per_gpc.empty()) plain.sms_per_gpc = gpu->sms_per_gpc;
    EXPECT_EQ(plain, *gpu) << file;
  }
}

TEST(ArchConfigs, ParameterReferenceIsCurrent) {
  EXPECT_EQ(ReadFile(fs::path(HEDDLE_SOURCE_DIR) / "docs/params.md"), ParamsMarkdown())
      << "run: build/tools/heddle/heddle arch params > docs/params.md";
}

// The hardware facts that the numbers are arithmetic on, computed once more from the resolved structs.
TEST(ArchConfigs, AddUpToWhatTheProductsAreSoldFor) {
  struct Product {
    const char* name;
    double fp16_tflops;  // dense, mma.sync; H100: 62.9 % of 989 at the clock of the whitepaper's figure
    double l2_hit_cycles;
  };
  for (const Product& product : {Product{"a100_sxm4_80gb", 312, 205}, Product{"h100_sxm5", 673, 219}}) {
    const Gpu gpu = *LoadGpu(product.name);
    const TensorTiming& mma = gpu.sm.tensor.front();
    ASSERT_EQ(mma.op + mma.type, "HMMAf16");
    const double ops = 2.0 * mma.m * mma.n * mma.k / mma.initiation_interval_cycles * gpu.sm.sub_core_count;
    EXPECT_NEAR(ops * gpu.sm.count * gpu.clocks.sm_mhz / 1e6, product.fp16_tflops,
                product.fp16_tflops * 0.01);
    const double hit = gpu.sm.l1.miss_latency_cycles + gpu.interconnect.request_latency_cycles +
                       gpu.l2.hit_latency_cycles + gpu.interconnect.reply_latency_cycles +
                       gpu.sm.l1.fill_latency_cycles;
    EXPECT_EQ(hit, product.l2_hit_cycles);
  }
}

}  // namespace
}  // namespace heddle::config

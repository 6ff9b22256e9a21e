// The descriptions that are shipped: they load, they are plain protobuf text format, and every number names its source.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
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
      "sheet|product brief|Jia|CUDA|JEDEC|Accel-Sim|LLMCompass|AMALI|FlashGPU-Sim|"
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

// Operations of the fastest dense matrix instruction, all SMs, in tera a second; 0 where there is none.
double TensorTops(const Gpu& gpu, const char* type, const char* accumulator, double mhz) {
  double best = 0;
  for (const TensorTiming& t : gpu.sm.tensor) {
    const bool any = t.type.empty();  // of an opcode that says what its operands are
    const std::string operands = !any ? t.type : t.op == "HGMMA" ? "f16" : t.op == "IGMMA" ? "s8" : "e4m3";
    if (operands != type || t.accumulator != accumulator || t.sparse) continue;
    const double group = t.op == "HGMMA" || t.op == "QGMMA" || t.op == "IGMMA" ? 1 : gpu.sm.sub_core_count;
    best = std::max(best, group * t.m * t.n * t.k / t.initiation_interval_cycles);
  }
  return 2 * best * gpu.sm.count * mhz / 1e6;
}

// The hardware facts that the numbers are arithmetic on, computed once more from the resolved structs: what the data sheets
// say of dense products at the clock that they are stated for, within 2 %.
struct Product {
  const char* name;
  double fp16, fp16_half, tf32, fp8, int8;  // TFLOPS: fp16 with FP32 and with FP16 accumulation
  double tensor_mhz;
  double fp32;  // TFLOPS at clocks.sm_mhz
  double dram_gb_s;
  uint64_t dram_gib;
  double l2_mib;
};

constexpr Product kProducts[] = {
    {"a100_sxm4_80gb", 312, 312, 156, 0, 624, 1410, 19.5, 2039, 80, 40},
    {"a100_sxm4_40gb", 312, 312, 156, 0, 624, 1410, 19.5, 1555, 40, 40},
    {"a100_pcie_80gb", 312, 312, 156, 0, 624, 1410, 19.5, 1935, 80, 40},
    {"a100_pcie_40gb", 312, 312, 156, 0, 624, 1410, 19.5, 1555, 40, 40},
    {"h100_sxm5", 989, 989, 494, 1979, 1979, 1830, 67, 3350, 80, 50},
    {"h800_sxm", 989, 989, 494, 1979, 1979, 1830, 67, 3350, 80, 50},
    {"h200", 989, 989, 494, 1979, 1979, 1830, 67, 4800, 141, 50},
    {"gh200_96gb", 990, 990, 494, 1979, 1979, 1830, 67, 4000, 96, 60},
    {"h100_pcie", 756, 756, 378, 1513, 1513, 1620, 51, 2039, 80, 50},
    {"a40", 149.7, 149.7, 74.8, 0, 299.3, 1740, 37.4, 696, 48, 6},
    {"rtx3090", 71.2, 142.3, 35.6, 0, 284.6, 1695, 35.6, 936, 24, 6},
    {"l40s", 362, 362, 183, 733, 733, 2520, 91.6, 864, 48, 96},
    {"l40", 181, 181, 90.5, 362, 362, 2490, 90.5, 864, 48, 96},
    {"l4", 121, 121, 60, 242, 242, 2040, 30.3, 300, 24, 48},
    {"rtx4090", 165.2, 330.3, 82.6, 330.3, 660.6, 2520, 82.6, 1008, 24, 72},
    {"t4", 65, 65, 0, 0, 130, 1590, 8.1, 320, 16, 4},
};

TEST(ArchConfigs, AddUpToWhatTheProductsAreSoldFor) {
  const auto close = [](double value, double stated) { return std::abs(value - stated) <= 0.02 * stated; };
  for (const Product& product : kProducts) {
    SCOPED_TRACE(product.name);
    const auto loaded = LoadGpu(product.name);
    ASSERT_TRUE(loaded.ok()) << loaded.error().ToString();
    const Gpu& gpu = *loaded;
    const auto tops = [&](const char* type, const char* accumulator) {
      return TensorTops(gpu, type, accumulator, product.tensor_mhz);
    };
    EXPECT_PRED2(close, tops("f16", "f32"), product.fp16);
    EXPECT_PRED2(close, tops("f16", "f16"), product.fp16_half);
    EXPECT_PRED2(close, tops("tf32", "f32"), product.tf32);
    EXPECT_PRED2(close, tops("e4m3", "f32"), product.fp8);
    EXPECT_PRED2(close, tops("s8", "s32"), product.int8);
    const double fma_lanes = 32 / gpu.sm.pipes.fma.initiation_interval_cycles * gpu.sm.sub_core_count;
    EXPECT_PRED2(close, 2 * fma_lanes * gpu.sm.count * gpu.clocks.sm_mhz / 1e6, product.fp32);
    EXPECT_PRED2(close, gpu.dram.bandwidth_gb_s, product.dram_gb_s);
    EXPECT_EQ(gpu.dram.size_bytes, product.dram_gib << 30);
    EXPECT_EQ(static_cast<double>(gpu.l2.size_bytes) / (1 << 20), product.l2_mib);
  }
}

// Every product that is shipped stands in the table, and is one that measurements can name.
TEST(ArchConfigs, EveryProductIsChecked) {
  std::set<std::string> names, checked;
  for (const fs::path& file : ShippedDescriptions()) {
    if (file.parent_path().filename() != "future") names.insert(file.stem().string());
  }
  for (const Product& product : kProducts) checked.insert(product.name);
  EXPECT_EQ(names, checked);
  std::map<std::string, std::string> by_board;
  for (const fs::path& file : ShippedDescriptions()) {
    const auto gpu = LoadGpu(file.string());
    ASSERT_TRUE(gpu.ok()) << gpu.error().ToString();
    const bool product = file.parent_path().filename() != "future";
    EXPECT_EQ(!gpu->board.names.empty(), product) << gpu->name;
    for (const std::string& board : gpu->board.names) {
      EXPECT_TRUE(by_board.emplace(board, gpu->name).second) << board << " is two machines";
    }
  }
}

// Cycles of a load that hits the near L2, unloaded, by the measurement that the description names.
TEST(ArchConfigs, NearHitsTakeWhatWasMeasured) {
  const std::map<std::string, uint32_t> measured = {{"a100_sxm4_80gb", 205},
                                                    {"h100_sxm5", 219},
                                                    {"gh200_96gb", 280},
                                                    {"a40", 250},
                                                    {"l40", 274},
                                                    {"t4", 188}};
  for (const auto& [name, cycles] : measured) {
    const Gpu gpu = *LoadGpu(name);
    EXPECT_EQ(gpu.sm.l1.miss_latency_cycles + gpu.interconnect.request_latency_cycles +
                  gpu.l2.hit_latency_cycles + gpu.interconnect.reply_latency_cycles +
                  gpu.sm.l1.fill_latency_cycles,
              cycles)
        << name;
  }
}

// What is sold as the same GPU with other memory must be just that.
TEST(ArchConfigs, H200IsAnH100WithOtherMemory) {
  Gpu h200 = *LoadGpu("h200");
  const Gpu h100 = *LoadGpu("h100_sxm5");
  EXPECT_NE(h200.dram, h100.dram);
  h200.dram = h100.dram;
  h200.name = h100.name;
  h200.board.names = h100.board.names;
  EXPECT_EQ(h200, h100);
}

}  // namespace
}  // namespace heddle::config

// Does wgmma compute what the PTX ISA says, for every element type, operand source, swizzle and transposition? Compiled
// by nvcc here, compared with a product in double precision; skipped without nvcc or nvdisasm.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>

#include "frontend/emulator/functional_runner.h"
#include "frontend/emulator/half.h"
#include "frontend/emulator/launch_program.h"
#include "frontend/emulator/loaded_module.h"
#include "frontend/sass/decoder.h"
#include "frontend/sass/disassembler.h"
#include "tests/property/group_matrix/cases.h"
#include "tests/support/shell.h"

namespace heddle::emulator::group_test {
namespace {

using isa::MatrixType;

constexpr uint32_t kRowBytes = 32;  // K is 32 bytes of every type
constexpr uint32_t kThreads = 128;
constexpr uint32_t kOperandB = 16384;  // where B starts in the image
constexpr uint32_t kImageBytes = 65536;

// Rows of A, or columns of B, with their elements in ascending k.
using Rows = std::vector<std::array<uint8_t, kRowBytes>>;

double ValueOf(MatrixType type, const uint8_t* row, uint32_t k) {
  const auto load = [&]<typename T>(T value) {
    std::memcpy(&value, row + k * sizeof(T), sizeof(T));
    return value;
  };
  switch (type) {
    case MatrixType::kF16:
      return HalfToFloat(load(uint16_t{}));
    case MatrixType::kBF16:
      return std::bit_cast<float>(uint32_t{load(uint16_t{})} << 16);
    case MatrixType::kTF32:
      return load(0.0f);
    case MatrixType::kE4M3:
      return E4M3ToFloat(load(uint8_t{}));
    case MatrixType::kE5M2:
      return E5M2ToFloat(load(uint8_t{}));
    case MatrixType::kS8:
      return load(int8_t{});
    case MatrixType::kU8:
      return load(uint8_t{});
    default:
      return row[k / 8] >> (k % 8) & 1;
  }
}

Rows RandomRows(MatrixType type, uint32_t count, std::mt19937& random) {
  std::uniform_real_distribution<float> real(-2, 2);
  Rows rows(count);
  for (auto& row : rows) {
    for (uint32_t i = 0; i < kRowBytes; ++i) row[i] = static_cast<uint8_t>(random());
    for (uint32_t k = 0; k < 256 / isa::BitsOf(type); ++k) {
      const float value = real(random);
      const uint32_t bits = std::bit_cast<uint32_t>(value);
      const auto half = static_cast<uint16_t>(type == MatrixType::kF16 ? FloatToHalf(value) : bits >> 16);
      const uint32_t tf32 = bits & 0xffffe000;
      // Up to 2^(80/8 - 7) and 2^(80/4 - 15): no NaN.
      const auto byte = static_cast<uint8_t>((row[k % kRowBytes] & 0x80) | random() % 80);
      if (type == MatrixType::kF16 || type == MatrixType::kBF16) std::memcpy(&row[2 * k], &half, 2);
      if (type == MatrixType::kTF32) std::memcpy(&row[4 * k], &tf32, 4);
      if (type == MatrixType::kE4M3 || type == MatrixType::kE5M2) row[k] = byte;
    }
  }
  return rows;
}

// The canonical layouts of the PTX ISA, in terms of single elements: Swizzle<bits, 4, 3> of a plain one.
struct Layout {
  uint32_t swizzle = 0;  // bytes; 0: none
  bool transposed = false;
  uint32_t start = 0;  // of the image
  uint32_t shift = 0;  // the swizzle's pattern begins so many times 128 bytes behind its natural boundary

  bool Fits(uint32_t rows) const { return !transposed || swizzle == 0 || rows * 2 % swizzle == 0; }
  uint32_t Leading() const { return swizzle == 0 ? 128 : transposed ? 16 * swizzle : 0; }
  uint32_t Stride() const { return swizzle == 0 ? 256 : 8 * swizzle; }
  uint64_t Descriptor() const {
    const uint64_t mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
    return (start + 128 * shift) >> 4 | uint64_t{Leading() >> 4} << 16 | uint64_t{Stride() >> 4} << 32 |
           uint64_t{shift} << 49 | mode << 62;
  }
  uint32_t Address(uint32_t row, uint32_t byte) const {
    uint32_t linear = 0;
    if (!transposed) {
      linear = swizzle == 0 ? row / 8 * Stride() + row % 8 * 16 + byte / 16 * Leading() + byte % 16
                            : row / 8 * Stride() + row % 8 * swizzle + byte;
    } else {
      const uint32_t k = byte / 2, mn = 2 * row + byte % 2;  // in bytes along M or N
      linear = swizzle == 0 ? mn / 16 * Stride() + mn % 16 + k / 8 * Leading() + k % 8 * 16
                            : mn / swizzle * Leading() + mn % swizzle + k / 8 * Stride() + k % 8 * swizzle;
    }
    const uint32_t pattern = swizzle == 0 ? 0 : swizzle / 16 - 1;
    return start + 128 * shift + (linear ^ (linear >> 7 & pattern) << 4);
  }
};

void Place(const Rows& rows, const Layout& layout, std::vector<uint8_t>& image) {
  for (uint32_t row = 0; row < rows.size(); ++row)
    for (uint32_t byte = 0; byte < kRowBytes; ++byte) image.at(layout.Address(row, byte)) = rows[row][byte];
}

// Thread t of warp w has, of the eight by 16 bytes of each tile, row t / 4 and four bytes t % 4.
std::vector<uint8_t> RegistersOfA(const Rows& rows) {
  std::vector<uint8_t> out(kThreads * 16);
  for (uint32_t thread = 0; thread < kThreads; ++thread)
    for (uint32_t reg = 0; reg < 4; ++reg)
      std::memcpy(&out[16 * thread + 4 * reg],
                  &rows[thread / 32 * 16 + reg % 2 * 8 + thread % 32 / 4][reg / 2 * 16 + thread % 4 * 4], 4);
  return out;
}

// Where element (row, column) of D lies in the threads' registers: PTX ISA, wgmma register fragments.
struct Place2 {
  uint32_t word;  // of all threads' registers, in the kernel's order
  bool high;      // of two halves
};
Place2 PlaceOfD(const Case& c, uint32_t row, uint32_t column) {
  const uint32_t thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
  const bool half = c.d == MatrixType::kF16;
  const uint32_t registers = c.n / (half ? 4 : 2);
  const uint32_t lower = row % 16 / 8;
  if (half) return {thread * registers + column / 8 * 2 + lower, column % 2 != 0};
  return {thread * registers + column / 8 * 4 + 2 * lower + column % 2, false};
}

double ReadD(const Case& c, const std::vector<uint32_t>& words, uint32_t row, uint32_t column) {
  const auto [word, high] = PlaceOfD(c, row, column);
  if (c.d == MatrixType::kF16) return HalfToFloat(static_cast<uint16_t>(words[word] >> (high ? 16 : 0)));
  if (c.d == MatrixType::kF32) return std::bit_cast<float>(words[word]);
  return static_cast<int32_t>(words[word]);
}

struct Compiled {
  std::vector<std::byte> bytes;
  std::string listing;
  std::string skip_reason;
};

// Once for all tests.
const Compiled& CompileCases() {
  static Compiled compiled;
  if (!compiled.bytes.empty() || !compiled.skip_reason.empty()) return compiled;
  const auto nvdisasm = sass::FindDisassembler();
  if (!nvdisasm.ok() || testing_support::Shell("nvcc --version").exit_code != 0) {
    compiled.skip_reason = "no nvdisasm or no nvcc";
    return compiled;
  }
  const testing_support::TemporaryFolder folder;
  std::ofstream(folder / "wgmma.cu") << SourceOf(Cases());
  const auto outcome = testing_support::Shell("nvcc -std=c++17 -cubin -w -arch=sm_90a -o " +
                                              (folder / "wgmma.cubin") + " " + (folder / "wgmma.cu"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  if (outcome.exit_code != 0) return compiled;
  compiled.bytes = sass::ReadFileBytes(folder / "wgmma.cubin").value();
  compiled.listing = sass::RunDisassembler(*nvdisasm, {"-json"}, compiled.bytes, "wgmma.cubin").value();
  return compiled;
}

class GroupMatrix : public testing::Test {
 protected:
  void SetUp() override {
    const Compiled& compiled = CompileCases();
    if (!compiled.skip_reason.empty()) GTEST_SKIP() << compiled.skip_reason;
    ASSERT_FALSE(compiled.bytes.empty());
    listing_ = compiled.listing;
    module_ = LoadedModule::Load(sass::ReadCubin(compiled.bytes, "wgmma.cubin").value(), memory_).value();
    image_ = memory_.Allocate({.name = "image", .size_bytes = kImageBytes}).value();
    rows_ = memory_.Allocate({.name = "rows", .size_bytes = kThreads * 16}).value();
    d_ = memory_.Allocate({.name = "d", .size_bytes = kThreads * 128 * 4}).value();
  }

  // The kernel on this image, from accumulators `d` to `d`.
  void Run(const Case& c, const std::vector<uint8_t>& image, const std::vector<uint8_t>& rows,
           const Layout& a, const Layout& b, int scale, std::vector<uint32_t>& d) {
    ASSERT_TRUE(memory_.Write(image_, std::as_bytes(std::span(image))).ok());
    ASSERT_TRUE(memory_.Write(rows_, std::as_bytes(std::span(rows))).ok());
    ASSERT_TRUE(memory_.Write(d_, std::as_bytes(std::span(d))).ok());
    LaunchDescription launch;
    launch.module = module_.get();
    launch.kernel = module_->cubin().FindKernel(NameOf(c));
    ASSERT_NE(launch.kernel, nullptr);
    auto& code = code_[NameOf(c)];
    if (!code)
      code = std::make_shared<const isa::KernelCode>(
          sass::DecodeListing(listing_, *launch.kernel, 90, "wgmma.cubin").value());
    launch.code = code;
    launch.block = {kThreads, 1, 1};
    launch.dynamic_shared_bytes = kImageBytes;
    launch.immediate_stores = true;
    launch.parameters.resize(launch.kernel->param_bytes);
    const uint64_t values[] = {
        image_, kImageBytes / 16, rows_, d_, a.Descriptor(), b.Descriptor(), static_cast<uint64_t>(scale)};
    for (size_t i = 0; i < std::size(values); ++i) {
      const sass::KernelParameter& parameter = launch.kernel->params.at(i);
      std::memcpy(launch.parameters.data() + parameter.offset, &values[i], parameter.size_bytes);
    }
    const auto run = EmulatedLaunch::Create(std::move(launch));
    ASSERT_TRUE(run.ok()) << run.error().ToString();
    for (const auto& text : (*run)->program()->unsupported()) ADD_FAILURE() << text;
    const auto summary = RunFunctionally(**run);
    ASSERT_TRUE(summary.ok()) << summary.error().ToString();
    for (const auto& issue : (*run)->Issues()) ADD_FAILURE() << issue.kind << " " << issue.detail;
    ASSERT_TRUE(memory_.Read(d_, std::as_writable_bytes(std::span(d))).ok());
  }

  // How many elements of D are further from the product than rounding explains.
  uint32_t CountWrong(const Case& c, uint32_t swizzle_a, uint32_t swizzle_b, int scale, uint32_t shift = 0) {
    std::mt19937 random(c.n + swizzle_a + 7 * swizzle_b);
    const Rows a = RandomRows(c.a, 64, random), b = RandomRows(c.b, c.n, random);
    const Layout layout_a{swizzle_a, c.transposed_a, 0, shift};
    const Layout layout_b{swizzle_b, c.transposed_b, kOperandB, shift};
    std::vector<uint8_t> image(kImageBytes, 0x11);
    if (c.a_in_shared) Place(a, layout_a, image);
    Place(b, layout_b, image);
    std::vector<uint32_t> d(kThreads * c.n / (c.d == MatrixType::kF16 ? 4 : 2));
    for (uint32_t& word : d) {
      const float value = std::uniform_real_distribution<float>(-8, 8)(random);
      const uint32_t half = FloatToHalf(value);
      word = c.d == MatrixType::kF32   ? std::bit_cast<uint32_t>(value)
             : c.d == MatrixType::kF16 ? half | half << 16
             : c.saturates             ? 0x7fffff00u
                                       : static_cast<uint32_t>(random());
    }
    const std::vector<uint32_t> old = d;
    Run(c, image, RegistersOfA(a), layout_a, layout_b, scale, d);
    uint32_t wrong = 0;
    for (uint32_t row = 0; row < 64; ++row)
      for (uint32_t column = 0; column < c.n; ++column)
        wrong += IsWrong(c, a[row], b[column], scale != 0 ? ReadD(c, old, row, column) : 0,
                         ReadD(c, d, row, column))
                     ? 1
                     : 0;
    elements_ += 64 * c.n;
    return wrong;
  }

  static bool IsWrong(const Case& c, const std::array<uint8_t, kRowBytes>& a,
                      const std::array<uint8_t, kRowBytes>& b, double old, double got) {
    const uint32_t k_count = 256 / isa::BitsOf(c.a);
    const double sign = c.negated_a != c.negated_b ? -1 : 1;
    double sum = old, magnitude = std::abs(old);
    for (uint32_t k = 0; k < k_count; ++k) {
      const double product = sign * ValueOf(c.a, a.data(), k) * ValueOf(c.b, b.data(), k);
      sum += product;
      magnitude += std::abs(product);
    }
    if (c.d == MatrixType::kS32) {
      if (c.saturates) return got != std::clamp(sum, -2147483648.0, 2147483647.0);
      return static_cast<uint32_t>(static_cast<int64_t>(got)) !=
             static_cast<uint32_t>(static_cast<int64_t>(sum));
    }
    // One rounding to fp32 for each addition; one to fp16 at the end.
    double allowed = (k_count + 1) * magnitude * 0x1p-24;
    if (c.d == MatrixType::kF16) allowed += std::abs(sum) * 0x1p-11 + 0x1p-24;
    return !(std::abs(got - sum) <= allowed);
  }

  DeviceMemory memory_;
  std::string listing_;
  std::unique_ptr<LoadedModule> module_;
  std::map<std::string, std::shared_ptr<const isa::KernelCode>> code_;
  uint64_t image_ = 0, rows_ = 0, d_ = 0;
  uint64_t elements_ = 0;
};

TEST_F(GroupMatrix, EqualsTheProductInDoublePrecision) {
  uint32_t combinations = 0;
  for (const Case& c : Cases()) {
    if (c.overwrites) continue;
    for (const uint32_t swizzle_b : {0u, 32u, 64u, 128u}) {
      // A has another swizzle than B: neither's is taken for the other's.
      const uint32_t swizzle_a = swizzle_b == 0 ? 128 : swizzle_b == 128 ? 32 : 0;
      if (!Layout{swizzle_b, c.transposed_b}.Fits(c.n)) continue;
      for (const int scale : {0, 1}) {
        ASSERT_EQ(CountWrong(c, swizzle_a, swizzle_b, scale), 0u)
            << NameOf(c) << " swizzle " << swizzle_a << " and " << swizzle_b << " scale " << scale;
        ++combinations;
      }
    }
  }
  RecordProperty("combinations", static_cast<int>(combinations));
  RecordProperty("elements", static_cast<int>(elements_));
  EXPECT_GE(combinations, 280u);
}

TEST_F(GroupMatrix, TheBaseOffsetMovesTheSwizzlesPattern) {
  const Case c{.n = 256};
  for (const uint32_t shift : {1u, 3u, 7u}) EXPECT_EQ(CountWrong(c, 128, 128, 1, shift), 0u) << shift;
}

TEST_F(GroupMatrix, OperandsThatAreOverwrittenInFrontOfTheWaitSpoilTheResult) {
  const Case c = Cases().back();
  ASSERT_TRUE(c.overwrites);
  EXPECT_GT(CountWrong(c, 128, 128, 1), 64 * c.n / 2);
}

}  // namespace
}  // namespace heddle::emulator::group_test

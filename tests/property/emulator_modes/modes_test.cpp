// Does the emulator compute what the kernel says, and does skeleton mode take the same way and touch the same
// addresses as full mode? Kernels are compiled by nvcc here; without it (or nvdisasm) the tests are skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <random>

#include "frontend/emulator/functional_runner.h"
#include "frontend/emulator/half.h"
#include "frontend/emulator/slice_choice.h"
#include "frontend/sass/decoder.h"
#include "frontend/sass/disassembler.h"
#include "tests/support/shell.h"

namespace heddle::emulator {
namespace {

struct Compiled {
  std::vector<std::byte> bytes;
  std::string listing;  // nvdisasm's
  std::string skip_reason;
};

const Compiled& CompiledFor(uint32_t sm_version) {
  static std::map<uint32_t, Compiled> cache;
  const auto [it, fresh] = cache.try_emplace(sm_version);
  Compiled& compiled = it->second;
  if (!fresh) return compiled;
  const Result<std::string> nvdisasm = sass::FindDisassembler();
  if (!nvdisasm.ok()) {
    compiled.skip_reason = "no nvdisasm";
    return compiled;
  }
  if (testing_support::Shell("nvcc --version").exit_code != 0) {
    compiled.skip_reason = "no nvcc";
    return compiled;
  }
  const testing_support::TemporaryFolder folder;
  const std::string cubin = folder / "kernels.cubin";
  const testing_support::Outcome outcome =
      testing_support::Shell("nvcc -std=c++17 -cubin -arch=sm_" + std::to_string(sm_version) + " -o " +
                             cubin + " " + HEDDLE_SOURCE_DIR "/tests/property/emulator_modes/kernels.cu");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  if (outcome.exit_code != 0) return compiled;
  compiled.bytes = sass::ReadFileBytes(cubin).value();
  compiled.listing = sass::RunDisassembler(*nvdisasm, {"-json"}, compiled.bytes, cubin).value();
  return compiled;
}

class EmulatorModes : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    compiled_ = &CompiledFor(GetParam());
    if (!compiled_->skip_reason.empty()) GTEST_SKIP() << compiled_->skip_reason;
    module_ = LoadedModule::Load(sass::ReadCubin(compiled_->bytes, "kernels.cubin").value(), memory_).value();
  }

  template <typename T>
  uint64_t Buffer(const std::string& name, const std::vector<T>& contents) {
    const uint64_t address =
        memory_.Allocate({.name = name, .size_bytes = contents.size() * sizeof(T)}).value();
    EXPECT_TRUE(memory_.Write(address, std::as_bytes(std::span(contents))).ok());
    return address;
  }

  template <typename T>
  std::vector<T> Contents(uint64_t address, size_t count) {
    std::vector<T> out(count);
    EXPECT_TRUE(memory_.Read(address, std::as_writable_bytes(std::span(out))).ok());
    return out;
  }

  template <typename... Arguments>
  LaunchDescription Describe(const std::string& name, Dim3 grid, Dim3 block, Arguments... arguments) {
    LaunchDescription launch;
    launch.module = module_.get();
    launch.kernel = module_->cubin().FindKernel(name);
    EXPECT_NE(launch.kernel, nullptr) << name;
    launch.code = std::make_shared<const isa::KernelCode>(
        sass::DecodeListing(compiled_->listing, *launch.kernel, GetParam(), name).value());
    launch.grid = grid;
    launch.block = block;
    launch.machine.sm_count = 8;
    launch.parameters.resize(launch.kernel->param_bytes);
    size_t next = 0;
    const auto add = [&](const auto& value) {
      const sass::KernelParameter& parameter = launch.kernel->params.at(next++);
      ASSERT_EQ(parameter.size_bytes, sizeof value);
      std::memcpy(launch.parameters.data() + parameter.offset, &value, sizeof value);
    };
    (add(arguments), ...);
    return launch;
  }

  // The slice that was chosen; then the launch itself, in full mode, on the test's memory.
  SliceKind RunBoth(const LaunchDescription& launch) {
    const Result<SliceChoice> choice = ChooseSlice(launch, {.ctas = 0});
    EXPECT_TRUE(choice.ok()) << choice.error().ToString();
    RecordProperty("slice", choice->report);
    report_ = choice->report;
    const auto run = EmulatedLaunch::Create(launch).value();
    EXPECT_TRUE(run->program()->unsupported().empty()) << run->program()->unsupported()[0];
    const Result<RunSummary> summary = RunFunctionally(*run, {.sms = 8, .only_ctas = {}});
    EXPECT_TRUE(summary.ok()) << summary.error().ToString();
    issues_ = run->Issues();
    return choice->slice->kind;
  }

  DeviceMemory memory_;
  const Compiled* compiled_ = nullptr;
  std::unique_ptr<LoadedModule> module_;
  std::vector<isa::StreamIssue> issues_;
  std::string report_;
};

template <typename T>
std::vector<T> Random(size_t count, int low, int high, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> distribution(low, high);
  std::vector<T> out(count);
  for (T& value : out) value = static_cast<T>(distribution(random));
  return out;
}

TEST_P(EmulatorModes, Widths) {
  constexpr int kCount = 100;
  const auto in = Random<int8_t>(kCount * 16, -128, 127);
  const uint64_t x = Buffer("in", in), y = Buffer("out", std::vector<int>(kCount));
  EXPECT_EQ(RunBoth(Describe("Widths", {2}, {64}, x, y, kCount)), SliceKind::kOptimistic) << report_;
  const auto out = Contents<int>(y, kCount);
  for (int i = 0; i < kCount; ++i) {
    const auto at = [&]<typename T>(T, int index) {
      T value;
      std::memcpy(&value,
                  reinterpret_cast<const uint8_t*>(in.data()) + static_cast<size_t>(index) * sizeof(T),
                  sizeof(T));
      return static_cast<uint32_t>(value);
    };
    uint32_t want = at(int8_t{}, i) + 3 * at(uint8_t{}, i) + 5 * at(int16_t{}, i) + 7 * at(uint16_t{}, i) +
                    11 * at(int{}, 2 * i) + 13 * at(int{}, 2 * i + 1);
    const uint32_t factors[] = {17, 19, 23, 29};
    for (int k = 0; k < 4; ++k) want += factors[k] * at(int{}, 4 * i + k);
    EXPECT_EQ(static_cast<uint32_t>(out[static_cast<size_t>(i)]), want) << i;
  }
}

TEST_P(EmulatorModes, Reduce) {
  const auto in = Random<float>(5000, -100, 100);
  const uint64_t x = Buffer("in", in), y = Buffer("out", std::vector<float>(1));
  EXPECT_EQ(RunBoth(Describe("Reduce", {6}, {128}, x, y, 5000)), SliceKind::kOptimistic) << report_;
  EXPECT_EQ(Contents<float>(y, 1)[0], std::accumulate(in.begin(), in.end(), 0.0f));  // exact: whole numbers
}

TEST_P(EmulatorModes, SharedMemorySteers) {
  const auto keys = Random<unsigned>(2 * 300, 0, 1000);
  const uint64_t x = Buffer("keys", keys), y = Buffer("out", std::vector<unsigned>(600));
  EXPECT_NE(RunBoth(Describe("Sort", {2}, {96}, x, y, 300)), SliceKind::kFull) << report_;
  const auto out = Contents<unsigned>(y, 600);
  for (size_t cta = 0; cta < 2; ++cta) {
    std::vector<unsigned> want;
    for (size_t i = 0; i < 300; ++i) want.push_back(keys[cta * 300 + i] & 15);
    std::sort(want.begin(), want.end());
    EXPECT_TRUE(std::equal(want.begin(), want.end(), out.begin() + static_cast<std::ptrdiff_t>(cta * 300)));
  }
}

TEST_P(EmulatorModes, GridBarrier) {
  const uint64_t arrived = Buffer("arrived", std::vector<unsigned>(1)),
                 data = Buffer("data", std::vector<int>(20));
  RunBoth(Describe("GridBarrier", {20}, {32}, arrived, data));
  EXPECT_EQ(Contents<unsigned>(arrived, 1)[0], 60u);
  for (const int value : Contents<int>(data, 20)) EXPECT_EQ(value, 3);
}

TEST_P(EmulatorModes, AGridBarrierThatCannotFinishIsNamed) {
  const uint64_t arrived = Buffer("arrived", std::vector<unsigned>(1)),
                 data = Buffer("data", std::vector<int>(20));
  const auto launch = EmulatedLaunch::Create(Describe("GridBarrier", {20}, {32}, arrived, data)).value();
  const auto summary = RunFunctionally(
      *launch, {.sms = 2, .ctas_per_sm = 4, .max_warp_instructions = 1000000, .only_ctas = {}});
  ASSERT_FALSE(summary.ok());
  EXPECT_EQ(summary.error().code, ExitCode::kDidNotFinish);
  EXPECT_NE(summary.error().message.find("8 CTAs are resident, 12 have not started"), std::string::npos)
      << summary.error().message;
  EXPECT_NE(summary.error().message.find("CTA 0 warp 0 runs at 0x"), std::string::npos);
}

TEST_P(EmulatorModes, LockedSection) {
  const uint64_t lock = Buffer("lock", std::vector<int>(1)), value = Buffer("value", std::vector<int>(1));
  RunBoth(Describe("Lock", {50}, {64}, lock, value));
  EXPECT_EQ(Contents<int>(value, 1)[0], 50 * 49 / 2);
  EXPECT_EQ(Contents<int>(lock, 1)[0], 0);
}

TEST_P(EmulatorModes, PointersIntoEverySpace) {
  std::vector<int> table(16);
  std::iota(table.begin(), table.end(), 100);
  ASSERT_TRUE(module_->SetConstant("table", std::as_bytes(std::span(table))).ok());
  const auto in = Random<int>(128, 0, 1000);
  const uint64_t x = Buffer("in", in), y = Buffer("out", std::vector<int>(128));
  RunBoth(Describe("Pointers", {1}, {128}, x, y, 7));
  const auto out = Contents<int>(y, 128);
  for (size_t t = 0; t < 128; ++t) {
    const size_t i = (7 + t) % 24;
    const int kind = in[t] % 3;
    const int want = kind == 0   ? in[i] + 1
                     : kind == 1 ? in[t] * static_cast<int>(i) + table[(i + t) % 16]
                                 : in[i];
    EXPECT_EQ(out[t], want) << t;
  }
}

TEST_P(EmulatorModes, Atomics) {
  constexpr uint32_t kThreads = 256;
  std::vector<unsigned> u(12, 0);
  u[1] = u[3] = ~0u;
  u[7] = 5;
  const uint64_t pu = Buffer("u", u), ps = Buffer("s", std::vector<int>(2 + kThreads, 0)),
                 pw = Buffer("w", std::vector<uint64_t>(2)), pd = Buffer("d", std::vector<double>(1));
  RunBoth(Describe("Atomics", {4}, {64}, pu, ps, pw, pd));
  const auto got = Contents<unsigned>(pu, 12);
  uint32_t sum = 0, parity = 0;
  for (uint32_t t = 0; t < kThreads; ++t) sum += t, parity ^= t;
  EXPECT_EQ(got[0], sum);
  EXPECT_EQ(got[1], 1000 - (kThreads - 1));
  EXPECT_EQ(got[2], 3 * (kThreads - 1));
  EXPECT_EQ(got[3], 0u);
  EXPECT_EQ(got[4], ~0u);
  EXPECT_EQ(got[5], parity);
  EXPECT_EQ(got[6], kThreads % 100);  // counts 0..99 round
  // Down from 5: six steps to wrap to 99, then a step each.
  EXPECT_EQ(got[7], (5 + 100 * 10 - kThreads) % 100);
  const auto s = Contents<int>(ps, 2 + kThreads);
  EXPECT_EQ(s[0], 5 - static_cast<int>(kThreads - 1));
  EXPECT_EQ(s[1], 0);
  EXPECT_EQ(std::count(s.begin() + 2, s.end(), 1), kThreads);
  const auto w = Contents<uint64_t>(pw, 2);
  EXPECT_EQ(w[0], uint64_t{sum} << 30);
  EXPECT_EQ(w[1], uint64_t{kThreads - 1} << 33);
  EXPECT_EQ(Contents<double>(pd, 1)[0], 0.5 * sum);
}

TEST_P(EmulatorModes, AsynchronousCopyFillsWithZeros) {
  constexpr int kCount = 450;
  const auto in = Random<int>(4 * 512, -1000, 1000);
  const uint64_t x = Buffer("in", in), y = Buffer("out", std::vector<int>(4 * 512));
  EXPECT_EQ(RunBoth(Describe("AsyncCopy", {1}, {128}, x, y, kCount)), SliceKind::kOptimistic) << report_;
  const auto out = Contents<int>(y, 4 * 512);
  for (size_t i = 0; i < 512; ++i) {
    const size_t from = i / 128 * 128 + 127 - i % 128;
    for (size_t k = 0; k < 4; ++k) EXPECT_EQ(out[4 * i + k], from < kCount ? in[4 * from + k] : 0) << i;
  }
}

TEST_P(EmulatorModes, TensorTileThroughLdmatrix) {
  const auto a = Random<int>(256, -32, 32), b = Random<int>(128, -32, 32, 2);
  const auto halves = [](const std::vector<int>& values) {
    std::vector<uint16_t> out;
    for (const int value : values) out.push_back(FloatToHalf(static_cast<float>(value)));
    return out;
  };
  const uint64_t pa = Buffer("a", halves(a)), pb = Buffer("b", halves(b)),
                 y = Buffer("out", std::vector<float>(128));
  EXPECT_EQ(RunBoth(Describe("Tensor", {1}, {32}, pa, pb, y)), SliceKind::kOptimistic) << report_;
  const auto out = Contents<float>(y, 128);
  for (size_t m = 0; m < 16; ++m)
    for (size_t n = 0; n < 8; ++n) {
      int want = 0;
      for (size_t k = 0; k < 16; ++k) want += a[m * 16 + k] * b[k * 8 + n];
      EXPECT_EQ(out[m * 8 + n], static_cast<float>(want)) << m << " " << n;
    }
}

TEST_P(EmulatorModes, DivisionsDoNotMakeDataNeeded) {
  const auto a = Random<float>(300, -1000, 1000), b = Random<float>(300, 1, 1000, 2);
  const uint64_t pa = Buffer("a", a), pb = Buffer("b", b), y = Buffer("out", std::vector<float>(300));
  const LaunchDescription launch = Describe("Divide", {1}, {64}, pa, pb, y, 300);
  EXPECT_EQ(RunBoth(launch), SliceKind::kOptimistic) << report_;
  const auto out = Contents<float>(y, 300);
  for (size_t i = 0; i < 300; ++i) EXPECT_EQ(out[i], a[i] / b[i] + std::sqrt(b[i])) << i;
  const Slice slice = ComputeSlice(*launch.code, *launch.kernel, SliceKind::kOptimistic);
  EXPECT_FALSE(slice.assumed.empty());
  for (size_t i = 0; i < launch.code->instructions.size(); ++i) {
    EXPECT_FALSE(launch.code->instructions[i].op == isa::Op::kLDG && slice.needed[i]) << i;
  }
}

TEST_P(EmulatorModes, ASliceThatLeavesOutAnAddressIsRefused) {
  const uint64_t x = Buffer("in", Random<float>(5000, 0, 9)), y = Buffer("out", std::vector<float>(1));
  const LaunchDescription launch = Describe("Reduce", {6}, {128}, x, y, 5000);
  auto slice = std::make_shared<Slice>(ComputeSlice(*launch.code, *launch.kernel, SliceKind::kOptimistic));
  EXPECT_TRUE(VerifySlice(launch, slice).value());
  uint32_t caught = 0, dropped = 0;
  for (size_t i = 0; i < slice->needed.size(); ++i) {
    if (!slice->needed[i] || EffectOf(launch.code->instructions[i]) != isa::Effect::kLocal) continue;
    if (launch.code->instructions[i].op == isa::Op::kNOP || ++dropped % 3 != 0) continue;
    auto broken = std::make_shared<Slice>(*slice);
    broken->needed[i] = false;
    if (!VerifySlice(launch, broken, {.ctas = 2, .max_warp_instructions = 1 << 20}).value()) ++caught;
  }
  // Some instructions of a slice do not matter for these sizes (the second of two sufficient conditions).
  EXPECT_GT(caught, 0u);
  EXPECT_GE(caught * 3 * 10, dropped * 6) << caught << " of " << dropped / 3;
}

TEST_P(EmulatorModes, AnAccessOutOfBoundsIsReportedAndNotPerformed) {
  const uint64_t x = Buffer("in", std::vector<int>(40, 7)), y = Buffer("out", std::vector<int>(32, 1));
  RunBoth(Describe("OutOfBounds", {1}, {32}, x, y, 20));
  ASSERT_EQ(issues_.size(), 1u);
  EXPECT_EQ(issues_[0].kind, "out_of_bounds");
  EXPECT_EQ(issues_[0].count, 12u);
  EXPECT_NE(issues_[0].detail.find("LDG"), std::string::npos) << issues_[0].detail;
  const auto out = Contents<int>(y, 32);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(out[i], 7);
}

TEST_P(EmulatorModes, DeviceVariablesOutliveLaunches) {
  const uint64_t y = Buffer("out", std::vector<int>(1));
  for (int launch = 0; launch < 3; ++launch) {
    RunBoth(Describe("Count", {1}, {1}, y));
    EXPECT_EQ(Contents<int>(y, 1)[0], launch);
  }
  EXPECT_EQ(Contents<int>(module_->AddressOf("device_counter").value(), 1)[0], 3);
}

INSTANTIATE_TEST_SUITE_P(Architectures, EmulatorModes, testing::Values(80u, 90u),
                         [](const auto& info) { return "sm_" + std::to_string(info.param); });

}  // namespace
}  // namespace heddle::emulator

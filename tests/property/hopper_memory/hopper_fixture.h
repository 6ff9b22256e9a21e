// Kernels of kernels.cu, compiled by nvcc for sm_90a and run in several ways: asynchronous effects at once, and held
// back in three random orders; when the timing model of an H100 says, on one and on several threads, with its SMs in another
// order and with a shorter window, in the same time; skeleton mode must yield the same stream.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>
#include <numeric>
#include <random>

#include "frontend/emulator/functional_runner.h"
#include "frontend/emulator/half.h"
#include "frontend/emulator/slice_choice.h"
#include "frontend/sass/decoder.h"
#include "frontend/sass/disassembler.h"
#include "sim/config/load.h"
#include "sim/gpu/gpu.h"
#include "sim/isa/tensor_map.h"
#include "tests/support/shell.h"

namespace heddle::emulator {

using isa::TensorElement;
using isa::TensorMap;
using isa::TensorSwizzle;

struct Compiled {
  std::vector<std::byte> bytes;
  std::string listing;
  std::string skip_reason;
};

inline const Compiled& Kernels() {
  static const Compiled compiled = [] {
    Compiled out;
    const Result<std::string> nvdisasm = sass::FindDisassembler();
    if (!nvdisasm.ok()) {
      out.skip_reason = "no nvdisasm";
      return out;
    }
    if (testing_support::Shell("nvcc --version").exit_code != 0) {
      out.skip_reason = "no nvcc";
      return out;
    }
    const testing_support::TemporaryFolder folder;
    const std::string cubin = folder / "kernels.cubin";
    const auto outcome =
        testing_support::Shell("nvcc -std=c++17 -cubin -arch=sm_90a -o " + cubin +
                               " " HEDDLE_SOURCE_DIR "/tests/property/hopper_memory/kernels.cu");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    if (outcome.exit_code != 0) return out;
    out.bytes = sass::ReadFileBytes(cubin).value();
    out.listing = sass::RunDisassembler(*nvdisasm, {"-json"}, out.bytes, cubin).value();
    return out;
  }();
  return compiled;
}

struct Coordinates {
  int32_t c[5] = {};
};

template <typename T>
std::vector<T> Random(size_t count, int low, int high, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> distribution(low, high);
  std::vector<T> out(count);
  for (T& value : out) value = static_cast<T>(distribution(random));
  return out;
}

class HopperMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (!Kernels().skip_reason.empty()) GTEST_SKIP() << Kernels().skip_reason;
    ASSERT_FALSE(Kernels().bytes.empty());
    module_ = LoadedModule::Load(sass::ReadCubin(Kernels().bytes, "kernels.cubin").value(), memory_).value();
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
        sass::DecodeListing(Kernels().listing, *launch.kernel, 90, name).value());
    launch.grid = grid;
    launch.block = block;
    launch.machine.sm_count = 4;
    launch.parameters.resize(launch.kernel->param_bytes);
    size_t next = 0;
    const auto add = [&](const auto& value) {
      const sass::KernelParameter& parameter = launch.kernel->params.at(next++);
      ASSERT_EQ(parameter.size_bytes, sizeof value) << name << " " << next - 1;
      std::memcpy(launch.parameters.data() + parameter.offset, &value, sizeof value);
    };
    (add(arguments), ...);
    return launch;
  }

  // On a copy of the memory, which `memory_` becomes when `keep`.
  std::unique_ptr<DeviceMemory> RunOnce(LaunchDescription launch, uint64_t delay_seed) {
    auto memory = memory_.Clone();
    launch.memory = memory.get();
    const auto run = EmulatedLaunch::Create(launch).value();
    EXPECT_TRUE(run->program()->unsupported().empty()) << run->program()->unsupported()[0];
    const Result<RunSummary> summary =
        RunFunctionally(*run, {.sms = 4, .only_ctas = {}, .delay_seed = delay_seed});
    EXPECT_TRUE(summary.ok()) << summary.error().ToString();
    issues_ = run->Issues();
    for (const isa::StreamIssue& issue : issues_) ADD_FAILURE() << issue.kind << ": " << issue.detail;
    return memory;
  }

  // One run on an H100, on a copy of the memory. Errors of the run are the caller's; what the stream has to say is in
  // issues_.
  struct Coupled {
    std::unique_ptr<DeviceMemory> memory;
    Result<std::vector<stats::LaunchStats>> stats;
  };
  Coupled RunOnGpu(LaunchDescription launch, gpu::RunOptions options) {
    static const config::Gpu h100 = config::LoadGpu("h100_sxm5", {}).value();
    auto memory = memory_.Clone();
    launch.memory = memory.get();
    launch.machine.sm_count = h100.sm.count;
    const auto run = EmulatedLaunch::Create(launch).value();
    const gpu::LaunchRequest request{run.get(), launch.kernel->name, 0, {}};
    auto stats = gpu::Gpu(h100, options).Run({&request, 1});
    issues_ = run->Issues();
    return {std::move(memory), std::move(stats)};
  }

  template <typename Check>
  void RunCoupled(const LaunchDescription& launch, Check check) {
    gpu::RunOptions plain, threads, shuffled, windows;
    threads.threads = 3;
    shuffled.shuffle_seed = 7;
    windows.window_fraction = 0.25;
    Cycle cycles = 0;
    for (const gpu::RunOptions& options : {plain, threads, shuffled, windows}) {
      SCOPED_TRACE("coupled: threads " + std::to_string(options.threads) + ", order " +
                   std::to_string(options.shuffle_seed) + ", window " +
                   std::to_string(options.window_fraction));
      const Coupled run = RunOnGpu(launch, options);
      for (const isa::StreamIssue& issue : issues_) ADD_FAILURE() << issue.kind << ": " << issue.detail;
      ASSERT_TRUE(run.stats.ok()) << run.stats.error().ToString();
      check(*run.memory);
      const stats::LaunchStats& stats = run.stats->front();
      if (cycles == 0) cycles = stats.end_cycle - stats.start_cycle;
      EXPECT_EQ(stats.end_cycle - stats.start_cycle, cycles);
    }
  }

  // Checks the results of every order of effects by `check`, and that skeleton mode has the same stream.
  template <typename Check>
  void RunAllWays(const LaunchDescription& launch, Check check, SliceKind at_most = SliceKind::kOptimistic) {
    const Result<SliceChoice> choice = ChooseSlice(launch, {.ctas = 0});
    ASSERT_TRUE(choice.ok()) << choice.error().ToString();
    EXPECT_LE(choice->slice->kind, at_most) << choice->report;
    for (uint64_t seed = 0; seed < 4; ++seed) {
      SCOPED_TRACE("delay seed " + std::to_string(seed));
      const auto memory = RunOnce(launch, seed);
      check(*memory);
    }
    RunCoupled(launch, check);
  }

  DeviceMemory memory_;
  std::unique_ptr<LoadedModule> module_;
  std::vector<isa::StreamIssue> issues_;
};

template <typename T>
std::vector<T> Read(DeviceMemory& memory, uint64_t address, size_t count) {
  std::vector<T> out(count);
  EXPECT_TRUE(memory.Read(address, std::as_writable_bytes(std::span(out))).ok());
  return out;
}

}  // namespace heddle::emulator

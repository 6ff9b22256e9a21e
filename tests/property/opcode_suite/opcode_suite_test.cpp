// Does the emulator compute what the host computes, bit by bit, for code that nvcc made of some two hundred expressions?
// Needs nvcc and nvdisasm; skipped where they are missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>

#include "frontend/emulator/functional_runner.h"
#include "frontend/emulator/launch_program.h"
#include "frontend/emulator/loaded_module.h"
#include "frontend/sass/cubin.h"
#include "frontend/sass/decoder.h"
#include "frontend/sass/disassembler.h"
#include "tests/property/opcode_suite/inputs.h"
#include "tests/property/opcode_suite/reference.h"

namespace suite {
namespace {

using heddle::emulator::DeviceMemory;
using heddle::emulator::EmulatedLaunch;
using heddle::emulator::LoadedModule;

constexpr uint32_t kThreads = 256;

struct Case {
  const char* name;
  uint64_t (*expected)(const Input* w, uint32_t lane);
};

#define HEDDLE_CASE(name, device, host)                                                                   \
  {#name, [](const Input* w, uint32_t lane) -> uint64_t {                                                 \
     [[maybe_unused]] const uint64_t a = w[lane].a, b = w[lane].b, c = w[lane].c;                         \
     [[maybe_unused]] const uint32_t ua = U(a), ub = U(b), uc = U(c), hia = U(a >> 32), hib = U(b >> 32); \
     [[maybe_unused]] const int32_t ia = S(a), ib = S(b);                                                 \
     [[maybe_unused]] const int64_t la = static_cast<int64_t>(a), lb = static_cast<int64_t>(b);           \
     [[maybe_unused]] const float fa = std::bit_cast<float>(ua), fb = std::bit_cast<float>(ub),           \
                                  fc = std::bit_cast<float>(uc);                                          \
     [[maybe_unused]] const double da = std::bit_cast<double>(a), db = std::bit_cast<double>(b),          \
                                   dc = std::bit_cast<double>(c);                                         \
     return static_cast<uint64_t>(host);                                                                  \
   }},

const std::map<std::string, std::vector<Case>>& Families() {
  static const std::map<std::string, std::vector<Case>> families{
      {"integer",
       {
#include "tests/property/opcode_suite/cases_integer.inc"
       }},
      {"float",
       {
#include "tests/property/opcode_suite/cases_float.inc"
       }},
      {"convert",
       {
#include "tests/property/opcode_suite/cases_convert.inc"
       }},
      {"half",
       {
#include "tests/property/opcode_suite/cases_half.inc"
       }},
      {"float_ampere",
       {
#include "tests/property/opcode_suite/cases_float_ampere.inc"
       }},
      {"half_ampere",
       {
#include "tests/property/opcode_suite/cases_half_ampere.inc"
       }},
      {"warp",
       {
#include "tests/property/opcode_suite/cases_warp.inc"
       }},
      {"warp_ampere",
       {
#include "tests/property/opcode_suite/cases_warp_ampere.inc"
       }},
      {"fp8",
       {
#include "tests/property/opcode_suite/cases_fp8.inc"
       }},
  };
  return families;
}

std::vector<std::byte> ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

// The compiled suite for one architecture, in device memory.
struct Module {
  std::vector<std::byte> bytes;
  std::string listing;
  DeviceMemory memory;
  std::unique_ptr<LoadedModule> loaded;
};

bool HasNvcc() { return std::system("command -v nvcc > /dev/null 2>&1") == 0; }

void Compile(const std::string& arch, Module& module) {
  const std::filesystem::path folder(HEDDLE_SOURCE_DIR "/tests/property/opcode_suite");
  const std::filesystem::path cubin =
      std::filesystem::path(HEDDLE_BINARY_DIR) / ("opcode_suite_" + arch + ".cubin");
  const std::string command = "nvcc -std=c++17 -cubin -fmad=false -w -arch=" + arch + " '" +
                              (folder / "suite_kernels.cu").string() + "' -o '" + cubin.string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  module.bytes = ReadFile(cubin);
  const auto nvdisasm = heddle::sass::FindDisassembler();
  ASSERT_TRUE(nvdisasm.ok());
  auto listing = heddle::sass::RunDisassembler(*nvdisasm, {"-json"}, module.bytes, cubin.string());
  ASSERT_TRUE(listing.ok()) << listing.error().ToString();
  module.listing = *listing;
  auto parsed = heddle::sass::ReadCubin(module.bytes, cubin.string());
  ASSERT_TRUE(parsed.ok()) << parsed.error().ToString();
  auto loaded = LoadedModule::Load(std::move(*parsed), module.memory);
  ASSERT_TRUE(loaded.ok()) << loaded.error().ToString();
  module.loaded = std::move(*loaded);
}

class OpcodeSuite : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!HasNvcc()) GTEST_SKIP() << "no nvcc";
    if (!heddle::sass::FindDisassembler().ok()) GTEST_SKIP() << "no nvdisasm";
    Compile(GetParam(), module_);
  }

  // Runs the family's kernel; fails for each case that differs, and counts what was compared.
  void Check(const std::string& family, const std::vector<Case>& cases) {
    SCOPED_TRACE(family);
    const std::vector<Input> inputs = MakeInputs(family, kThreads);
    std::vector<uint64_t> outputs(cases.size() * kThreads);
    ASSERT_NO_FATAL_FAILURE(Run("suite_" + family, inputs, outputs));
    for (size_t k = 0; k < cases.size(); ++k) {
      uint32_t wrong = 0;
      for (uint32_t t = 0; t < kThreads; ++t) {
        const uint64_t expected = cases[k].expected(inputs.data() + t / 32 * 32, t % 32);
        const uint64_t actual = outputs[k * kThreads + t];
        ++compared_;
        if (actual == expected || wrong++ != 0) continue;
        ADD_FAILURE() << cases[k].name << std::hex << ": a = " << inputs[t].a << ", b = " << inputs[t].b
                      << ", c = " << inputs[t].c << ": " << actual << " instead of " << expected;
      }
      if (wrong > 1)
        ADD_FAILURE() << cases[k].name << ": wrong for " << wrong << " of " << kThreads << " inputs";
    }
  }

  void Run(const std::string& name, const std::vector<Input>& inputs, std::vector<uint64_t>& outputs) {
    const heddle::sass::CubinKernel* kernel = nullptr;
    for (const auto& candidate : module_.loaded->cubin().kernels)
      if (candidate.name == name) kernel = &candidate;
    ASSERT_NE(kernel, nullptr);
    auto code =
        heddle::sass::DecodeListing(module_.listing, *kernel, module_.loaded->cubin().sm_version, name);
    ASSERT_TRUE(code.ok()) << code.error().ToString();

    const auto in_bytes = std::as_bytes(std::span(inputs));
    const auto out_bytes = std::as_writable_bytes(std::span(outputs));
    const auto in = module_.memory.Allocate({.name = "in", .size_bytes = in_bytes.size()});
    const auto out = module_.memory.Allocate({.name = "out", .size_bytes = out_bytes.size()});
    ASSERT_TRUE(in.ok() && out.ok());
    ASSERT_TRUE(module_.memory.Write(*in, in_bytes).ok());

    heddle::emulator::LaunchDescription description;
    description.module = module_.loaded.get();
    description.kernel = kernel;
    description.code = std::make_shared<const heddle::isa::KernelCode>(std::move(*code));
    description.block = {kThreads, 1, 1};
    description.immediate_stores = true;
    description.parameters.resize(20);
    const uint32_t count = kThreads;
    std::memcpy(description.parameters.data(), &*in, 8);
    std::memcpy(description.parameters.data() + 8, &*out, 8);
    std::memcpy(description.parameters.data() + 16, &count, 4);
    auto launch = EmulatedLaunch::Create(std::move(description));
    ASSERT_TRUE(launch.ok()) << launch.error().ToString();
    EXPECT_THAT((*launch)->program()->unsupported(), testing::IsEmpty());
    const auto summary = heddle::emulator::RunFunctionally(**launch);
    ASSERT_TRUE(summary.ok()) << summary.error().ToString();
    for (const auto& issue : (*launch)->Issues())
      ADD_FAILURE() << issue.kind << " " << issue.detail << " (" << issue.count << ")";
    ASSERT_TRUE(module_.memory.Read(*out, out_bytes).ok());
  }

  Module module_;
  uint64_t compared_ = 0;
};

TEST_P(OpcodeSuite, EqualsTheHostBitByBit) {
  const int version = std::stoi(std::string(GetParam()).substr(3));
  for (const auto& [family, cases] : Families()) {
    const int first = family == "fp8" ? 89 : family.ends_with("ampere") ? 80 : 75;
    if (version >= first) Check(family, cases);
  }
  RecordProperty("compared", static_cast<int>(compared_));
  EXPECT_GE(compared_, 10000u);
}

INSTANTIATE_TEST_SUITE_P(Architectures, OpcodeSuite, testing::Values("sm_75", "sm_80", "sm_86", "sm_89", "sm_90"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace suite

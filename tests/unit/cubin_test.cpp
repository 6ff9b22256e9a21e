// What ReadCubin takes out of a cubin, on files built by hand.
#include "frontend/sass/cubin.h"

#include <gtest/gtest.h>

#include "tests/support/cubin_builder.h"

namespace heddle::sass {
namespace {

using heddle::testing::BuildCubin;
using heddle::testing::CubinSpec;

CubinSpec TwoInstructions() {
  CubinSpec spec;
  spec.code = {{0x794d, 0x000fea0003800000}, {0x794d, 0x000fea0003800000}};  // EXIT, twice
  return spec;
}

TEST(ReadCubin, KernelOfBothAbis) {
  for (const uint8_t abi : {uint8_t{7}, uint8_t{8}}) {
    CubinSpec spec = TwoInstructions();
    spec.abi = abi;
    spec.sm_version = 90;
    spec.shared_bytes = 1024 + 512;
    spec.function = "$k$helper";
    const auto bytes = BuildCubin(spec);
    const auto cubin = ReadCubin(bytes, "a.cubin");
    ASSERT_TRUE(cubin.ok()) << cubin.error().ToString();
    EXPECT_EQ(cubin->sm_version, 90u);
    EXPECT_EQ(cubin->abi, abi);
    ASSERT_EQ(cubin->kernels.size(), 1u);
    const CubinKernel& kernel = cubin->kernels[0];
    EXPECT_EQ(kernel.name, "k");
    EXPECT_EQ(kernel.registers, 16u);
    EXPECT_EQ(kernel.local_bytes, 24u);  // the larger of frame (8) and minimum stack (24)
    EXPECT_EQ(kernel.static_shared_bytes, 1536u);
    EXPECT_EQ(kernel.barriers, 3u);
    EXPECT_EQ(kernel.code.size(), 32u);
    EXPECT_EQ(kernel.max_block, (Dim3{256, 1, 1}));
    EXPECT_EQ(kernel.required_block, std::nullopt);
    EXPECT_EQ(kernel.constant0_bytes, 0x160u + 64);
    ASSERT_EQ(kernel.functions.size(), 2u);
    EXPECT_EQ(kernel.functions[1].name, "$k$helper");
    EXPECT_EQ(kernel.functions[1].offset, 16u);
    ASSERT_EQ(kernel.indirect_branches.size(), 1u);
    EXPECT_EQ(kernel.indirect_branches[0].offset, 0x10u);
    EXPECT_EQ(kernel.indirect_branches[0].targets, (std::vector<uint32_t>{0x00, 0x10}));
  }
}

TEST(ReadCubin, Parameters) {
  const auto cubin = ReadCubin(BuildCubin(TwoInstructions()), "a.cubin");
  ASSERT_TRUE(cubin.ok());
  const CubinKernel& kernel = cubin->kernels[0];
  EXPECT_EQ(kernel.param_base, 0x160u);
  EXPECT_EQ(kernel.param_bytes, 12u);
  EXPECT_EQ(kernel.params, (std::vector<KernelParameter>{{0, 0, 8}, {1, 8, 4}}));
}

TEST(ReadCubin, GlobalsConstantsAndRelocations) {
  const auto cubin = ReadCubin(BuildCubin(TwoInstructions()), "a.cubin");
  ASSERT_TRUE(cubin.ok());
  ASSERT_EQ(cubin->data.size(), 2u);
  EXPECT_EQ(cubin->data[0].name, ".nv.global.init");
  EXPECT_EQ(cubin->data[0].bytes.size(), 16u);
  EXPECT_EQ(cubin->data[1].name, ".nv.global");
  EXPECT_EQ(cubin->data[1].size_bytes, 64u);
  EXPECT_TRUE(cubin->data[1].bytes.empty());
  EXPECT_EQ(cubin->constant3.bytes.size(), 16u);
  ASSERT_EQ(cubin->constant4.relocations.size(), 1u);
  const Relocation& relocation = cubin->constant4.relocations[0];
  EXPECT_EQ(relocation.symbol, "counter");
  EXPECT_EQ(relocation.target, Relocation::Target::kData);
  EXPECT_EQ(relocation.data_index, 1u);
  EXPECT_EQ(relocation.addend, 8u);
  ASSERT_EQ(cubin->variables.size(), 3u);
  EXPECT_EQ(cubin->variables[0].name, "table");
  EXPECT_EQ(cubin->variables[0].space, GlobalVariable::Space::kConstant);
  EXPECT_EQ(cubin->variables[1].name, "counter");
  EXPECT_EQ(cubin->variables[1].data_index, 1u);
}

TEST(ReadCubin, FunctionsOfTheDriverNeedNoDefinition) {
  CubinSpec spec = TwoInstructions();
  spec.undefined = "__assertfail";
  const auto cubin = ReadCubin(BuildCubin(spec), "a.cubin");
  ASSERT_TRUE(cubin.ok()) << cubin.error().ToString();
  EXPECT_EQ(cubin->constant4.relocations.size(), 1u);  // that of "counter"

  spec.undefined = "helper";
  const auto unlinked = ReadCubin(BuildCubin(spec), "a.cubin");
  ASSERT_FALSE(unlinked.ok());
  EXPECT_NE(unlinked.error().message.find("helper"), std::string::npos);
}

TEST(ReadCubin, ErrorsStateThePlace) {
  const auto no_elf = ReadCubin(std::vector<std::byte>(100), "x.cubin");
  ASSERT_FALSE(no_elf.ok());
  EXPECT_EQ(no_elf.error().code, ExitCode::kTrace);
  EXPECT_EQ(no_elf.error().place, "x.cubin @ offset 0x0");

  auto bytes = BuildCubin(TwoInstructions());
  bytes.resize(bytes.size() - 1);
  const auto cut = ReadCubin(bytes, "x.cubin");
  ASSERT_FALSE(cut.ok());
  EXPECT_NE(cut.error().message.find("section table"), std::string::npos) << cut.error().message;

  CubinSpec old = TwoInstructions();
  old.sm_version = 61;
  const auto unsupported = ReadCubin(BuildCubin(old), "x.cubin");
  ASSERT_FALSE(unsupported.ok());
  EXPECT_NE(unsupported.error().message.find("sm_61"), std::string::npos);
}

}  // namespace
}  // namespace heddle::sass

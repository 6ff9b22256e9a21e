#include <gtest/gtest.h>

#include "sim/isa/opcode.h"

namespace heddle::isa {
namespace {

TEST(Opcode, NamesRoundTrip) {
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    EXPECT_EQ(OpFromName(Name(op)), op);
  }
  EXPECT_EQ(OpFromName("NOSUCHOP"), std::nullopt);
}

TEST(Opcode, ModifiersAreSpeltAsPrinted) {
  EXPECT_EQ(ModFromName("16816"), Mod::k16816);
  EXPECT_EQ(Name(Mod::kF16x2), "F16x2");
}

TEST(Opcode, PipesCarryProfilerNames) {
  EXPECT_EQ(Name(PipeOf(Op::kHMMA)), "tensor");
  EXPECT_EQ(Name(PipeOf(Op::kLDG)), "lsu");
}

}  // namespace
}  // namespace heddle::isa

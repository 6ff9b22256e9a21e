// Code without control bits: registers decide when an instruction issues. What a scoreboard must reach is what a
// compiler's barriers reach for the same instructions.
#include "tests/component/sm_fixture.h"

namespace heddle::sm {
namespace {

using isa::AccessKind;
using isa::MemorySpace;
using isa::Mod;
using stats::Stall;

class ScoreboardTest : public SmTest {
 protected:
  void SetUp() override { code.has_control_bits = false; }

  // When the last instruction but EXIT issues, with the scoreboard or with the control bits.
  Cycle LastIssue(bool control_bits) {
    code.has_control_bits = control_bits;
    stream.executed.clear();
    stats = {};
    now = 0;
    Run();
    return IssuedAt(static_cast<uint32_t>(code.instructions.size()) - 2);
  }
  void ExpectSameAsControlBits() {
    Exit();
    const Cycle wanted = LastIssue(true);
    EXPECT_EQ(LastIssue(false), wanted);
    EXPECT_GT(wanted, 5u) << "the test has nothing to wait for";
  }
};

// pipes.alu: 4 cycles, whatever the stall counts say; nothing to wait for: the next cycle.
TEST_F(ScoreboardTest, FixedLatencies) {
  Append(Make(Op::kIADD3, Bits(15), {Destination(1), Register(2)}));
  Append(Make(Op::kIADD3, Bits(15), {Destination(3), Register(1)}));
  Append(Make(Op::kFADD, Bits(15), {Destination(4), Register(5)}));
  Append(Make(Op::kFADD, Bits(1), {Destination(6), Register(4)}));
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(1), 4u);
  EXPECT_EQ(IssuedAt(2), 5u);
  EXPECT_EQ(IssuedAt(3), 9u);
  EXPECT_EQ(SlotsAt(1, Stall::k_wait), 3u);
  EXPECT_EQ(Slots(Stall::k_dispatch_stall), 0u);
}

TEST_F(ScoreboardTest, LoadedValueIsWaitedFor) {
  Append(Make(Op::kLDG, Bits(1, 0, 0), {Destination(4), Memory(2)}));
  Append(Make(Op::kIADD3, Bits(1, 1), {Destination(5), Register(4)}));
  stream.accesses[0] = [](uint32_t) {
    return Access(MemorySpace::kGlobal, AccessKind::kLoad, 4, 0x10000, 4);
  };
  ExpectSameAsControlBits();
  EXPECT_GT(SlotsAt(1, Stall::k_long_scoreboard), 100u);
}

// The third register of a 128-bit load, from L1 the second time: known at issue.
TEST_F(ScoreboardTest, EveryRegisterOfAWideLoad) {
  for (int i = 0; i < 2; ++i) {
    Append(Make(Op::kLDG, Bits(1, 0, 0), {Destination(4, 4), Memory(2)}, {Mod::k128}));
    Append(Make(Op::kIADD3, Bits(1, 1), {Destination(9), Register(6)}));
  }
  for (const uint32_t i : {0u, 2u})
    stream.accesses[i] = [](uint32_t) {
      return Access(MemorySpace::kGlobal, AccessKind::kLoad, 16, 0x10000, 16);
    };
  ExpectSameAsControlBits();
}

TEST_F(ScoreboardTest, SharedMemoryAndSpecialFunctions) {
  Append(Make(Op::kLDS, Bits(1, 0, 0), {Destination(4), Memory(2)}));
  Append(Make(Op::kMUFU, Bits(1, 1, 1), {Destination(5), Register(4)}));
  Append(Make(Op::kFADD, Bits(1, 2), {Destination(6), Register(5)}));
  stream.accesses[0] = [](uint32_t) { return Access(MemorySpace::kShared, AccessKind::kLoad, 4, 0, 4); };
  ExpectSameAsControlBits();
  EXPECT_GT(SlotsAt(2, Stall::k_short_scoreboard), 0u);
}

// A register that a load is still to write may not be written before.
TEST_F(ScoreboardTest, WriteAfterWrite) {
  Append(Make(Op::kLDG, Bits(1, 0, 0), {Destination(4), Memory(2)}));
  Append(Make(Op::kMOV, Bits(1, 1), {Destination(4), Register(7)}));
  stream.accesses[0] = [](uint32_t) {
    return Access(MemorySpace::kGlobal, AccessKind::kLoad, 4, 0x10000, 4);
  };
  ExpectSameAsControlBits();
}

// Nor one that a store is still to read: the read barrier's time, not the write's.
TEST_F(ScoreboardTest, WriteAfterRead) {
  Append(Make(Op::kSTG, Bits(1, 0, isa::kNoBarrier, 0), {Memory(2), Register(4)}));
  Append(Make(Op::kMOV, Bits(1, 1), {Destination(4), Register(7)}));
  stream.accesses[0] = [](uint32_t) {
    return Access(MemorySpace::kGlobal, AccessKind::kStore, 4, 0x10000, 4);
  };
  ExpectSameAsControlBits();
  EXPECT_EQ(Slots(Stall::k_long_scoreboard), 0u);
}

TEST_F(ScoreboardTest, IndependentLoadsOverlap) {
  for (uint8_t i = 0; i < 4; ++i) {
    Append(Make(Op::kLDG, Bits(1, 0, i), {Destination(static_cast<uint8_t>(8 + i)), Memory(2)}));
    stream.accesses[i] = [i](uint32_t) {
      return Access(MemorySpace::kGlobal, AccessKind::kLoad, 4, 0x10000 + 0x1000 * uint64_t{i}, 4);
    };
  }
  Append(Make(Op::kIADD3, Bits(1, 15), {Destination(5), Register(8), Register(9), Register(11)}));
  ExpectSameAsControlBits();
}

// A second warp of the slot starts with clean registers.
TEST_F(ScoreboardTest, NothingIsLeftForTheNextCta) {
  Append(Make(Op::kIADD3, Bits(1), {Destination(5), Register(4)}));
  Append(Make(Op::kLDG, Bits(1), {Destination(4), Memory(2)}));
  stream.accesses[1] = [](uint32_t) {
    return Access(MemorySpace::kGlobal, AccessKind::kLoad, 4, 0x10000, 4);
  };
  Exit();
  Build(1);
  sm->StartCta(launch, {0, 0, 0}, 0);
  for (int i = 0; i < 20; ++i) {
    for (memory::MemoryRequest& request : sm->outbox())
      request.reply_cycle = std::max(now, request.cycle + kMemoryLatency);
    sm->TakeReplies(now);
    sm->RunWindow(now, now + kWindow);
    now += kWindow;
  }
  ASSERT_TRUE(sm->Idle());
  sm->TakeReplies(now);
  sm->StartCta(launch, {1, 0, 0}, now);
  RunToEnd();
  EXPECT_EQ(SlotsAt(0, Stall::k_long_scoreboard), 0u);
}

}  // namespace
}  // namespace heddle::sm

// How much is a right answer worth? Random instructions are skipped, or their result is changed; a mutant that changes what
// the timing model sees (pcs, lanes, addresses) must be noticed by the numeric check or by a fault.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "frontend/emulator/device_memory.h"
#include "frontend/emulator/functional_runner.h"
#include "frontend/emulator/launch_program.h"
#include "frontend/emulator/lowering.h"
#include "frontend/trace/check.h"
#include "sim/config/load.h"
#include "tests/support/kernel_traces.h"
#include "tools/replay/replay.h"

namespace heddle {
namespace {

using emulator::Context;
using emulator::Lowered;

constexpr int kMutantsPerKernel = 70;

enum class Mutation { kSkip, kAddFour, kFlipPredicate };

emulator::Handler g_original = nullptr;  // of the one mutated instruction

void RunAndAddFour(Context& context, const Lowered& lowered) {
  g_original(context, lowered);
  emulator::Row& row = context.Destination(lowered);
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane) row.lane[lane] += context.lanes >> lane & 1 ? 4 : 0;
}

void RunAndFlipPredicate(Context& context, const Lowered& lowered) {
  g_original(context, lowered);
  context.predicates[lowered.destination_predicate[0]] ^= context.lanes;
}

// False where the instruction has nothing of the kind to change.
bool Mutate(Lowered& lowered, Mutation mutation) {
  g_original = lowered.run;
  switch (mutation) {
    case Mutation::kSkip:
      lowered.run = &emulator::RunNothing;
      lowered.step_kind = isa::StepKind::kLocal;
      return true;
    case Mutation::kAddFour:
      if (lowered.destination[0] == emulator::kDiscardRow) return false;
      lowered.run = &RunAndAddFour;
      return true;
    case Mutation::kFlipPredicate:
      if (lowered.destination_predicate[0] == emulator::kDiscardPredicate) return false;
      lowered.run = &RunAndFlipPredicate;
      return true;
  }
  return false;
}

struct Outcome {
  bool finished = false;
  bool faults = false;  // an issue was reported: out of bounds, unsupported, ...
  uint64_t stream_hash = 0;
  uint64_t warp_instructions = 0;
  bool right = false;
};

struct Tally {
  int mutants = 0;
  int changed = 0;  // the stream
  int caught = 0;   // of those
};

class Subject {
 public:
  Subject(const trace::Trace& trace, const config::Gpu& gpu) : trace_(trace), gpu_(gpu) {
    replay::Options options;
    options.mode = replay::Mode::kFull;
    auto replay = replay::Replay::Open(trace, gpu, options);
    EXPECT_TRUE(replay.ok());
    replay_ = std::move(replay).value();
    auto launch = replay_->PrepareEmulated(0);
    EXPECT_TRUE(launch.ok());
    launch_ = *launch;
  }

  Outcome Run(std::shared_ptr<const emulator::Program> program, uint64_t limit) {
    const auto memory = replay_->memory().Clone();
    emulator::LaunchDescription description = launch_->description();
    description.memory = memory.get();
    description.program = std::move(program);
    Outcome out;
    auto launch = emulator::EmulatedLaunch::Create(std::move(description));
    EXPECT_TRUE(launch.ok()) << launch.error().ToString();
    if (!launch.ok()) return out;
    emulator::RunnerOptions runner;
    runner.sms = gpu_.sm.count;
    runner.hash_stream = true;
    runner.max_warp_instructions = limit;
    const auto summary = emulator::RunFunctionally(**launch, runner);
    out.finished = summary.ok();
    if (!out.finished) return out;
    out.faults = !(*launch)->Issues().empty();
    out.stream_hash = summary->stream_hash;
    out.warp_instructions = summary->warp_instructions;
    const auto read = [&](uint64_t address, std::span<std::byte> bytes) {
      return memory->Read(address, bytes);
    };
    const auto check = trace::RunCheck(trace_, replay_->resolved(), read);
    EXPECT_TRUE(check.ok()) << check.error().ToString();
    out.right = check.ok() && check->passed();
    return out;
  }

  const emulator::Program& program() const { return *launch_->program(); }

 private:
  const trace::Trace& trace_;
  const config::Gpu& gpu_;
  std::unique_ptr<replay::Replay> replay_;
  emulator::EmulatedLaunch* launch_ = nullptr;
};

Tally TestMutants(Subject& subject, const std::string& name, std::mt19937_64& random) {
  Tally tally;
  const Outcome truth = subject.Run(nullptr, 0);
  EXPECT_TRUE(truth.finished && !truth.faults && truth.right) << name << " is wrong before it is mutated";
  const uint64_t limit = 4 * truth.warp_instructions + 10'000;
  for (int attempts = 0; tally.mutants < kMutantsPerKernel && attempts < 20 * kMutantsPerKernel; ++attempts) {
    auto mutant = std::make_shared<emulator::Program>(subject.program());
    const auto index = static_cast<uint32_t>(random() % mutant->size());
    const auto mutation = static_cast<Mutation>(random() % 3);
    const isa::Op op = mutant->code().instructions[index].op;
    if (op == isa::Op::kNOP || !Mutate(mutant->steps[index], mutation)) continue;
    const uint32_t local = mutant->ahead_begin[index];
    if (mutant->ahead_begin[index + 1] > local) Mutate(mutant->ahead[local], mutation);
    ++tally.mutants;
    const Outcome outcome = subject.Run(mutant, limit);
    if (outcome.finished && outcome.stream_hash == truth.stream_hash) continue;
    ++tally.changed;
    if (!outcome.finished || outcome.faults || !outcome.right) {
      ++tally.caught;
    } else {
      fmt::print("missed in {}: {}, mutation {}\n", name, isa::ToString(mutant->code().instructions[index]),
                 static_cast<int>(mutation));
    }
  }
  return tally;
}

TEST(Mutation, ChangesOfTheStreamAreCaught) {
  const char* const kernels[] = {"cuda/rms_norm",
                                 "cuda/layer_norm",
                                 "cuda/softmax",
                                 "cuda/silu_and_mul",
                                 "cuda/rope",
                                 "cuda/topk_gating",
                                 "cuda/embedding",
                                 "cuda/histogram",
                                 "cuda/gemm",
                                 "cuda/fp8_quant",
                                 "cuda/flash_attention",
                                 "cuda/fused_add_rms_norm",
                                 "cuda/paged_attention_decode"};
  const auto gpu = config::LoadGpu("a100_sxm4_80gb");
  ASSERT_TRUE(gpu.ok()) << gpu.error().ToString();
  std::mt19937_64 random(3);
  Tally sum;
  for (const char* name : kernels) {
    const test::KernelCase kernel{name, "sm_80"};
    if (const auto missing = test::MissingTool(kernel)) GTEST_SKIP() << *missing;
    const auto trace = test::BuildKernel(kernel);
    ASSERT_TRUE(trace.has_value());
    Subject subject(*trace, *gpu);
    const Tally tally = TestMutants(subject, name, random);
    fmt::print("{:28} {:3} mutants, {:3} change the stream, {:3} of them caught\n", name, tally.mutants,
               tally.changed, tally.caught);
    sum.mutants += tally.mutants;
    sum.changed += tally.changed;
    sum.caught += tally.caught;
  }
  fmt::print("{} mutants, {} change the stream, {} of them caught ({:.1f} %)\n", sum.mutants, sum.changed,
             sum.caught, 100.0 * sum.caught / sum.changed);
  EXPECT_GE(sum.changed, 200);
  EXPECT_GE(sum.caught * 100, sum.changed * 93);
}

}  // namespace
}  // namespace heddle

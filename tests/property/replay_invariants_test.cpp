// What must hold of every replay of the committed kernels, whatever the numbers are: the same result on any number of
// threads, in any order and with any window length; no time below what the machine could do at best; and no mechanism
// of the model without an effect.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "frontend/trace/htrace.h"
#include "sim/config/load.h"
#include "sim/gpu/gpu.h"
#include "tools/analysis/bounds.h"
#include "tools/analysis/code_text.h"
#include "tools/replay/replay.h"

namespace heddle {
namespace {

struct Kernel {
  std::string trace;
  trace::Symbols defines;  // small enough for a test
  std::string machine = "a100_sxm4_80gb";
};

void PrintTo(const Kernel& kernel, std::ostream* out) { *out << kernel.trace; }

const Kernel kGemm{"gemm.sm_80.htrace", {{"m", 256}, {"n", 1024}, {"k", 512}}};
const Kernel kAttention{"flash_attention.sm_80.htrace", {{"q_length", 256}, {"kv_length", 256}}};
const Kernel kNorm{"rms_norm.sm_80.htrace", {{"rows", 432}}};
const Kernel kSoftmax{"softmax.sm_80.htrace", {{"rows", 256}}};
const Kernel kDecode{"paged_decode.sm_80.htrace",
                     {{"sequences", 2}, {"max_length", 256}, {"min_length", 64}}};
const Kernel kMoe{"fused_moe.sm_80.htrace", {}};
const Kernel kRace{"tests/race.sm_80.htrace", {}};
const Kernel kGridBarrier{"tests/grid_barrier.sm_80.htrace", {}};
const Kernel kSplitK{"tests/split_k.sm_80.htrace", {}};
// TMA, mbarriers, wgmma; warp-specialised with registers that change hands; clusters and distributed shared memory.
const Kernel kTmaGemm{"tests/matmul_tma.sm_90.htrace", {}, "h100_sxm5"};
const Kernel kPersistentGemm{"tests/matmul_persistent.sm_90.htrace", {}, "h100_sxm5"};
const Kernel kClusterNorm{"tests/cluster_rms_norm.sm_90.htrace", {{"rows", 128}}, "h100_sxm5"};

// More than L2 keeps: write-backs and reads share the DRAM channels.
const Kernel kLargeNorm{"bench/rms_norm.sm_80.htrace", {{"rows", 1536}}};

// With enough clusters for the last of them not to end with a refresh of DRAM, whatever the network does.
const Kernel kLargeClusterNorm{"tests/cluster_rms_norm.sm_90.htrace", {}, "h100_sxm5"};

const std::vector<Kernel>& AllKernels() {
  static const std::vector<Kernel> kernels = {kGemm,   kAttention, kNorm,           kSoftmax,
                                              kDecode, kMoe,       kRace,           kGridBarrier,
                                              kSplitK, kTmaGemm,   kPersistentGemm, kClusterNorm};
  return kernels;
}

stats::LaunchStats Simulate(const Kernel& kernel, const gpu::RunOptions& options,
                            const std::vector<std::string>& overrides = {},
                            replay::Mode mode = replay::Mode::kSkeleton, isa::KernelCode* code = nullptr,
                            isa::LaunchShape* shape = nullptr) {
  const auto trace = trace::ReadTrace(HEDDLE_SOURCE_DIR "/traces/" + kernel.trace);
  EXPECT_TRUE(trace.ok()) << trace.error().ToString();
  const auto machine = config::LoadGpu(kernel.machine, overrides);
  EXPECT_TRUE(machine.ok()) << machine.error().ToString();
  auto replay = replay::Replay::Open(*trace, *machine, {mode, kernel.defines});
  EXPECT_TRUE(replay.ok()) << replay.error().ToString();
  const auto program = (*replay)->Prepare(0);
  EXPECT_TRUE(program.ok()) << program.error().ToString();
  gpu::Gpu gpu(*machine, options);
  const gpu::LaunchRequest request{*program, kernel.trace, 0, {}};
  const auto stats = gpu.Run({&request, 1});
  EXPECT_TRUE(stats.ok()) << stats.error().ToString();
  EXPECT_TRUE((*program)->Issues().empty());
  if (code != nullptr) *code = (*program)->code();
  if (shape != nullptr) *shape = (*program)->shape();
  return stats->front();
}

// Everything that is counted, as text: equal text, equal result.
std::string Everything(const stats::LaunchStats& stats) {
  std::string text = fmt::format("{} {}\n", stats.start_cycle, stats.end_cycle);
  for (const stats::CounterDef& def : stats::CounterDefs()) {
    text += fmt::format("{} {}\n", def.name, stats.counters.*def.member);
  }
  text += fmt::format("{}\n", fmt::join(stats.slots, " "));
  for (const stats::PcStats& pc : stats.per_pc)
    text += fmt::format("{} {}\n", pc.issued, fmt::join(pc.slots, " "));
  return text;
}

double CyclesOf(const stats::LaunchStats& stats) {
  return static_cast<double>(stats.end_cycle - stats.start_cycle);
}

class EveryKernel : public testing::TestWithParam<Kernel> {};
std::string NameOf(const testing::TestParamInfo<Kernel>& info) {
  std::string name = info.param.trace.substr(0, info.param.trace.find('.'));
  for (char& c : name) {
    if (c == '/') c = '_';
  }
  return name;
}
INSTANTIATE_TEST_SUITE_P(Replay, EveryKernel, testing::ValuesIn(AllKernels()), NameOf);

TEST_P(EveryKernel, ThreadsAndOrderDoNotMatter) {
  gpu::RunOptions options;
  const std::string one = Everything(Simulate(GetParam(), options));
  for (const uint32_t threads : {2u, 7u}) {
    options.threads = threads;
    options.shuffle_seed = 1000 + threads;
    EXPECT_EQ(Everything(Simulate(GetParam(), options)), one) << threads << " threads";
  }
}

TEST_P(EveryKernel, SkeletonTakesTheTimeOfFullExecution) {
  gpu::RunOptions options;
  options.threads = 2;
  EXPECT_EQ(Everything(Simulate(GetParam(), options, {}, replay::Mode::kSkeleton)),
            Everything(Simulate(GetParam(), options, {}, replay::Mode::kFull)));
}

// Not within a tolerance but to the byte: requests are served, and answers taken, in an order that does not know of
// windows. A kernel whose waves are close to a change of their order would turn any cycle of difference into percents.
TEST_P(EveryKernel, TheWindowsLengthDoesNotMatter) {
  if (GetParam().trace == kRace.trace)
    GTEST_SKIP() << "what a race computes depends on when stores become visible";
  gpu::RunOptions options;
  options.threads = 2;
  const stats::LaunchStats whole = Simulate(GetParam(), options);
  for (const double fraction : {0.5, 0.25}) {
    options.window_fraction = fraction;
    const stats::LaunchStats part = Simulate(GetParam(), options);
    if (GetParam().trace ==
        kSplitK.trace) {  // its semaphore is released by a store, which is seen from an edge on
      EXPECT_NEAR(CyclesOf(part) / CyclesOf(whole), 1.0, 0.01) << "window fraction " << fraction;
    } else {
      EXPECT_EQ(Everything(part), Everything(whole)) << "window fraction " << fraction;
    }
  }
}

TEST_P(EveryKernel, TimeIsNeverBelowWhatTheMachineCouldDo) {
  const auto machine = *config::LoadGpu(GetParam().machine);
  gpu::RunOptions options;
  options.threads = 2;
  isa::KernelCode code;
  isa::LaunchShape shape;
  const stats::LaunchStats stats = Simulate(GetParam(), options, {}, replay::Mode::kSkeleton, &code, &shape);
  const analysis::LaunchWork work =
      analysis::WorkOf(machine, code.instructions, stats.per_pc, stats.counters, shape.grid, shape.block,
                       stats.end_cycle - stats.start_cycle);
  const analysis::LowerBound bound = analysis::LowerBoundOf(machine, work);
  EXPECT_LE(bound.cycles, CyclesOf(stats)) << analysis::Name(bound.resources[0].resource);
  EXPECT_GE(bound.cycles, bound.fixed_cycles + 1);
  // Each resource alone, what the launch costs left aside: they say which mechanism is not obeyed.
  for (const analysis::ResourceBound& each : bound.resources)
    EXPECT_LE(each.cycles + bound.fixed_cycles, CyclesOf(stats)) << analysis::Name(each.resource);
  // Text is all that a results database has of the code: it must count the same work.
  std::vector<isa::Instruction> from_text;
  for (const isa::Instruction& instruction : code.instructions)
    from_text.push_back(analysis::ReadInstructionText(isa::ToString(instruction)));
  const analysis::LaunchWork again = analysis::WorkOf(machine, from_text, stats.per_pc, stats.counters,
                                                      shape.grid, shape.block, work.cycles);
  EXPECT_EQ(again.port_cycles, work.port_cycles);
  EXPECT_EQ(again.matrix_shared_bytes, work.matrix_shared_bytes);
  double tensor_ops = 0;
  ASSERT_EQ(again.arithmetic.size(), work.arithmetic.size());
  for (size_t i = 0; i < work.arithmetic.size(); ++i) {
    EXPECT_EQ(again.arithmetic[i].name, work.arithmetic[i].name);
    EXPECT_EQ(again.arithmetic[i].ops, work.arithmetic[i].ops);
    if (work.arithmetic[i].tensor) tensor_ops += work.arithmetic[i].ops;
  }
  EXPECT_EQ(tensor_ops, static_cast<double>(stats.counters.sm_ops_tensor));
}

// Each mechanism, made ideal: at least one kernel must notice.
struct Mechanism {
  std::string name;
  std::vector<std::string> overrides;
  std::string machine = "a100_sxm4_80gb";
};

void PrintTo(const Mechanism& mechanism, std::ostream* out) { *out << mechanism.name; }

class EveryMechanism : public testing::TestWithParam<Mechanism> {};
INSTANTIATE_TEST_SUITE_P(
    Model, EveryMechanism,
    testing::Values(
        Mechanism{"register_ports", {"sm.sub_core.read_ports_per_bank=4"}},
        Mechanism{"reuse_cache", {"sm.sub_core.reuse_cache=false"}},
        Mechanism{"scheduler", {"sm.sub_core.scheduler=greedy_then_oldest"}},
        Mechanism{"stream_buffer", {"sm.instruction_caches.stream_buffer_lines=0"}},
        Mechanism{"stream_buffers", {"sm.instruction_caches.stream_buffers=1"}},
        Mechanism{"instruction_cache_l0", {"sm.instruction_caches.l0.miss_latency_cycles=0"}},
        Mechanism{"instruction_cache_l1", {"sm.instruction_caches.l1.size_bytes=4Ki"}},
        Mechanism{"constant_cache", {"sm.constant_caches.l0.miss_latency_cycles=0"}},
        Mechanism{"alu_interval", {"sm.pipes.alu.initiation_interval_cycles=1"}},
        Mechanism{"fma_interval", {"sm.pipes.fma.initiation_interval_cycles=1"}},
        Mechanism{"xu_interval", {"sm.pipes.xu.initiation_interval_cycles=1"}},
        Mechanism{"tensor_interval", {"sm.tensor[HMMA.16.8.16.bf16.f32].initiation_interval_cycles=4"}},
        Mechanism{"mio_queue", {"sm.mio.queue_entries=64"}},
        Mechanism{"address_generation", {"sm.mio.address_interval_cycles=1"}},
        Mechanism{"lsu_interval", {"sm.mio.lsu_interval_cycles=2"}},
        Mechanism{"load_return", {"sm.mio.return_bytes_per_cycle=4096"}},
        Mechanism{"l1_tags", {"sm.l1.tag_lookups_per_cycle=64"}},
        Mechanism{"l1_data", {"sm.l1.data_bytes_per_cycle=16"}},
        Mechanism{"l1_misses", {"sm.l1.pending_lines=8"}},
        Mechanism{"barrier", {"sm.barrier_latency_cycles=0"}},
        Mechanism{"branch", {"sm.sub_core.branch_latency_cycles=0"}},
        Mechanism{"shared_banks", {"sm.shared_memory.banks=128", "sm.shared_memory.bank_bytes=1"}},
        Mechanism{"bank_conflicts", {"sm.shared_memory.bank_conflicts=false"}},
        Mechanism{"fences", {"sm.fences.gpu_cycles=0"}},
        Mechanism{
            "sm_port",
            {"interconnect.sm_read_bytes_per_cycle=4096", "interconnect.tpc_read_bytes_per_cycle=8192"}},
        Mechanism{"gpc_port", {"interconnect.gpc_read_bytes_per_cycle=65536"}},
        Mechanism{"partition_latency", {"interconnect.partition_latency_cycles=0"}},
        Mechanism{"l2_replication", {"l2.replicate_far=false"}},
        Mechanism{"l2_hash", {"l2.address_hash=modulo"}},
        Mechanism{"l2_slice", {"l2.slice_bytes_per_cycle=4096"}},
        Mechanism{"l2_atomics", {"l2.atomic_interval_cycles=32"}},
        Mechanism{"l2_size", {"l2.size_bytes=5Mi"}},
        Mechanism{"dirty_limit", {"l2.dirty_limit_fraction=0.001"}},
        Mechanism{"dram_bandwidth", {"dram.bandwidth_gb_s=100000"}},
        Mechanism{"dram_rows", {"dram.trcd_ns=0", "dram.trp_ns=0"}},
        Mechanism{"dram_turnaround", {"dram.read_write_turnaround_ns=0"}},
        Mechanism{"dram_refresh", {"dram.refresh_duration_ns=0"}},
        Mechanism{"tlb", {"tlb.l2.miss_latency_cycles=0"}},
        Mechanism{"launch_overhead", {"launch.overhead_cycles=0"}},
        Mechanism{"cta_dispatch", {"launch.cta_dispatch_interval_cycles=0"}},
        Mechanism{"interlocked", {"dependence=interlocked"}},
        Mechanism{"rescheduled",
                  {"dependence=rescheduled", "sm.dependences[class_fma].to_same_cycles=2",
                   "sm.dependences[class_alu].to_same_cycles=2"}},
        Mechanism{"group_matrix_interval", {"sm.gmma.min_interval_cycles=100"}, "h100_sxm5"},
        Mechanism{"group_matrix_latency", {"sm.gmma.issue_latency_cycles=1"}, "h100_sxm5"},
        Mechanism{"tma_latency", {"sm.tma.issue_to_request_cycles=1"}, "h100_sxm5"},
        Mechanism{"tma_boxes", {"sm.tma.box_interval_cycles=0.25"}, "h100_sxm5"},
        Mechanism{"tma_requests", {"sm.tma.request_interval_cycles=0.25"}, "h100_sxm5"},
        Mechanism{"tma_in_flight", {"sm.tma.requests_in_flight=32"}, "h100_sxm5"},
        Mechanism{"mbarrier_wake", {"sm.mbarrier.wake_cycles=1"}, "h100_sxm5"},
        Mechanism{"cluster_latency", {"cluster_network.latency_cycles=40"}, "h100_sxm5"},
        Mechanism{"cluster_barrier", {"cluster_network.barrier_latency_cycles=80"}, "h100_sxm5"}),
    [](const testing::TestParamInfo<Mechanism>& info) { return info.param.name; });

TEST_P(EveryMechanism, ChangesTheTimeOfSomeKernel) {
  gpu::RunOptions options;
  options.threads = 2;
  std::vector<Kernel> kernels = AllKernels();
  kernels.push_back(kLargeNorm);
  kernels.push_back(kLargeClusterNorm);
  for (const Kernel& kernel : kernels) {
    if (kernel.machine != GetParam().machine) continue;
    if (CyclesOf(Simulate(kernel, options, GetParam().overrides)) != CyclesOf(Simulate(kernel, options)))
      return;
  }
  FAIL() << GetParam().name << " can be removed without a difference to any kernel";
}

}  // namespace
}  // namespace heddle

// The speed of heddle: the emulator alone (full and skeleton) and the coupled simulation in exact mode.
//
// Items are warp instructions. Beside them runs a calibration loop, so that figures of different days and machines can
// be put in proportion. tools/bench is the way to call it.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "frontend/emulator/functional_runner.h"
#include "frontend/trace/htrace.h"
#include "sim/base/large_pages.h"
#include "sim/config/load.h"
#include "sim/gpu/gpu.h"
#include "tools/replay/replay.h"

namespace heddle {
namespace {

struct Workload {
  std::string name;
  std::string trace;
  trace::Symbols size;        // what differs from the trace's own, which is the full benchmark
  trace::Symbols quick_size;  // of `tools/bench --quick`
  // Data of the whole grid are computed in full mode only where that takes seconds; elsewhere of so many first CTAs.
  uint64_t full_mode_ctas;
  std::string machine = "a100_sxm4_80gb";
  std::string folder = "traces/bench";
};

std::string PathOf(const Workload& workload) {
  return fmt::format("{}/{}/{}", HEDDLE_SOURCE_DIR, workload.folder, workload.trace);
}

// Kernels of other people's packages: traces that `tools/verify_kernels --bench` made. Too long to run each time.
std::vector<Workload> FrameworkWorkloads() {
  std::vector<Workload> there;
  if (std::getenv("HEDDLE_BENCH_FRAMEWORKS") == nullptr) return there;
  for (Workload each :
       {Workload{"cutlass_pingpong_fp8_8192", "cutlass/pingpong_fp8.8192.htrace", {}, {}, 1},
        Workload{"fa3_forward_8192x32", "vllm/fa3_prefill.8192x32.htrace", {}, {}, 1},
        Workload{"flashmla_decode_64x4096", "vllm/flashmla_decode.64x4096.htrace", {}, {}, 1}}) {
    each.machine = "h100_sxm5";
    each.folder = "build/cubins/sm_90a";
    if (std::filesystem::exists(PathOf(each))) {
      there.push_back(std::move(each));
    } else {
      fmt::print(stderr, "skipped: {} (no {}; `tools/verify_kernels --bench` makes it)\n", each.name,
                 PathOf(each));
    }
  }
  return there;
}

const std::vector<Workload>& Workloads() {
  static const std::vector<Workload> workloads = {
      {"matmul_4096", "matmul.sm_80.htrace", {}, {{"m", 1024}, {"n", 2048}, {"k", 2048}}, 64},
      {"attention_4096x32", "flash_attention.sm_80.htrace", {}, {{"length", 1024}, {"heads", 16}}, 32},
      {"rmsnorm_8192x8192", "rms_norm.sm_80.htrace", {}, {{"rows", 2048}}, 1024},
      {"paged_decode_64",
       "paged_decode.sm_80.htrace",
       {},
       {{"sequences", 16}, {"max_length", 1024}, {"min_length", 512}},
       32},
      {"hopper_tma_matmul_8192",
       "matmul_tma.sm_90.htrace",
       {},
       {{"m", 1024}, {"n", 2048}, {"k", 2048}},
       64,
       "h100_sxm5"},
  };
  return workloads;
}

bool Quick() { return std::getenv("HEDDLE_BENCH_QUICK") != nullptr; }

void Die(benchmark::State& state, const Error& error) { state.SkipWithError(error.ToString().c_str()); }

double PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

struct Inputs {
  trace::Trace trace;
  config::Gpu gpu;
};

Result<Inputs> Load(const Workload& workload) {
  HEDDLE_ASSIGN_OR_RETURN(trace::Trace trace, trace::ReadTrace(PathOf(workload)));
  HEDDLE_ASSIGN_OR_RETURN(config::Gpu gpu, config::LoadGpu(workload.machine));
  return Inputs{std::move(trace), std::move(gpu)};
}

void Emulate(benchmark::State& state, const Workload& workload, replay::Mode mode) {
  const Result<Inputs> inputs = Load(workload);
  if (!inputs.ok()) return Die(state, inputs.error());
  uint64_t instructions = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto replay = replay::Replay::Open(inputs->trace, inputs->gpu,
                                       {mode, Quick() ? workload.quick_size : workload.size});
    if (!replay.ok()) return Die(state, replay.error());
    auto launch = (*replay)->PrepareEmulated(0);
    if (!launch.ok()) return Die(state, launch.error());
    emulator::RunnerOptions options;
    if (mode == replay::Mode::kFull) {
      const uint64_t ctas = std::min(workload.full_mode_ctas, (*launch)->shape().grid.Count());
      for (uint64_t i = 0; i < ctas; ++i) options.only_ctas.push_back(i);
    }
    state.ResumeTiming();
    const auto summary = emulator::RunFunctionally(**launch, options);
    if (!summary.ok()) return Die(state, summary.error());
    instructions += summary->warp_instructions;
  }
  state.SetItemsProcessed(static_cast<int64_t>(instructions));
  state.counters["peak_mib"] = PeakMegabytes();
}

void Couple(benchmark::State& state, const Workload& workload, uint32_t threads) {
  const Result<Inputs> inputs = Load(workload);
  if (!inputs.ok()) return Die(state, inputs.error());
  uint64_t instructions = 0;
  for (auto _ : state) {
    auto replay = replay::Replay::Open(
        inputs->trace, inputs->gpu, {replay::Mode::kSkeleton, Quick() ? workload.quick_size : workload.size});
    if (!replay.ok()) return Die(state, replay.error());
    uint64_t cycles = 0;
    for (uint32_t launch = 0; launch < inputs->trace.launches.size(); ++launch) {
      auto program = (*replay)->Prepare(launch);
      if (!program.ok()) return Die(state, program.error());
      gpu::RunOptions options;
      options.threads = threads;
      gpu::Gpu gpu(inputs->gpu, options);
      const gpu::LaunchRequest request{*program, workload.name, 0, {}};
      const auto stats = gpu.Run({&request, 1});
      if (!stats.ok()) return Die(state, stats.error());
      instructions += stats->front().counters.smsp_inst_executed;
      cycles += stats->front().end_cycle - stats->front().start_cycle;
    }
    state.counters["cycles"] = static_cast<double>(cycles);
  }
  state.SetItemsProcessed(static_cast<int64_t>(instructions));
  state.counters["peak_mib"] = PeakMegabytes();
}

// Dependent integer work of a fixed amount: what this core does today.
void Calibrate(benchmark::State& state) {
  constexpr int64_t kSteps = 100'000'000;
  for (auto _ : state) {
    uint64_t x = 1;
    for (int64_t i = 0; i < kSteps; ++i) x = x * 6364136223846793005u + 1442695040888963407u;
    benchmark::DoNotOptimize(x);
  }
  state.SetItemsProcessed(state.iterations() * kSteps);
}

void Register() {
  benchmark::RegisterBenchmark("calibration", Calibrate)->Unit(benchmark::kMillisecond)->Iterations(1);
  const auto add = [](const std::string& name, auto function) {
    return benchmark::RegisterBenchmark(name.c_str(), function)->Unit(benchmark::kMillisecond)->Iterations(1);
  };
  const auto add_coupled = [&add](const Workload& workload) {
    add("coupled/" + workload.name, [workload](benchmark::State& state) { Couple(state, workload, 1); });
    add("coupled_2_threads/" + workload.name,
        [workload](benchmark::State& state) { Couple(state, workload, 2); })
        ->UseRealTime()
        ->MeasureProcessCPUTime();
  };
  for (const Workload& workload : Workloads()) {
    add("emulator_skeleton/" + workload.name,
        [&workload](benchmark::State& state) { Emulate(state, workload, replay::Mode::kSkeleton); });
    add("emulator_full/" + workload.name,
        [&workload](benchmark::State& state) { Emulate(state, workload, replay::Mode::kFull); });
    add_coupled(workload);
  }
  for (const Workload& workload : FrameworkWorkloads()) add_coupled(workload);
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  heddle::UseLargePages();
  heddle::Register();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

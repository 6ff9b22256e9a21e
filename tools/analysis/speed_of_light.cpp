#include "tools/analysis/speed_of_light.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/sm/sm.h"
#include "tools/analysis/bounds.h"
#include "tools/analysis/roofline.h"
#include "tools/analysis/stalls.h"

namespace heddle::analysis {
namespace {

double Ratio(double a, double b) { return b == 0 ? 0 : a / b; }
double Number(uint64_t value) { return static_cast<double>(value); }

// One launch, and what every section asks of it.
struct Context {
  const Machine& machine;
  const Kernel& kernel;
  const LaunchInfo& launch;
  const LaunchCounts& counts;
  const LaunchWork& work;
  const std::vector<Measurement>& measurements;

  const config::Gpu& gpu() const { return machine.gpu; }
  const stats::Counters& counters() const { return counts.counters; }
  double elapsed() const { return Number(launch.Cycles()); }
  double sms() const { return gpu().sm.count; }
  double sub_cores() const { return sms() * gpu().sm.sub_core_count; }
  double active() const { return Number(counters().sm_cycles_active); }  // over all SMs
  double scheduler_active() const { return active() * gpu().sm.sub_core_count; }
  double PortCycles(sm::IssuePort port) const { return work.port_cycles[static_cast<size_t>(port)]; }
  // Of the elapsed cycles, what the resource was busy with.
  double Percent(Resource resource, double amount) const {
    return 100 * Ratio(amount, PeakPerCycle(gpu(), resource) * elapsed());
  }
  double PipePercent(sm::IssuePort port, double sub_core_cycles) const {
    const bool shared = work.port_is_shared[static_cast<size_t>(port)];
    return 100 *
           Ratio(PortCycles(port), shared ? sub_core_cycles / gpu().sm.sub_core_count : sub_core_cycles);
  }
};

class SectionBuilder {
 public:
  SectionBuilder(std::string title, const Context& context) : context_(context) {
    section_.title = std::move(title);
  }
  // `name` is Nsight Compute's; `counter` the simulator's of the same meaning, by either of which measurements are found.
  void Add(std::string label, std::string name, std::string unit, double value,
           std::string_view counter = {}) {
    Metric metric{std::move(label), std::move(name), std::move(unit), value, "", std::nullopt};
    metric.measured = Measured(metric.name);
    if (!metric.measured) metric.measured = Measured(counter);
    section_.metrics.push_back(std::move(metric));
  }
  void AddText(std::string label, std::string name, std::string text) {
    section_.metrics.push_back({std::move(label), std::move(name), "", 0, std::move(text), std::nullopt});
  }
  Section Take() { return std::move(section_); }

 private:
  std::optional<double> Measured(std::string_view name) const {
    for (const Measurement& measurement : context_.measurements) {
      const auto found = measurement.metrics.find(name);
      if (!name.empty() && found != measurement.metrics.end()) return found->second;
    }
    return std::nullopt;
  }

  const Context& context_;
  Section section_;
};

struct Pipe {
  const char* label;
  const char* metric;  // the part between "sm__inst_executed_pipe_" and ".avg.pct..."
  sm::IssuePort port;
};
constexpr Pipe kPipes[] = {{"Tensor", "tensor", sm::IssuePort::kTensor},
                           {"FMA", "fma", sm::IssuePort::kFma},
                           {"ALU", "alu", sm::IssuePort::kAlu},
                           {"FP16", "fp16", sm::IssuePort::kFp16},
                           {"FP64", "fp64", sm::IssuePort::kFp64},
                           {"XU", "xu", sm::IssuePort::kXu},
                           {"Uniform", "uniform", sm::IssuePort::kUniform},
                           {"CBU", "cbu", sm::IssuePort::kCbu},
                           {"ADU", "adu", sm::IssuePort::kAdu}};

// The busiest of the issue slots, pipes and LSUs, of all cycles that sub-cores had.
double ComputePercent(const Context& c, double sub_core_cycles) {
  double most = 100 * Ratio(Number(c.counters().smsp_inst_executed), sub_core_cycles);
  for (const Pipe& pipe : kPipes) most = std::max(most, c.PipePercent(pipe.port, sub_core_cycles));
  return most;
}

double DramPercent(const Context& c) {
  return c.Percent(Resource::kDram, Number(c.counters().dram_read_bytes + c.counters().dram_write_bytes));
}

double L1Cycles(const Context& c) {
  return BytesOf(MemoryLevel::kL1, c.work) / PeakBytesPerCycle(MemoryLevel::kL1, c.gpu()) * c.sms();
}

// The share of time in which something moves data or looks it up: arrays and the DRAM's pins; of elapsed cycles.
double MemoryBusyPercent(const Context& c) {
  return std::max({100 * Ratio(L1Cycles(c), c.elapsed() * c.sms()),
                   c.Percent(Resource::kL2, Number(c.counters().lts_t_bytes)),
                   c.Percent(Resource::kL2Atomics, Number(c.counters().lts_atomics)), DramPercent(c)});
}

// The busiest of the ways between the units.
double MaxBandwidthPercent(const Context& c) {
  const stats::Counters& n = c.counters();
  const auto& net = c.gpu().interconnect;
  const double sm_cycles = c.elapsed() * c.sms();
  return std::max({100 * Ratio(Number(n.l1tex_m_read_bytes), net.sm_read_bytes_per_cycle * sm_cycles),
                   100 * Ratio(Number(n.l1tex_m_write_bytes), net.sm_write_bytes_per_cycle * sm_cycles),
                   c.Percent(Resource::kNetworkRead, Number(n.l1tex_m_read_bytes)),
                   c.Percent(Resource::kNetworkWrite, Number(n.l1tex_m_write_bytes)),
                   c.Percent(Resource::kL2Fabric, Number(n.lts_fabric_bytes)), DramPercent(c)});
}

// What memory instructions pass in the SM: the LSU, and the data array behind it.
double MemoryPipesPercent(const Context& c) {
  const double sm_cycles = c.elapsed() * c.sms();
  const double lsu_rate = PeakPerCycle(c.gpu(), Resource::kLsu) / c.sms();
  return 100 * std::max(Ratio(c.work.lsu_instructions, lsu_rate * sm_cycles), Ratio(L1Cycles(c), sm_cycles));
}

// L1's busiest: its data array, its queue of instructions, or its port to L2; of SM cycles.
double L1Percent(const Context& c, double sm_cycles) {
  const auto& net = c.gpu().interconnect;
  const double lsu_rate = PeakPerCycle(c.gpu(), Resource::kLsu) / c.sms();
  return 100 *
         std::max(
             {Ratio(L1Cycles(c), sm_cycles), Ratio(c.work.lsu_instructions, lsu_rate * sm_cycles),
              Ratio(Number(c.counters().l1tex_m_read_bytes), net.sm_read_bytes_per_cycle * sm_cycles),
              Ratio(Number(c.counters().l1tex_m_write_bytes), net.sm_write_bytes_per_cycle * sm_cycles)});
}

double L2Percent(const Context& c) {
  const stats::Counters& n = c.counters();
  return std::max({c.Percent(Resource::kL2, Number(n.lts_t_bytes)),
                   c.Percent(Resource::kL2Fabric, Number(n.lts_fabric_bytes)),
                   c.Percent(Resource::kL2Atomics, Number(n.lts_atomics)),
                   c.Percent(Resource::kNetworkRead, Number(n.l1tex_m_read_bytes)),
                   c.Percent(Resource::kNetworkWrite, Number(n.l1tex_m_write_bytes))});
}

Section Throughput(const Context& c) {
  SectionBuilder s("GPU Speed Of Light Throughput", c);
  const double l1 = L1Percent(c, c.elapsed() * c.sms());
  s.Add("Compute (SM) Throughput", "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%",
        ComputePercent(c, c.elapsed() * c.sub_cores()));
  s.Add("Memory Throughput", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "%",
        std::max({l1, L2Percent(c), DramPercent(c)}));
  s.Add("L1/TEX Cache Throughput", "l1tex__throughput.avg.pct_of_peak_sustained_active", "%",
        L1Percent(c, c.active()));
  s.Add("L2 Cache Throughput", "lts__throughput.avg.pct_of_peak_sustained_elapsed", "%", L2Percent(c));
  s.Add("DRAM Throughput", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "%", DramPercent(c));
  s.Add("Duration", "gpu__time_duration.sum", "ps", Number(c.launch.duration_ps), "duration_ps");
  s.Add("Elapsed Cycles", "sm__cycles_elapsed.max", "cycle", c.elapsed(), "sm_cycles_elapsed");
  s.Add("SM Active Cycles", "sm__cycles_active.avg", "cycle", Ratio(c.active(), c.sms()));
  s.Add("SM Frequency", "sm__cycles_elapsed.avg.per_second", "Hz", Ratio(c.elapsed(), c.launch.Seconds()));
  return s.Take();
}

Section Compute(const Context& c) {
  SectionBuilder s("Compute Workload Analysis", c);
  const double executed = Number(c.counters().smsp_inst_executed);
  s.Add("Executed Ipc Elapsed", "sm__inst_executed.avg.per_cycle_elapsed", "inst/cycle",
        Ratio(executed, c.elapsed() * c.sms()));
  s.Add("Executed Ipc Active", "sm__inst_executed.avg.per_cycle_active", "inst/cycle",
        Ratio(executed, c.active()));
  s.Add("Issue Slots Busy", "sm__inst_issued.avg.pct_of_peak_sustained_active", "%",
        100 * Ratio(executed, c.scheduler_active()));
  s.Add("SM Busy", "sm__instruction_throughput.avg.pct_of_peak_sustained_active", "%",
        ComputePercent(c, c.scheduler_active()));
  for (const Pipe& pipe : kPipes) {
    const double percent = c.PipePercent(pipe.port, c.scheduler_active());
    if (percent == 0) continue;
    s.Add(fmt::format("{} Pipe Utilization", pipe.label),
          fmt::format("sm__inst_executed_pipe_{}.avg.pct_of_peak_sustained_active", pipe.metric), "%",
          percent);
  }
  for (const Arithmetic& kind : c.work.arithmetic)
    s.Add(fmt::format("{} operations", kind.name), "", "op/s", Ratio(kind.ops, c.launch.Seconds()));
  return s.Take();
}

Section Memory(const Context& c) {
  SectionBuilder s("Memory Workload Analysis", c);
  const stats::Counters& n = c.counters();
  const double dram = Number(n.dram_read_bytes + n.dram_write_bytes);
  s.Add("Memory Throughput", "dram__bytes.sum.per_second", "byte/s", Ratio(dram, c.launch.Seconds()));
  s.Add("Mem Busy", "gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed", "%",
        MemoryBusyPercent(c));
  s.Add("Max Bandwidth", "gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed", "%",
        MaxBandwidthPercent(c));
  s.Add("Mem Pipes Busy", "sm__memory_throughput.avg.pct_of_peak_sustained_elapsed", "%",
        MemoryPipesPercent(c));
  s.Add("L1/TEX Hit Rate", "l1tex__t_sector_hit_rate.pct", "%",
        100 * Ratio(Number(n.l1tex_hits_sector), Number(n.l1tex_lookups_sector)));
  s.Add("L2 Hit Rate", "lts__t_sector_hit_rate.pct", "%",
        100 * Ratio(Number(n.lts_hits_sector), Number(n.lts_lookups_sector)));
  s.Add("DRAM Read", "dram__bytes_read.sum", "byte", Number(n.dram_read_bytes), "dram_read_bytes");
  s.Add("DRAM Write", "dram__bytes_write.sum", "byte", Number(n.dram_write_bytes), "dram_write_bytes");
  s.Add("L2 to L1", "l1tex__m_xbar2l1tex_read_bytes.sum", "byte", Number(n.l1tex_m_read_bytes),
        "l1tex_m_read_bytes");
  s.Add("L1 to L2", "l1tex__m_l1tex2xbar_write_bytes.sum", "byte", Number(n.l1tex_m_write_bytes),
        "l1tex_m_write_bytes");
  s.Add("L2 bytes", "lts__t_bytes.sum", "byte", Number(n.lts_t_bytes), "lts_t_bytes");
  s.Add("Shared Wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "wavefront",
        Number(n.smem_wavefronts), "smem_wavefronts");
  s.Add("Shared Bank Conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "wavefront",
        Number(n.smem_bank_conflicts), "smem_bank_conflicts");
  for (const MemoryTraffic& row : MemoryTable(c.kernel, c.counts)) {
    const double requests = Number(row.sums.requests);
    if (row.sums.sectors != 0) {
      s.Add(row.name + " Sectors", "", "sector", Number(row.sums.sectors));
      s.Add(row.name + " Sectors/Req", "", "", Ratio(Number(row.sums.sectors), requests));
    }
    if (row.sums.wavefronts != 0)
      s.Add(row.name + " Wavefronts/Req", "", "", Ratio(Number(row.sums.wavefronts), requests));
  }
  return s.Take();
}

double WarpsPerCta(const Context& c) { return Number(CeilDiv<uint64_t>(c.launch.block.Count(), kWarpLanes)); }

Section Scheduler(const Context& c, const OccupancyLimits& limits) {
  SectionBuilder s("Scheduler Statistics", c);
  const double issued = Ratio(Number(c.counters().smsp_inst_executed), c.scheduler_active());
  s.Add("One or More Eligible", "smsp__issue_active.avg.pct_of_peak_sustained_active", "%", 100 * issued);
  s.Add("Issued Warp Per Scheduler", "smsp__issue_active.avg.per_cycle_active", "warp", issued);
  s.Add("No Eligible", "smsp__issue_inst0.avg.pct_of_peak_sustained_active", "%", 100 * (1 - issued));
  s.Add("Theoretical Warps Per Scheduler", "smsp__maximum_warps_avg_per_active_cycle", "warp",
        Ratio(limits.ctas * WarpsPerCta(c), c.gpu().sm.sub_core_count));
  s.Add("Active Warps Per Scheduler", "smsp__warps_active.avg.per_cycle_active", "warp",
        Ratio(Number(c.counters().smsp_warps_active), c.scheduler_active()));
  return s.Take();
}

// "long_scoreboard" -> "Long Scoreboard"
std::string Titled(std::string_view name) {
  std::string text(name);
  bool starts = true;
  for (char& letter : text) {
    if (starts && letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
    starts = letter == '_';
    if (starts) letter = ' ';
  }
  return text;
}

Section WarpState(const Context& c) {
  SectionBuilder s("Warp State Statistics", c);
  const double executed = Number(c.counters().smsp_inst_executed);
  s.Add("Warp Cycles Per Issued Instruction", "smsp__average_warp_latency_per_inst_issued.ratio", "cycle",
        Ratio(Number(c.counters().smsp_warps_active), executed));
  s.Add("Avg. Active Threads Per Warp", "smsp__thread_inst_executed_per_inst_executed.ratio", "thread",
        Ratio(Number(c.counters().smsp_thread_inst_executed), executed));
  for (const StallShare& stall : StallLadder(c.launch, c.counts)) {
    if (stall.stall == stats::Stall::k_selected) continue;
    s.Add("Stall " + Titled(Name(stall.stall)), "", "slot/inst", Ratio(Number(stall.slots), executed));
  }
  return s.Take();
}

std::string DimText(const Dim3& dim) { return fmt::format("({}, {}, {})", dim.x, dim.y, dim.z); }

Section Launch(const Context& c, const OccupancyLimits& limits) {
  SectionBuilder s("Launch Statistics", c);
  const double ctas = Number(c.launch.grid.Count());
  s.AddText("Grid", "", DimText(c.launch.grid));
  s.AddText("Block", "", DimText(c.launch.block));
  s.Add("Grid Size", "launch__grid_size", "", ctas);
  s.Add("Block Size", "launch__block_size", "", Number(c.launch.block.Count()));
  s.Add("Threads", "launch__thread_count", "thread", ctas * Number(c.launch.block.Count()));
  s.Add("Registers Per Thread", "launch__registers_per_thread", "register/thread",
        c.kernel.registers_per_thread);
  s.Add("Shared Memory Per Block", "launch__shared_mem_per_block", "byte/block",
        c.launch.shared_bytes_per_cta);
  s.Add("# SMs", "", "SM", c.sms());
  s.Add("Waves Per SM", "launch__waves_per_multiprocessor", "", Ratio(ctas, c.sms() * limits.ctas));
  s.AddText("Cache policy", "", c.launch.cache_policy);
  s.AddText("Dependences", "", c.launch.dependence);
  return s.Take();
}

Section Occupancy(const Context& c, const OccupancyLimits& limits) {
  SectionBuilder s("Occupancy", c);
  const double max_warps = c.gpu().sm.max_warps;
  const double warps_per_cta = WarpsPerCta(c);
  const auto limit = [&](const char* label, const char* name, uint32_t ctas) {
    if (ctas == ~0u) {
      s.AddText(label, name, "none");
    } else {
      s.Add(label, name, "block", ctas);
    }
  };
  limit("Block Limit SM", "launch__occupancy_limit_blocks", limits.by_sm);
  limit("Block Limit Registers", "launch__occupancy_limit_registers", limits.by_registers);
  limit("Block Limit Shared Mem", "launch__occupancy_limit_shared_mem", limits.by_shared_memory);
  limit("Block Limit Warps", "launch__occupancy_limit_warps", limits.by_warps);
  const double theoretical = limits.ctas * warps_per_cta;
  s.Add("Theoretical Active Warps per SM", "sm__maximum_warps_per_active_cycle", "warp", theoretical);
  s.Add("Theoretical Occupancy", "sm__maximum_warps_per_active_cycle_pct", "%",
        100 * Ratio(theoretical, max_warps));
  const double achieved = Ratio(Number(c.counters().smsp_warps_active), c.active());
  s.Add("Achieved Occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", "%",
        100 * Ratio(achieved, max_warps));
  s.Add("Achieved Active Warps Per SM", "sm__warps_active.avg.per_cycle_active", "warp", achieved);
  return s.Take();
}

}  // namespace

OccupancyLimits OccupancyOf(const config::Gpu& gpu, const Dim3& block, uint32_t registers_per_thread,
                            uint32_t shared_bytes_per_cta) {
  isa::LaunchShape shape;
  shape.block = block;
  shape.registers_per_thread = registers_per_thread;
  shape.shared_bytes_per_cta = shared_bytes_per_cta;
  OccupancyLimits limits;
  limits.ctas = sm::MaxResidentCtas(gpu, shape);
  limits.by_sm = gpu.sm.max_ctas;
  const uint32_t warps = std::max(1u, shape.WarpsPerCta());
  limits.by_warps = gpu.sm.max_warps / warps;
  // Each of the others alone: a machine that has the rest in plenty.
  const auto alone = [&](auto relax) {
    config::Gpu plenty = gpu;
    plenty.sm.max_ctas = plenty.sm.max_warps = ~0u;
    isa::LaunchShape asked = shape;
    relax(&asked);
    const uint32_t ctas = sm::MaxResidentCtas(plenty, asked);
    return ctas >= ~0u / warps ? ~0u : ctas;
  };
  limits.by_registers = alone([](isa::LaunchShape* asked) { asked->shared_bytes_per_cta = 0; });
  limits.by_shared_memory = shared_bytes_per_cta == 0
                                ? ~0u
                                : alone([](isa::LaunchShape* asked) { asked->registers_per_thread = 0; });
  return limits;
}

std::vector<Section> SpeedOfLight(const Machine& machine, const Kernel& kernel, const LaunchInfo& launch,
                                  const LaunchCounts& counts, const LaunchWork& work,
                                  const std::vector<Measurement>& measurements) {
  const Context context{machine, kernel, launch, counts, work, measurements};
  const OccupancyLimits limits =
      OccupancyOf(machine.gpu, launch.block, kernel.registers_per_thread, launch.shared_bytes_per_cta);
  return {Throughput(context), Compute(context),        Memory(context),           Scheduler(context, limits),
          WarpState(context),  Launch(context, limits), Occupancy(context, limits)};
}

}  // namespace heddle::analysis

#include "tools/analysis/bounds.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/memory/memory_request.h"

namespace heddle::analysis {
namespace {

struct ResourceText {
  std::string_view name;
  std::string_view unit;
};
constexpr auto kTexts = std::to_array<ResourceText>({{"DRAM", "byte"},
                                                     {"L2 slices", "byte"},
                                                     {"L2 atomics", "request"},
                                                     {"L2 fabric", "byte"},
                                                     {"network, L2 to SM", "byte"},
                                                     {"network, SM to L2", "byte"},
                                                     {"L1/shared data", "cycle"},
                                                     {"LSU", "inst"},
                                                     {"issue slots", "inst"},
                                                     {"tensor pipe", "cycle"},
                                                     {"FMA pipe", "cycle"},
                                                     {"ALU pipe", "cycle"},
                                                     {"FP16 pipe", "cycle"},
                                                     {"FP64 pipe", "cycle"},
                                                     {"XU pipe", "cycle"},
                                                     {"uniform pipe", "cycle"},
                                                     {"CBU pipe", "cycle"},
                                                     {"ADU pipe", "cycle"},
                                                     {"CTA dispatch", "cta"}});
static_assert(kTexts.size() == kResourceCount);

constexpr double kSectorsOfARequest = 4;

// SMs and sub-cores on which the launch can run at all: a CTA stays on its SM, a warp on its sub-core.
struct Places {
  double sms = 0;
  double sub_cores = 0;
};
Places PlacesOf(const config::Gpu& gpu, const LaunchWork& work) {
  const double sms = std::min<double>(gpu.sm.count, static_cast<double>(work.ctas));
  return {sms, std::min<double>(sms * gpu.sm.sub_core_count, static_cast<double>(work.warps))};
}

double NetworkPeak(const config::Gpu& gpu, double sm, double tpc, double gpc) {
  const double tpcs = std::ceil(double(gpu.sm.count) / gpu.sm.sms_per_tpc);
  return std::min({sm * gpu.sm.count, tpc * tpcs, gpc * gpu.gpc_count});
}

// How many of a kind of instructions the memory queues and LSUs take in a cycle.
double LsuPerCycle(const config::Sm& sm, const Places& places) {
  return std::min(places.sms / std::ceil(sm.mio.lsu_interval_cycles),
                  places.sub_cores / std::max(0.25, sm.mio.address_interval_cycles));
}

double FloorZero(double value) { return std::max(0.0, value); }

class BoundList {
 public:
  explicit BoundList(std::vector<ResourceBound>* list) : list_(list) {}
  void Add(Resource resource, double work, double per_cycle) {
    if (work > 0 && per_cycle > 0) list_->push_back({resource, work, per_cycle, work / per_cycle});
  }

 private:
  std::vector<ResourceBound>* list_;
};

void AddMemory(const config::Gpu& gpu, const LaunchWork& work, const Places& places, BoundList* list) {
  const stats::Counters& c = work.counters;
  const auto number = [](uint64_t value) { return static_cast<double>(value); };
  list->Add(Resource::kDram, number(c.dram_read_bytes + c.dram_write_bytes),
            PeakPerCycle(gpu, Resource::kDram));
  // Sectors of atomics pass the atomic unit instead; a request has four at most.
  const double through_arrays =
      FloorZero(number(c.lts_lookups_sector) - kSectorsOfARequest * number(c.lts_atomics));
  list->Add(Resource::kL2, through_arrays * memory::kSectorBytes, PeakPerCycle(gpu, Resource::kL2));
  list->Add(Resource::kL2Atomics, number(c.lts_atomics), PeakPerCycle(gpu, Resource::kL2Atomics));
  list->Add(Resource::kL2Fabric, number(c.lts_fabric_bytes), PeakPerCycle(gpu, Resource::kL2Fabric));
  const auto& net = gpu.interconnect;
  list->Add(Resource::kNetworkRead, number(c.l1tex_m_read_bytes),
            std::min(PeakPerCycle(gpu, Resource::kNetworkRead), net.sm_read_bytes_per_cycle * places.sms));
  list->Add(Resource::kNetworkWrite, number(c.l1tex_m_write_bytes),
            std::min(PeakPerCycle(gpu, Resource::kNetworkWrite), net.sm_write_bytes_per_cycle * places.sms));
  const double shared_rate = double(gpu.sm.shared_memory.banks) * gpu.sm.shared_memory.bank_bytes;
  const double data_cycles =
      number(c.smem_wavefronts) +
      number(c.l1tex_lookups_sector) * memory::kSectorBytes / gpu.sm.l1.data_bytes_per_cycle +
      work.matrix_shared_bytes / shared_rate;
  list->Add(Resource::kL1, data_cycles, places.sms);
  list->Add(Resource::kLsu, work.lsu_instructions, LsuPerCycle(gpu.sm, places));
}

void AddPipes(const LaunchWork& work, const Places& places, BoundList* list) {
  using sm::IssuePort;
  constexpr std::pair<Resource, IssuePort> kPipes[] = {
      {Resource::kTensor, IssuePort::kTensor},   {Resource::kFma, IssuePort::kFma},
      {Resource::kAlu, IssuePort::kAlu},         {Resource::kFp16, IssuePort::kFp16},
      {Resource::kFp64, IssuePort::kFp64},       {Resource::kXu, IssuePort::kXu},
      {Resource::kUniform, IssuePort::kUniform}, {Resource::kCbu, IssuePort::kCbu},
      {Resource::kAdu, IssuePort::kAdu}};
  for (const auto& [resource, port] : kPipes) {
    double cycles = work.port_cycles[static_cast<size_t>(port)];
    if (port == IssuePort::kFma)
      cycles = std::max(cycles, work.port_cycles[static_cast<size_t>(IssuePort::kFmaHeavy)]);
    list->Add(resource, cycles,
              work.port_is_shared[static_cast<size_t>(port)] ? places.sms : places.sub_cores);
  }
}

}  // namespace

std::string_view Name(Resource resource) { return kTexts[static_cast<size_t>(resource)].name; }
std::string_view UnitOf(Resource resource) { return kTexts[static_cast<size_t>(resource)].unit; }

double PeakPerCycle(const config::Gpu& gpu, Resource resource) {
  const double sms = gpu.sm.count;
  const auto& net = gpu.interconnect;
  switch (resource) {
    case Resource::kDram:
      return gpu.dram.bandwidth_gb_s * gpu.dram.efficiency * 1e9 / (gpu.clocks.sm_mhz * 1e6);
    case Resource::kL2:
      return gpu.l2.slice_bytes_per_cycle * gpu.l2.slices;
    case Resource::kL2Atomics:
      return gpu.l2.slices / gpu.l2.atomic_interval_cycles;
    case Resource::kL2Fabric:
      return net.partition_bytes_per_cycle * gpu.l2.partitions;
    case Resource::kNetworkRead:
      return NetworkPeak(gpu, net.sm_read_bytes_per_cycle, net.tpc_read_bytes_per_cycle,
                         net.gpc_read_bytes_per_cycle);
    case Resource::kNetworkWrite:
      return NetworkPeak(gpu, net.sm_write_bytes_per_cycle, net.tpc_write_bytes_per_cycle,
                         net.gpc_write_bytes_per_cycle);
    case Resource::kL1:
      return sms;
    case Resource::kLsu:
      return LsuPerCycle(gpu.sm, {sms, sms * gpu.sm.sub_core_count});
    case Resource::kDispatch:
      return gpu.launch.cta_dispatch_interval_cycles > 0 ? 1 / gpu.launch.cta_dispatch_interval_cycles : 0;
    default:
      return sms * gpu.sm.sub_core_count;
  }
}

LowerBound LowerBoundOf(const config::Gpu& gpu, const LaunchWork& work, bool launch_overhead) {
  const Places places = PlacesOf(gpu, work);
  LowerBound bound;
  BoundList list(&bound.resources);
  AddMemory(gpu, work, places, &list);
  list.Add(Resource::kIssue, static_cast<double>(work.counters.smsp_inst_executed), places.sub_cores);
  AddPipes(work, places, &list);
  list.Add(Resource::kDispatch, FloorZero(static_cast<double>(work.ctas) - 1),
           PeakPerCycle(gpu, Resource::kDispatch));
  std::stable_sort(bound.resources.begin(), bound.resources.end(),
                   [](const ResourceBound& a, const ResourceBound& b) { return a.cycles > b.cycles; });
  bound.fixed_cycles = gpu.launch.cta_launch_latency_cycles;
  if (launch_overhead) bound.fixed_cycles += gpu.launch.overhead_cycles + gpu.launch.drain_cycles;
  bound.cycles = bound.fixed_cycles + (bound.resources.empty() ? 0 : bound.resources[0].cycles);
  if (work.cycles != 0) bound.reached = bound.cycles / static_cast<double>(work.cycles);
  return bound;
}

}  // namespace heddle::analysis

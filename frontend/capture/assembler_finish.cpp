// After the last record: what only the whole file can tell.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/capture/assembler.h"
#include "frontend/capture/pc_counter.h"

namespace heddle::capture {
namespace {

// "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(...)" -> "all_reduce"; empty: no kernel of NCCL.
std::string CollectiveOfName(const std::string& name) {
  if (name.find("nccl") == std::string::npos) return "";
  static const std::pair<const char*, const char*> kinds[] = {
      {"AllReduce", "all_reduce"}, {"ReduceScatter", "reduce_scatter"}, {"AllGather", "all_gather"},
      {"Broadcast", "broadcast"},  {"SendRecv", "send_recv"},           {"Reduce", "reduce"}};
  for (const auto& [text, kind] : kinds)
    if (name.find(text) != std::string::npos) return kind;
  return "";
}

// Of ncclDataType_t.
uint64_t ElementBytes(uint32_t type) {
  constexpr uint64_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type < std::size(kBytes) ? kBytes[type] : 0;
}

}  // namespace

void Assembler::TakeCollective(const pb::Collective& collective) {
  collectives_[collective.thread()].push_back(collective);
}

void Assembler::AttachCollectives(uint32_t thread, uint32_t launch, const std::string& name) {
  const std::string kind = CollectiveOfName(name);
  if (kind.empty()) return;
  std::vector<pb::Collective>& pending = collectives_[thread];
  for (const pb::Collective& each : pending)
    captured_.trace.collectives.push_back(
        {launch, each.kind(), each.count() * ElementBytes(each.type()), each.ranks()});
  if (pending.empty()) captured_.trace.collectives.push_back({launch, kind, 0, 0});
  pending.clear();
}

// By correlation; where a CUPTI gives launches and kernels different numbers, the n-th kernel of a name is its n-th launch.
void Assembler::JoinTimes() {
  std::vector<trace::Launch>& launches = captured_.trace.launches;
  const auto set = [&](uint32_t launch, const Time& time) {
    if (launches[launch].measured_start_ns < 0) ++captured_.measured_launches;
    launches[launch].measured_start_ns = static_cast<int64_t>(time.start_ns);
    launches[launch].measured_end_ns = static_cast<int64_t>(time.start_ns + time.duration_ns);
  };
  for (const Time& time : times_) {
    const auto found = launch_of_.find({time.correlation, time.node});
    if (found != launch_of_.end()) set(found->second, time);
  }
  if (captured_.measured_launches != 0 || times_.empty()) return;
  std::map<std::string, std::vector<uint32_t>> by_name;
  for (uint32_t i = 0; i < launches.size(); ++i) by_name[launches[i].name].push_back(i);
  std::stable_sort(times_.begin(), times_.end(),
                   [](const Time& a, const Time& b) { return a.correlation < b.correlation; });
  std::map<std::string, size_t> used;
  for (const Time& time : times_) {
    const std::string& name = kernel_names_[time.name];
    const auto found = by_name.find(name);
    if (found == by_name.end() || used[name] >= found->second.size()) continue;
    set(found->second[used[name]++], time);
  }
}

// What was measured of instructions adds up to the launch's.
void Assembler::MoveCounters() {
  std::map<std::pair<uint32_t, uint32_t>, double> sums;
  for (const auto& [at, value] : measured_)
    if (std::get<1>(at) != 0) sums[{std::get<0>(at), std::get<2>(at)}] += value;
  std::vector<trace::Counter>& counters = captured_.trace.counters;
  const auto add = [&](uint32_t launch, uint32_t metric, double value, std::optional<uint64_t> pc) {
    const auto found = metrics_.find(metric);
    if (found == metrics_.end() || !std::isfinite(value)) return;
    counters.push_back({launch, pc ? PcCounterName(found->second.first, *pc) : found->second.first, value,
                        found->second.second});
  };
  for (const auto& [at, value] : sums) add(at.first, at.second, value, std::nullopt);
  for (const auto& [at, value] : measured_) {
    const auto& [launch, pc_plus_one, metric] = at;
    if (pc_plus_one == 0)
      add(launch, metric, value, std::nullopt);
    else if (value != 0)
      add(launch, metric, value, pc_plus_one - 1);
  }
  std::stable_sort(counters.begin(), counters.end(),
                   [](const trace::Counter& a, const trace::Counter& b) { return a.launch < b.launch; });
}

Captured Assembler::Finish(bool in_order, uint64_t lost_bytes) {
  trace::Trace& trace = captured_.trace;
  captured_.complete = in_order;
  trace.name = fmt::format("process_{}", captured_.process);
  trace.edges = order_.Edges();
  JoinTimes();
  MoveCounters();
  const uint64_t fill_bytes =
      memory_.MoveTo(&trace, static_cast<uint32_t>(trace.launches.size()), order_.places());
  modules_.Decode(&trace, &captured_.warnings);

  if (!in_order)
    Warn(lost_bytes == 0
             ? "the process did not end in order: its last 250 ms may be missing"
             : fmt::format("the process did not end in order: its last 250 ms may be missing, and {} bytes "
                           "at the end of its records were cut short",
                           lost_bytes));
  for (const auto& [why, count] : left_out_)
    Warn(fmt::format(
        "{} launch{} left out of {}; CUDA_MODULE_LOADING=EAGER makes all code known before it runs", count,
        count == 1 ? " was" : "es were", why));
  if (without_parameters_ != 0)
    Warn(fmt::format("{} launches have no parameter bytes: they are zero in the trace", without_parameters_));
  const auto unknown_nodes = [&](uint32_t count, const char* what, const char* consequence) {
    if (count != 0)
      Warn(fmt::format("{} {} of graphs were made before the capture or by a call that is not watched: {}",
                       count, what, consequence));
  };
  unknown_nodes(unknown_nodes_.kernels, "kernel nodes", "they are not in the trace");
  unknown_nodes(unknown_nodes_.transfers, "copies and fills that are nodes",
                "what they write is not in the trace");
  if (unknown_nodes_.nested != 0)
    Warn(fmt::format(
        "{} child graphs or conditional nodes of graphs are not in the trace, nor what is in them",
        unknown_nodes_.nested));
  if (unkept_copies_ != 0)
    Warn(fmt::format(
        "{} copies to the device ({} bytes) came without their contents: what they wrote is unknown "
        "to a replay, which says so where that steers a kernel; --snapshot keeps more",
        unkept_copies_, unkept_bytes_));
  if (many_rows_ != 0)
    Warn(fmt::format("{} copies or fills have more than 4096 rows: what they wrote is unknown to a replay",
                     many_rows_));
  if (unsupported_maps_ != 0)
    Warn(
        fmt::format("{} tensor maps have fields that heddle does not model: launches keep the driver's bytes",
                    unsupported_maps_));
  if (ambiguous_ != 0)
    Warn(fmt::format("{} functions were found by name in more than one cubin, and the newest was taken",
                     ambiguous_));
  if (stray_samples_ != 0)
    Warn(fmt::format("{} measurements are of launches that are not in the trace", stray_samples_));
  if (fill_bytes != 0) Warn(fmt::format("{} bytes of long fills inside buffers were left out", fill_bytes));
  trace.doc =
      fmt::format("captured: {} launches, {} measured", trace.launches.size(), captured_.measured_launches);
  for (const std::string& warning : captured_.warnings) trace.doc += "\n" + warning;
  return std::move(captured_);
}

}  // namespace heddle::capture

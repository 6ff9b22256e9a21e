#include "sim/gpu/dispatcher.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "sim/base/check.h"

namespace heddle::gpu {
namespace {
constexpr Cycle kNever = ~Cycle{0};
}  // namespace

std::vector<uint32_t> GpcsOf(const interconnect::Crossbar& crossbar) {
  std::vector<uint32_t> gpcs;
  for (uint32_t sm = 0; sm < crossbar.sm_count(); ++sm) gpcs.push_back(crossbar.GpcOf(sm));
  return gpcs;
}

std::vector<uint32_t> PlacementOrder(const interconnect::Crossbar& crossbar) {
  // Position of each SM in its TPC and of each TPC in its GPC; SMs are numbered TPC by TPC, GPC by GPC.
  std::vector<std::array<uint32_t, 4>> keyed;
  uint32_t sm_in_tpc = 0;
  uint32_t first_tpc = 0;
  for (uint32_t sm = 0; sm < crossbar.sm_count(); ++sm) {
    sm_in_tpc = sm > 0 && crossbar.TpcOf(sm) == crossbar.TpcOf(sm - 1) ? sm_in_tpc + 1 : 0;
    if (sm > 0 && crossbar.GpcOf(sm) != crossbar.GpcOf(sm - 1)) first_tpc = crossbar.TpcOf(sm);
    keyed.push_back({sm_in_tpc, crossbar.TpcOf(sm) - first_tpc, crossbar.GpcOf(sm), sm});
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<uint32_t> order;
  for (const auto& key : keyed) order.push_back(key[3]);
  return order;
}

Dispatcher::Dispatcher(const config::Gpu& gpu, std::vector<uint32_t> placement_order,
                       std::vector<uint32_t> gpc_of_sm, Cycle hearing_cycles, Hooks hooks)
    : hooks_(std::move(hooks)),
      hearing_cycles_(hearing_cycles),
      launch_latency_(gpu.launch.cta_launch_latency_cycles),
      interval_(static_cast<uint64_t>(std::llround(gpu.launch.cta_dispatch_interval_cycles * kCycleScale))),
      order_(std::move(placement_order)),
      warps_(order_.size()),
      starting_on_(order_.size()) {
  for (const uint32_t sm : order_) {
    if (order_in_gpc_.size() <= gpc_of_sm[sm]) order_in_gpc_.resize(gpc_of_sm[sm] + 1);
    order_in_gpc_[gpc_of_sm[sm]].push_back(sm);
  }
}

void Dispatcher::Add(uint32_t launch, const isa::LaunchShape& shape, uint32_t max_per_sm, Cycle at) {
  Launch& added = launches_.emplace_back();
  added.id = launch;
  added.grid = shape.grid;
  added.count = shape.grid.Count();
  added.warps = shape.WarpsPerCta();
  added.max_per_sm = max_per_sm;
  added.from = at;
  added.cluster = {std::max(1u, shape.cluster.x), std::max(1u, shape.cluster.y),
                   std::max(1u, shape.cluster.z)};
  added.cluster_ctas = static_cast<uint32_t>(added.cluster.Count());
  added.resident.resize(order_.size());
}

void Dispatcher::Remove(uint32_t launch) {
  std::erase_if(launches_, [&](const Launch& l) { return l.id == launch; });
}

const Dispatcher::Launch* Dispatcher::Find(uint32_t launch) const {
  const auto it =
      std::find_if(launches_.begin(), launches_.end(), [&](const Launch& l) { return l.id == launch; });
  return it == launches_.end() ? nullptr : &*it;
}

Dispatcher::Launch* Dispatcher::Find(uint32_t launch) {
  return const_cast<Launch*>(std::as_const(*this).Find(launch));
}

uint64_t Dispatcher::Dispatched(uint32_t launch) const {
  const Launch* of = Find(launch);
  return of == nullptr ? 0 : of->next;
}

void Dispatcher::LeaveOut(uint32_t launch, uint64_t ctas) {
  Launch* of = Find(launch);
  HEDDLE_CHECK(of != nullptr && ctas <= of->count - of->next && ctas % of->cluster_ctas == 0,
               "gpu.dispatcher", 0, "CTAs are left out that there are not");
  of->next += ctas;
}

void Dispatcher::Finished(uint32_t sm, uint32_t launch, Cycle at) {
  const Launch* of = Find(launch);
  HEDDLE_CHECK(of != nullptr, "gpu.dispatcher", at, "a CTA of no launch has finished");
  ended_.push_back({at + hearing_cycles_, sm, launch, of->warps});
  std::push_heap(ended_.begin(), ended_.end(), std::greater<>());
}

void Dispatcher::Hear(Cycle until) {
  while (!ended_.empty() && ended_.front().heard <= until) {
    const Ended ended = ended_.front();
    std::pop_heap(ended_.begin(), ended_.end(), std::greater<>());
    ended_.pop_back();
    warps_[ended.sm] -= ended.warps;
    if (Launch* launch = Find(ended.launch)) --launch->resident[ended.sm];
    blocked_ = kNone;
  }
}

const Dispatcher::Launch* Dispatcher::HeadAt(Cycle at) const {
  for (const Launch& launch : launches_)
    if (launch.next < launch.count && launch.from <= at) return &launch;
  return nullptr;
}

Cycle Dispatcher::EarliestFrom(Cycle after) const {
  Cycle earliest = kNever;
  for (const Launch& launch : launches_)
    if (launch.next < launch.count && launch.from > after) earliest = std::min(earliest, launch.from);
  return earliest;
}

// The SM knows what has started. What is on its way there is of the same launch, and the SM holds nothing else, so
// max_per_sm says what fits; or nothing is on its way.
bool Dispatcher::HasRoom(const Launch& launch, uint32_t sm) const {
  if (launch.resident[sm] >= launch.max_per_sm) return false;
  const bool alone = warps_[sm] == launch.resident[sm] * launch.warps;
  return (alone || starting_on_[sm] == 0) && hooks_.can_host(sm, launch.id);
}

uint32_t Dispatcher::ChooseSm(const Launch& launch) const {
  uint32_t best = kNone;
  for (uint32_t sm : order_) {
    if (best != kNone && warps_[sm] >= warps_[best]) continue;
    if (HasRoom(launch, sm)) best = sm;
  }
  return best;
}

Dim3 Dispatcher::Launch::At(uint64_t index) const {
  const uint64_t number = index / cluster_ctas;
  const auto rank = static_cast<uint32_t>(index % cluster_ctas);
  const Dim3 clusters{grid.x / cluster.x, grid.y / cluster.y, grid.z / cluster.z};
  const uint64_t row = number / clusters.x;
  return {static_cast<uint32_t>(number % clusters.x) * cluster.x + rank % cluster.x,
          static_cast<uint32_t>(row % clusters.y) * cluster.y + rank / cluster.x % cluster.y,
          static_cast<uint32_t>(row / clusters.y) * cluster.z + rank / cluster.x / cluster.y};
}

// How many of `most` CTAs the GPC takes, one after the other to the SM with the fewest warps; lists their SMs.
uint32_t Dispatcher::FitInGpc(Launch* launch, uint32_t gpc, uint32_t most, std::vector<uint32_t>* sms) {
  sms->clear();
  while (sms->size() < most) {
    uint32_t best = kNone;
    for (const uint32_t sm : order_in_gpc_[gpc]) {
      if (best != kNone && warps_[sm] >= warps_[best]) continue;
      if (HasRoom(*launch, sm)) best = sm;
    }
    if (best == kNone) break;
    sms->push_back(best);
    ++launch->resident[best];
    ++starting_on_[best];
    warps_[best] += launch->warps;
  }
  for (const uint32_t sm : *sms) {  // so far a question only
    --launch->resident[sm];
    --starting_on_[sm];
    warps_[sm] -= launch->warps;
  }
  return static_cast<uint32_t>(sms->size());
}

bool Dispatcher::ChooseForCluster(Launch* launch, std::vector<uint32_t>* sms) {
  uint32_t best = kNone;
  uint32_t most = 0;
  for (uint32_t gpc = 0; gpc < order_in_gpc_.size(); ++gpc) {
    const auto ctas = static_cast<uint32_t>(order_in_gpc_[gpc].size()) * launch->max_per_sm;
    const uint32_t clusters = FitInGpc(launch, gpc, ctas, sms) / launch->cluster_ctas;
    if (clusters > most) most = clusters, best = gpc;
  }
  if (best == kNone) return false;
  FitInGpc(launch, best, launch->cluster_ctas, sms);
  return true;
}

bool Dispatcher::TryPlace(Launch* launch, Cycle at) {
  const auto take_slot = [&] { next_slot_ = std::max(next_slot_, at * kCycleScale) + interval_; };
  if (launch->cluster_ctas == 1) {
    const uint32_t sm = ChooseSm(*launch);
    if (sm == kNone) return false;
    Place(launch, sm, at + launch_latency_);
    take_slot();
    return true;
  }
  if (!ChooseForCluster(launch, &chosen_)) return false;
  // A slot for each CTA, and a common start.
  for (uint32_t i = 0; i + 1 < launch->cluster_ctas; ++i) take_slot();
  const Cycle start = std::max(at, next_slot_ / kCycleScale) + launch_latency_;
  take_slot();
  for (const uint32_t sm : chosen_) Place(launch, sm, start);
  return true;
}

void Dispatcher::Place(Launch* launch, uint32_t sm, Cycle start) {
  const Dim3 cta = launch->At(launch->next++);
  ++launch->resident[sm];
  warps_[sm] += launch->warps;
  starting_.push_back({start, sm, launch->id, cta});
  ++starting_on_[sm];
}

void Dispatcher::Run(Cycle begin, Cycle end) {
  Cycle at = std::max(begin, next_slot_ / kCycleScale);
  while (at < end) {
    Hear(at);
    const Launch* head = HeadAt(at);
    if (head == nullptr) {
      at = EarliestFrom(at);
    } else if (head->id == blocked_) {
      at = std::min(ended_.empty() ? kNever : ended_.front().heard, EarliestFrom(at));
    } else if (!TryPlace(Find(head->id), at)) {
      blocked_ = head->id;
    } else {
      at = next_slot_ / kCycleScale;
    }
  }
  for (; !starting_.empty() && starting_.front().start < end; starting_.pop_front()) {
    const Starting& next = starting_.front();
    --starting_on_[next.sm];
    if (launches_.size() > 1) blocked_ = kNone;  // room beside it can be judged again
    hooks_.start(next.sm, next.launch, next.cta, next.start);
  }
}

Cycle Dispatcher::NextEvent(Cycle now) const {
  const Cycle start = starting_.empty() ? kNever : std::max(now, starting_.front().start);
  return std::min(start, NextDispatch(now));
}

Cycle Dispatcher::NextDispatch(Cycle now) const {
  const Cycle at = std::max(now, next_slot_ / kCycleScale);
  const Launch* head = HeadAt(at);
  if (head == nullptr) return EarliestFrom(at);
  if (head->id != blocked_) return at;
  const Cycle heard = ended_.empty() ? kNever : std::max(now, ended_.front().heard);
  return std::min(heard, EarliestFrom(at));
}

std::vector<uint32_t> Dispatcher::Waiting() const {
  std::vector<uint32_t> waiting;
  for (const Launch& launch : launches_)
    if (launch.next < launch.count) waiting.push_back(launch.id);
  return waiting;
}

}  // namespace heddle::gpu

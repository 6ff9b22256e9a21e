#include "sim/gpu/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "sim/memory/memory_request.h"

namespace heddle::gpu {
namespace {

constexpr double kToleranceOfOne = 0.0025;  // between neighbouring batches
constexpr double kTolerance = 0.01;         // between neighbouring stretches of several
// Dirty lines that may come or go in a batch: of L2's limit of them, and of the lines that the batch writes.
constexpr double kDirtOfLimit = 0.01;
constexpr double kDirtOfWrites = 0.05;
constexpr double kFullTolerance = 0.03;  // of a wave, that CTAs in flight may become more or fewer
constexpr double kStoresBehind = 0.01;   // of the time, that stores may fall behind
constexpr uint64_t kLeastWaves = 8;      // of a grid
constexpr uint64_t kMostJumps = 8;
constexpr double kSimulatedShare = 0.1;  // of the grid, that jumps are planned for
// Of the interval, fitted to the launches of tools/check_sampling (docs/validation.md):
constexpr double kSystematic = 0.004;  // of the time left out

// Counters that depend on what caches hold, and so on where in the launch one looks. The others are work: each CTA adds as much.
constexpr std::array kOfMemory = {&stats::Counters::l1tex_hits_sector,   &stats::Counters::l1tex_m_read_bytes,
                                  &stats::Counters::l1tex_m_write_bytes, &stats::Counters::lts_lookups_sector,
                                  &stats::Counters::lts_hits_sector,     &stats::Counters::lts_t_bytes,
                                  &stats::Counters::lts_fabric_bytes,    &stats::Counters::dram_read_bytes,
                                  &stats::Counters::dram_write_bytes,    &stats::Counters::dram_row_misses,
                                  &stats::Counters::icc_requests,        &stats::Counters::icc_misses,
                                  &stats::Counters::idc_misses,          &stats::Counters::tlb_misses,
                                  &stats::Counters::mbarrier_waits};
// And those that grow with time.
constexpr std::array kOfTime = {&stats::Counters::sm_cycles_active, &stats::Counters::smsp_warps_active};

uint64_t Scaled(uint64_t value, double factor) {
  return static_cast<uint64_t>(std::llround(static_cast<double>(value) * factor));
}

// Two-sided 95 % of Student's t; between the degrees of freedom of a table, the lower one counts.
double StudentT95(double degrees) {
  constexpr std::pair<double, double> kTable[] = {
      {1, 12.706}, {2, 4.303},  {3, 3.182},  {4, 2.776},  {5, 2.571},  {6, 2.447},  {7, 2.365}, {8, 2.306},
      {9, 2.262},  {10, 2.228}, {12, 2.179}, {15, 2.131}, {20, 2.086}, {30, 2.042}, {60, 2.0}};
  double t = kTable[0].second;
  for (const auto& [least, value] : kTable)
    if (degrees >= least) t = value;
  return t;
}

// Batch means: half of the 95 % interval of a further batch's expectation, and the deviation of one.
struct Spread {
  double of_mean = 0;
  double of_one = 0;
};
Spread SpreadOf(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  if (values.size() < 2) return {};
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double variance = 0;
  double lagged = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    variance += (values[i] - mean) * (values[i] - mean);
    if (i != 0) lagged += (values[i] - mean) * (values[i - 1] - mean);
  }
  const double correlation = variance > 0 ? std::clamp(lagged / variance, 0.0, 0.9) : 0;
  const double independent = std::max(2.0, n * (1 - correlation) / (1 + correlation));
  variance /= n - 1;
  const double t = StudentT95(independent - 1);
  return {t * std::sqrt(variance / independent), t * std::sqrt(variance)};
}

// Rounded so that the sum over calls is the rounded product of the sum.
class Distributed {
 public:
  explicit Distributed(double factor) : factor_(factor) {}
  uint64_t operator()(uint64_t value) {
    const uint64_t before = Scaled(sum_, factor_);
    sum_ += value;
    return Scaled(sum_, factor_) - before;
  }

 private:
  double factor_;
  uint64_t sum_ = 0;
};

}  // namespace

bool MayWaitForOthers(const isa::KernelCode& code) {
  return std::any_of(code.instructions.begin(), code.instructions.end(), [](const isa::Instruction& i) {
    const bool only_writes =
        i.op == isa::Op::kRED || i.op == isa::Op::kREDG || i.op == isa::Op::kST || i.op == isa::Op::kSTG;
    return i.IsStrong() && !only_writes;
  });
}

Sampler::Sampler(const SamplingRequest& request, const isa::LaunchShape& shape, const isa::KernelCode& code,
                 const SampledMachine& machine)
    : ctas_(shape.grid.Count()),
      period_(std::max<uint64_t>(1, request.period_ctas)),
      dirty_lines_limit_(machine.dirty_lines_limit) {
  const uint64_t cluster = std::max<uint64_t>(1, shape.cluster.Count());
  wave_ = std::max(machine.wave_ctas / cluster, uint64_t{1}) * cluster;
  batch_ = (wave_ + period_ - 1) / period_ * period_;
  row_ = cluster == 1 && shape.grid.x < ctas_ ? shape.grid.x : 1;
  if (!request.whole_because.empty())
    FinishWith(request.whole_because);
  else if (MayWaitForOthers(code))
    FinishWith("its CTAs may wait for each other");
  else if (ctas_ < kLeastWaves * batch_)
    FinishWith(fmt::format("{} CTAs are less than {} waves of {}", ctas_, kLeastWaves, batch_));
  else if (batch_ < kPerBatch || (period_ > 1 && cluster > 1))
    FinishWith("its waves are too small");
}

void Sampler::FinishWith(std::string why) {
  finished_ = true;
  if (jumps_.empty()) whole_because_ = std::move(why);
}

void Sampler::Started(Cycle at) {
  if (!jumps_.empty() && started_ == jumps_.back().started) jumps_.back().at = at;
  // A mark is where its first CTA starts: between two of them lie as many CTAs as they are apart.
  if (started_ >= origin_) {
    const uint64_t behind = started_ - origin_;
    const uint64_t quarter = behind * kPerBatch / batch_;
    if (behind == 0 || quarter != (behind - 1) * kPerBatch / batch_)
      marks_.push_back({started_, at, 0, 0, 0, 0, {}});
  }
  ++started_;
}

void Sampler::Disturb() {
  if (!jumps_.empty()) finished_ = true;
  if (finished_) return;
  marks_.clear();
  dirt_settled_from_.reset();
  asked_ = 0;
  origin_ = started_;
}

uint64_t Sampler::Decide(const stats::Counters& counters, uint64_t dirty_lines, uint64_t dispatched,
                         uint64_t finished, Cycle acknowledged) {
  asked_ = marks_.size();
  marks_.back().counters = counters;
  marks_.back().counted = started_;
  marks_.back().dirty_lines = dirty_lines;
  marks_.back().in_flight = started_ - finished;
  marks_.back().stores_behind = acknowledged - std::min(acknowledged, marks_.back().at);
  if (!planned_) {
    FollowDirt();
    Stretch stretch;
    if (!IsSteady(&stretch)) {
      if (dispatched > ctas_ / 2) FinishWith("its time per wave did not become steady");
      return 0;
    }
    stretches_.push_back(stretch);
    return Plan(dispatched);
  }
  if (jumps_left_ == 0) return 0;
  // Behind a jump: one batch settles, one is measured.
  const size_t first = FirstMark(jumps_.back().started + batch_);
  if (first + kPerBatch >= marks_.size()) return 0;
  stretches_.push_back({first, marks_.size() - 1});
  return MakeJump(dispatched);
}

// Notes from which mark on the lines that wait for being written back have been as many as they will be, or grow so
// slowly that they will never be many.
void Sampler::FollowDirt() {
  const Mark& now = marks_.back();
  const auto before = std::find_if(marks_.rbegin(), marks_.rend(), [&](const Mark& mark) {
    return mark.counted != 0 && mark.counted + batch_ <= now.counted;
  });
  if (before == marks_.rend()) return;
  const auto change = static_cast<double>(now.dirty_lines) - static_cast<double>(before->dirty_lines);
  const double batches = static_cast<double>(now.counted - before->counted) / static_cast<double>(batch_);
  const auto written =
      static_cast<double>(now.counters.l1tex_m_write_bytes - before->counters.l1tex_m_write_bytes) /
      memory::kLineBytes;
  if (std::fabs(change) >
      std::max(kDirtOfLimit * static_cast<double>(dirty_lines_limit_) * batches, kDirtOfWrites * written))
    dirt_settled_from_.reset();
  else if (!dirt_settled_from_)
    dirt_settled_from_ = static_cast<size_t>(marks_.rend() - before) - 1;
}

bool Sampler::IsSteady(Stretch* stretch) const {
  if (!dirt_settled_from_) return false;
  const size_t last = marks_.size() - 1;
  const size_t first = std::max(FirstMark(std::max(wave_, origin_ + 1)), *dirt_settled_from_);
  for (size_t marks = kPerBatch; first + 2 * marks <= last; marks *= 2) {
    const auto later = static_cast<double>(marks_[last].at - marks_[last - marks].at);
    const auto earlier = static_cast<double>(marks_[last - marks].at - marks_[last - 2 * marks].at);
    const double tolerance = marks == kPerBatch ? kToleranceOfOne : kTolerance;
    if (std::fabs(later - earlier) > tolerance * later) continue;
    if (!IsAsFull(marks_[last - 2 * marks]) || !IsAsFull(marks_[last - marks])) continue;
    if (!StoresKeepUp(marks_[last - 2 * marks])) continue;
    *stretch = {last - 2 * marks, last};
    return true;
  }
  return false;
}

// Whether as many CTAs were resident as are now: where they become more, what they wait for has not come to its pace yet.
bool Sampler::IsAsFull(const Mark& mark) const {
  const auto change = static_cast<double>(marks_.back().in_flight) - static_cast<double>(mark.in_flight);
  return mark.counted != 0 && std::fabs(change) <= kFullTolerance * static_cast<double>(wave_);
}

// Whether stores are acknowledged as fast as they are sent: where they are not, CTAs end earlier than their work does, and
// their pace is not that of the launch.
bool Sampler::StoresKeepUp(const Mark& mark) const {
  const auto time = static_cast<double>(marks_.back().at - mark.at);
  const auto change =
      static_cast<double>(marks_.back().stores_behind) - static_cast<double>(mark.stores_behind);
  return change <= kStoresBehind * time;
}

size_t Sampler::FirstMark(uint64_t started) const {
  const auto mark = std::lower_bound(marks_.begin(), marks_.end(), started,
                                     [](const Mark& m, uint64_t count) { return m.started < count; });
  return static_cast<size_t>(mark - marks_.begin());
}

uint64_t Sampler::Plan(uint64_t dispatched) {
  planned_ = true;
  const uint64_t behind = 2 * batch_;  // of each jump
  const auto wanted = static_cast<int64_t>(static_cast<double>(ctas_) * kSimulatedShare);
  const int64_t more = (wanted - static_cast<int64_t>(dispatched + behind)) / static_cast<int64_t>(behind);
  for (jumps_left_ = static_cast<uint32_t>(std::clamp<int64_t>(more + 1, 1, kMostJumps)); jumps_left_ > 0;
       --jumps_left_) {
    const uint64_t left = ctas_ - dispatched;
    if (left <= behind * jumps_left_) continue;  // one more CTA starts the last mark
    jump_ctas_ = JumpSize((left - behind * jumps_left_ - 1) / jumps_left_);
    if (jump_ctas_ > 0) break;
  }
  if (jumps_left_ == 0) {
    FinishWith("too few waves were left when its time per wave had become steady");
    return 0;
  }
  return MakeJump(dispatched);
}

// Whole waves, or periods where there are any; of the sizes that are nearly as large as they may be, the one that is
// nearest to whole rows.
uint64_t Sampler::JumpSize(uint64_t most) const {
  if (period_ > 1) return most / period_ * period_;
  const uint64_t waves = most / wave_;
  uint64_t best = waves;
  uint64_t least_off = row_;
  for (uint64_t n = waves; n > waves - waves / 5; --n) {
    const uint64_t off = std::min(n * wave_ % row_, row_ - n * wave_ % row_);
    if (off < least_off) best = n, least_off = off;
  }
  return best * wave_;
}

uint64_t Sampler::MakeJump(uint64_t dispatched) {
  const uint64_t left_out = LeftOut();
  jumps_.push_back({dispatched - left_out, jump_ctas_, 0});
  origin_ = dispatched - left_out;
  --jumps_left_;
  return jump_ctas_;
}

uint64_t Sampler::LeftOut() const {
  uint64_t ctas = 0;
  for (const Jump& jump : jumps_) ctas += jump.ctas;
  return ctas;
}

std::vector<Sampler::Stretch> Sampler::Stretches() const {
  std::vector<Stretch> stretches = stretches_;
  if (jumps_.empty()) return stretches;
  const size_t first = FirstMark(jumps_.back().started + batch_);
  if (first + kPerBatch < marks_.size())
    stretches.push_back({first, first + (marks_.size() - 1 - first) / kPerBatch * kPerBatch});
  return stretches;
}

double Sampler::Pace(const Stretch& stretch) const {
  const Mark& first = marks_[stretch.first];
  const Mark& last = marks_[stretch.last];
  return static_cast<double>(last.at - first.at) / static_cast<double>(last.started - first.started);
}

std::vector<double> Sampler::BatchPaces(const std::vector<Stretch>& stretches) const {
  std::vector<double> paces;
  for (const Stretch& stretch : stretches)
    for (size_t at = stretch.first; at + kPerBatch <= stretch.last; at += kPerBatch)
      paces.push_back(Pace({at, at + kPerBatch}));
  return paces;
}

std::vector<double> Sampler::JumpPaces(const std::vector<Stretch>& stretches) const {
  std::vector<double> paces;
  for (size_t i = 0; i < jumps_.size(); ++i) {
    const double before = Pace(stretches[i]);
    paces.push_back(i + 1 < stretches.size() ? (before + Pace(stretches[i + 1])) / 2 : before);
  }
  return paces;
}

Cycle Sampler::LeftOutCycles() const {
  const std::vector<Stretch> stretches = Stretches();
  const std::vector<double> paces = JumpPaces(stretches);
  double cycles = 0;
  for (size_t i = 0; i < jumps_.size(); ++i) {
    cycles += static_cast<double>(jumps_[i].ctas) * paces[i];
    if (i + 1 >= stretches.size()) continue;
    // The batch that settles, at the pace of its surroundings.
    const Mark& settled = marks_[stretches[i + 1].first];
    cycles += static_cast<double>(settled.started - jumps_[i].started) * paces[i] -
              static_cast<double>(settled.at - jumps_[i].at);
  }
  return static_cast<Cycle>(std::llround(std::max(0.0, cycles)));
}

Cycle Sampler::Interval() const {
  const std::vector<Stretch> stretches = Stretches();
  const Spread spread = SpreadOf(BatchPaces(stretches));
  const std::vector<double> paces = JumpPaces(stretches);
  double systematic = 0;
  double drift = 0;
  double ctas = 0;
  double jumped_batches = 0;
  for (size_t i = 0; i < jumps_.size(); ++i) {
    const auto size = static_cast<double>(jumps_[i].ctas);
    ctas += size;
    jumped_batches += size / static_cast<double>(batch_);
    systematic += kSystematic * size * paces[i];
    if (i + 1 < stretches.size()) drift += size * std::fabs(Pace(stretches[i + 1]) - Pace(stretches[i])) / 2;
  }
  const double sampled = ctas * spread.of_mean;
  const double own = static_cast<double>(batch_) * spread.of_one * std::sqrt(jumped_batches);
  return static_cast<Cycle>(std::ceil(std::hypot(sampled, own) + drift + systematic));
}

double Sampler::RatePerCta(uint64_t stats::Counters::*counter) const {
  uint64_t grown = 0;
  uint64_t ctas = 0;
  for (const Stretch& stretch : Stretches()) {
    const Mark* first = nullptr;
    const Mark* last = nullptr;
    for (size_t i = stretch.first; i <= stretch.last; ++i) {
      if (marks_[i].counted == 0) continue;
      if (first == nullptr) first = &marks_[i];
      last = &marks_[i];
    }
    if (first == last) continue;
    grown += last->counters.*counter - first->counters.*counter;
    ctas += last->counted - first->counted;
  }
  return ctas == 0 ? 0 : static_cast<double>(grown) / static_cast<double>(ctas);
}

stats::Sampling Sampler::Extrapolate(stats::LaunchStats* stats) const {
  stats::Sampling sampling;
  if (jumps_.empty()) {
    sampling.whole_because =
        !whole_because_.empty() ? whole_because_ : "too few waves were left when it could have been sampled";
    return sampling;
  }
  sampling.ctas_left_out = LeftOut();
  sampling.jumps = static_cast<uint32_t>(jumps_.size());
  sampling.interval_cycles = Interval();
  const Cycle left_out_cycles = LeftOutCycles();
  const double work = static_cast<double>(ctas_) / static_cast<double>(started_);
  const auto elapsed = static_cast<double>(stats->end_cycle - stats->start_cycle);
  const double time = (elapsed + static_cast<double>(left_out_cycles)) / std::max(1.0, elapsed);
  stats->end_cycle += left_out_cycles;

  stats::Counters& counters = stats->counters;
  for (const stats::CounterDef& def : stats::CounterDefs()) {
    uint64_t& value = counters.*def.member;
    if (std::find(kOfMemory.begin(), kOfMemory.end(), def.member) != kOfMemory.end())
      value += static_cast<uint64_t>(
          std::llround(RatePerCta(def.member) * static_cast<double>(sampling.ctas_left_out)));
    else
      value =
          Scaled(value, std::find(kOfTime.begin(), kOfTime.end(), def.member) != kOfTime.end() ? time : work);
  }
  counters.sm_cycles_elapsed = stats->end_cycle - stats->start_cycle;

  // Slots in which an instruction was issued grow with work, the others so that all of them grow with time.
  constexpr auto kSelected = static_cast<size_t>(stats::Stall::k_selected);
  const double all =
      static_cast<double>(std::accumulate(stats->slots.begin(), stats->slots.end(), uint64_t{0}));
  const auto issued = static_cast<double>(stats->slots[kSelected]);
  const double rest = all > issued ? std::max(0.0, (all * time - issued * work) / (all - issued)) : 0;
  const auto factor = [&](size_t stall) { return stall == kSelected ? work : rest; };
  for (size_t i = 0; i < stats->slots.size(); ++i) stats->slots[i] = Scaled(stats->slots[i], factor(i));
  counters.smsp_issue_slots = std::accumulate(stats->slots.begin(), stats->slots.end(), uint64_t{0});
  for (size_t i = 0; i < stats->slots.size(); ++i) {
    Distributed scale(factor(i));
    for (stats::PcStats& pc : stats->per_pc) pc.slots[i] = scale(pc.slots[i]);
  }
  Distributed scale_issued(work);
  for (stats::PcStats& pc : stats->per_pc) pc.issued = scale_issued(pc.issued);
  for (stats::PcStats& pc : stats->per_pc) stats::Scale(work, &pc.memory);
  for (auto& [key, wait] : stats->waits) {
    wait.count = Scaled(wait.count, work);
    wait.cycles = Scaled(wait.cycles, work);
  }
  return sampling;
}

}  // namespace heddle::gpu

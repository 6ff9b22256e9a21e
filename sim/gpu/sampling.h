// Sampled simulation of a launch with many waves of CTAs: where the time per wave is steady, CTAs in the middle of the grid are
// left out, and the time that they would have taken is put in. Systematic sampling: the left-out parts (jumps) lie between
// stretches that are simulated and measured; the first waves and the last ones are always simulated.
//
// Time is read off the cycles at which CTAs start, since after the first wave one starts where one ends. A batch is as many
// CTAs as the machine holds (a wave), or the whole number of periods above that where the work of CTAs repeats with one.
//   1. Two neighbouring stretches of equally many batches must take the same time (two batches within 0.25 %, longer stretches
//      within 1 %), lines of L2 that wait for being written back must no longer become more, and stores must not fall behind (1 % of the
//      time). Until then everything is simulated.
//   2. Jumps are planned: few where the grid is short, more where it is long; each leaves out whole waves, so that the last
//      wave is as full as it would be, and as far as possible whole rows of the grid, so that neighbours stay neighbours.
//   3. Behind a jump one batch settles (its own time does not count, it is taken to be that of its surroundings), and at
//      least one is measured.
// A jump takes as long as its CTAs at the mean pace of the stretches before and behind it.
//
// The interval: batches are taken for a sample by batch means (Law, Simulation Modeling and Analysis, 5th ed., 9.5.3; for
// systematic sampling of simulations see SMARTS, Wunderlich et al., ISCA 2003): Student's t at 95 % times their standard
// deviation, their number reduced by their lag-1 autocorrelation; plus half the difference between the paces on both sides of
// each jump, which is what a trend inside it may hide; plus kSystematic of the time left out.
//
// What a launch must be simulated whole for is said in Sampling::whole_because: CTAs that may wait for each other (strong loads,
// atomics that return a value), few waves (persistent kernels have one), a pace that is never steady, and what SamplingRequest says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/types.h"
#include "sim/gpu/gpu.h"
#include "sim/isa/warp_stream.h"
#include "sim/stats/launch_stats.h"
#include "sim/stats/sampling.h"

namespace heddle::gpu {

// Whether a CTA may wait for what another one does.
bool MayWaitForOthers(const isa::KernelCode& code);

// The machine as a sampler sees it.
struct SampledMachine {
  uint64_t wave_ctas = 0;          // that it holds of this launch
  uint64_t dirty_lines_limit = 0;  // of all L2 slices: more are written back at once
};

class Sampler {
 public:
  Sampler(const SamplingRequest& request, const isa::LaunchShape& shape, const isa::KernelCode& code,
          const SampledMachine& machine);

  // The next CTA starts; cycles do not fall.
  void Started(Cycle at);
  // Other launches run: what has been measured does not count, and no further jump is made meanwhile.
  void Disturb();
  // Enough CTAs have started since the last Decide that it is worth asking.
  bool IsDue() const { return !finished_ && marks_.size() > asked_; }
  // Between windows. `counters`: of the launch so far; `dispatched`: CTAs that have gone out, those left out included; `finished`: that have ended;
  // `acknowledged`: when the last store sent so far is. The number of CTAs to leave out now, mostly 0.
  uint64_t Decide(const stats::Counters& counters, uint64_t dirty_lines, uint64_t dispatched,
                  uint64_t finished, Cycle acknowledged);
  // Cycles that the CTAs left out would have taken. At the end of the launch, as Extrapolate.
  Cycle LeftOutCycles() const;
  // The statistics of the whole launch from those of the part that was simulated. Issue slots go on adding up to
  // smsp_issue_slots, and those of instructions to those of the launch.
  stats::Sampling Extrapolate(stats::LaunchStats* stats) const;

 private:
  static constexpr uint64_t kPerBatch = 4;  // marks in a batch

  struct Mark {
    uint64_t started = 0;  // simulated CTAs
    Cycle at = 0;
    uint64_t counted = 0;      // CTAs that had started when `counters` were read
    uint64_t dirty_lines = 0;  // of all L2 slices then
    uint64_t in_flight = 0;    // CTAs then
    Cycle stores_behind = 0;   // until the last store sent by then is acknowledged
    stats::Counters counters;
  };
  struct Stretch {  // marks [first, last]
    size_t first = 0;
    size_t last = 0;
  };
  struct Jump {
    uint64_t started = 0;  // simulated CTAs before it
    uint64_t ctas = 0;
    Cycle at = 0;  // start of the first CTA behind it
  };

  void FinishWith(std::string why);
  void FollowDirt();
  bool IsSteady(Stretch* stretch) const;
  bool IsAsFull(const Mark& mark) const;
  bool StoresKeepUp(const Mark& mark) const;
  size_t FirstMark(uint64_t started) const;  // with so many CTAs before it
  uint64_t Plan(uint64_t dispatched);
  uint64_t JumpSize(uint64_t most) const;
  uint64_t MakeJump(uint64_t dispatched);
  std::vector<Stretch> Stretches() const;     // the one behind the last jump included
  double Pace(const Stretch& stretch) const;  // cycles a CTA
  std::vector<double> BatchPaces(const std::vector<Stretch>& stretches) const;
  std::vector<double> JumpPaces(const std::vector<Stretch>& stretches) const;
  Cycle Interval() const;
  uint64_t LeftOut() const;
  double RatePerCta(uint64_t stats::Counters::*counter) const;

  uint64_t ctas_;
  uint64_t wave_;
  uint64_t batch_;
  uint64_t row_;     // CTAs of a row of the grid, 1: does not matter
  uint64_t period_;  // jumps are whole multiples
  uint64_t dirty_lines_limit_;
  uint64_t started_ = 0;
  uint64_t origin_ = 0;  // marks lie whole quarters of batches behind it
  std::vector<Mark> marks_;
  size_t asked_ = 0;
  std::optional<size_t> dirt_settled_from_;  // mark
  std::vector<Stretch> stretches_;
  std::vector<Jump> jumps_;
  uint64_t jump_ctas_ = 0;
  uint32_t jumps_left_ = 0;
  bool planned_ = false;
  bool finished_ = false;  // no further jumps
  std::string whole_because_;
};

}  // namespace heddle::gpu

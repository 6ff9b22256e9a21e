// Simulated launches beside measured ones.
//
// A measured launch belongs to the simulated one that it is known to be of (validate's key, or trace and ordinal); otherwise
// to those of the same name (kernel_name.h), grid and block. Where a profile does not state the grid, or prints the
// function's name alone, the one simulated kernel that fits is taken, and the row says so. Times of Nsight Compute, which
// runs each launch alone, are used only where no other source has one; counters of any source are.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/types.h"

namespace heddle::compare {

// Whether a warp in this state (a cause of stalls) waits for something of its own.
constexpr bool IsWait(std::string_view cause) {
  return cause != "selected" && cause != "not_selected" && cause != "no_warp";
}

// What is shown side by side. Absent: not measured.
struct Numbers {
  std::optional<double> instructions;  // warp instructions
  std::optional<double> dram_bytes;    // read and written
  std::optional<double> l2_hit_percent;
  std::optional<double> occupancy_percent;  // resident warps of the most that an SM holds, while it has any
  std::map<std::string, double> waits;      // cause -> share of the waiting, in percent; empty: not measured
};

struct Simulated {
  int64_t run_id = 0, launch_id = 0;
  std::string key, trace_digest;
  uint32_t ordinal = 0;
  std::string name, canonical;
  Dim3 grid, block;
  double ps = 0;
  double interval_ps = 0;  // of a sampled launch: plus or minus so much, with a confidence of 95 %
  double cycles = 0;
  Numbers numbers;
};

struct Measured {
  int64_t hardware_run_id = 0;
  std::string gpu, name, canonical, source;
  std::string launch_key, trace_digest;  // empty: not known
  std::optional<uint32_t> trace_ordinal;
  std::optional<Dim3> grid, block;
  std::optional<double> ps;
  std::optional<double> cycles;  // where only they were measured: taken at the clock of the simulated launch
  bool from_cycles = false;      // `ps` was made of them
  bool is_replayed = false;      // Nsight Compute's
  uint32_t time_resolution_ns = 1;
  Numbers numbers;
};

struct Selection {
  std::string machine;         // name of the description; empty: the only one
  std::optional<int64_t> run;  // empty: all
  std::optional<int64_t> not_run;
  std::string gpu;     // part of the GPU's name; empty: the only one
  std::string source;  // part of the source; empty: all
  std::string kernel;  // regular expression on the name; empty: all
};

struct SimulatedSet {
  std::string machine;
  std::vector<Simulated> launches;
};
struct MeasuredSet {
  std::string gpu;
  std::vector<Measured> launches;
};

// Errors: several machines or GPUs and none is chosen (kUsage, with their names), nothing selected (kTrace).
Result<SimulatedSet> LoadSimulated(const std::string& database, const Selection& selection);
Result<MeasuredSet> LoadMeasured(const std::string& database, const Selection& selection);

// One instruction of a kernel, measured and simulated.
struct Line {
  struct Side {
    double executed = 0;                  // by warps, mean of a launch
    std::map<std::string, double> waits;  // cause -> share of all waiting of the kernel, in percent
    double WaitPercent() const {
      double sum = 0;
      for (const auto& [cause, percent] : waits) sum += percent;
      return sum;
    }
  };
  uint64_t pc = 0;
  std::string text;
  Side measured, simulated;
};

// The instructions of a row's kernel, where they were measured one by one (--sass-metrics, --pc-sampling).
struct Lines {
  std::vector<Line> lines;  // by pc: what ran, or was waited at, on one side at least
  bool has_counts = false, has_samples = false;
  size_t equal = 0;  // with counts that are the same on both sides, to a hundredth of a percent
  double measured_sum = 0, simulated_sum = 0;
  std::string refused;  // why they are not compared; nothing else is set then
};

enum class By : uint8_t { kKernel, kLaunch, kCategory };

struct Row {
  std::string kernel;  // for people; a category with By::kCategory
  std::string category;
  Dim3 grid, block;
  size_t measured = 0;  // launches
  size_t simulated = 0;
  double measured_ps = 0;             // mean of a launch; of By::kCategory the sum
  double simulated_ps = 0;            // the same
  double interval_ps = 0;             // of simulated_ps, as if all its launches erred to one side
  double total_ps = 0;                // measured, of all launches
  std::optional<double> baseline_ps;  // simulated by the baseline
  Numbers measured_numbers, simulated_numbers;
  std::string note;  // how it was joined where that was not by name, grid and block
  std::vector<int64_t> measured_ids, simulated_ids;  // hardware_run, launch; none of a category
  std::optional<Lines> lines;                        // by AddLines

  double ErrorPercent() const { return 100 * (simulated_ps / measured_ps - 1); }
  std::optional<double> BaselineErrorPercent() const {
    if (!baseline_ps) return std::nullopt;
    return 100 * (*baseline_ps / measured_ps - 1);
  }
};

// Kernels of one side without a partner.
struct Unmatched {
  std::string kernel;
  std::optional<Dim3> grid, block;
  size_t launches = 0;
  double total_ps = 0;
  std::string reason;
};

// Of no rows the errors mean nothing, and are shown as "-".
struct Totals {
  size_t rows = 0;
  double measured_ps = 0, simulated_ps = 0;  // of matched launches
  double total_error_percent = 0;
  double mape_percent = 0;
  double weighted_mape_percent = 0;  // by measured time
  double median_abs_error_percent = 0;
  std::optional<double> p90_abs_error_percent;  // none below three rows
  std::optional<double>
      correlation;  // Pearson's, of the logarithms; none below three rows or where one side is constant
};

struct Comparison {
  std::string machine, gpu;
  By by = By::kKernel;
  std::vector<Row> rows;  // by falling total_ps
  Totals totals;
  std::optional<Totals> baseline;                          // over the rows that the baseline has too
  std::optional<Totals> against_baseline;                  // this run over the same rows
  std::vector<Unmatched> measured_alone, simulated_alone;  // by falling total_ps
  size_t measured_launches = 0, measured_matched = 0, simulated_launches = 0, simulated_matched = 0;
  double measured_ps = 0;  // of all measured launches that could count
  bool whole_microseconds = false;

  double CoveredPercent() const { return measured_ps > 0 ? 100 * totals.measured_ps / measured_ps : 0; }
};

Comparison Compare(const SimulatedSet& simulated, const MeasuredSet& measured, By by,
                   const SimulatedSet* baseline = nullptr);

// Reads, for the rows whose measured launches have them, the numbers of single instructions. They are compared where the same
// code was simulated.
Status AddLines(const std::string& simulated_database, const std::string& measured_database,
                Comparison* comparison);

// ---- Output
std::string ComparisonText(const Comparison& comparison, size_t most_rows);
std::string ComparisonCsv(const Comparison& comparison);
std::string ComparisonJson(const Comparison& comparison);
std::string ComparisonHtml(const Comparison& comparison);

}  // namespace heddle::compare

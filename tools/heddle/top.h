// The terminal's summary of a results database: kernels by the time that they take, what bounds them and what they wait for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "tools/analysis/results_reader.h"

namespace heddle::tools {

struct TopRow {  // launches of one kernel and shape on one machine
  std::string kernel;
  std::string grid;
  uint64_t launches = 0;
  double seconds = 0;       // of all of them
  double time_percent = 0;  // of the machine's
  // Of the launch of median duration:
  double cycles = 0;
  std::string bound;           // the resource that it needs longest, as in "DRAM"
  double bound_percent = 0;    // of the launch's time in which that resource must work: 100 cannot be beaten
  double reached_percent = 0;  // lower bound of the launch, its overhead included, over its time
  struct Stall {
    std::string name;
    double percent = 0;  // of the issue slots
  };
  std::vector<Stall> stalls;  // the largest ones, without `selected`
};

struct TopMachine {
  std::string name;
  uint64_t launches = 0;
  double seconds = 0;
  size_t rows_left_out = 0;
  std::vector<TopRow> rows;  // by falling time
};

// By falling time of the machine; at most `limit` rows each (0: all), `stalls` causes a row. Reads the counts of the
// launches that it shows alone.
Result<std::vector<TopMachine>> Summarize(analysis::ResultsReader* reader, size_t limit, size_t stalls);

struct TopStyle {
  size_t width = 100;  // columns; names and stalls are cut to fit, numbers never
  bool color = false;
};
std::string ToText(const std::vector<TopMachine>& machines, const TopStyle& style);
std::string ToJson(const std::vector<TopMachine>& machines);

// Of stdout: the terminal's width and colours unless NO_COLOR says otherwise; COLUMNS or 120 where it is no terminal.
TopStyle StyleOfStdout();

}  // namespace heddle::tools

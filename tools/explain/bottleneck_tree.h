// Where a launch's time goes, from the whole down to the line that waits: issue slots by what they were charged to, within
// each cause the instructions that waited, what each of them waited for, and what relieving the cause gains, measured.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/analysis/kernel_analysis.h"
#include "tools/explain/relief.h"

namespace heddle::explain {

struct Site {
  uint32_t index = 0;                 // of the instruction that waits to issue
  double share = 0;                   // of all issue slots of the launch
  std::optional<uint32_t> waits_for;  // the instruction whose result, or read of its sources, it waits for
};

struct Cause {
  analysis::StallShare stall;
  std::vector<Site> sites;    // by falling share
  std::vector<size_t> gains;  // of BottleneckTree::gains, those that may help it, best first

  // Of an instruction: not an issue, and not a slot without any warp.
  bool IsWait() const {
    return stall.stall != stats::Stall::k_selected && stall.stall != stats::Stall::k_no_warp;
  }
};

struct BottleneckTree {
  std::vector<Cause> causes;  // by falling share, `selected` among them
  std::vector<Gain> gains;    // by falling share; empty where nothing was simulated again
  std::string note;           // why not, or what differs from the database
  std::map<uint32_t, std::string>
      source;  // "softmax.py:23" by instruction index, where the cubin has line tables
};

struct TreeOptions {
  size_t sites = 3;           // of a cause
  double least_share = 0.02;  // of the slots: causes below are left out
  size_t reliefs = 8;         // simulated at most
};

// Without a resimulator there are no gains, and what is waited for is only known of mbarriers.
Result<BottleneckTree> Explain(analysis::ResultsReader* reader, const analysis::KernelAnalysis& kernel,
                               Resimulator* resimulator, const TreeOptions& options);

// The tree as indented text, and the gains over a whole workload.
std::string TreeText(const analysis::KernelAnalysis& kernel, const BottleneckTree& tree,
                     double workload_seconds);

struct WorkloadGain {
  std::string kernel;
  std::string machine;
  std::string relief;  // text
  double seconds = 0;  // that the workload would win: of all launches of the kernel
  double share = 0;    // of the workload's time
};
// The best relief of each kernel, by falling seconds.
std::vector<WorkloadGain> RankKernels(const std::vector<analysis::KernelAnalysis>& kernels,
                                      const std::vector<BottleneckTree>& trees, double workload_seconds);
// Each relief over all kernels together, by falling seconds; `kernel` is empty.
std::vector<WorkloadGain> RankReliefs(const std::vector<analysis::KernelAnalysis>& kernels,
                                      const std::vector<BottleneckTree>& trees, double workload_seconds);

}  // namespace heddle::explain

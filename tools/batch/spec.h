// A sweep as a JSON file, and its results as JSON.
//
//   {
//     "arch": "h100_sxm5",
//     "traces": ["gemm.htrace"],                        from the file's folder on
//     "set": {"board.sustained_clock": "off"},
//     "axes": {"sm.count": "[132:192:12]", "dram.bandwidth_gb_s": [3350, 4800]},
//     "shape": "grid", "samples": 20, "seed": 1,
//     "designs": [{"l2.size_bytes": "100Mi", "l2.hit_latency_cycles": 72}]
//   }
// Every key may be left out.
#pragma once

#include <string>
#include <vector>

#include "sim/base/result.h"
#include "tools/batch/plan.h"
#include "tools/batch/summary.h"

namespace heddle::batch {

// Adds what the file says to `request`; what is there already goes before it (axes, traces, overrides) or wins (arch). All faults
// of the file at once.
Status ReadSpec(const std::string& path, SweepRequest* request);

Result<Shape> ParseShape(const std::string& word);

// One document: schema version, axes, designs with their values, times and proxies, notes, failed jobs.
std::string ResultsJson(const SweepRequest& request, const Plan& plan,
                        const std::vector<DesignResult>& results);

}  // namespace heddle::batch

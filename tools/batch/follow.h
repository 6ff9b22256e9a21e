// Relations of a machine description that a sweep keeps: where an axis moves one field, fields that are tied to it and that
// nobody gave follow, and only as far as they must. What sim/config checks is the law (sim/config/relations.cpp); this says
// which side gives way. Where both sides are given and contradict each other, nothing follows and loading says so.
//
//   sm.count, gpc_count, sm.sms_per_tpc -> sms_per_gpc    dealt evenly
//   sm.max_warps -> sm.max_threads_per_cta                no more than the warps hold
//   dram.channels -> l2.slices                            the nearest multiple of the channels, or a divisor
//   l2.size_bytes -> l2.slices                            the nearest number of slices of whole sets
//   l2.slices, l2.ways -> l2.size_bytes                   the nearest whole number of sets
//   sm.shared_memory.max_per_cta_bytes -> capacities_bytes   one more carve-out that holds it
//   capacities_bytes -> sm.l1.unified_size_bytes          as much is left for L1 as in the base
//   sm.l1.unified_size_bytes -> capacities_bytes          carve-outs that leave nothing for L1 go
//   capacities_bytes -> sm.shared_memory.max_per_cta_bytes   no more than the largest holds
//   tlb.*.entries -> tlb.*.ways                           stays fully associative, or the largest divisor below
#pragma once

#include <map>
#include <string>

#include "sim/config/gpu_description.h"
#include "tools/batch/design.h"

namespace heddle::batch {

// Values of a description by path, as --set takes them; lists of numbers whole: "[1,2]".
using BaseValues = std::map<std::string, std::string>;
BaseValues ValuesOf(const config::Gpu& gpu);

// What follows from `given` (fixed overrides and the design's own), in the order in which it was found.
Assignments Follow(const BaseValues& base, const Assignments& given);

}  // namespace heddle::batch

// Which slice a launch may run with: the smallest one whose stream equals that of full execution on sampled CTAs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frontend/emulator/launch_program.h"
#include "frontend/emulator/slice.h"
#include "sim/base/result.h"

namespace heddle::emulator {

struct SliceSample {
  uint32_t ctas = 4;                                   // first, last and evenly between
  uint64_t max_warp_instructions = uint64_t{1} << 24;  // of the sample, in full mode
};

struct SliceChoice {
  std::shared_ptr<const Slice> slice;  // kFull when no smaller one was found equal
  std::string report;                  // for people: what was tried and what came of it
};

// Runs the sampled CTAs on clones of the memory, in full mode and with each slice. A sample that cannot finish alone
// (CTAs that wait for others) is replaced by the whole grid. Where an earlier launch skipped what this one reads, a sample
// that differs leaves the sound slice, whose assumption (ordinary divisions) the skipped values cannot test. Errors: the launch itself is impossible.
Result<SliceChoice> ChooseSlice(const LaunchDescription& launch, const SliceSample& sample = {});

// True when the sampled CTAs give the same stream with `slice` as in full mode, and no load saw skipped data.
Result<bool> VerifySlice(const LaunchDescription& launch, std::shared_ptr<const Slice> slice,
                         const SliceSample& sample = {});

}  // namespace heddle::emulator

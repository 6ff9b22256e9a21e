// A captured process's memory at other addresses, so that processes whose address spaces overlap fit into one trace.
#pragma once

#include <cstdint>
#include <map>

#include "frontend/trace/trace.h"

namespace heddle::capture {

// Ranges that are in use: start -> end.
using TakenRanges = std::map<uint64_t, uint64_t>;

bool Overlaps(const trace::Trace& trace, const TakenRanges& taken);
void Take(const trace::Trace& trace, TakenRanges* taken);

// Moves every buffer of `trace`, whose buffers have addresses and literal sizes, to a free range: behind all that is taken, each
// at the same distance from a multiple of 2 MiB. What points into a buffer moves with it: words of 8 bytes at multiples of 8 in
// parameters and in contents that are kept as bytes; tensor maps follow their buffer. Returns how many words were changed.
uint64_t Relocate(trace::Trace* trace, const TakenRanges& taken);

// First address behind a captured buffer.
uint64_t EndOf(const trace::Buffer& buffer);

}  // namespace heddle::capture

// Instruction fetch of one SM: L0 and stream buffers in each sub-core, L1 behind them, L2 behind that
// through the outbox.
//
// A stream buffer holds the lines behind one that missed L0. A line found there moves to L0 and the buffer
// asks for the next; a line found nowhere restarts the buffer that has not been used for longest (Huerta et
// al., MICRO 2025: without one, replayed kernels err by 45 %). With one alone, warps at different places of
// code that L0 does not hold take it from each other at every line.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/prefetch.h"
#include "sim/base/types.h"
#include "sim/config/gpu_description.h"
#include "sim/engine/calendar.h"
#include "sim/sm/units/request_port.h"
#include "sim/sm/units/tag_array.h"

namespace heddle::sm {

class InstructionFetch {
 public:
  InstructionFetch(const config::InstructionCaches& config, uint32_t sub_cores);

  // Loads what every fetch looks at.
  void Prefetch() const {
    for (const Front& front : fronts_) PrefetchRange(&front, &front + 1);
  }

  // What a fetch of this line will look at; of use only after Prefetch().
  void Prefetch(uint32_t sub_core, uint64_t line) const { fronts_[sub_core].l0.Prefetch(line); }

  void AdvanceTo(Cycle now) { l1_port_.AdvanceTo(now); }

  // When the line that holds `address` is in L0 of this sub-core, asked for at `now`: TagArray::kOnItsWay
  // when L2 has been asked and has not answered; LineOf(address) then is what Answer's caller compares with.
  Cycle Fetch(uint32_t sub_core, uint64_t address, Cycle now, RequestPort* port);

  // L2's answer to the request for a memory line. Returns when the line is in the L0s that asked.
  Cycle Answer(uint64_t line_address, Cycle arrival);
  void Clear();
  // The lines of [address, address + bytes) are in L1.
  void Warm(uint64_t address, uint64_t bytes);

  uint64_t requests() const { return requests_; }  // lines that L0s and stream buffers asked L1 for
  uint64_t misses() const { return misses_; }      // lines that L1 asked L2 for

 private:
  struct Streamed {
    uint64_t line = ~uint64_t{0};
    Cycle arrival = 0;
  };
  // Lines that are asked for in order, in front of where they are needed.
  struct Stream {
    explicit Stream(uint32_t size) : lines(size) {}
    Streamed& At(uint32_t i) {
      const uint32_t size = static_cast<uint32_t>(lines.size());
      return lines[first + i < size ? first + i : first + i - size];
    }
    std::vector<Streamed> lines;  // ring: `count` lines from `first`
    uint32_t first = 0;
    uint32_t count = 0;
    uint64_t next_line = 0;  // behind the last one asked for
    uint64_t used = 0;       // when it last gave a line
  };
  struct Front {  // one sub-core
    explicit Front(const config::InstructionCaches& config)
        : l0(config.l0), streams(config.stream_buffers, Stream(config.stream_buffer_lines)) {
      resident.fill(TagArray::kNoLine);
    }
    uint64_t& Resident(uint64_t line) { return resident[line % resident.size()]; }
    void Insert(uint64_t line, Cycle arrival);
    TagArray l0;
    std::vector<Stream> streams;
    uint64_t uses = 0;
    // Lines that are in L0 for certain, by their lowest bits: found without a look at the tags. Such a hit does not make
    // the line more recently used.
    std::array<uint64_t, 16> resident;
  };

  void FillStream(Stream* stream, Cycle now, RequestPort* port);
  Cycle FromL1(uint64_t line, Cycle now, RequestPort* port);

  config::InstructionCaches config_;
  uint32_t line_bytes_;
  uint32_t line_shift_;
  std::vector<Front> fronts_;
  TagArray l1_;
  engine::Calendar l1_port_;
  uint32_t line_cycles_;  // of l1_port_ for one line
  uint64_t requests_ = 0;
  uint64_t misses_ = 0;
};

}  // namespace heddle::sm

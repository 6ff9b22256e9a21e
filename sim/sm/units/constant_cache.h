// The constant caches: L0 of each sub-core for operands c[bank][offset], L1 of the SM (which LDC asks too),
// L1.5 behind it, and L2 behind that through the outbox.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/types.h"
#include "sim/config/gpu_description.h"
#include "sim/sm/units/request_port.h"
#include "sim/sm/units/tag_array.h"

namespace heddle::sm {

class ConstantCache {
 public:
  ConstantCache(const config::ConstantCaches& config, uint32_t sub_cores);

  // When the operand at `address` can be read by an instruction of this sub-core: `now` on a hit in L0,
  // TagArray::kOnItsWay when L2 has been asked.
  Cycle Operand(uint32_t sub_core, uint64_t address, Cycle now, RequestPort* port);
  // The same for LDC, which starts at L1.
  Cycle Load(uint64_t address, Cycle now, RequestPort* port);

  // L2's answer to the request for the memory line at `line_address`.
  void Answer(uint64_t line_address, Cycle arrival);
  void Clear();
  // The lines of [address, address + bytes) are in L1.5.
  void Warm(uint64_t address, uint64_t bytes);

  uint64_t misses() const { return misses_; }  // lines that L1.5 asked L2 for

 private:
  Cycle FromL15(uint64_t address, Cycle now, RequestPort* port);

  config::ConstantCaches config_;
  // What an L0 found last: the most recently used line stays that without a look at the tags.
  struct Newest {
    uint64_t line = TagArray::kNoLine;
    Cycle arrival = 0;
  };

  std::vector<TagArray> l0_;
  uint32_t l0_shift_;
  std::vector<Newest> newest_;
  TagArray l1_;
  TagArray l1_5_;
  uint64_t misses_ = 0;
};

}  // namespace heddle::sm

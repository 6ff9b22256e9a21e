// What is expected of the first access of an instruction in a warp (recorded_format.h): the writer and the reader of a chunk
// predict alike, to the bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::importer {

struct First {
  uint64_t base = 0;
  uint32_t shape = 0;  // a number of the table + 1, or 0: stated where it is used
};

// Of one chunk. Instructions are named by any dense number.
class FirstsPrediction {
 public:
  explicit FirstsPrediction(uint32_t warps) : last_(warps) {}

  // From the same warp of the block before, and the neighbouring warp.
  First Expect(uint32_t warp, uint32_t instruction);
  // What it was; the blocks' warps come in order.
  void Set(uint32_t warp, uint32_t instruction, First first);

 private:
  struct Known {
    First first;
    uint64_t step = 0;  // from the block before to this one
    bool known = false;
  };
  Known& Of(uint32_t warp, uint32_t instruction);

  std::vector<std::vector<Known>> last_;  // by warp and instruction
};

}  // namespace heddle::importer

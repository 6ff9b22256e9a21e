// The index tables of a mixture-of-experts layer. Private to frontend/trace.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/base/result.h"

namespace heddle::trace {

struct MoeTables {
  std::vector<int64_t>
      sorted_token_ids;  // by expert, each expert's part padded to whole blocks with the number of pairs
  std::vector<int64_t> block_expert_ids;    // one per block
  std::vector<int64_t> padded_token_count;  // one element
  std::vector<int64_t> sorted_pairs;        // without padding
  std::vector<int64_t> expert_offsets;      // where each expert's part begins in sorted_pairs, and its end
};

// Element i of `experts_of` is the expert of pair i. Stable. An expert outside [0, experts) is an error.
Result<MoeTables> AlignMoe(std::span<const int64_t> experts_of, uint64_t experts, uint64_t block,
                           const std::string& place);

}  // namespace heddle::trace

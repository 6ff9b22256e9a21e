#include "frontend/trace/moe_align.h"

#include <fmt/format.h>

namespace heddle::trace {

Result<MoeTables> AlignMoe(std::span<const int64_t> experts_of, uint64_t experts, uint64_t block,
                           const std::string& place) {
  std::vector<std::vector<int64_t>> pairs(experts);
  for (size_t i = 0; i < experts_of.size(); ++i) {
    const int64_t expert = experts_of[i];
    if (expert < 0 || static_cast<uint64_t>(expert) >= experts)
      return Error{ExitCode::kTrace, place, fmt::format("element {} is expert {} of {}", i, expert, experts),
                   "correct the range of the ids"};
    pairs[static_cast<size_t>(expert)].push_back(static_cast<int64_t>(i));
  }
  MoeTables tables;
  const auto padding = static_cast<int64_t>(experts_of.size());
  for (uint64_t expert = 0; expert < experts; ++expert) {
    tables.expert_offsets.push_back(static_cast<int64_t>(tables.sorted_pairs.size()));
    for (const int64_t pair : pairs[expert]) {
      tables.sorted_pairs.push_back(pair);
      tables.sorted_token_ids.push_back(pair);
    }
    while (tables.sorted_token_ids.size() % block != 0) tables.sorted_token_ids.push_back(padding);
    while (tables.block_expert_ids.size() * block < tables.sorted_token_ids.size())
      tables.block_expert_ids.push_back(static_cast<int64_t>(expert));
  }
  tables.expert_offsets.push_back(static_cast<int64_t>(tables.sorted_pairs.size()));
  tables.padded_token_count.push_back(static_cast<int64_t>(tables.sorted_token_ids.size()));
  return tables;
}

}  // namespace heddle::trace

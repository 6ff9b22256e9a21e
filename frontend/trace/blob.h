// Compression of the large values in a trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/base/result.h"

namespace heddle::trace {

inline constexpr uint64_t kMaxBlobBytes = uint64_t{1} << 32;  // of one decompressed blob

std::vector<std::byte> Compress(std::span<const std::byte> bytes);

// The input is not trusted: no more than `size_bytes` (at most kMaxBlobBytes) are produced, and memory grows
// only as bytes appear. Anything else than exactly size_bytes is an error.
Result<std::vector<std::byte>> Decompress(std::span<const std::byte> compressed, uint64_t size_bytes,
                                          const std::string& place);

}  // namespace heddle::trace

// A quick hash of bytes, to see whether two pieces of memory may be the same. Not for what an adversary may choose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace heddle::capture {

inline uint64_t WordHash(const void* bytes, size_t size) {
  const auto* data = static_cast<const uint8_t*>(bytes);
  uint64_t hash = 0x9e3779b97f4a7c15u ^ size;
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word = 0;
    std::memcpy(&word, data, 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  for (size_t i = 0; i < size; ++i) hash = (hash ^ data[i]) * 0x100000001b3u;
  return hash;
}

}  // namespace heddle::capture

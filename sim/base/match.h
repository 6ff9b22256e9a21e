// Which of 16 words equal a given one: the tag lookup of a cache set in a handful of instructions.
#pragma once

#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace heddle {

// Bit i of the result: words[i] == wanted. `words` is aligned to 32 bytes.
inline uint32_t Match16(const uint32_t* words, uint32_t wanted) {
#if defined(__AVX2__)
  const __m256i all = _mm256_set1_epi32(static_cast<int>(wanted));
  const auto* vectors = reinterpret_cast<const __m256i*>(words);
  const auto half = [all](const __m256i* at) {
    const __m256i equal = _mm256_cmpeq_epi32(_mm256_load_si256(at), all);
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(equal)));
  };
  return half(vectors) | half(vectors + 1) << 8;
#else
  uint32_t match = 0;
  for (uint32_t i = 0; i < 16; ++i) match |= static_cast<uint32_t>(words[i] == wanted) << i;
  return match;
#endif
}

}  // namespace heddle

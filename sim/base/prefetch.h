// Loads ahead of use.
#pragma once

#include <cstddef>

namespace heddle {

inline constexpr size_t kCacheLineBytes = 64;  // of the processor that simulates

// Asks for the cache line of `address`, which is about to be read or written; the address may be invalid. GCC takes a function
// that does nothing but __builtin_prefetch for one without effect and drops the calls of it: the empty asm keeps them.
[[gnu::always_inline]] inline void Prefetch(const void* address) {
  __builtin_prefetch(address, 1, 3);
  asm volatile("");
}

// The lines of [begin, end), into the second level.
[[gnu::always_inline]] inline void PrefetchRange(const void* begin, const void* end) {
  for (const char* line = static_cast<const char*>(begin); line < end; line += kCacheLineBytes) {
    __builtin_prefetch(line, 1, 2);
    asm volatile("");
  }
}

}  // namespace heddle

#include "sim/base/large_pages.h"

#include <cstdint>
#include <cstdlib>  // before __GLIBC__ is asked for: the library's headers define it

#if defined(__GLIBC__) && defined(__linux__)
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace heddle {

void UseLargePages() {
#if defined(__GLIBC__) && defined(__linux__)
  constexpr int kReserveBytes = 1 << 30;
  constexpr uintptr_t kLargePageBytes = uintptr_t{2} << 20;
  // One arena: threads take their blocks from the same run. What is freed stays.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_TRIM_THRESHOLD, kReserveBytes);
  mallopt(M_TOP_PAD, kReserveBytes);
  // More than is free now, less than what gets a mapping of its own: the heap grows by the reserve.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  void* const volatile block = std::malloc(16 << 20);
  const auto begin = reinterpret_cast<uintptr_t>(block);
  const auto end = reinterpret_cast<uintptr_t>(sbrk(0));
  if (begin != 0 && end > begin && end - begin <= uintptr_t{2} * kReserveBytes) {
    const uintptr_t aligned = (begin + kLargePageBytes - 1) & ~(kLargePageBytes - 1);
    if (aligned < end) madvise(reinterpret_cast<void*>(aligned), end - aligned, MADV_HUGEPAGE);
  }
  std::free(block);
  mallopt(M_TOP_PAD, 64 << 20);
#endif
}

}  // namespace heddle

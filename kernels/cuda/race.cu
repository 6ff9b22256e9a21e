// A kernel with a data race on purpose: every CTA reads, changes and writes the same words with plain
// accesses, and where it goes next depends on what it read. Its result is whatever the machine's order makes
// of it; a simulation of it must give the same result on any number of threads.
#include <cstdint>

// words [count] uint32, count a power of two.
extern "C" __global__ void racing_walk(uint32_t* words, uint32_t count, int steps) {
  uint32_t index = (blockIdx.x * blockDim.x + threadIdx.x) & (count - 1);
  for (int i = 0; i < steps; ++i) {
    const uint32_t seen = *reinterpret_cast<volatile uint32_t*>(words + index);
    const uint32_t mixed = (seen ^ (blockIdx.x * 2654435761u)) * 1664525u + 1013904223u;
    *reinterpret_cast<volatile uint32_t*>(words + index) = mixed;
    index = (index + (mixed >> 16)) & (count - 1);
  }
}

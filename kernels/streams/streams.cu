// Ten small kernels that write down the address of every access to global memory, thread by thread, as they run: on a GPU and in the
// emulator alike, since both execute the same machine code. `heddle trace streams` compares what they wrote. A launch is one warp.
//
// The log of a launch: the number of records, then records of 33 words: the place in the source (8 bits) and, from bit 32 on, which lanes
// came there together; then for each lane 1 + the offset from the buffer's start in bytes, and 1 in bit 63 for `out`; 0: not there.
#include <cstdint>

namespace {

constexpr unsigned kRecords = 64;

__device__ __forceinline__ void Note(unsigned long long* log, unsigned site, const void* base, const void* address,
                                     bool is_out) {
  const unsigned mask = __activemask();
  const unsigned lane = threadIdx.x % 32, leader = __ffs(mask) - 1;
  unsigned record = 0;
  if (lane == leader) record = static_cast<unsigned>(atomicAdd(log, 1ull));
  record = __shfl_sync(mask, record, leader);
  if (record >= kRecords) return;
  unsigned long long* words = log + 1 + 33 * record;
  if (lane == leader) words[0] = site | static_cast<unsigned long long>(mask) << 32;
  const unsigned long long offset = static_cast<const char*>(address) - static_cast<const char*>(base);
  words[1 + lane] = (offset + 1) | static_cast<unsigned long long>(is_out) << 63;
}

struct Memory {
  const int* in;
  int* out;
  unsigned long long* log;

  template <typename T>
  __device__ T Load(unsigned site, unsigned index) const {
    const T* from = reinterpret_cast<const T*>(in) + index;
    Note(log, site, in, from, false);
    return *from;
  }
  template <typename T>
  __device__ void Store(unsigned site, unsigned index, T value) const {
    T* to = reinterpret_cast<T*>(out) + index;
    Note(log, site, out, to, true);
    *to = value;
  }
};

__device__ unsigned Hash(unsigned x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  return x * 0x846ca68bU;
}

}  // namespace

#define KERNEL(name) extern "C" __global__ void name(const int* in, int* out, unsigned long long* log, unsigned warp)
#define MEMORY                                      \
  const Memory m{in, out, log};                     \
  const unsigned lane = threadIdx.x, thread = 32 * warp + lane; \
  (void)thread

KERNEL(copy_strided) {
  MEMORY;
  for (unsigned i = 0; i < 4; ++i) m.Store<int>(2, 128 * i + thread, m.Load<int>(1, 3 * (128 * i + thread)));
}

KERNEL(gather) {
  MEMORY;
  unsigned at = Hash(thread) % 4096;
  for (unsigned i = 0; i < 6; ++i) at = static_cast<unsigned>(m.Load<int>(1, at)) % 4096;
  m.Store<int>(2, thread, static_cast<int>(at));
}

KERNEL(branches) {
  MEMORY;
  int sum = 0;
  if (lane % 3 == 0) {
    for (unsigned i = 0; i < 3; ++i) sum += m.Load<int>(1, thread + 64 * i);
  } else if (lane % 3 == 1) {
    sum = m.Load<int>(2, 5 * thread);
  }
  __syncwarp();
  if (sum % 2 == 0) m.Store<int>(3, thread, sum);
}

KERNEL(collatz) {
  MEMORY;
  unsigned value = thread + 3, steps = 0;
  while (value != 1 && steps < 12) {
    value = value % 2 == 0 ? value / 2 : 3 * value + 1;
    steps += 1 + (static_cast<unsigned>(m.Load<int>(1, value % 4096)) & 1);
  }
  m.Store<int>(2, thread, static_cast<int>(steps));
}

KERNEL(reduce) {
  MEMORY;
  int sum = m.Load<int>(1, thread) + m.Load<int>(2, thread + 1024);
  for (unsigned far = 16; far != 0; far /= 2) sum += __shfl_down_sync(0xffffffffu, sum, far);
  if (lane == 0) m.Store<int>(3, warp, sum);
}

KERNEL(transpose) {
  MEMORY;
  __shared__ int tile[8][33];
  for (unsigned row = 0; row < 8; ++row) tile[row][lane] = m.Load<int>(1, 256 * warp + 32 * row + lane);
  __syncthreads();
  for (unsigned i = 0; i < 8; ++i)
    m.Store<int>(2, 256 * warp + 32 * i + lane, tile[lane % 8][(4 * i + lane / 8) % 32]);
}

KERNEL(histogram) {
  MEMORY;
  for (unsigned i = 0; i < 3; ++i) {
    const unsigned bin = static_cast<unsigned>(m.Load<int>(1, 64 * i + thread)) % 16;
    Note(m.log, 2, m.out, m.out + bin, true);
    atomicAdd(m.out + bin, 1);
  }
}

KERNEL(vectors) {
  MEMORY;
  for (unsigned i = thread; i < 100; i += 64) {
    const int4 value = m.Load<int4>(1, i);
    m.Store<int2>(2, i, make_int2(value.x + value.w, value.y - value.z));
  }
}

KERNEL(search) {
  MEMORY;
  const int wanted = static_cast<int>(Hash(thread) % 4096);
  unsigned low = 0, high = 4096;
  while (high - low > 1) {
    const unsigned middle = (low + high) / 2;
    const int at = m.Load<int>(1, Hash(middle) % 4096);
    if (at <= wanted)
      low = middle;
    else
      high = middle;
  }
  m.Store<int>(2, thread, static_cast<int>(low));
}

KERNEL(dispatch) {
  MEMORY;
  const int value = m.Load<int>(1, thread);
  int result = 0;
  switch (static_cast<unsigned>(value) % 7) {
    case 0: result = m.Load<int>(2, 4095 - thread); break;
    case 1: result = m.Load<int>(3, 2 * thread) * 3; break;
    case 2: result = value ^ 0x55; break;
    case 3: m.Store<int>(4, 2048 + thread, value); break;
    case 4: result = m.Load<int>(5, thread / 2) - value; break;
    case 5: result = __popc(value); break;
    default: result = m.Load<int>(6, Hash(thread) % 4096); break;
  }
  __syncwarp();
  m.Store<int>(7, thread, result);
}

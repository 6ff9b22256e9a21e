// Attention forward on Hopper, re-created after FlashAttention-3's public design: a warpgroup copies keys and values of a paged cache
// to shared memory (16 bytes a lane, two tiles of 128 keys of each), warpgroups of 64 query rows multiply with wgmma, and a tile's
// scores are computed while the values of the tile before are multiplied. Two warpgroups take turns with the tensor cores.
// bf16, head dimension 128.
#include <cuda_bf16.h>

#include <cstdint>

#include "wgmma.cuh"

namespace {

using Bf16 = __nv_bfloat16;
constexpr int kDim = 128, kKeys = 128, kStages = 2;
constexpr int kTileBytes = kKeys * kDim * 2,
              kHalfBytes = kTileBytes / 2;  // a tile is two halves of 64 columns, 128 bytes a row each

struct Problem {
  const Bf16 *q, *k, *v;
  const int* table;  // [sequences, table_stride]: pages
  Bf16* out;
  float *partial, *lse;  // of splits
  int tokens, length, heads, kv_heads, page, table_stride, splits;
  float scale_log2;
};

__device__ uint32_t SharedAddress(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ void Init(uint32_t barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count));
}
__device__ void Arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ void ArriveWithCopies(uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
__device__ void Wait(uint32_t barrier, int parity) {
  asm volatile(
      "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra done;\nbra "
      "again;\ndone:\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
__device__ void BarrierSync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ void BarrierArrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ void Copy(uint32_t to, const Bf16* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// 16 bytes of a row of 256: column of 8, row.
__device__ uint32_t Place(int row, int unit) {
  return unit / 8 * kHalfBytes + row * 128 + ((unit % 8 ^ row % 8) << 4);
}
__device__ uint32_t Pair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// kGroups warpgroups of 64 rows. kPacked: the rows are the query heads of one key head of one token (decode); otherwise tokens of one
// head under a causal mask, the longest rows first.
template <int kGroups, bool kPacked>
struct Attention {
  static_assert(kPacked || 64 * kGroups == kKeys);  // see Soften
  static constexpr int kRows = 64 * kGroups, kThreads = 128 * (kGroups + 1);
  static constexpr int kQueryBytes = kRows * kDim * 2, kQueryHalf = kQueryBytes / 2;
  static constexpr int kAtK = kQueryBytes, kAtV = kAtK + kStages * kTileBytes,
                       kAtBarriers = kAtV + kStages * kTileBytes;

  struct Work {
    int sequence, kv_head, head, first_row, first_tile, last_tile, split, keys;
  };
  static __device__ Work Mine(const Problem& p) {
    if constexpr (kPacked) {
      const int tiles = (p.length + kKeys - 1) / kKeys, share = (tiles + p.splits - 1) / p.splits,
                split = blockIdx.x;
      return {static_cast<int>(blockIdx.z),
              static_cast<int>(blockIdx.y),
              0,
              0,
              split * share,
              min(tiles, (split + 1) * share),
              split,
              p.length};
    } else {
      const int head = blockIdx.x, row = (gridDim.z - 1 - blockIdx.z) * kRows,
                keys = min(p.length, row + kRows);
      return {static_cast<int>(blockIdx.y),
              head / (p.heads / p.kv_heads),
              head,
              row,
              0,
              (keys + kKeys - 1) / kKeys,
              0,
              keys};
    }
  }

  // Where this thread's key of a tile begins in the cache, in elements. Eight threads copy a row, and each knows the place of every
  // sixteenth key, as in FlashAttention-3. Keys behind the last one are another key's: their exponentials become 0.
  static __device__ size_t PlaceOfKey(const Problem& p, const Work& work, int tile) {
    const int key =
        min(tile * kKeys + static_cast<int>(threadIdx.x % 8 * 16 + threadIdx.x / 8), p.length - 1);
    const int page = __ldg(p.table + static_cast<size_t>(work.sequence) * p.table_stride + key / p.page);
    return (static_cast<size_t>(page * p.page + key % p.page) * p.kv_heads + work.kv_head) * kDim;
  }
  static __device__ void CopyTile(const Bf16* mine, uint32_t to) {
    const int unit = threadIdx.x % 8;
    to += Place(threadIdx.x / 8, unit);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const auto from =
          reinterpret_cast<const Bf16*>(__shfl_sync(~0u, reinterpret_cast<unsigned long long>(mine), i, 8)) +
          unit * 8;
      Copy(to + i * 16 * 128, from);
      Copy(to + i * 16 * 128 + kHalfBytes, from + 64);
    }
  }

  static __device__ void Produce(const Problem& p, const Work& work, uint32_t shared) {
    int stage = 0, parity = 1;
    for (int tile = work.last_tile - 1; tile >= work.first_tile; --tile) {
      const uint32_t full = shared + kAtBarriers + 8 * stage;  // full of k, empty of k, full of v, empty of v
      const size_t place = PlaceOfKey(p, work, tile);
      Wait(full + 16, parity);
      CopyTile(p.k + place, shared + kAtK + stage * kTileBytes);
      ArriveWithCopies(full);
      Wait(full + 48, parity);
      CopyTile(p.v + place, shared + kAtV + stage * kTileBytes);
      ArriveWithCopies(full + 32);
      if (++stage == kStages) stage = 0, parity ^= 1;
    }
  }

  static __device__ void LoadQueries(const Problem& p, const Work& work, uint32_t shared, int group) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32, per_kv = p.heads / p.kv_heads;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = warp * 16 + 2 * i + lane / 16, at = work.first_row + group * 64 + row;
      const bool real = kPacked ? row < per_kv : at < p.tokens;
      const int token = kPacked ? work.sequence : work.sequence * p.tokens + at;
      const int head = kPacked ? work.kv_head * per_kv + row : work.head;
      const Bf16* from =
          p.q + (static_cast<size_t>(real ? token : 0) * p.heads + (real ? head : 0)) * kDim + lane % 16 * 8;
      const int unit = lane % 16;
      Copy(shared + unit / 8 * kQueryHalf + (group * 64 + row) * 128 + ((unit % 8 ^ row % 8) << 4), from);
    }
    asm volatile("cp.async.wait_all;\nfence.proxy.async.shared::cta;" ::: "memory");
    BarrierSync(4 + group, 128);
  }

  static __device__ void Scores(uint32_t shared, int group, int stage, float (&s)[64]) {
    const uint32_t q = shared + group * 64 * 128, k = shared + kAtK + stage * kTileBytes;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      Wgmma(s, Descriptor(q + i / 4 * kQueryHalf) + 2 * (i % 4),
            Descriptor(k + i / 4 * kHalfBytes) + 2 * (i % 4), i != 0, Bf16());
    WgmmaCommit();
  }
  static __device__ void Values(uint32_t shared, int stage, const uint32_t (&a)[8][4], bool add,
                                float (&o)[64]) {
    const uint64_t v = DescriptorOfColumns(shared + kAtV + stage * kTileBytes, kHalfBytes);
#pragma unroll
    for (int i = 0; i < 8; ++i) WgmmaOfColumns(o, a[i], v + i * (16 * 128 / 16), add || i != 0);
    WgmmaCommit();
  }

  // Scores become exponentials; `keep` is what earlier sums and products are worth now. Only the last tile has keys that are masked, for
  // rows begin at a tile's first key: the others have no branch, across which the compiler would not move the wait for products.
  // `quarter` is called with a sum of a quarter of the exponentials.
  template <bool kMasked, typename Quarter>
  static __device__ void Soften(const Problem& p, const Work& work, int tile, int group, float (&s)[64],
                                float (&maximum)[2], float (&total)[2], float (&keep)[2],
                                const Quarter& quarter) {
    const int lane = threadIdx.x % 32,
              row = work.first_row + group * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4;
    const int first = tile * kKeys + lane % 4 * 2;
    if constexpr (kMasked) {
#pragma unroll
      for (int i = 0; i < 64; ++i) {
        const int key = first + i / 4 * 8 + i % 2;
        if (key >= p.length || (!kPacked && key > row + i % 4 / 2 * 8)) s[i] = -INFINITY;
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest = maximum[half];
#pragma unroll
      for (int i = 0; i < 64; i += 4) largest = fmaxf(largest, fmaxf(s[i + 2 * half], s[i + 2 * half + 1]));
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
      const float offset = largest == -INFINITY ? 0 : largest * p.scale_log2;
      keep[half] = Exp2(maximum[half] * p.scale_log2 - offset);
      maximum[half] = largest;
      float sum = 0;
#pragma unroll
      for (int i = 0; i < 64; i += 4) {
        if (half == 0 && i == 32) quarter(sum);
        s[i + 2 * half] = Exp2(s[i + 2 * half] * p.scale_log2 - offset);
        s[i + 2 * half + 1] = Exp2(s[i + 2 * half + 1] * p.scale_log2 - offset);
        sum += s[i + 2 * half] + s[i + 2 * half + 1];
      }
      total[half] = total[half] * keep[half] + sum;
    }
  }
  static __device__ void Pack(const float (&s)[64], uint32_t (&a)[8][4]) {
#pragma unroll
    for (int i = 0; i < 32; ++i) a[i / 4][i % 4] = Pair(s[2 * i], s[2 * i + 1]);
  }

  static __device__ void Consume(const Problem& p, const Work& work, uint32_t shared, int group) {
    LoadQueries(p, work, shared, group);
    const uint32_t barriers = shared + kAtBarriers;
    float s[64], o[64] = {}, maximum[2] = {-INFINITY, -INFINITY}, total[2] = {}, keep[2];
    uint32_t a[8][4];
    int stage = 0, parity = 0, tile = work.last_tile - 1;
    const auto signal = [&](uint32_t barrier) {
      if (threadIdx.x % 32 == 0) Arrive(barrier);
    };
    // ptxas lifts the wait for products above all arithmetic that does not need them, up to the last access to memory, and nothing is
    // left that overlaps them. In FlashAttention-3's binary that access is the release of the keys, behind a quarter of the exponentials
    // of a tile; here a sum of them, which is never negative, keeps it there.
    const auto release = [&](uint32_t barrier) {
      return [barrier](float sum) {
        if (threadIdx.x % 32 == 0 && sum >= 0) Arrive(barrier);
      };
    };
    if (kGroups == 2 && group == 1) BarrierArrive(2, 256);  // the first turn is the other's
    Wait(barriers, 0);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    WgmmaFence();
    Scores(shared, group, 0, s);
    WgmmaWait<0>();
    Soften<true>(p, work, tile, group, s, maximum, total, keep, release(barriers + 16));
    Pack(s, a);
    for (--tile; tile >= work.first_tile; --tile) {
      const int next = stage ^ 1, next_parity = parity ^ (next == 0);
      Wait(barriers + 8 * next, next_parity);
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      if constexpr (kGroups == 2) BarrierSync(2 + group, 256);
      WgmmaFence();
      Scores(shared, group, next, s);
      Wait(barriers + 32 + 8 * stage, parity);
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      WgmmaFence();
      Values(shared, stage, a, true, o);
      if constexpr (kGroups == 2) BarrierArrive(2 + (group ^ 1), 256);
      WgmmaWait<1>();
      Soften<false>(p, work, tile, group, s, maximum, total, keep, release(barriers + 16 + 8 * next));
      WgmmaWait<0>();
      signal(barriers + 48 + 8 * stage);
      Pack(s, a);
#pragma unroll
      for (int i = 0; i < 64; ++i) o[i] *= keep[i % 4 / 2];
      stage = next, parity = next_parity;
    }
    if (kGroups == 2 && group == 0) BarrierSync(2, 256);  // the turn that nobody takes
    Wait(barriers + 32 + 8 * stage, parity);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    WgmmaFence();
    Values(shared, stage, a, true, o);
    WgmmaWait<0>();
    Write(p, work, group, maximum, total, o);
  }

  static __device__ void Write(const Problem& p, const Work& work, int group, const float (&maximum)[2],
                               float (&total)[2], const float (&o)[64]) {
    const int lane = threadIdx.x % 32, per_kv = p.heads / p.kv_heads;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      total[half] += __shfl_xor_sync(~0u, total[half], 1);
      total[half] += __shfl_xor_sync(~0u, total[half], 2);
      const float factor = total[half] > 0 ? 1 / total[half] : 0;
      const int row = group * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4 + 8 * half,
                at = work.first_row + row;
      if (kPacked ? row >= per_kv : at >= p.tokens) continue;
      const int token = kPacked ? work.sequence : work.sequence * p.tokens + at;
      const size_t place =
          static_cast<size_t>(token) * p.heads + (kPacked ? work.kv_head * per_kv + row : work.head);
      if (kPacked && p.splits > 1) {
        float* to = p.partial + (place * p.splits + work.split) * kDim + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < 16; ++i)
          *reinterpret_cast<float2*>(to + 8 * i) = {o[4 * i + 2 * half] * factor,
                                                    o[4 * i + 2 * half + 1] * factor};
        if (lane % 4 == 0)
          p.lse[place * p.splits + work.split] =
              total[half] > 0 ? maximum[half] * p.scale_log2 + log2f(total[half]) : -INFINITY;
      } else {
        Bf16* to = p.out + place * kDim + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < 16; ++i)
          *reinterpret_cast<uint32_t*>(to + 8 * i) =
              Pair(o[4 * i + 2 * half] * factor, o[4 * i + 2 * half + 1] * factor);
      }
    }
  }

  static __device__ void Run(const Problem& p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    const uint32_t shared = SharedAddress(memory);
    if (threadIdx.x == 0) {
      for (int i = 0; i < kStages; ++i) {
        Init(shared + kAtBarriers + 8 * i, 128), Init(shared + kAtBarriers + 32 + 8 * i, 128);
        Init(shared + kAtBarriers + 16 + 8 * i, 4 * kGroups),
            Init(shared + kAtBarriers + 48 + 8 * i, 4 * kGroups);
      }
    }
    __syncthreads();
    const Work work = Mine(p);
    if (work.first_tile >= work.last_tile) {  // an empty split
      const int row = threadIdx.x - 128, per_kv = p.heads / p.kv_heads;
      if (kPacked && p.splits > 1 && row >= 0 && row < per_kv)
        p.lse[(static_cast<size_t>(work.sequence) * p.heads + work.kv_head * per_kv + row) * p.splits +
              work.split] = -INFINITY;
      return;
    }
    if (threadIdx.x < 128) {
      if constexpr (kGroups == 2) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
      Produce(p, work, shared);
    } else {
      if constexpr (kGroups == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
      Consume(p, work, shared, threadIdx.x / 128 - 1);
    }
  }
};

}  // namespace

#define KERNEL(name, groups, packed)                                                                    \
  extern "C" __global__ void __launch_bounds__(Attention<groups, packed>::kThreads, 1)                  \
      name(const Bf16* q, const Bf16* k, const Bf16* v, const int* table, Bf16* out, float* partial,    \
           float* lse, int tokens, int length, int heads, int kv_heads, int page, int table_stride,     \
           int splits, float scale_log2) {                                                              \
    Attention<groups, packed>::Run({q, k, v, table, out, partial, lse, tokens, length, heads, kv_heads, \
                                    page, table_stride, splits, scale_log2});                           \
  }
// Grid: (heads, sequences, cdiv(tokens, 128)), so that the longest rows of all begin first; tokens == length.
KERNEL(attention_prefill, 2, false)
// One token a sequence. Grid: (splits, kv_heads, sequences).
KERNEL(attention_decode, 1, true)

// out [rows, 128] from partial [rows, splits, 128] and lse [rows, splits]. A warp a row. Grid: cdiv(rows, 4).
extern "C" __global__ void __launch_bounds__(128)
    attention_combine(Bf16* out, const float* partial, const float* lse, int rows, int splits) {
  const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float largest = -INFINITY, weights = 0, sum[4] = {};
  for (int i = 0; i < splits; ++i)
    largest = fmaxf(largest, __ldg(lse + static_cast<size_t>(row) * splits + i));
  for (int i = 0; i < splits; ++i) {
    const float weight = Exp2(__ldg(lse + static_cast<size_t>(row) * splits + i) - largest);
    if (weight == 0) continue;
    const float4 x =
        *reinterpret_cast<const float4*>(partial + (static_cast<size_t>(row) * splits + i) * kDim + lane * 4);
    sum[0] += weight * x.x, sum[1] += weight * x.y, sum[2] += weight * x.z, sum[3] += weight * x.w;
    weights += weight;
  }
  uint2 bits = {Pair(sum[0] / weights, sum[1] / weights), Pair(sum[2] / weights, sum[3] / weights)};
  *reinterpret_cast<uint2*>(out + static_cast<size_t>(row) * kDim + lane * 4) = bits;
}

// New keys and values [tokens, columns] to their places in the cache, as vLLM's reshape_and_cache_flash does. A CTA a token.
extern "C" __global__ void __launch_bounds__(512)
    write_cache(const Bf16* key, const Bf16* value, Bf16* k, Bf16* v, const int64_t* slots, int columns) {
  const size_t from = static_cast<size_t>(blockIdx.x) * columns, to = slots[blockIdx.x] * columns;
  for (int i = threadIdx.x * 8; i < columns; i += blockDim.x * 8) {
    *reinterpret_cast<uint4*>(k + to + i) = *reinterpret_cast<const uint4*>(key + from + i);
    *reinterpret_cast<uint4*>(v + to + i) = *reinterpret_cast<const uint4*>(value + from + i);
  }
}

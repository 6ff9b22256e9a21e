// One kernel for each way in which Hopper moves data and synchronises. sm_90a.
#include "device.cuh"

#define BOX_KERNELS(D)                                                                                             \
  extern "C" __global__ void LoadBox##D(const __grid_constant__ Map map, Coordinates at, uint8_t* out, int bytes) { \
    LoadBox<D>(map, at, out, bytes);                                                                               \
  }                                                                                                                \
  extern "C" __global__ void StoreBox##D(const __grid_constant__ Map map, Coordinates at, const uint8_t* in,        \
                                         int bytes) {                                                              \
    StoreBox<D>(map, at, in, bytes);                                                                               \
  }
BOX_KERNELS(1)
BOX_KERNELS(2)
BOX_KERNELS(3)
BOX_KERNELS(4)
BOX_KERNELS(5)

#define REDUCE_KERNEL(NAME, OP)                                                                                    \
  extern "C" __global__ void NAME(const __grid_constant__ Map map, Coordinates at, const uint8_t* in, int bytes) { \
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) dynamic[i] = in[i];                                      \
    FenceAsync();                                                                                                  \
    __syncthreads();                                                                                               \
    if (threadIdx.x != 0) return;                                                                                  \
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta." OP ".bulk_group [%0, {%1,%2}], [%3];" ::"l"( \
                     &map),                                                                                        \
                 "r"(at.c[0]), "r"(at.c[1]), "r"(Shared(dynamic))                                                  \
                 : "memory");                                                                                      \
    CommitAndWait();                                                                                               \
  }
REDUCE_KERNEL(ReduceAdd, "add")
REDUCE_KERNEL(ReduceMin, "min")
REDUCE_KERNEL(ReduceMax, "max")
REDUCE_KERNEL(ReduceInc, "inc")
REDUCE_KERNEL(ReduceDec, "dec")
REDUCE_KERNEL(ReduceAnd, "and")
REDUCE_KERNEL(ReduceOr, "or")
REDUCE_KERNEL(ReduceXor, "xor")

// Every CTA of the cluster loads its share of the rows and multicasts it to all.
extern "C" __global__ void Multicast(const __grid_constant__ Map map, uint8_t* out, int rows, int row_bytes) {
  __shared__ uint64_t bar;
  const uint32_t rank = Rank(), ctas = CtasOfCluster();
  if (threadIdx.x == 0) {
    Init(&bar, 1);
    FenceInit();
    Expect(&bar, rows * row_bytes);
  }
  ClusterSync();
  const int share = rows / ctas;
  if (threadIdx.x == 0) {
    const auto all = static_cast<uint16_t>((1u << ctas) - 1);
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, "
        "{%3,%4}], [%2], %5;" ::"r"(Shared(dynamic) + rank * share * row_bytes),
        "l"(&map), "r"(Shared(&bar)), "r"(0), "r"(static_cast<int>(blockIdx.x / ctas * rows + rank * share)), "h"(all)
        : "memory");
  }
  Wait(&bar, 0);
  const int bytes = rows * row_bytes;
  for (int i = threadIdx.x; i < bytes; i += blockDim.x) out[blockIdx.x * bytes + i] = dynamic[i];
  ClusterSync();
}

// Bins are spread over the CTAs of the cluster and counted in shared memory.
extern "C" __global__ void ClusterHistogram(const int* in, int count, unsigned* out, int bins) {
  auto* own = reinterpret_cast<unsigned*>(dynamic);
  const uint32_t ctas = CtasOfCluster(), rank = Rank();
  const int per_cta = bins / ctas;
  for (int i = threadIdx.x; i < per_cta; i += blockDim.x) own[i] = 0;
  ClusterSync();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const uint32_t bin = in[i];
    asm volatile("red.shared::cluster.add.u32 [%0], 1;" ::"r"(MapTo(own + bin % per_cta, bin / per_cta)) : "memory");
  }
  ClusterSync();
  for (int i = threadIdx.x; i < per_cta; i += blockDim.x) atomicAdd(out + rank * per_cta + i, own[i]);
}

// Values travel round the cluster: plain stores to the next CTA, and arrivals at its mbarrier. Every CTA also reads its
// neighbour's words and swaps one by an atomic that returns.
extern "C" __global__ void Ring(int* out, int rounds) {
  __shared__ uint64_t bar;
  __shared__ int box[2][32];
  __shared__ int counter;
  const uint32_t rank = Rank(), ctas = CtasOfCluster();
  const uint32_t next = (rank + 1) % ctas;
  if (threadIdx.x == 0) {
    Init(&bar, 32);
    FenceInit();
    counter = 0;
  }
  ClusterSync();
  int value = static_cast<int>(rank * 100 + threadIdx.x);
  for (int round = 0; round < rounds; ++round) {
    asm volatile("st.shared::cluster.s32 [%0], %1;" ::"r"(MapTo(&box[round & 1][threadIdx.x], next)), "r"(value) : "memory");
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(MapTo(&bar, next)) : "memory");
    Wait(&bar, round & 1);
    value = box[round & 1][threadIdx.x] + 1;
    ClusterSync();
  }
  int seen, old;
  asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(seen) : "r"(MapTo(&box[(rounds - 1) & 1][threadIdx.x], next)));
  asm volatile("atom.shared::cluster.add.u32 %0, [%1], 1;" : "=r"(old) : "r"(MapTo(&counter, next)) : "memory");
  ClusterSync();
  int* mine = out + rank * 128;
  mine[threadIdx.x] = value;
  mine[32 + threadIdx.x] = seen;
  atomicAdd(mine + 64, old);
  if (threadIdx.x == 0) mine[65] = counter;
}

// st.async: the data and the mbarrier's count arrive together.
extern "C" __global__ void AsyncStore(int* out) {
  __shared__ uint64_t bar;
  __shared__ __align__(16) int box[128];
  const uint32_t next = (Rank() + 1) % CtasOfCluster();
  if (threadIdx.x == 0) {
    Init(&bar, 1);
    FenceInit();
    Expect(&bar, 32 * 4 + 32 * 8);
  }
  ClusterSync();
  const int value = static_cast<int>(Rank() * 1000 + threadIdx.x);
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, [%2];" ::"r"(
                   MapTo(box + threadIdx.x, next)),
               "r"(value), "r"(MapTo(&bar, next))
               : "memory");
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.s32 [%0], {%1, %2}, [%3];" ::"r"(
                   MapTo(box + 64 + 2 * threadIdx.x, next)),
               "r"(value), "r"(-value), "r"(MapTo(&bar, next))
               : "memory");
  Wait(&bar, 0);
  for (int i = threadIdx.x; i < 128; i += 32) out[Rank() * 128 + i] = box[i];
  ClusterSync();
}

// A producer warp and three consumer warps over a ring of stages; full and empty mbarriers.
extern "C" __global__ void Pipeline(const float* in, float* out, int tiles) {
  constexpr int kStages = 3, kTile = 96;
  __shared__ __align__(128) float stage[kStages][kTile];
  __shared__ uint64_t full[kStages], empty[kStages];
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      Init(&full[s], 1);
      Init(&empty[s], 96);
    }
    FenceInit();
  }
  __syncthreads();
  in += blockIdx.x * tiles * kTile;
  if (threadIdx.x < 32) {
    if (threadIdx.x != 0) return;
    for (int t = 0; t < tiles; ++t) {
      const int s = t % kStages;
      Wait(&empty[s], (t / kStages + 1) & 1);
      Expect(&full[s], sizeof stage[s]);
      BulkLoad(stage[s], in + t * kTile, sizeof stage[s], &full[s]);
    }
    return;
  }
  const int i = threadIdx.x - 32;
  float sum = 0;
  for (int t = 0; t < tiles; ++t) {
    const int s = t % kStages;
    Wait(&full[s], (t / kStages) & 1);
    sum = sum * 0.5f + stage[s][i];
    Arrive(&empty[s]);
  }
  out[blockIdx.x * kTile + i] = sum;
}

// The same load with and without the wait.
template <bool kWaits>
__device__ void CopyThrough(const int* in, int* out) {
  __shared__ __align__(128) int stage[256];
  __shared__ uint64_t bar;
  stage[threadIdx.x] = -1;
  if (threadIdx.x == 0) {
    Init(&bar, 1);
    FenceInit();
  }
  FenceAsync();
  __syncthreads();
  if (threadIdx.x == 0) {
    Expect(&bar, sizeof stage);
    BulkLoad(stage, in + blockIdx.x * 256, sizeof stage, &bar);
  }
  __syncthreads();
  if (kWaits) Wait(&bar, 0);
  out[blockIdx.x * 256 + threadIdx.x] = stage[threadIdx.x];
  __syncthreads();
  if (!kWaits) Wait(&bar, 0);  // so that the copy has ended when the CTA does
}
extern "C" __global__ void LoadWithWait(const int* in, int* out) { CopyThrough<true>(in, out); }
extern "C" __global__ void LoadWithoutWait(const int* in, int* out) { CopyThrough<false>(in, out); }

// Shared memory is overwritten after a bulk store, with and without a wait for its reading.
template <bool kWaits>
__device__ void StoreTwice(int* out) {
  __shared__ __align__(128) int stage[256];
  for (int round = 0; round < 2; ++round) {
    stage[threadIdx.x] = round * 1000 + static_cast<int>(threadIdx.x);
    FenceAsync();
    __syncthreads();
    if (threadIdx.x == 0) {
      BulkStore(out + round * 256, stage, sizeof stage);
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      if (kWaits) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
extern "C" __global__ void StoreWithWait(int* out) { StoreTwice<true>(out); }
extern "C" __global__ void StoreWithoutWait(int* out) { StoreTwice<false>(out); }

// cp.async with and without a wait for its group.
template <bool kWaits>
__device__ void CopyAsync(const int* in, int* out) {
  __shared__ int stage[128];
  stage[threadIdx.x] = -1;
  __syncthreads();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(Shared(stage + threadIdx.x)), "l"(in + threadIdx.x)
               : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  if (kWaits) asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  out[threadIdx.x] = stage[127 - threadIdx.x];
  asm volatile("cp.async.wait_group 0;" ::: "memory");
}
extern "C" __global__ void CopyAsyncWithWait(const int* in, int* out) { CopyAsync<true>(in, out); }
extern "C" __global__ void CopyAsyncWithoutWait(const int* in, int* out) { CopyAsync<false>(in, out); }

// mbarriers that count copies by cp.async, in both forms.
extern "C" __global__ void ArriveBehindCopies(const int* in, int* out, int counts_itself) {
  __shared__ int stage[256];
  __shared__ uint64_t bars[2];
  stage[threadIdx.x] = stage[threadIdx.x + 128] = -1;
  if (threadIdx.x == 0) {
    Init(&bars[0], 128);
    Init(&bars[1], 128);
    FenceInit();
  }
  __syncthreads();
  for (int part = 0; part < 2; ++part) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(Shared(stage + part * 128 + threadIdx.x)),
                 "l"(in + part * 128 + threadIdx.x)
                 : "memory");
    if (part == 0) {
      asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(Shared(&bars[0])) : "memory");
    } else {
      asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(Shared(&bars[1])) : "memory");
      Arrive(&bars[1]);
    }
  }
  for (int part = 0; part < 2; ++part) {
    Wait(&bars[part], 0);
    out[part * 128 + threadIdx.x] = stage[part * 128 + 127 - threadIdx.x];
  }
}

// Two boxes of 128 bytes by 8 rows, one below the other.
extern "C" __global__ void Prefetches(const __grid_constant__ Map map) {
  for (int box = 0; box < 2; ++box)
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1,%2}];" ::"l"(reinterpret_cast<uint64_t>(&map)), "r"(0),
                 "r"(8 * box));
}

// Bulk copies in every direction, and their reductions.
extern "C" __global__ void BulkCopies(const uint32_t* in, uint32_t* copied, uint32_t* added, float* summed,
                                      uint16_t* halves, long long* least, uint32_t* exchanged) {
  __shared__ __align__(128) uint32_t stage[256], inbox[256], sums[256];
  __shared__ uint64_t bar, inbox_bar;
  const uint32_t next = (Rank() + 1) % CtasOfCluster();
  sums[threadIdx.x] = 7;
  if (threadIdx.x == 0) {
    Init(&bar, 1);
    Init(&inbox_bar, 1);
    FenceInit();
    Expect(&bar, sizeof stage);
    Expect(&inbox_bar, sizeof inbox + sizeof sums);
  }
  FenceAsync();
  ClusterSync();
  const uint32_t* from = in + blockIdx.x * 256;
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(1024));
    BulkLoad(stage, from, sizeof stage, &bar);
  }
  Wait(&bar, 0);
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     MapTo(inbox, next)),
                 "r"(Shared(stage)), "r"(1024), "r"(MapTo(&inbox_bar, next))
                 : "memory");
    asm volatile(
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%0], [%1], %2, [%3];" ::
            "r"(MapTo(sums, next)),
        "r"(Shared(stage)), "r"(1024), "r"(MapTo(&inbox_bar, next))
        : "memory");
    BulkStore(copied + blockIdx.x * 256, stage, 1024);
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(added),
                 "r"(Shared(stage)), "r"(1024)
                 : "memory");
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s64 [%0], [%1], %2;" ::"l"(least),
                 "r"(Shared(stage)), "r"(1024)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
  Wait(&inbox_bar, 0);
  exchanged[blockIdx.x * 512 + threadIdx.x] = inbox[threadIdx.x];
  exchanged[blockIdx.x * 512 + 256 + threadIdx.x] = sums[threadIdx.x];
  ClusterSync();  // what the neighbour has received has been read here
  // As numbers of other types.
  reinterpret_cast<float*>(stage)[threadIdx.x] = static_cast<float>(inbox[threadIdx.x] & 255) * 0.25f;
  reinterpret_cast<uint16_t*>(sums)[threadIdx.x] = 0x3c00;  // 1.0 in half precision
  FenceAsync();
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(summed),
                 "r"(Shared(stage)), "r"(1024)
                 : "memory");
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%0], [%1], %2;" ::"l"(halves),
                 "r"(Shared(sums)), "r"(512)
                 : "memory");
    CommitAndWait();
  }
  ClusterSync();
}

// What single operations on an mbarrier leave: parities by test_wait, and pending counts.
extern "C" __global__ void MbarrierOperations(uint32_t* out) {
  __shared__ uint64_t bar;
  if (threadIdx.x != 0) return;
  const uint32_t b = Shared(&bar);
  uint64_t state;
  uint32_t pending, done;
  const auto test = [&](uint32_t parity) {
    asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(b), "r"(parity)
                 : "memory");
    *out++ = done;
  };
  const auto count = [&] {
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
    *out++ = pending;
  };
  Init(&bar, 5);
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(b) : "memory");
  count();  // 5: before the arrival
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1], 2;" : "=l"(state) : "r"(b) : "memory");
  count();  // 4
  test(0);  // 0
  test(1);  // 1: the phase before
  asm volatile("mbarrier.arrive_drop.shared.b64 %0, [%1];" : "=l"(state) : "r"(b) : "memory");
  count();  // 2
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared.b64 [%0], 64;" ::"r"(b) : "memory");
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(b) : "memory");
  count();  // 1
  test(0);  // 0: 64 bytes are missing
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared.b64 [%0], 48;" ::"r"(b) : "memory");
  test(0);  // 0
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared.b64 [%0], 16;" ::"r"(b) : "memory");
  test(0);  // 1
  asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.shared.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(done)
               : "r"(b), "l"(state)
               : "memory");
  *out++ = done;  // 1: of the phase of the last arrival
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 %0, [%1], 8;" : "=l"(state) : "r"(b) : "memory");
  count();  // 4: one was dropped
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1], 3;" : "=l"(state) : "r"(b) : "memory");
  test(1);  // 0
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared.b64 [%0], 8;" ::"r"(b) : "memory");
  test(1);  // 1
  asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(b) : "memory");
}

// A map that the kernel edits: address, sizes and stride, as grouped GEMMs do; then one that it builds from nothing.
extern "C" __global__ void EditMap(const __grid_constant__ Map map, Map* edited, const uint16_t* tensor, int rows,
                                   int columns, uint64_t stride_bytes, uint8_t* out, int from_nothing) {
  __shared__ __align__(128) Map local;
  __shared__ uint64_t bar;
  if (threadIdx.x < 16) local.words[threadIdx.x] = from_nothing ? 0 : map.words[threadIdx.x];
  if (threadIdx.x == 0) {
    Init(&bar, 1);
    FenceInit();
  }
  __syncthreads();
  const uint32_t s = Shared(&local);
#define REPLACE(FIELD, TYPE, CONSTRAINT, VALUE) \
  asm volatile("tensormap.replace.tile." FIELD ".shared::cta.b1024." TYPE " [%0], %1;" ::"r"(s), CONSTRAINT(VALUE) : "memory")
#define REPLACE_AT(FIELD, AT, TYPE, CONSTRAINT, VALUE)                                                          \
  asm volatile("tensormap.replace.tile." FIELD ".shared::cta.b1024." TYPE " [%0], " #AT ", %1;" ::"r"(s), CONSTRAINT(VALUE) : "memory")
  if (threadIdx.x == 0) {
    REPLACE("global_address", "b64", "l", tensor);
    REPLACE_AT("global_dim", 0, "b32", "r", columns);
    REPLACE_AT("global_dim", 1, "b32", "r", rows);
    REPLACE_AT("global_stride", 0, "b64", "l", stride_bytes);
    if (from_nothing) {
      REPLACE("rank", "b32", "r", 1);
      REPLACE_AT("box_dim", 0, "b32", "r", 64);
      REPLACE_AT("box_dim", 1, "b32", "r", 8);
      REPLACE_AT("element_stride", 0, "b32", "r", 1);
      REPLACE_AT("element_stride", 1, "b32", "r", 1);
      asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 6;" ::"r"(s) : "memory");
      asm volatile("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" ::"r"(s) : "memory");
      asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" ::"r"(s) : "memory");
      asm volatile("tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" ::"r"(s) : "memory");
    }
  }
  __syncthreads();
  if (threadIdx.x < 32)
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::
                     "l"(edited),
                 "r"(s)
                 : "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(edited) : "memory");
    Expect(&bar, 1024);
    TensorLoad<2>(Shared(dynamic), reinterpret_cast<uint64_t>(edited), Shared(&bar), Coordinates{{64, 3}});
  }
  Wait(&bar, 0);
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) out[i] = dynamic[i];
}

// Where a CTA finds itself, by special registers and constants.
extern "C" __global__ void Places(uint32_t* out) {
  uint32_t v[12];
#define PLACE(I, NAME) asm volatile("mov.u32 %0, %%" NAME ";" : "=r"(v[I]))
  PLACE(0, "cluster_ctaid.x");
  PLACE(1, "cluster_ctaid.y");
  PLACE(2, "cluster_nctaid.x");
  PLACE(3, "cluster_nctaid.y");
  PLACE(4, "clusterid.x");
  PLACE(5, "clusterid.y");
  PLACE(6, "nclusterid.x");
  PLACE(7, "nclusterid.y");
  PLACE(8, "cluster_ctarank");
  PLACE(9, "cluster_nctarank");
  PLACE(10, "nclusterid.z");
  asm volatile("{\n.reg .pred p;\nmov.pred p, %%is_explicit_cluster;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(v[11]));
  const uint32_t cta = blockIdx.y * gridDim.x + blockIdx.x;
  for (int i = 0; i < 12; ++i) out[cta * 12 + i] = v[i];
}

// Programmatic dependent launch: alone it waits for nothing.
extern "C" __global__ void Dependent(int* out) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
  out[threadIdx.x] = static_cast<int>(threadIdx.x) * 3;
}

// ---- Faults

// CTA 1 ends at once; CTA 0 reads and writes its shared memory long after.
extern "C" __global__ void TalksToTheDead(int* out) {
  __shared__ int word[32];
  word[threadIdx.x] = 7;
  ClusterSync();
  if (Rank() == 1) return;
  for (int i = 0; i < 20; ++i) __nanosleep(1000);
  int value;
  const uint32_t address = MapTo(word + threadIdx.x, 1);
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  out[threadIdx.x] = value;
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

// An mbarrier of two arrivals, of which one comes.
extern "C" __global__ void WaitsForTwo(int* out) {
  __shared__ uint64_t bar;
  if (threadIdx.x != 0) return;
  Init(&bar, 2);
  FenceInit();
  Arrive(&bar);
  Wait(&bar, 0);
  *out = 1;
}

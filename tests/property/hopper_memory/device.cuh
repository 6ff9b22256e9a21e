// What Hopper offers, as device functions: mbarriers, clusters, bulk and tensor copies.
#pragma once

#include <cstdint>

namespace {

struct alignas(64) Map {
  uint64_t words[16];
};

__device__ uint32_t Shared(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void Init(uint64_t* bar, uint32_t count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(Shared(bar)), "r"(count));
}
__device__ void FenceInit() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
}
__device__ void Expect(uint64_t* bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(Shared(bar)), "r"(bytes) : "memory");
}
__device__ void Arrive(uint64_t* bar) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(Shared(bar)) : "memory");
}
__device__ void Wait(uint64_t* bar, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@p bra DONE;\nbra AGAIN;\nDONE:\n}" ::"r"(
          Shared(bar)),
      "r"(parity)
      : "memory");
}
__device__ uint32_t Rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ uint32_t CtasOfCluster() {
  uint32_t count;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
  return count;
}
__device__ uint32_t MapTo(const void* p, uint32_t rank) {
  uint32_t address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(Shared(p)), "r"(rank));
  return address;
}
__device__ void ClusterSync() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ void BulkLoad(void* to, const void* from, uint32_t bytes, uint64_t* bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(Shared(to)),
               "l"(from), "r"(bytes), "r"(Shared(bar))
               : "memory");
}
__device__ void BulkStore(void* to, const void* from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(Shared(from)), "r"(bytes)
               : "memory");
}
__device__ void CommitAndWait() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
__device__ void FenceAsync() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

struct Coordinates {
  int32_t c[5];
};

#define TENSOR_LOAD(D, LIST, ...)                                                                                  \
  asm volatile("cp.async.bulk.tensor." #D                                                                          \
               "d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, " LIST "], [%2];" ::"r"(to),      \
               "l"(map), "r"(bar), __VA_ARGS__                                                                     \
               : "memory")
template <int D>
__device__ void TensorLoad(uint32_t to, uint64_t map, uint32_t bar, const Coordinates& at) {
  if constexpr (D == 1) TENSOR_LOAD(1, "{%3}", "r"(at.c[0]));
  if constexpr (D == 2) TENSOR_LOAD(2, "{%3,%4}", "r"(at.c[0]), "r"(at.c[1]));
  if constexpr (D == 3) TENSOR_LOAD(3, "{%3,%4,%5}", "r"(at.c[0]), "r"(at.c[1]), "r"(at.c[2]));
  if constexpr (D == 4) TENSOR_LOAD(4, "{%3,%4,%5,%6}", "r"(at.c[0]), "r"(at.c[1]), "r"(at.c[2]), "r"(at.c[3]));
  if constexpr (D == 5)
    TENSOR_LOAD(5, "{%3,%4,%5,%6,%7}", "r"(at.c[0]), "r"(at.c[1]), "r"(at.c[2]), "r"(at.c[3]), "r"(at.c[4]));
}
#define TENSOR_STORE(D, LIST, ...)                                                                           \
  asm volatile("cp.async.bulk.tensor." #D "d.global.shared::cta.bulk_group [%0, " LIST "], [%1];" ::"l"(map), \
               "r"(from), __VA_ARGS__                                                                        \
               : "memory")
template <int D>
__device__ void TensorStore(uint32_t from, uint64_t map, const Coordinates& at) {
  if constexpr (D == 1) TENSOR_STORE(1, "{%2}", "r"(at.c[0]));
  if constexpr (D == 2) TENSOR_STORE(2, "{%2,%3}", "r"(at.c[0]), "r"(at.c[1]));
  if constexpr (D == 3) TENSOR_STORE(3, "{%2,%3,%4}", "r"(at.c[0]), "r"(at.c[1]), "r"(at.c[2]));
  if constexpr (D == 4) TENSOR_STORE(4, "{%2,%3,%4,%5}", "r"(at.c[0]), "r"(at.c[1]), "r"(at.c[2]), "r"(at.c[3]));
  if constexpr (D == 5)
    TENSOR_STORE(5, "{%2,%3,%4,%5,%6}", "r"(at.c[0]), "r"(at.c[1]), "r"(at.c[2]), "r"(at.c[3]), "r"(at.c[4]));
}

extern __shared__ __align__(1024) uint8_t dynamic[];

// The box as it lies in shared memory.
template <int D>
__device__ void LoadBox(const Map& map, const Coordinates& at, uint8_t* out, int bytes) {
  __shared__ uint64_t bar;
  if (threadIdx.x == 0) {
    Init(&bar, 1);
    FenceInit();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    Expect(&bar, static_cast<uint32_t>(bytes));
    TensorLoad<D>(Shared(dynamic), reinterpret_cast<uint64_t>(&map), Shared(&bar), at);
  }
  Wait(&bar, 0);
  for (int i = threadIdx.x; i < bytes; i += blockDim.x) out[i] = dynamic[i];
}

template <int D>
__device__ void StoreBox(const Map& map, const Coordinates& at, const uint8_t* in, int bytes) {
  for (int i = threadIdx.x; i < bytes; i += blockDim.x) dynamic[i] = in[i];
  FenceAsync();
  __syncthreads();
  if (threadIdx.x != 0) return;
  TensorStore<D>(Shared(dynamic), reinterpret_cast<uint64_t>(&map), at);
  CommitAndWait();
}

}  // namespace

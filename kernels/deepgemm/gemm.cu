// DeepGEMM's kernels as its just-in-time compiler instantiates them for an H100, and the host code of its launches: tensor maps and
// sizes of shared memory as in deep_gemm/csrc/jit_kernels, which its wheel ships compiled only.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <deep_gemm/impls/sm90_bf16_gemm.cuh>
#include <deep_gemm/impls/sm90_fp8_gemm_1d2d.cuh>

namespace {

constexpr uint32_t kSms = 132;
constexpr uint32_t kBlockM = 128;
constexpr auto kMajorK = cute::UMMA::Major::K;
using deep_gemm::GemmType;
using Bf16 = cutlass::bfloat16_t;

// Rows of `inner` elements; a box as wide as the swizzle, or all of `box_inner` where there is none.
CUtensorMap Map(CUtensorMapDataType type, uint32_t element_bytes, void* data, uint64_t inner, uint64_t outer,
                uint32_t box_inner, uint32_t box_outer, uint64_t row_elements, uint32_t swizzle_bytes) {
  CUtensorMap map{};
  const cuuint64_t size[] = {inner, outer}, stride[] = {row_elements * element_bytes};
  const cuuint32_t box[] = {swizzle_bytes != 0 ? swizzle_bytes / element_bytes : box_inner, box_outer},
                   step[] = {1, 1};
  cuTensorMapEncodeTiled(&map, type, 2, data, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                         swizzle_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                         : swizzle_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                               : CU_TENSOR_MAP_SWIZZLE_NONE,
                         CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return map;
}

template <typename Kernel, typename... Arguments>
int Launch(Kernel kernel, uint32_t cluster, uint32_t threads, uint32_t shared_bytes, Arguments... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = kSms;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared_bytes;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

constexpr auto kBf16Type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
constexpr auto kByte = CU_TENSOR_MAP_DATA_TYPE_UINT8;

// Scales of A: one for each row and 128 of K, rows innermost and padded to 4. Scales of B: one for each 128 x 128.
template <GemmType kType, uint32_t kGroups, uint32_t kN, uint32_t kK, uint32_t kBlockN, uint32_t kCluster,
          uint32_t kStages>
int Fp8(void* a, void* sfa, void* b, void* sfb, void* d, void* layout, uint32_t m, uint32_t rows) {
  constexpr uint32_t kBlockK = 128, kSwizzleD = kBlockN % 64 == 0 ? 128 : 64;
  constexpr bool kMasked = kType == GemmType::MGroupedMasked;
  const uint32_t groups_a = kMasked ? kGroups : 1;
  const uint32_t scales_m = (rows + 3) / 4 * 4, scales_k = (kK + 127) / 128;
  const uint32_t shared = (kBlockM * kBlockN * 2 + 1023) / 1024 * 1024 +
                          kStages * (kBlockM * kBlockK + kBlockN * kBlockK + kBlockM * 4) +
                          (scales_k * (kBlockK % kBlockN == 0 ? 1 : 2) * 4 + 7) / 8 * 8 + kStages * 16;
  return Launch(
      deep_gemm::sm90_fp8_gemm_1d2d_impl<kMajorK, 0, kN, kK, kGroups, kBlockM, kBlockN, kBlockK, 128, 128,
                                         kSwizzleD, kStages, 128, 256, kCluster, false, kSms, kType, Bf16>,
      kCluster, 384, shared, static_cast<float*>(sfb), static_cast<int*>(layout), m, kN, kK,
      Map(kByte, 1, a, kK, uint64_t{rows} * groups_a, kBlockK, kBlockM, kK, 128),
      Map(kByte, 1, b, kK, uint64_t{kN} * kGroups, kBlockK, kBlockN, kK, 128),
      Map(kBf16Type, 2, d, kN, uint64_t{rows} * groups_a, kBlockN, kBlockM, kN, kSwizzleD),
      Map(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, sfa, scales_m, uint64_t{scales_k} * groups_a, kBlockM, 1,
          scales_m, 0));
}

template <uint32_t kN, uint32_t kK, uint32_t kBlockN, uint32_t kCluster, uint32_t kStages>
int Bf16Gemm(void* a, void* b, void* d, uint32_t m) {
  constexpr uint32_t kBlockK = 64, kSwizzleD = 128;
  const uint32_t shared = (kBlockM * kBlockN * 2 + 1023) / 1024 * 1024 +
                          kStages * (kBlockM + kBlockN) * kBlockK * 2 + kStages * 16;
  return Launch(deep_gemm::sm90_bf16_gemm_impl<kMajorK, kMajorK, 0, kN, kK, 1, kBlockM, kBlockN, kBlockK, 128,
                                               128, kSwizzleD, kStages, 128, 256, kCluster, false, kSms,
                                               GemmType::Normal, false, Bf16>,
                kCluster, 384, shared, static_cast<int*>(nullptr), m, kN, kK,
                Map(kBf16Type, 2, a, kK, m, kBlockK, kBlockM, kK, 128),
                Map(kBf16Type, 2, b, kK, kN, kBlockK, kBlockN, kK, 128),
                Map(kBf16Type, 2, d, kN, m, kBlockN, kBlockM, kN, kSwizzleD));
}

}  // namespace

// A by rows of K, B by rows of K: D = A B^T. Scales of fp8 follow their matrix.
extern "C" {
int bf16_gemm_512_7168(void* a, void* b, void* d, uint32_t m) {
  return Bf16Gemm<512, 7168, 128, 2, 5>(a, b, d, m);
}
int fp8_gemm_576_7168(void* a, void* sfa, void* b, void* sfb, void* d, uint32_t m) {
  return Fp8<GemmType::Normal, 1, 576, 7168, 96, 1, 5>(a, sfa, b, sfb, d, nullptr, m, m);
}
int fp8_gemm_1536_7168(void* a, void* sfa, void* b, void* sfb, void* d, uint32_t m) {
  return Fp8<GemmType::Normal, 1, 1536, 7168, 128, 2, 5>(a, sfa, b, sfb, d, nullptr, m, m);
}
// Rows sorted by expert, each expert's share padded to 128 rows; `layout` says the expert of each row.
int fp8_contiguous_4_512_7168(void* a, void* sfa, void* b, void* sfb, void* d, void* layout, uint32_t m) {
  return Fp8<GemmType::MGroupedContiguous, 4, 512, 7168, 128, 1, 5>(a, sfa, b, sfb, d, layout, m, m);
}
int fp8_contiguous_4_1024_2048(void* a, void* sfa, void* b, void* sfb, void* d, void* layout, uint32_t m) {
  return Fp8<GemmType::MGroupedContiguous, 4, 1024, 2048, 128, 2, 5>(a, sfa, b, sfb, d, layout, m, m);
}
}

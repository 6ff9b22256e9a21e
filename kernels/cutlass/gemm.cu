// CUTLASS's warp-specialised GEMMs for Hopper as its collective builder makes them, launched by its own device adapter.
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/util/packed_stride.hpp>

namespace {

using namespace cute;
using Bf16 = cutlass::bfloat16_t;
using Fp8 = cutlass::float_e4m3_t;

// D = A B^T: A by rows of K, B by rows of K (a column-major K x N), D by rows.
template <typename Element, typename Tile, typename Cluster, typename Mainloop, typename Epilogue>
struct Gemm {
  static constexpr int kAlignment = 16 / sizeof(Element);
  using CollectiveEpilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster, cutlass::epilogue::collective::EpilogueTileAuto, float,
      float, void, cutlass::layout::RowMajor, 8, Bf16, cutlass::layout::RowMajor, 8, Epilogue>::CollectiveOp;
  using CollectiveMainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, cutlass::layout::RowMajor, kAlignment, Element,
      cutlass::layout::ColumnMajor, kAlignment, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename CollectiveEpilogue::SharedStorage))>,
      Mainloop>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, CollectiveMainloop, CollectiveEpilogue,
                                                      cutlass::gemm::PersistentScheduler>;
  using Adapter = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

  static int Run(void* a, void* b, void* d, int m, int n, int k) {
    typename Adapter::Arguments arguments{
        cutlass::gemm::GemmUniversalMode::kGemm,
        {m, n, k, 1},
        {static_cast<const Element*>(a), cutlass::make_cute_packed_stride(typename Kernel::StrideA{}, {m, k, 1}),
         static_cast<const Element*>(b), cutlass::make_cute_packed_stride(typename Kernel::StrideB{}, {n, k, 1})},
        {{1.0f, 0.0f}, nullptr, {}, static_cast<Bf16*>(d), cutlass::make_cute_packed_stride(typename Kernel::StrideD{}, {m, n, 1})},
        {0, 132}};
    Adapter gemm;
    if (gemm.can_implement(arguments) != cutlass::Status::kSuccess || Adapter::get_workspace_size(arguments) != 0) return 1;
    if (gemm.initialize(arguments) != cutlass::Status::kSuccess) return 2;
    return gemm.run() == cutlass::Status::kSuccess ? 0 : 3;
  }
};

using Cooperative = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
using CooperativeEpilogue = cutlass::epilogue::TmaWarpSpecializedCooperative;
using Pingpong = cutlass::gemm::KernelTmaWarpSpecializedPingpong;
using PingpongFp8 = cutlass::gemm::KernelTmaWarpSpecializedPingpongFP8FastAccum;
using PlainEpilogue = cutlass::epilogue::TmaWarpSpecialized;

}  // namespace

extern "C" {
int cooperative_bf16(void* a, void* b, void* d, int m, int n, int k) {
  return Gemm<Bf16, Shape<_128, _256, _64>, Shape<_2, _1, _1>, Cooperative, CooperativeEpilogue>::Run(a, b, d, m, n, k);
}
int pingpong_bf16(void* a, void* b, void* d, int m, int n, int k) {
  return Gemm<Bf16, Shape<_64, _128, _64>, Shape<_2, _1, _1>, Pingpong, PlainEpilogue>::Run(a, b, d, m, n, k);
}
int pingpong_fp8(void* a, void* b, void* d, int m, int n, int k) {
  return Gemm<Fp8, Shape<_64, _128, _128>, Shape<_1, _1, _1>, PingpongFp8, PlainEpilogue>::Run(a, b, d, m, n, k);
}
}

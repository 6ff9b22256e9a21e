"""A matmul in CuTe DSL for Hopper: TMA, wgmma, warp specialisation with register reallocation, clusters with multicast."""

import cutlass
import cutlass.cute as cute
import cutlass.utils.hopper_helpers as hopper_helpers
from cutlass import pipeline
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warpgroup
from cutlass.utils import LayoutEnum

_TILE = (128, 128, 64)
_STAGES = 4
_CONSUMER_THREADS = 256  # two warpgroups, each with half of the tile's rows; the third one loads


@cute.kernel
def hopper_gemm_kernel(tma_a: cute.CopyAtom, a: cute.Tensor, tma_b: cute.CopyAtom, b: cute.Tensor, c: cute.Tensor,
                       tiled_mma: cute.TiledMma, layout_a: cute.ComposedLayout, layout_b: cute.ComposedLayout,
                       cluster: cutlass.Constexpr):
    """c[m, n] = a[m, k] b[n, k]. The CTAs of a cluster lie along m and share the tile of b, of which each loads a part."""
    thread, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
    block_m, block_n, _ = cute.arch.block_idx()
    if warp == 0:
        cpasync.prefetch_descriptor(tma_a)
        cpasync.prefetch_descriptor(tma_b)

    smem = cutlass.utils.SmemAllocator()
    barriers = smem.allocate_array(cutlass.Int64, 2 * _STAGES)
    shared_a = smem.allocate_tensor(cutlass.BFloat16, layout_a.outer, 1024, swizzle=layout_a.inner)
    shared_b = smem.allocate_tensor(cutlass.BFloat16, layout_b.outer, 1024, swizzle=layout_b.inner)
    stage_bytes = 2 * _TILE[2] * (_TILE[0] + _TILE[1])
    loads = pipeline.PipelineTmaAsync.create(
        num_stages=_STAGES, producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, _CONSUMER_THREADS // 32 * cluster), tx_count=stage_bytes,
        barrier_storage=barriers, cta_layout_vmnk=cute.make_layout((1, cluster, 1, 1)))

    tile_a = cute.local_tile(a, (_TILE[0], _TILE[2]), (block_m, None))
    tile_b = cute.local_tile(b, (_TILE[1], _TILE[2]), (block_n, None))
    tile_c = cute.local_tile(c, (_TILE[0], _TILE[1]), (block_m, block_n))
    to_a, from_a = cpasync.tma_partition(tma_a, 0, cute.make_layout(1), cute.group_modes(shared_a, 0, 2), cute.group_modes(tile_a, 0, 2))
    to_b, from_b = cpasync.tma_partition(tma_b, rank, cute.make_layout(cluster), cute.group_modes(shared_b, 0, 2),
                                         cute.group_modes(tile_b, 0, 2))
    steps = cute.size(tile_a, mode=[2])
    everyone = cutlass.Int16((1 << cluster) - 1)

    if warp >= _CONSUMER_THREADS // 32:
        cute.arch.setmaxregister_decrease(40)
        if warp == _CONSUMER_THREADS // 32:
            producer = loads.make_producer()
            for step in range(steps):
                slot = producer.acquire_and_advance()
                cute.copy(tma_a, from_a[None, step], to_a[None, slot.index], tma_bar_ptr=slot.barrier)
                if cutlass.const_expr(cluster > 1):
                    cute.copy(tma_b, from_b[None, step], to_b[None, slot.index], tma_bar_ptr=slot.barrier, mcast_mask=everyone)
                else:
                    cute.copy(tma_b, from_b[None, step], to_b[None, slot.index], tma_bar_ptr=slot.barrier)
            producer.tail()
    else:
        cute.arch.setmaxregister_increase(232)
        group = tiled_mma.get_slice(cute.arch.make_warp_uniform(thread // 128) * 128)
        matrix_a = tiled_mma.make_fragment_A(group.partition_A(shared_a))
        matrix_b = tiled_mma.make_fragment_B(group.partition_B(shared_b))
        out = tiled_mma.get_slice(thread).partition_C(tile_c)
        sums = cute.make_rmem_tensor(out.shape, cutlass.Float32)
        tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
        consumer = loads.make_consumer()
        for step in range(steps):
            slot = consumer.wait_and_advance()
            warpgroup.fence()
            for k in cutlass.range_constexpr(cute.size(matrix_a, mode=[2])):
                cute.gemm(tiled_mma, sums, matrix_a[None, None, k, slot.index], matrix_b[None, None, k, slot.index], sums)
                tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            slot.release()
        rounded = cute.make_fragment_like(sums, cutlass.BFloat16)
        rounded.store(sums.load().to(cutlass.BFloat16))
        cute.copy(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.BFloat16, num_bits_per_copy=32), rounded, out)


@cute.jit
def _launch(a, b, c, stream, cluster: cutlass.Constexpr):
    layout_a = hopper_helpers.make_smem_layout_a(LayoutEnum.ROW_MAJOR, _TILE, cutlass.BFloat16, _STAGES)
    layout_b = hopper_helpers.make_smem_layout_b(LayoutEnum.ROW_MAJOR, _TILE, cutlass.BFloat16, _STAGES)
    tiled_mma = hopper_helpers.make_trivial_tiled_mma(cutlass.BFloat16, cutlass.BFloat16, OperandMajorMode.K, OperandMajorMode.K,
                                                      cutlass.Float32, (2, 1, 1), (64, _TILE[1]))
    tma_a, tensor_a = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, cute.slice_(layout_a, (None, None, 0)),
                                                  (_TILE[0], _TILE[2]))
    operation = cpasync.CopyBulkTensorTileG2SMulticastOp() if cluster > 1 else cpasync.CopyBulkTensorTileG2SOp()
    tma_b, tensor_b = cpasync.make_tiled_tma_atom(operation, b, cute.slice_(layout_b, (None, None, 0)), (_TILE[1], _TILE[2]),
                                                  num_multicast=cluster)
    grid = [cute.size(c, mode=[0]) // _TILE[0], cute.size(c, mode=[1]) // _TILE[1], 1]
    hopper_gemm_kernel(tma_a, tensor_a, tma_b, tensor_b, c, tiled_mma, layout_a, layout_b, cluster).launch(
        grid=grid, block=[_CONSUMER_THREADS + 128, 1, 1], cluster=[cluster, 1, 1], stream=stream)


@cute.jit
def hopper_gemm(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream):
    _launch(a, b, c, stream, 1)


@cute.jit
def hopper_gemm_cluster(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream):
    _launch(a, b, c, stream, 2)

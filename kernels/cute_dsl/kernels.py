"""Kernels in CuTe DSL: element-wise, a normalisation, a tensor-core product for Ampere."""

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync, warp

_VECTOR = 8  # bf16 in 16 bytes


@cute.kernel
def silu_and_mul_kernel(x: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    part, row, _ = cute.arch.block_idx()
    vectors = cute.size(out, mode=[1]) // _VECTOR
    i = part * 256 + thread
    if i < vectors:
        gate = cute.local_tile(x, (1, _VECTOR), (row, i)).load().to(cutlass.Float32)
        up = cute.local_tile(x, (1, _VECTOR), (row, i + vectors)).load().to(cutlass.Float32)
        value = gate / (1.0 + cute.math.exp(-gate)) * up
        cute.local_tile(out, (1, _VECTOR), (row, i)).store(value.to(cutlass.BFloat16))


@cute.jit
def silu_and_mul(x: cute.Tensor, out: cute.Tensor, stream):
    rows, columns = cute.size(out, mode=[0]), cute.size(out, mode=[1])
    silu_and_mul_kernel(x, out).launch(grid=[cute.ceil_div(columns // _VECTOR, 256), rows, 1], block=[256, 1, 1], stream=stream)


_NORM_THREADS = 256


@cute.kernel
def rms_norm_kernel(x: cute.Tensor, weight: cute.Tensor, out: cute.Tensor, epsilon: cutlass.Float32):
    """A block for each row: vectors of 8, a sum over the warp by shuffles and over the block through shared memory."""
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    columns = cute.size(x, mode=[1])
    parts = columns // (_VECTOR * _NORM_THREADS)
    smem = cutlass.utils.SmemAllocator()
    partial = smem.allocate_tensor(cutlass.Float32, cute.make_layout(_NORM_THREADS // 32), 16)
    values = cute.make_rmem_tensor(cute.make_layout((_VECTOR, parts)), cutlass.Float32)
    total = cutlass.Float32(0.0)
    for part in cutlass.range_constexpr(parts):
        wide = cute.local_tile(x, (1, _VECTOR), (row, part * _NORM_THREADS + thread)).load().to(cutlass.Float32)
        values[None, part].store(wide.reshape((_VECTOR,)))
        total += (wide * wide).reduce(cute.ReductionOp.ADD, 0.0, 0)
    total = cute.arch.warp_reduction_sum(total)
    if thread % 32 == 0:
        partial[thread // 32] = total
    cute.arch.sync_threads()
    total = partial.load().reduce(cute.ReductionOp.ADD, 0.0, 0)
    scale = cute.math.rsqrt(total / columns + epsilon)
    for part in cutlass.range_constexpr(parts):
        i = part * _NORM_THREADS + thread
        factor = cute.local_tile(weight, (_VECTOR,), (i,)).load().to(cutlass.Float32)
        result = (values[None, part].load() * scale * factor).to(cutlass.BFloat16)
        cute.local_tile(out, (1, _VECTOR), (row, i)).store(result.reshape((1, _VECTOR)))


@cute.jit
def rms_norm(x: cute.Tensor, weight: cute.Tensor, out: cute.Tensor, epsilon: cutlass.Float32, stream):
    rms_norm_kernel(x, weight, out, epsilon).launch(grid=[cute.size(x, mode=[0]), 1, 1], block=[_NORM_THREADS, 1, 1], stream=stream)


_TILE_M, _TILE_N, _TILE_K, _STAGES = 128, 128, 32, 3


@cute.kernel
def ampere_gemm_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, layout_a: cute.ComposedLayout, layout_b: cute.ComposedLayout,
                       tiled_copy: cute.TiledCopy, tiled_mma: cute.TiledMma):
    """c[m, n] = a[m, k] b[n, k]: cp.async in stages, ldmatrix, mma.m16n8k16; the tile of each block is whole."""
    thread, _, _ = cute.arch.thread_idx()
    block_m, block_n, _ = cute.arch.block_idx()
    tile_a = cute.local_tile(a, (_TILE_M, _TILE_K), (block_m, None))
    tile_b = cute.local_tile(b, (_TILE_N, _TILE_K), (block_n, None))
    tile_c = cute.local_tile(c, (_TILE_M, _TILE_N), (block_m, block_n))
    smem = cutlass.utils.SmemAllocator()
    shared_a = smem.allocate_tensor(a.element_type, layout_a, 128)
    shared_b = smem.allocate_tensor(b.element_type, layout_b, 128)

    copy = tiled_copy.get_slice(thread)
    from_a, to_a = copy.partition_S(tile_a), copy.partition_D(shared_a)
    from_b, to_b = copy.partition_S(tile_b), copy.partition_D(shared_b)
    steps = cute.size(tile_a, mode=[2])

    mma = tiled_mma.get_slice(thread)
    registers_a = tiled_mma.make_fragment_A(mma.partition_A(shared_a)[None, None, None, 0])
    registers_b = tiled_mma.make_fragment_B(mma.partition_B(shared_b)[None, None, None, 0])
    out = mma.partition_C(tile_c)
    sums = tiled_mma.make_fragment_C(out)
    sums.fill(0.0)
    load = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), a.element_type)
    load_a, load_b = cute.make_tiled_copy_A(load, tiled_mma), cute.make_tiled_copy_B(load, tiled_mma)
    slice_a, slice_b = load_a.get_slice(thread), load_b.get_slice(thread)
    matrices_a, matrices_b = slice_a.partition_S(shared_a), slice_b.partition_S(shared_b)
    view_a, view_b = slice_a.retile(registers_a), slice_b.retile(registers_b)

    for stage in cutlass.range_constexpr(_STAGES - 1):
        cute.copy(tiled_copy, from_a[None, None, None, stage], to_a[None, None, None, stage])
        cute.copy(tiled_copy, from_b[None, None, None, stage], to_b[None, None, None, stage])
        cute.arch.cp_async_commit_group()
    for step in range(steps):
        cute.arch.cp_async_wait_group(_STAGES - 2)
        cute.arch.sync_threads()
        ahead = step + _STAGES - 1
        if ahead < steps:
            cute.copy(tiled_copy, from_a[None, None, None, ahead], to_a[None, None, None, ahead % _STAGES])
            cute.copy(tiled_copy, from_b[None, None, None, ahead], to_b[None, None, None, ahead % _STAGES])
        cute.arch.cp_async_commit_group()
        for k in cutlass.range_constexpr(_TILE_K // 16):
            cute.copy(load_a, matrices_a[None, None, k, step % _STAGES], view_a[None, None, k])
            cute.copy(load_b, matrices_b[None, None, k, step % _STAGES], view_b[None, None, k])
            cute.gemm(tiled_mma, sums, registers_a[None, None, k], registers_b[None, None, k], sums)
    rounded = cute.make_fragment_like(sums, c.element_type)
    rounded.store(sums.load().to(c.element_type))
    cute.copy(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), c.element_type, num_bits_per_copy=32), rounded, out)


@cute.jit
def ampere_gemm(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream):
    # rows of 64 bytes, swizzled so that ldmatrix finds its eight rows in eight different quarters of the banks
    atom = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, cute.make_layout((8, _TILE_K), stride=(_TILE_K, 1)))
    layout_a = cute.tile_to_shape(atom, (_TILE_M, _TILE_K, _STAGES), (0, 1, 2))
    layout_b = cute.tile_to_shape(atom, (_TILE_N, _TILE_K, _STAGES), (0, 1, 2))
    copy = cute.make_copy_atom(cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL), a.element_type, num_bits_per_copy=128)
    tiled_copy = cute.make_tiled_copy_tv(copy, cute.make_layout((32, 4), stride=(4, 1)), cute.make_layout((1, _VECTOR)))
    tiled_mma = cute.make_tiled_mma(warp.MmaF16BF16Op(a.element_type, cutlass.Float32, (16, 8, 16)), cute.make_layout((2, 2, 1)),
                                    permutation_mnk=(32, 32, 16))
    grid = [cute.size(c, mode=[0]) // _TILE_M, cute.size(c, mode=[1]) // _TILE_N, 1]
    ampere_gemm_kernel(a, b, c, layout_a, layout_b, tiled_copy, tiled_mma).launch(grid=grid, block=[128, 1, 1], stream=stream)

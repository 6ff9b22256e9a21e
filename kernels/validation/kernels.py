"""Triton kernels that stand for measured ones: products in the tile shapes that libraries choose from, and Liger's kernels.

compile.py compiles them ahead of time; its table says with which types, constants and assumptions.
"""

import triton
import triton.language as tl


@triton.jit
def matmul_nt(c_ptr, a_ptr, b_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr):
    """C [m, n] = A [m, k] B [n, k]^T, row-major: what a linear layer computes. k is a multiple of BLOCK_K.

    Programs walk the tiles in groups of GROUP_M tile rows for L2 reuse. Grid: cdiv(m, BLOCK_M) * cdiv(n, BLOCK_N).
    """
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    per_group = GROUP_M * tiles_n
    group = pid // per_group
    rows = min(tiles_m - group * GROUP_M, GROUP_M)
    pid_m = group * GROUP_M + (pid % per_group) % rows
    pid_n = (pid % per_group) // rows

    offsets_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % m
    offsets_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % n
    offsets_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offsets_m[:, None] * k + offsets_k[None, :]
    b_ptrs = b_ptr + offsets_k[:, None] + offsets_n[None, :] * k
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, k // BLOCK_K):
        accumulator = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), accumulator)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K

    offsets_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offsets_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (offsets_m[:, None] < m) & (offsets_n[None, :] < n)
    tl.store(c_ptr + offsets_m[:, None] * n + offsets_n[None, :], accumulator.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def matmul_nt_split(partial_ptr, a_ptr, b_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """As matmul_nt for few rows: each program of the second axis sums its share of k into partial [splits, m, n] float.

    k is a multiple of BLOCK_K times the number of splits. Grid: (cdiv(m, BLOCK_M) * cdiv(n, BLOCK_N), splits).
    """
    tiles_m = tl.cdiv(m, BLOCK_M)
    pid_m = tl.program_id(0) % tiles_m
    pid_n = tl.program_id(0) // tiles_m
    split = tl.program_id(1)
    steps = k // BLOCK_K // tl.num_programs(1)
    offsets_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offsets_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offsets_k = split * steps * BLOCK_K + tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offsets_m % m)[:, None] * k + offsets_k[None, :]
    b_ptrs = b_ptr + offsets_k[:, None] + (offsets_n % n)[None, :] * k
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, steps):
        accumulator = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), accumulator)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    mask = (offsets_m[:, None] < m) & (offsets_n[None, :] < n)
    tl.store(partial_ptr + split * m * n + offsets_m[:, None] * n + offsets_n[None, :], accumulator, mask=mask)


@triton.jit
def sum_splits(c_ptr, partial_ptr, count, splits, BLOCK: tl.constexpr):
    """c [count] = the sum of partial [splits, count] over the splits. Grid: cdiv(count, BLOCK)."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for split in range(0, splits):
        total += tl.load(partial_ptr + split * count + offsets, mask=mask, other=0.0)
    tl.store(c_ptr + offsets, total.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def rms_norm(y_ptr, x_ptr, weight_ptr, rstd_ptr, columns, epsilon, BLOCK: tl.constexpr):
    """Liger's RMSNorm forward, casting as Llama does: a program a row, the row in registers. Grid: rows."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0)
    wide = x.to(tl.float32)
    rstd = tl.rsqrt(tl.sum(wide * wide, axis=0) / columns + epsilon)
    tl.store(rstd_ptr + row, rstd)
    y = (wide * rstd).to(x.dtype) * weight
    tl.store(y_ptr + row * columns + offsets, y, mask=mask)


@triton.jit
def layer_norm(y_ptr, x_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, columns, epsilon, BLOCK: tl.constexpr):
    """Liger's LayerNorm forward: a program a row, the row in registers. Grid: rows."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0)
    bias = tl.load(bias_ptr + offsets, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    tl.store(y_ptr + row * columns + offsets, centred * rstd * weight + bias, mask=mask)


@triton.jit
def moe_gemm(c_ptr, a_ptr, b_ptr, weights_ptr, sorted_slots_ptr, expert_ids_ptr, padded_slots_ptr, blocks, slots, rows, count,
             padded, local, n, k,
             a_scale_ptr, b_scale_ptr, WEIGHTED: tl.constexpr, SCALED: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
             BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr):
    """The grouped product of vLLM's and SGLang's fused mixture of experts: c[s, :] = a[s % rows, :] @ b[expert of s].T

    a [rows, k], b [local, n, k], c [slots, n]. Evenly loaded: each expert has `count` slots, one after the other, padded to `padded`
    places, a multiple of BLOCK_M. The list of slots that the real kernel reads holds the places here, so that its contents follow
    from the shape. Slots of experts from `local` on, which another GPU has, become zeros. SCALED: fp8 with a_scale [rows, k / 128]
    and b_scale [local, n / 128, k / 128]. Grid: blocks * cdiv(n, BLOCK_N).
    """
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(n, BLOCK_N)
    group = pid // (GROUP_M * tiles_n)
    height = min(blocks - group * GROUP_M, GROUP_M)
    pid_m = group * GROUP_M + (pid % (GROUP_M * tiles_n)) % height
    pid_n = (pid % (GROUP_M * tiles_n)) // height
    if pid_m * BLOCK_M >= tl.load(padded_slots_ptr):
        return
    place = tl.load(sorted_slots_ptr + pid_m * BLOCK_M + tl.arange(0, BLOCK_M))
    slot = (place // padded * count + place % padded).to(tl.int64)
    real = (place % padded < count) & (slot < slots)
    row = slot % rows
    offsets_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + slot[:, None] * n + offsets_n[None, :]
    mask = real[:, None] & (offsets_n[None, :] < n)
    expert = tl.load(expert_ids_ptr + pid_m).to(tl.int64)
    if expert >= local:
        tl.store(c_ptrs, tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.bfloat16), mask=mask)
        return
    columns = (offsets_n % n).to(tl.int64)
    offsets_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + row[:, None] * k + offsets_k[None, :]
    b_ptrs = b_ptr + expert * n * k + columns[None, :] * k + offsets_k[:, None]
    if SCALED:
        a_scale_ptrs = a_scale_ptr + row * (k // 128)
        b_scale_ptrs = b_scale_ptr + (expert * tl.cdiv(n, 128) + columns // 128) * (k // 128)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        a = tl.load(a_ptrs, mask=real[:, None] & (offsets_k[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=offsets_k[:, None] < left, other=0.0)
        if SCALED:
            a_scale = tl.load(a_scale_ptrs + step, mask=real, other=0.0)
            accumulator += tl.dot(a, b) * a_scale[:, None] * tl.load(b_scale_ptrs + step)[None, :]
        else:
            accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    if WEIGHTED:
        accumulator = accumulator * tl.load(weights_ptr + slot, mask=real, other=0.0)[:, None]
    tl.store(c_ptrs, accumulator.to(tl.bfloat16), mask=mask)


@triton.jit
def matmul_nt_scaled(c_ptr, a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                     BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr):
    """As matmul_nt on e4m3, with a factor for each row of A and of B. Grid: cdiv(m, BLOCK_M) * cdiv(n, BLOCK_N)."""
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    per_group = GROUP_M * tl.cdiv(n, BLOCK_N)
    group = pid // per_group
    rows = min(tiles_m - group * GROUP_M, GROUP_M)
    offsets_m = (group * GROUP_M + (pid % per_group) % rows) * BLOCK_M + tl.arange(0, BLOCK_M)
    offsets_n = (pid % per_group) // rows * BLOCK_N + tl.arange(0, BLOCK_N)
    offsets_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offsets_m % m)[:, None] * k + offsets_k[None, :]
    b_ptrs = b_ptr + offsets_k[:, None] + (offsets_n % n)[None, :] * k
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, k // BLOCK_K):
        accumulator = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), accumulator)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    accumulator *= tl.load(a_scale_ptr + offsets_m % m)[:, None] * tl.load(b_scale_ptr + offsets_n % n)[None, :]
    mask = (offsets_m[:, None] < m) & (offsets_n[None, :] < n)
    tl.store(c_ptr + offsets_m[:, None] * n + offsets_n[None, :], accumulator.to(c_ptr.dtype.element_ty), mask=mask)

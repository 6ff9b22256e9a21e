"""heddle's Triton kernels: the ones that LLM serving spends its time in, in the style of Triton's tutorials.

compile.py compiles them ahead of time; its table says with which types, constants and assumptions.
"""

import triton
import triton.language as tl


@triton.jit
def softmax(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """Softmax of each row of x [rows, columns]; one program a row, the row in registers. Grid: rows."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    y = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * columns + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def layernorm(out_ptr, x_ptr, weight_ptr, bias_ptr, columns, epsilon, BLOCK: tl.constexpr):
    """LayerNorm of each row of x [rows, columns], walked in blocks three times (mean, variance, output). Grid: rows."""
    row = tl.program_id(0)
    x_ptr += row * columns
    out_ptr += row * columns
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + offsets, mask=offsets < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < columns, other=0.0).to(tl.float32)
        centred = tl.where(offsets < columns, x - mean, 0.0)
        total += centred * centred
    scale = tl.rsqrt(tl.sum(total, axis=0) / columns + epsilon)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + offsets, mask=mask).to(tl.float32)
        bias = tl.load(bias_ptr + offsets, mask=mask).to(tl.float32)
        y = (x - mean) * scale * weight + bias
        tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def matmul(c_ptr, a_ptr, b_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
           GROUP_M: tl.constexpr):
    """C [m, n] = A [m, k] B [k, n], row-major. Programs walk the tiles in groups of GROUP_M tile rows for L2 reuse.

    Grid: cdiv(m, BLOCK_M) * cdiv(n, BLOCK_N).
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
    b_ptrs = b_ptr + offsets_k[:, None] * n + offsets_n[None, :]
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        a = tl.load(a_ptrs, mask=offsets_k[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=offsets_k[:, None] < left, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * n

    offsets_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offsets_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (offsets_m[:, None] < m) & (offsets_n[None, :] < n)
    tl.store(c_ptr + offsets_m[:, None] * n + offsets_n[None, :], accumulator.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def matmul_block_scaled(c_ptr, a_ptr, b_ptr, scale_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                        BLOCK_K: tl.constexpr):
    """C [m, n] = A [m, k] B [n, k] transposed, where B is MXFP8: e4m3 with a power of two (e8m0, scale [n, k / 32]) for each 32 of k.

    Grid: cdiv(m, BLOCK_M) * cdiv(n, BLOCK_N). k is a multiple of BLOCK_K.
    """
    tiles_n = tl.cdiv(n, BLOCK_N)
    offsets_m = tl.program_id(0) // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    offsets_n = tl.program_id(0) % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offsets_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offsets_m % m)[:, None] * k + offsets_k[None, :]
    b_ptrs = b_ptr + (offsets_n % n)[None, :] * k + offsets_k[:, None]
    scale_ptrs = scale_ptr + (offsets_n % n)[:, None] * (k // 32) + tl.arange(0, BLOCK_K // 32)[None, :]
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, k // BLOCK_K):
        accumulator = tl.dot_scaled(tl.load(a_ptrs), None, "bf16", tl.load(b_ptrs), tl.load(scale_ptrs), "e4m3", accumulator)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
        scale_ptrs += BLOCK_K // 32
    mask = (offsets_m[:, None] < m) & (offsets_n[None, :] < n)
    tl.store(c_ptr + offsets_m[:, None] * n + offsets_n[None, :], accumulator.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def matmul_tma(c, a, b, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
               GROUP_M: tl.constexpr):
    """C [m, n] = A [m, k] B [k, n], row-major, by tensor descriptors with blocks [BLOCK_M, BLOCK_N], [BLOCK_M, BLOCK_K]
    and [BLOCK_K, BLOCK_N].

    Grid: cdiv(m, BLOCK_M) * cdiv(n, BLOCK_N).
    """
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    per_group = GROUP_M * tiles_n
    group = pid // per_group
    rows = min(tiles_m - group * GROUP_M, GROUP_M)
    row = (group * GROUP_M + (pid % per_group) % rows) * BLOCK_M
    column = ((pid % per_group) // rows) * BLOCK_N
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        accumulator = tl.dot(a.load([row, step * BLOCK_K]), b.load([step * BLOCK_K, column]), accumulator)
    c.store([row, column], accumulator.to(tl.bfloat16))


@triton.jit
def matmul_persistent(c, a, b, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """As matmul_tma, each program walking over tiles: one partition of warps loads, the others multiply and store.

    Grid: as many programs as there are SMs, at most one a tile.
    """
    tiles_n = tl.cdiv(n, BLOCK_N)
    tiles = tl.cdiv(m, BLOCK_M) * tiles_n
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), warp_specialize=True):
        row = tile // tiles_n * BLOCK_M
        column = tile % tiles_n * BLOCK_N
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(0, tl.cdiv(k, BLOCK_K)):
            accumulator = tl.dot(a.load([row, step * BLOCK_K]), b.load([step * BLOCK_K, column]), accumulator)
        c.store([row, column], accumulator.to(tl.bfloat16))


@triton.jit
def flash_attention_tma(out, q, k, v, scale, length, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr,
                        BLOCK_N: tl.constexpr):
    """Attention forward by tensor descriptors of [heads * length, HEAD_DIM]; length is a multiple of both blocks.

    Grid: (length / BLOCK_M, heads).
    """
    first = tl.program_id(1) * length
    start_m = first + tl.program_id(0) * BLOCK_M
    q_tile = q.load([start_m, 0])
    scale_log2 = scale * 1.4426950408889634
    maximum = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    accumulator = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    for start_n in range(0, length, BLOCK_N):
        s = tl.dot(q_tile, k.load([first + start_n, 0]).T) * scale_log2
        new_maximum = tl.maximum(maximum, tl.max(s, 1))
        p = tl.exp2(s - new_maximum[:, None])
        keep = tl.exp2(maximum - new_maximum)
        total = total * keep + tl.sum(p, 1)
        accumulator = tl.dot(p.to(tl.bfloat16), v.load([first + start_n, 0]), accumulator * keep[:, None])
        maximum = new_maximum
    out.store([start_m, 0], (accumulator / total[:, None]).to(tl.bfloat16))


@triton.jit
def flash_attention(out_ptr, q_ptr, k_ptr, v_ptr, scale, length, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr,
                    BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    """Attention forward for q, k, v, out [heads, length, HEAD_DIM]; length is a multiple of BLOCK_M and BLOCK_N.

    Grid: (length / BLOCK_M, heads).
    """
    start_m = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1).to(tl.int64) * length * HEAD_DIM
    offsets_m = start_m + tl.arange(0, BLOCK_M)
    offsets_n = tl.arange(0, BLOCK_N)
    offsets_d = tl.arange(0, HEAD_DIM)
    q = tl.load(q_ptr + head + offsets_m[:, None] * HEAD_DIM + offsets_d[None, :])
    k_ptrs = k_ptr + head + offsets_n[None, :] * HEAD_DIM + offsets_d[:, None]
    v_ptrs = v_ptr + head + offsets_n[:, None] * HEAD_DIM + offsets_d[None, :]
    scale_log2 = scale * 1.4426950408889634
    maximum = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    accumulator = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)

    # Blocks that every row sees in full, then (causal) those on the diagonal.
    full_end = start_m if CAUSAL else length
    for start_n in range(0, full_end, BLOCK_N):
        s = tl.dot(q, tl.load(k_ptrs)) * scale_log2
        new_maximum = tl.maximum(maximum, tl.max(s, 1))
        p = tl.exp2(s - new_maximum[:, None])
        keep = tl.exp2(maximum - new_maximum)
        total = total * keep + tl.sum(p, 1)
        accumulator = tl.dot(p.to(v_ptr.dtype.element_ty), tl.load(v_ptrs), accumulator * keep[:, None])
        maximum = new_maximum
        k_ptrs += BLOCK_N * HEAD_DIM
        v_ptrs += BLOCK_N * HEAD_DIM
    if CAUSAL:
        for start_n in range(start_m, start_m + BLOCK_M, BLOCK_N):
            s = tl.dot(q, tl.load(k_ptrs)) * scale_log2
            s = tl.where(offsets_m[:, None] >= (start_n + offsets_n)[None, :], s, -float("inf"))
            new_maximum = tl.maximum(maximum, tl.max(s, 1))
            p = tl.exp2(s - new_maximum[:, None])
            keep = tl.exp2(maximum - new_maximum)
            total = total * keep + tl.sum(p, 1)
            accumulator = tl.dot(p.to(v_ptr.dtype.element_ty), tl.load(v_ptrs), accumulator * keep[:, None])
            maximum = new_maximum
            k_ptrs += BLOCK_N * HEAD_DIM
            v_ptrs += BLOCK_N * HEAD_DIM

    out = accumulator / total[:, None]
    tl.store(out_ptr + head + offsets_m[:, None] * HEAD_DIM + offsets_d[None, :], out.to(out_ptr.dtype.element_ty))


@triton.jit
def fused_moe(c_ptr, a_ptr, b_ptr, weights_ptr, sorted_slots_ptr, expert_ids_ptr, padded_slots_ptr, slots, n, k,
              TOP_K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """The grouped GEMM of a mixture-of-experts layer: c[s, :] = weights[s] * a[s // TOP_K, :] @ b[expert of s].T

    a [tokens, k], b [experts, n, k], c [slots, n]. Slots (token, choice) are sorted by expert and padded to blocks of BLOCK_M;
    padding has slot numbers >= slots. expert_ids has one entry a block, *padded_slots says how many slots there are with the
    padding. Grid: at least padded_slots / BLOCK_M * cdiv(n, BLOCK_N).
    """
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(n, BLOCK_N)
    pid_m = pid // tiles_n
    pid_n = pid % tiles_n
    if pid_m * BLOCK_M >= tl.load(padded_slots_ptr):
        return
    slot = tl.load(sorted_slots_ptr + pid_m * BLOCK_M + tl.arange(0, BLOCK_M))
    real = slot < slots
    expert = tl.load(expert_ids_ptr + pid_m).to(tl.int64)
    offsets_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offsets_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (slot[:, None] // TOP_K) * k + offsets_k[None, :]
    b_ptrs = b_ptr + expert * n * k + (offsets_n % n)[None, :] * k + offsets_k[:, None]
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        a = tl.load(a_ptrs, mask=real[:, None] & (offsets_k[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=offsets_k[:, None] < left, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    weight = tl.load(weights_ptr + slot, mask=real, other=0.0)
    accumulator = accumulator * weight[:, None]
    mask = real[:, None] & (offsets_n[None, :] < n)
    tl.store(c_ptr + slot[:, None] * n + offsets_n[None, :], accumulator.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def paged_decode(partial_ptr, lse_ptr, q_ptr, k_cache_ptr, v_cache_ptr, block_table_ptr, lengths_ptr, scale, table_stride,
                 kv_heads, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, PAGE: tl.constexpr, BLOCK_N: tl.constexpr,
                 SPLITS: tl.constexpr):
    """First stage of split-KV decode: one query token a sequence, a paged cache, GROUP query heads a KV head.

    q [sequences, kv_heads * GROUP, HEAD_DIM]; caches [pages, PAGE, kv_heads, HEAD_DIM]; block_table [sequences, table_stride].
    partial [sequences, kv_heads * GROUP, SPLITS, HEAD_DIM] float: attention over the split's keys, zeros for an empty split;
    lse [sequences, kv_heads * GROUP, SPLITS] float: log2 of the sum of 2^score, -inf for an empty one.
    No tensor cores: a decode step is bound by the cache's bytes. Grid: (sequences, kv_heads * GROUP, SPLITS).
    """
    sequence = tl.program_id(0)
    head = tl.program_id(1)
    split = tl.program_id(2)
    heads = kv_heads * GROUP
    kv_head = head // GROUP
    length = tl.load(lengths_ptr + sequence)
    per_split = tl.cdiv(tl.cdiv(length, SPLITS), BLOCK_N) * BLOCK_N
    start = split * per_split
    end = tl.minimum(start + per_split, length)

    offsets_d = tl.arange(0, HEAD_DIM)
    q = tl.load(q_ptr + (sequence * heads + head) * HEAD_DIM + offsets_d).to(tl.float32) * (scale * 1.4426950408889634)
    maximum = -float("inf")
    total = 0.0
    accumulator = tl.zeros([HEAD_DIM], dtype=tl.float32)
    for first in range(start, end, BLOCK_N):
        token = first + tl.arange(0, BLOCK_N)
        valid = token < end
        page = tl.load(block_table_ptr + sequence * table_stride + token // PAGE, mask=valid, other=0)
        row = (page.to(tl.int64) * PAGE + token % PAGE) * kv_heads + kv_head
        offsets = row[:, None] * HEAD_DIM + offsets_d[None, :]
        k = tl.load(k_cache_ptr + offsets, mask=valid[:, None], other=0.0).to(tl.float32)
        s = tl.where(valid, tl.sum(k * q[None, :], 1), -float("inf"))
        new_maximum = tl.maximum(maximum, tl.max(s, 0))
        p = tl.exp2(s - new_maximum)
        keep = tl.exp2(maximum - new_maximum)
        v = tl.load(v_cache_ptr + offsets, mask=valid[:, None], other=0.0).to(tl.float32)
        accumulator = accumulator * keep + tl.sum(p[:, None] * v, 0)
        total = total * keep + tl.sum(p, 0)
        maximum = new_maximum
    out = (sequence * heads + head) * SPLITS + split
    empty = start >= end
    tl.store(partial_ptr + out * HEAD_DIM + offsets_d, tl.where(empty, 0.0, accumulator / total))
    tl.store(lse_ptr + out, tl.where(empty, -float("inf"), maximum + tl.log2(total)))


@triton.jit
def paged_decode_merge(out_ptr, partial_ptr, lse_ptr, HEAD_DIM: tl.constexpr, SPLITS: tl.constexpr):
    """Second stage of split-KV decode: out [rows, HEAD_DIM] from partial [rows, SPLITS, HEAD_DIM] and lse [rows, SPLITS].

    A row is a (sequence, head); at least one of its splits is not empty. Grid: rows.
    """
    row = tl.program_id(0)
    splits = tl.arange(0, SPLITS)
    offsets_d = tl.arange(0, HEAD_DIM)
    lse = tl.load(lse_ptr + row * SPLITS + splits)
    weight = tl.exp2(lse - tl.max(lse, 0))
    partial = tl.load(partial_ptr + (row * SPLITS + splits)[:, None] * HEAD_DIM + offsets_d[None, :])
    out = tl.sum(partial * weight[:, None], 0) / tl.sum(weight, 0)
    tl.store(out_ptr + row * HEAD_DIM + offsets_d, out.to(out_ptr.dtype.element_ty))

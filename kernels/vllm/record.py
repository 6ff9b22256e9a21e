"""vLLM's kernels whose parameters its host code makes: tensor maps, tile schedulers, workspaces. Called by builder/cubins.py:
writes, for each shape of kernels.toml, NAME.SHAPE.launch.textproto and its cubins."""

import numpy as np

from builder import packages, recording
from builder.recorder import Recorder, Tensor


def fa3_prefill(recorder: Recorder, tokens: int, heads: int, kv_heads: int, sequences: int = 3) -> tuple[str, str]:
    """Packed sequences, causal, grouped queries."""
    return ("FlashAttention-3 forward over packed sequences, causal, grouped queries.",
            _fa3_packed(recorder, "bf16", tokens, heads, kv_heads, sequences, tolerance="absolute: 0.01 relative: 0.008"))


def fa3_prefill_fp8(recorder: Recorder, tokens: int, heads: int, kv_heads: int, sequences: int = 2) -> tuple[str, str]:
    """e4m3 in, bf16 out. The kernel rounds probabilities to e4m3 before they meet the values, and the check does not: an error of 3.6 %
    of a row's size in the mean, of which the tolerance is 5."""
    return ("FlashAttention-3 forward of e4m3 over packed sequences, causal, grouped queries.",
            _fa3_packed(recorder, "e4m3", tokens, heads, kv_heads, sequences, tolerance="absolute: 0.18 relative: 0.06"))


def _fa3_packed(recorder: Recorder, dtype: str, tokens: int, heads: int, kv_heads: int, sequences: int, tolerance: str) -> str:
    head_dim = 128
    q = recorder.tensor("q", dtype, [tokens, heads, head_dim], "normal { seed: 1 }")
    k = recorder.tensor("k", dtype, [tokens, kv_heads, head_dim], "normal { seed: 2 }")
    v = recorder.tensor("v", dtype, [tokens, kv_heads, head_dim], "normal { seed: 3 }")
    out = recorder.tensor("out", "bf16", [tokens, heads, head_dim], "zeros {}")
    offsets = recorder.tensor("offsets", "i32", [sequences + 1], f'offsets {{ total: "{tokens}" seed: 4 }}')
    _fa3(recorder, q, k, v, out, scale=head_dim**-0.5, cu_seqlens_q=offsets, cu_seqlens_k=offsets, max_seqlen_q=tokens,
         max_seqlen_k=tokens, is_causal=True, num_splits=1)
    recorder.name_scratch("lse", "f32", [heads, tokens])
    return f"""
  op {{ out: "y" also: "l" attention {{ q: "q" k: "k" v: "v" layout: thd causal: true cu_seqlens_q: "offsets" }} }}
  op {{ out: "lse_by_head" transpose {{ x: "l" order: [1, 0] }} }}
  compare {{ buffer: "out" reference: "y" {tolerance} }}
  compare {{ buffer: "lse" reference: "lse_by_head" absolute: 1e-4 relative: 1e-4 }}"""


def fa3_decode(recorder: Recorder, heads: int, kv_heads: int, sequences: int = 3, max_length: int = 700, page: int = 16, splits: int = 4,
               head_dim: int = 128) -> tuple[str, str]:
    """One query a sequence, keys in pages, split, and the splits combined."""
    blocks = -(-max_length // page)
    pages = sequences * blocks + 7
    q = recorder.tensor("q", "bf16", [sequences, heads, head_dim], "normal { seed: 1 }")
    k = recorder.tensor("k", "bf16", [pages, page, kv_heads, head_dim], "normal { seed: 2 }")
    v = recorder.tensor("v", "bf16", [pages, page, kv_heads, head_dim], "normal { seed: 3 }")
    out = recorder.tensor("out", "bf16", [sequences, heads, head_dim], "zeros {}")
    offsets = recorder.tensor("offsets", "i32", [sequences + 1], 'iota { start: "0" }')
    lengths = recorder.tensor("lengths", "i32", [sequences], f'uniform {{ low: "1" high: "{max_length}" seed: 5 }}')
    table = recorder.tensor("block_table", "i32", [sequences, blocks], f'permutation {{ range: "{pages}" seed: 4 }}')
    _fa3(recorder, q, k, v, out, scale=head_dim**-0.5, cu_seqlens_q=offsets, seqused_k=lengths, max_seqlen_q=1, max_seqlen_k=max_length,
         page_table=table, is_causal=True, num_splits=splits)
    return "FlashAttention-3 decode: keys in pages, split among CTAs, and the kernel that combines the splits.", """
  op { out: "y" attention { q: "q" k: "k" v: "v" layout: paged block_table: "block_table" seq_lens: "lengths" } }
  compare { buffer: "out" reference: "y" absolute: 0.015 relative: 0.008 }"""


def _fa3(recorder: Recorder, q, k, v, out, scale: float, cu_seqlens_q, max_seqlen_q: int, max_seqlen_k: int, is_causal: bool, num_splits: int,
         cu_seqlens_k=None, seqused_k=None, page_table=None) -> None:
    new, rotary, descale = [None] * 2, [None] * 3, [None] * 3
    recorder.call("_vllm_fa3_C::fwd", q, k, v, *new, None, out, cu_seqlens_q, cu_seqlens_k, None, None, seqused_k, max_seqlen_q, max_seqlen_k,
                  page_table, None, None, *rotary, *descale, scale, is_causal, -1, -1, 0.0, False, None, num_splits, None, 0, None, 1, 0, None)


def flashmla_decode(recorder: Recorder, sequences: int, heads: int = 128, max_length: int = 500, page: int = 64) -> tuple[str, str]:
    """DeepSeek's latent attention: one key head of 512 + 64, whose first 512 are the values too."""
    blocks = -(-max_length // page)
    pages = sequences * blocks + 3
    q = recorder.tensor("q", "bf16", [sequences, 1, heads, 576], "normal { seed: 1 }")
    cache = recorder.tensor("cache", "bf16", [pages, page, 1, 576], "normal { seed: 2 }")
    lengths = recorder.tensor("lengths", "i32", [sequences], f'uniform {{ low: "1" high: "{max_length}" seed: 5 }}')
    table = recorder.tensor("block_table", "i32", [sequences, blocks], f'permutation {{ range: "{pages}" seed: 4 }}')
    out = recorder.tensor("out", "bf16", [sequences, 1, heads, 512], "zeros {}")
    recorder.call("_flashmla_C::dense_decode_fwd", q, cache, 512, lengths, table, 192**-0.5, False, None, None, out)
    return "FlashMLA dense decode: keys in pages of 64, split among SMs by its own scheduler, and combined.", f"""
  op {{ out: "rows" view {{ x: "q" shape: ["{sequences}", "{heads}", "576"] }} }}
  op {{ out: "values" view {{ x: "cache" shape: ["{pages}", "{page}", "1", "512"] stride: ["{page * 576}", "576", "576", "1"] }} }}
  op {{ out: "y" attention {{ q: "rows" k: "cache" v: "values" layout: paged block_table: "block_table" seq_lens: "lengths" scale: "rsqrt(192)" }} }}
  compare {{ buffer: "out" reference: "y" absolute: 0.015 relative: 0.008 }}"""


def flashmla_sparse_prefill(recorder: Recorder, queries: int, keys: int, top_k: int, heads: int = 128) -> tuple[str, str]:
    """DeepSeek-V3.2: each query sees the keys that an indexer chose for it."""
    q = recorder.tensor("q", "bf16", [queries, heads, 576], "normal { seed: 1 }")
    kv = recorder.tensor("kv", "bf16", [keys, 1, 576], "normal { seed: 2 }")
    indices = recorder.tensor("indices", "i32", [queries, 1, top_k], f'uniform {{ low: "0" high: "{keys - 1}" seed: 3 }}')
    recorder.tensor("each", "i32", [queries, 1], 'iota { start: "0" }')  # these two for the check
    recorder.tensor("lengths", "i32", [queries], f'constant {{ value: "{top_k}" }}')
    out = recorder.tensor("out", "bf16", [queries, heads, 512], "zeros {}")
    recorder.call("_flashmla_C::sparse_prefill_fwd", q, kv, indices, 192**-0.5, 512, None, None, out)
    return "FlashMLA sparse prefill: each query attends to its own list of keys.", f"""
  op {{ out: "flat" view {{ x: "indices" shape: ["{queries * top_k}"] }} }}
  op {{ out: "chosen" gather {{ table: "kv" index: "flat" }} }}
  op {{ out: "k" view {{ x: "chosen" shape: ["{queries}", "{top_k}", "1", "576"] }} }}
  op {{ out: "v" view {{ x: "chosen" shape: ["{queries}", "{top_k}", "1", "512"] stride: ["{top_k * 576}", "576", "576", "1"] }} }}
  op {{ out: "y" attention {{ q: "q" k: "k" v: "v" layout: paged block_table: "each" seq_lens: "lengths" scale: "rsqrt(192)" }} }}
  compare {{ buffer: "out" reference: "y" absolute: 0.015 relative: 0.008 }}"""


def scaled_mm_fp8(recorder: Recorder, m: int, n: int, k: int) -> tuple[str, str]:
    """One scale a row of A and a column of B, bf16 out."""
    a = recorder.tensor("a", "e4m3", [m, k], "normal { seed: 1 }")
    b = recorder.tensor("b", "e4m3", [n, k], "normal { seed: 2 }")
    out = recorder.tensor("out", "bf16", [m, n], "zeros {}")
    a_scale = recorder.tensor("a_scale", "f32", [m, 1], 'uniform { low: "0.5" high: "1.5" seed: 3 }')
    b_scale = recorder.tensor("b_scale", "f32", [1, n], 'uniform { low: "0.5" high: "1.5" seed: 4 }')
    recorder.call("_C::cutlass_scaled_mm", out, a, b.transposed(), a_scale, b_scale, None)
    return "vLLM's CUTLASS scaled_mm: e4m3 by e4m3, scales by row and column in the epilogue.", _SCALED_CHECK


def scaled_mm_int8(recorder: Recorder, m: int, n: int, k: int) -> tuple[str, str]:
    """As scaled_mm_fp8, of integers: their products are exact in 32 bits."""
    integers = 'uniform {{ low: "-127" high: "127" seed: {} }}'
    a = recorder.tensor("a", "i8", [m, k], integers.format(1))
    b = recorder.tensor("b", "i8", [n, k], integers.format(2))
    out = recorder.tensor("out", "bf16", [m, n], "zeros {}")
    a_scale = recorder.tensor("a_scale", "f32", [m, 1], 'uniform { low: "0.005" high: "0.015" seed: 3 }')
    b_scale = recorder.tensor("b_scale", "f32", [1, n], 'uniform { low: "0.005" high: "0.015" seed: 4 }')
    recorder.call("_C::cutlass_scaled_mm", out, a, b.transposed(), a_scale, b_scale, None)
    return "vLLM's CUTLASS scaled_mm of 8-bit integers: IGMMA, scales by row and column in the epilogue.", _SCALED_CHECK


def scaled_mm_blockwise(recorder: Recorder, m: int, n: int, k: int) -> tuple[str, str]:
    """Scales of A by 1 x 128, rows innermost, and of B by 128 x 128."""
    a = recorder.tensor("a", "e4m3", [m, k], "normal { seed: 1 }")
    b = recorder.tensor("b", "e4m3", [n, k], "normal { seed: 2 }")
    out = recorder.tensor("out", "bf16", [m, n], "zeros {}")
    a_scale = recorder.tensor("a_scale", "f32", [k // 128, m], 'uniform { low: "0.5" high: "2" seed: 3 }')
    b_scale = recorder.tensor("b_scale", "f32", [n // 128, k // 128], 'uniform { low: "0.5" high: "2" seed: 4 }')
    recorder.call("_C::cutlass_scaled_mm", out, a, b.transposed(), a_scale.transposed(), b_scale.transposed(), None)
    return "vLLM's CUTLASS scaled_mm with scales by blocks, as DeepSeek-V3 has them.", f"""
  op {{ out: "a_blocks" view {{ x: "a" shape: ["{m}", "{k // 128}", "128"] }} }}
  op {{ out: "a_factors" view {{ x: "a_scale" shape: ["{m}", "{k // 128}", "1"] stride: ["1", "{m}", "1"] }} }}
  op {{ out: "a_scaled" binary {{ a: "a_blocks" b: "a_factors" function: multiply }} }}
  op {{ out: "a_real" view {{ x: "a_scaled" shape: ["{m}", "{k}"] }} }}
  op {{ out: "b_blocks" view {{ x: "b" shape: ["{n // 128}", "128", "{k // 128}", "128"] }} }}
  op {{ out: "b_factors" view {{ x: "b_scale" shape: ["{n // 128}", "1", "{k // 128}", "1"] }} }}
  op {{ out: "b_scaled" binary {{ a: "b_blocks" b: "b_factors" function: multiply }} }}
  op {{ out: "b_real" view {{ x: "b_scaled" shape: ["{n}", "{k}"] }} }}
  op {{ out: "y" matmul {{ a: "a_real" b: "b_real" transpose_b: true }} }}
  compare {{ buffer: "out" reference: "y" absolute: 0.004 relative: 0.008 }}"""


def moe_mm(recorder: Recorder, rows: list[int], n: int, k: int) -> tuple[str, str]:
    """Experts with `rows` rows each; the kernel edits its tensor maps for each of them."""
    experts, m = len(rows), sum(rows)
    starts = [sum(rows[:e]) for e in range(experts)]
    a = recorder.tensor("a", "e4m3", [m, k], "normal { seed: 1 }")
    b = recorder.tensor("b", "e4m3", [experts, n, k], "normal { seed: 2 }")
    out = recorder.tensor("out", "bf16", [m, n], "zeros {}")
    a_scale = recorder.tensor("a_scale", "f32", [m, 1], 'uniform { low: "0.5" high: "1.5" seed: 3 }')
    b_scale = recorder.tensor("b_scale", "f32", [experts, n, 1], 'uniform { low: "0.5" high: "1.5" seed: 4 }')
    offsets = recorder.tensor("offsets", "i64", [experts], _list(starts))
    sizes = recorder.tensor("sizes", "i32", [experts, 3], _list([x for r in rows for x in (r, n, k)]))
    strides_k = recorder.tensor("strides_k", "i64", [experts], f'constant {{ value: "{k}" }}')
    strides_n = recorder.tensor("strides_n", "i64", [experts], f'constant {{ value: "{n}" }}')
    recorder.tensor("expert", "i32", [m], _list([e for e, r in enumerate(rows) for _ in range(r)]))  # for the check
    recorder.call("_C::cutlass_moe_mm", out, a, b.transposed(), a_scale, b_scale, offsets, sizes, strides_k, strides_k, strides_n, True, True)
    return "vLLM's CUTLASS grouped GEMM of experts: e4m3, tensor maps edited on the device.", f"""
  op {{ out: "product" grouped_matmul {{ x: "a" weight: "b" expert: "expert" transpose_b: true row_scale: "a_scale" }} }}
  op {{ out: "columns" view {{ x: "b_scale" shape: ["{experts}", "{n}"] }} }}
  op {{ out: "factors" gather {{ table: "columns" index: "expert" }} }}
  op {{ out: "y" binary {{ a: "product" b: "factors" function: multiply }} }}
  compare {{ buffer: "out" reference: "y" absolute: 0.002 relative: 0.008 }}"""


def _list(values: list[int]) -> str:
    return "list { value: [" + ", ".join(f'"{v}"' for v in values) + "] }"


_SCALED_CHECK = """
  op { out: "product" matmul { a: "a" b: "b" transpose_b: true } }
  op { out: "by_row" binary { a: "product" b: "a_scale" function: multiply } }
  op { out: "y" binary { a: "by_row" b: "b_scale" function: multiply } }
  compare { buffer: "out" reference: "y" absolute: 0.002 relative: 0.008 }"""


# vLLM's ScalarType of 4-bit integers with a bias of 8, as Machete and Marlin are told it: mantissa, bias, IEEE NaNs.
_UINT4B8 = 4 << 8 | 8 << 17 | 1 << 50
_GROUP = 128


def machete(recorder: Recorder, m: int, n: int, k: int) -> tuple[str, str]:
    """4-bit weights that another kernel of the library repacks first."""
    a = recorder.tensor("a", "bf16", [m, k], "normal { seed: 1 }")
    packed, scales = _int4_weights(recorder, n, k)
    columns = Tensor(packed.address, "i32", [k // 8, n], [1, k // 8])
    (b,) = recorder.call("_C::machete_prepack_B", columns, "bf16", _UINT4B8, "bf16")
    b = Tensor(recorder.returned(b, "i32", []).address, "i32", [k // 8, n], [1, k // 8])
    (out,) = recorder.call("_C::machete_mm", a, b, _UINT4B8, "bf16", scales, None, _GROUP, None, None, None)
    recorder.name("out", "bf16", [m, n], recorder.returned(out, "bf16", [m, n]))
    return "Machete: bf16 by 4-bit integers with scales by 128 of K, weights through registers into wgmma.", _INT4_CHECK.format(n=n, groups=k // _GROUP)


def marlin(recorder: Recorder, m: int, n: int, k: int) -> tuple[str, str]:
    """4-bit weights that another kernel of the library repacks first; blocks share columns and add up under locks."""
    a = recorder.tensor("a", "bf16", [m, k], "normal { seed: 1 }")
    packed, scales = _int4_weights(recorder, n, k, transposed=False)
    order = [i + 8 * j for i in range(8) for j in range(8)]
    data = np.frombuffer(recorder.buffers[-1].data, np.uint16).reshape(-1, 64)[:, order]
    permuted = recorder.given("permuted_scales", "bf16", [k // _GROUP, n], data.tobytes())
    workspace = recorder.tensor("locks", "i32", [132], "zeros {}")
    (b,) = recorder.call("_C::gptq_marlin_repack", packed, k, n, 4, False)
    b = recorder.returned(b, "i32", [k // 16, n * 2])
    (out,) = recorder.call("_C::marlin_gemm", a, None, b, None, permuted, None, None, None, workspace, _UINT4B8, m, n, k, False, True, False)
    recorder.name("out", "bf16", [m, n], recorder.returned(out, "bf16", [m, n]))
    return "Marlin: bf16 by 4-bit integers with scales by 128 of K, repacked by its own kernel.", _INT4_CHECK.format(n=n, groups=k // _GROUP)


_INT4_CHECK = """
  op {{ out: "wide" view {{ x: "scales" shape: ["{groups}", "128", "{n}"] stride: ["{n}", "0", "1"] }} }}
  op {{ out: "by_group" view {{ x: "weights" shape: ["{groups}", "128", "{n}"] }} }}
  op {{ out: "scaled" binary {{ a: "by_group" b: "wide" function: multiply }} round: bf16 }}
  op {{ out: "b" view {{ x: "scaled" shape: ["{groups} * 128", "{n}"] }} }}
  op {{ out: "y" matmul {{ a: "a" b: "b" }} }}
  compare {{ buffer: "out" reference: "y" absolute: 0.004 relative: 0.008 }}"""


def _int4_weights(recorder: Recorder, n: int, k: int, transposed: bool = True) -> tuple[Tensor, Tensor]:
    """Eight nibbles of consecutive k in a word; `weights` holds what they mean, for the check alone."""
    random = np.random.default_rng(7)
    nibbles = random.integers(0, 16, (k, n), dtype=np.uint32)
    words = sum(nibbles[i::8] << 4 * i for i in range(8)).astype(np.uint32)
    recorder.given("weights", "i8", [k, n], (nibbles.astype(np.int8) - 8).tobytes())
    packed = recorder.given("packed", "i32", [k // 8, n], (np.ascontiguousarray(words.T) if transposed else words).tobytes())
    scales = (random.uniform(0.01, 0.1, (k // _GROUP, n)).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return packed, recorder.given("scales", "bf16", [k // _GROUP, n], scales.tobytes())


_FA3, _FLASHMLA, _C = "vllm/vllm_flash_attn/_vllm_fa3_C.abi3.so", "vllm/_flashmla_C.abi3.so", "vllm/_C_stable_libtorch.abi3.so"
_KERNELS = {fa3_prefill: _FA3, fa3_prefill_fp8: _FA3, fa3_decode: _FA3, flashmla_decode: _FLASHMLA, flashmla_sparse_prefill: _FLASHMLA, scaled_mm_fp8: _C, scaled_mm_int8: _C,
            scaled_mm_blockwise: _C, moe_mm: _C, machete: _C, marlin: _C}
_LIBRARIES = {kernel.__name__: library for kernel, library in _KERNELS.items()}


def _library(framework, kernel: str):
    return packages.member(packages.wheel(framework.wheel_file, framework.wheel_sha256), _LIBRARIES[kernel])


if __name__ == "__main__":
    recording.main("vllm", _library, {kernel.__name__: kernel for kernel in _KERNELS})

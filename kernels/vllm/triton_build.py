#!/usr/bin/env python3
"""Compiles Triton kernels that vLLM's wheel holds as Python source.

usage: triton_build.py --kernel NAME... --target sm_80|sm_90 --out DIR

Tiles, warps and stages are what vLLM's own code chooses for the shapes of kernels.toml where no tuned configuration is there.
"""

from builder import catalogue, packages, triton_kernel

_MODULES = ("vllm/model_executor/layers/fused_moe/fused_moe.py", "vllm/model_executor/layers/quantization/utils/fp8_utils.py",
            "vllm/v1/attention/ops/triton_attention_helpers.py", "vllm/v1/attention/ops/triton_unified_attention.py")
BF16, F32, I32, FP8 = "*bf16:16", "*fp32:16", "*i32:16", "*fp8e4nv:16"
_HEAD_DIM, _PAGE, _GROUP, _SEGMENTS = 128, 16, 4, 4


def _attention(function, segments: int, tile: int):
    """kernel_unified_attention for plain bf16 caches; segments > 1: its parallel-softmax form ("3D")."""
    block_m = 16
    parameters = {"output_ptr": BF16, "query_ptr": BF16, "key_cache_ptr": BF16, "value_cache_ptr": BF16, "block_tables_ptr": I32,
                  "seq_lens_ptr": I32, "scale": "fp32", "out_scale": "fp32", "softcap": "fp32", "block_table_stride": "i64",
                  "query_stride_0": "i64:16", "query_stride_1": "i64:16", "output_stride_0": "i64:16", "output_stride_1": "i64:16",
                  "qq_bias_stride_0": "i64:16", "rswa_prefix_lens_ptr": I32, "stride_k_cache_0": "i64:16",
                  "stride_k_cache_1": "i64:16", "stride_k_cache_2": "i64:16", "stride_v_cache_0": "i64:16",
                  "stride_v_cache_1": "i64:16", "stride_v_cache_2": "i64:16", "query_start_len_ptr": I32, "num_seqs": "i32"}
    if segments > 1:
        parameters |= {"segm_output_ptr": F32, "segm_max_ptr": F32, "segm_expsum_ptr": F32}
    off = ("USE_ALIBI_SLOPES", "USE_ALIBI_SQRT", "USE_QQ_BIAS", "USE_SOFTCAP", "USE_SINKS", "USE_PER_SEQ_CAUSAL", "USE_MM_PREFIX",
           "USE_R_SWA", "USE_FP8", "USE_TD", "USE_TD_QO", "Q_IS_FP8", "MM_PREFIX_CLAMP_SW")
    constants = dict.fromkeys(off, False) | {
        "num_query_heads": 8, "num_queries_per_kv": _GROUP, "BLOCK_SIZE": _PAGE, "TILE_SIZE": tile, "HEAD_SIZE": _HEAD_DIM,
        "HEAD_SIZE_PADDED": _HEAD_DIM, "SLIDING_WINDOW": 0, "USE_CAUSAL": True, "MAX_MM_RANGES": 0, "R_SWA_WINDOW": 0,
        "stride_k_cache_3": 1, "stride_v_cache_3": 1, "BLOCK_M": block_m, "BLOCK_Q": block_m // _GROUP,
        "NUM_SEGMENTS_PER_SEQ": segments, "IS_3D": segments > 1, "KV_QUANT_MODE": 0, "FP8_MIN": -448.0, "FP8_MAX": 448.0,
        "CHUNK_LOOKBACK": -1, "CHUNK_SIZE": -1}
    return triton_kernel.Kernel(function, parameters, constants)


def _reduce(function):
    return triton_kernel.Kernel(
        function,
        {"output_ptr": BF16, "segm_output_ptr": F32, "segm_max_ptr": F32, "segm_expsum_ptr": F32, "seq_lens_ptr": I32,
         "num_seqs": "i32", "out_scale_inv": "fp32", "output_stride_0": "i64:16", "output_stride_1": "i64:16",
         "block_table_stride": "i64", "query_start_len_ptr": I32},
        {"num_query_heads": 8, "TILE_SIZE": 16, "HEAD_SIZE": _HEAD_DIM, "HEAD_SIZE_PADDED": _HEAD_DIM, "BLOCK_Q": 4,
         "NUM_SEGMENTS_PER_SEQ": _SEGMENTS, "USE_FP8": False, "FP8_MIN": -448.0, "FP8_MAX": 448.0})


def _fused_moe(function, operand: str, tile: tuple[int, int, int], stages: int, group: int = 0):
    """fused_moe_kernel on bf16, or on fp8 with scales for groups of `group`."""
    strides = ["stride_am", "stride_be", "stride_bn", "stride_cm"]
    parameters = {"a_ptr": operand, "b_ptr": operand, "c_ptr": BF16, "topk_weights_ptr": F32, "sorted_token_ids_ptr": I32,
                  "expert_ids_ptr": I32, "num_tokens_post_padded_ptr": I32, "N": "i32:16", "K": "i32:16", "EM": "i32:16",
                  "num_valid_tokens": "i32"} | dict.fromkeys(strides, "i32:16")
    if group:
        parameters |= {"a_scale_ptr": F32, "b_scale_ptr": F32} | dict.fromkeys(("stride_asm", "stride_bse", "stride_bsn"), "i32")
    constants = dict.fromkeys(("stride_ak", "stride_bk", "stride_cn"), 1) | dict.fromkeys(("stride_ask", "stride_bsk"), int(group > 0))
    constants |= dict.fromkeys(("stride_bbe", "stride_bbn") if group else ("stride_bbe", "stride_bbn", "stride_asm", "stride_bse",
                                                                          "stride_bsn"), 0)
    constants |= {"group_n": group, "group_k": group, "naive_block_assignment": False, "BLOCK_SIZE_M": tile[0],
                  "BLOCK_SIZE_N": tile[1], "BLOCK_SIZE_K": tile[2], "GROUP_SIZE_M": 1, "SPLIT_K": 1, "MUL_ROUTED_WEIGHT": True,
                  "top_k": 2, "compute_type": triton_kernel.triton.language.bfloat16, "use_fp8_w8a8": group > 0,
                  "use_int8_w8a8": False, "use_int8_w8a16": False, "per_channel_quant": False, "HAS_BIAS": False, "SWAP_AB": False}
    return triton_kernel.Kernel(function, parameters, constants, 4, stages)


def _block_scaled(function):
    parameters = {"A": FP8, "B": FP8, "C": BF16, "As": F32, "Bs": F32, "M": "i32", "N": "i32:16", "K": "i32:16", "group_n": "i32:16",
                  "group_k": "i32:16", "stride_am": "i32:16", "stride_bn": "i32:16", "stride_cm": "i32:16", "stride_As_m": "i32",
                  "stride_Bs_n": "i32"}
    constants = dict.fromkeys(("stride_ak", "stride_bk", "stride_cn", "stride_As_k", "stride_Bs_k"), 1)
    return triton_kernel.Kernel(function, parameters, constants | {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 128,
                                                                   "GROUP_SIZE_M": 32}, 4, 2)


def _group_quant(function):
    parameters = {"y_ptr": BF16, "y_q_ptr": FP8, "y_s_ptr": F32, "group_size": "i32:16", "y_num_columns": "i32:16",
                  "y_row_stride": "i32:16", "eps": "fp32"}
    return triton_kernel.Kernel(function, parameters, {"fp8_min": -448.0, "fp8_max": 448.0, "use_ue8m0": False, "BLOCK": 128}, 1, 1)


def kernels() -> dict[str, triton_kernel.Kernel]:
    framework = catalogue.read("vllm")
    wheel = packages.wheel(framework.wheel_file, framework.wheel_sha256)
    files = {m.removesuffix(".py").replace("/", "."): packages.member(wheel, m) for m in _MODULES}
    moe, fp8, _, attention = triton_kernel.load(files).values()
    return {
        "triton_unified_attention": _attention(attention.kernel_unified_attention, 1, 32),
        "triton_unified_attention_split": _attention(attention.kernel_unified_attention, _SEGMENTS, 16),
        "triton_unified_attention_reduce": _reduce(attention.reduce_segments),
        "triton_fused_moe": _fused_moe(moe.fused_moe_kernel, BF16, (32, 64, 128), 3),
        "triton_fused_moe_fp8": _fused_moe(moe.fused_moe_kernel, FP8, (16, 128, 128), 3, 128),
        "triton_block_scaled_mm": _block_scaled(fp8._w8a8_triton_block_scaled_mm),
        "triton_group_quant_fp8": _group_quant(fp8._per_token_group_quant_fp8),
    }


if __name__ == "__main__":
    packages.run(lambda: triton_kernel.main(__doc__, lambda target: kernels()))

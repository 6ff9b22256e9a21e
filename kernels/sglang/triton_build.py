#!/usr/bin/env python3
"""Compiles Triton kernels that SGLang's wheel (not that of its kernel library) holds as Python source.

usage: triton_build.py --kernel NAME... --target sm_80|sm_90 --out DIR

Tiles, warps and stages are those that SGLang's own code chooses.
"""

from builder import packages, triton_kernel

_WHEEL = "sglang-0.5.23-cp311-cp311-manylinux_2_34_x86_64.whl"
_SHA256 = "00b3cd5b265ac76c64185fbb6b95424f324ddd9f428d0306b77bc9db9d859937"
_MODULES = ("sglang/kernels/ops/attention/prefill_attention.py", "sglang/kernels/ops/attention/decode_attention.py")
BF16, F32, I32 = "*bf16:16", "*fp32:16", "*i32:16"
_HEADS, _GROUP, _HEAD_DIM, _SPLITS, _MIN_BLOCK_KV = 8, 4, 128, 8, 32


def _prefill(function, target: str):
    strides = [f"stride_{x}{y}" for x in "qkvo" for y in ("bs", "h")]
    parameters = {"Q": BF16, "K": BF16, "V": BF16, "sm_scale": "fp32", "B_Start_Loc": I32, "B_Seqlen": I32, "Out": BF16}
    tile = 64 if target == "sm_80" else 128
    constants = {"kv_group_num": _GROUP, "BLOCK_M": tile, "BLOCK_DMODEL": _HEAD_DIM, "BLOCK_N": tile, "IS_CAUSAL": True, "Lk": _HEAD_DIM}
    return triton_kernel.Kernel(function, parameters | dict.fromkeys(strides, "i32:16"), constants, 8, 1)


def _decode(function):
    strides = ["stride_qbs", "stride_qh", "stride_buf_kbs", "stride_buf_kh", "stride_buf_vbs", "stride_buf_vh", "stride_mid_ob",
               "stride_mid_oh", "stride_mid_os"]
    parameters = {"Q": BF16, "K_Buffer": BF16, "V_Buffer": BF16, "sm_scale_withk": "fp32", "kv_indptr": I32, "kv_indices": I32,
                  "Att_Out": F32, "Att_Lse": F32, "num_kv_splits": I32}
    constants = dict.fromkeys(("stride_buf_kpage", "stride_buf_ktok", "stride_buf_vpage", "stride_buf_vtok"), 0) | {
        "kv_group_num": _GROUP, "q_head_num": _HEADS, "BLOCK_DMODEL": _HEAD_DIM, "BLOCK_DPE": 0, "BLOCK_DV": _HEAD_DIM, "BLOCK_N": 32,
        "BLOCK_H": 16, "MIN_BLOCK_KV": _MIN_BLOCK_KV, "logit_cap": 0.0, "xai_temperature_len": -1, "Lk": _HEAD_DIM, "Lv": _HEAD_DIM}
    return triton_kernel.Kernel(function, parameters | dict.fromkeys(strides, "i32:16"), constants, 4, 2)


def _reduce(function):
    strides = ["stride_mid_ob", "stride_mid_oh", "stride_mid_os", "stride_obs", "stride_oh"]
    parameters = {"Mid_O": F32, "Mid_O_1": F32, "O": BF16, "v_scale": "fp32", "kv_indptr": I32, "num_kv_splits": I32}
    constants = {"MAX_KV_SPLITS": _SPLITS, "MIN_BLOCK_KV": _MIN_BLOCK_KV, "BLOCK_DV": _HEAD_DIM, "Lv": _HEAD_DIM, "HAS_SINK": False}
    return triton_kernel.Kernel(function, parameters | dict.fromkeys(strides, "i32:16"), constants, 4, 2)


def kernels(target: str) -> dict[str, triton_kernel.Kernel]:
    wheel = packages.wheel(_WHEEL, _SHA256)
    files = {m.removesuffix(".py").replace("/", "."): packages.member(wheel, m) for m in _MODULES}
    prefill, decode = triton_kernel.load(files).values()
    return {"triton_prefill_attention": _prefill(prefill._fwd_kernel, target),
            "triton_decode_attention_split": _decode(decode._fwd_grouped_kernel_stage1),
            "triton_decode_attention_reduce": _reduce(decode._fwd_kernel_stage2)}


if __name__ == "__main__":
    packages.run(lambda: triton_kernel.main(__doc__, kernels))

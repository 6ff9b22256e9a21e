#!/usr/bin/env python3
"""Compiles the Triton kernels that stand for measured ones, ahead of time, without a GPU.

usage: compile.py --arch 80|89|90 --out DIR [--all] [--only NAME ...]

Writes DIR/NAME.cubin and DIR/NAME.json (kernels/builder/triton_kernel.py says what is in it).
"""

import argparse
import os
import sys
from pathlib import Path

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), str(Path(__file__).resolve().parents[1])]
import kernels  # noqa: E402
from builder.triton_kernel import Kernel, compile_kernel  # noqa: E402

BF16 = "*bf16:16"
F32 = "*fp32:16"
I32 = "*i32:16"
SIZE = "i32:16"
_PRODUCT = {"a_ptr": BF16, "b_ptr": BF16, "m": "i32", "n": SIZE, "k": SIZE}


def _matmul(rows, columns, depth, warps, stages):
    constants = {"BLOCK_M": rows, "BLOCK_N": columns, "BLOCK_K": depth, "GROUP_M": 8}
    return Kernel(kernels.matmul_nt, {"c_ptr": BF16, **_PRODUCT}, constants, warps, stages)


def _split(rows, columns, depth, warps, stages):
    constants = {"BLOCK_M": rows, "BLOCK_N": columns, "BLOCK_K": depth}
    return Kernel(kernels.matmul_nt_split, {"partial_ptr": F32, **_PRODUCT}, constants, warps, stages)


def _moe(rows, columns, depth, warps, stages, group, weighted, scaled=False):
    operand = "*fp8e4nv:16" if scaled else BF16
    integers = {"blocks": "i32", "slots": "i32", "rows": "i32", "count": "i32", "padded": "i32", "local": "i32", "n": SIZE, "k": SIZE}
    pointers = {"c_ptr": BF16, "a_ptr": operand, "b_ptr": operand, "weights_ptr": F32, "sorted_slots_ptr": I32, "expert_ids_ptr": I32,
                "padded_slots_ptr": I32}
    constants = {"WEIGHTED": weighted, "SCALED": scaled, "BLOCK_M": rows, "BLOCK_N": columns, "BLOCK_K": depth, "GROUP_M": group}
    return Kernel(kernels.moe_gemm, {**pointers, **integers, "a_scale_ptr": F32, "b_scale_ptr": F32}, constants, warps, stages)


def _scaled(rows, columns, depth, warps, stages):
    operands = {"a_ptr": "*fp8e4nv:16", "b_ptr": "*fp8e4nv:16", "a_scale_ptr": F32, "b_scale_ptr": F32}
    constants = {"BLOCK_M": rows, "BLOCK_N": columns, "BLOCK_K": depth, "GROUP_M": 8}
    return Kernel(kernels.matmul_nt_scaled, {"c_ptr": BF16, **operands, "m": "i32", "n": SIZE, "k": SIZE}, constants, warps, stages)


# Tiles of the frameworks' defaults and of their tuned tables; "up" is the first product of an expert, "down" the second one.
def _moe_tiles(name, scaled=False, **tiles):
    return {f"{name}_{way}_{tile[1:]}": _moe(*shape, way == "down", scaled) for tile, shape in tiles.items() for way in ("up", "down")}


def _liger_warps(block):
    return 32 if block >= 32768 else 16 if block >= 8192 else 8 if block >= 2048 else 4


def _by_width(name, function, parameters, widths):
    return {f"{name}_{w}": Kernel(function, parameters, {"BLOCK": w}, _liger_warps(w)) for w in widths}


TABLE = {
    "matmul_nt_256x128": _matmul(256, 128, 64, 8, 3),
    "matmul_nt_128x256": _matmul(128, 256, 64, 8, 3),
    "matmul_nt_128x128": _matmul(128, 128, 64, 4, 3),
    "matmul_nt_128x64": _matmul(128, 64, 64, 4, 4),
    "matmul_nt_64x64": _matmul(64, 64, 64, 4, 5),
    "matmul_nt_split_64x128": _split(64, 128, 64, 4, 4),
    "matmul_nt_split_16x64": _split(16, 64, 128, 4, 4),
    "sum_splits": Kernel(kernels.sum_splits, {"c_ptr": BF16, "partial_ptr": F32, "count": SIZE, "splits": "i32"}, {"BLOCK": 1024}, 4),
    **_by_width("rms_norm", kernels.rms_norm,
                {"y_ptr": BF16, "x_ptr": BF16, "weight_ptr": BF16, "rstd_ptr": F32, "columns": SIZE, "epsilon": "fp32"},
                (1024, 2048, 4096, 8192, 16384, 32768)),
    **_by_width("layer_norm", kernels.layer_norm,
                {"y_ptr": F32, "x_ptr": F32, "weight_ptr": F32, "bias_ptr": F32, "mean_ptr": F32, "rstd_ptr": F32, "columns": SIZE,
                 "epsilon": "fp32"}, (1024, 2048, 4096, 8192, 16384)),
}


# Many, and slow to compile: only with --all or by name.
EXPERTS = {
    **_moe_tiles("moe", t16x64=(16, 64, 128, 4, 4, 1), t64x64=(64, 64, 32, 4, 3, 8), t64x128=(64, 128, 64, 4, 3, 1),
                 t128x128=(128, 128, 64, 8, 3, 16)),
}
EXPERTS_90 = {
    **_moe_tiles("moe_fp8", True, t16x128=(16, 128, 128, 4, 3, 1), t64x128=(64, 128, 128, 4, 3, 32), t128x128=(128, 128, 128, 8, 3, 32)),
    **_moe_tiles("moe", t128x256=(128, 256, 64, 8, 4, 16)),
}
# What only Ada's tensor cores can do.
TABLE_89 = {
    "matmul_fp8_128x128": _scaled(128, 128, 64, 4, 3),
    "matmul_fp8_64x128": _scaled(64, 128, 128, 4, 3),
    "matmul_fp8_64x64": _scaled(64, 64, 128, 4, 4),
    "matmul_fp8_16x64": _scaled(16, 64, 256, 4, 4),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", type=int, choices=(80, 89, 90), required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--only", nargs="*", default=None)
    parser.add_argument("--all", action="store_true", help="also the tiles of mixtures of experts")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    known = TABLE | EXPERTS | (EXPERTS_90 if options.arch == 90 else {})
    if options.arch == 89:
        known = TABLE_89
    for name in options.only or (known if options.all or options.arch == 89 else TABLE):
        compile_kernel(known[name], name, options.arch, Path(options.out))


if __name__ == "__main__":
    main()

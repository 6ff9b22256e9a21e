#!/usr/bin/env python3
"""Compiles heddle's Triton kernels ahead of time, without a GPU.

usage: compile.py --arch 80|90 --out DIR [--only NAME ...] [--list]      (--target sm_80, --kernel NAME: the same)

Writes DIR/NAME.cubin and DIR/NAME.json (kernels/builder/triton_kernel.py says what is in it). A launch must respect what it says
of the parameters.
"""

import argparse
import os
import sys
from pathlib import Path

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), str(Path(__file__).resolve().parents[1])]
import kernels  # noqa: E402
from builder import triton_kernel  # noqa: E402

# A parameter is (name, type); ":16" on a type declares divisibility by 16 (of the address, or of the number).
# name: (function, parameters, constants, warps, stages, architectures); on sm_90 tl.dot becomes wgmma
BF16 = "*bf16:16"
TABLE = {
    "softmax": (kernels.softmax, [("out_ptr", BF16), ("x_ptr", BF16), ("columns", "i32:16")],
                {"BLOCK": 4096}, 8, 1, (80, 90)),
    "layernorm": (kernels.layernorm,
                  [("out_ptr", BF16), ("x_ptr", BF16), ("weight_ptr", BF16), ("bias_ptr", BF16), ("columns", "i32:16"),
                   ("epsilon", "fp32")],
                  {"BLOCK": 2048}, 8, 2, (80, 90)),
    "matmul": (kernels.matmul,
               [("c_ptr", BF16), ("a_ptr", BF16), ("b_ptr", BF16), ("m", "i32:16"), ("n", "i32:16"), ("k", "i32:16")],
               {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32, "GROUP_M": 8}, 4, 4, (80, 90)),
    "matmul_block_scaled": (kernels.matmul_block_scaled,
                            [("c_ptr", BF16), ("a_ptr", BF16), ("b_ptr", "*fp8e4nv:16"), ("scale_ptr", "*u8:16"), ("m", "i32:16"),
                             ("n", "i32:16"), ("k", "i32:16")],
                            {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64}, 4, 3, (90,)),
    "matmul_tma": (kernels.matmul_tma,
                   [("c", "tensordesc<bf16[128,128]>"), ("a", "tensordesc<bf16[128,64]>"),
                    ("b", "tensordesc<bf16[64,128]>"), ("m", "i32:16"), ("n", "i32:16"), ("k", "i32:16")],
                   {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}, 4, 3, (90,)),
    "matmul_persistent": (kernels.matmul_persistent,
                          [("c", "tensordesc<bf16[64,128]>"), ("a", "tensordesc<bf16[64,64]>"),
                           ("b", "tensordesc<bf16[64,128]>"), ("m", "i32:16"), ("n", "i32:16"), ("k", "i32:16")],
                          {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64}, 4, 3, (90,)),
    "flash_attention_tma": (kernels.flash_attention_tma,
                            [("out", "tensordesc<bf16[128,128]>"), ("q", "tensordesc<bf16[128,128]>"),
                             ("k", "tensordesc<bf16[64,128]>"), ("v", "tensordesc<bf16[64,128]>"), ("scale", "fp32"),
                             ("length", "i32:16")],
                            {"HEAD_DIM": 128, "BLOCK_M": 128, "BLOCK_N": 64}, 8, 2, (90,)),
    "flash_attention": (kernels.flash_attention,
                        [("out_ptr", BF16), ("q_ptr", BF16), ("k_ptr", BF16), ("v_ptr", BF16), ("scale", "fp32"),
                         ("length", "i32:16")],
                        {"HEAD_DIM": 128, "BLOCK_M": 128, "BLOCK_N": 64, "CAUSAL": False}, 8, 3, (80, 90)),
    "flash_attention_causal": (kernels.flash_attention,
                               [("out_ptr", BF16), ("q_ptr", BF16), ("k_ptr", BF16), ("v_ptr", BF16), ("scale", "fp32"),
                                ("length", "i32:16")],
                               {"HEAD_DIM": 128, "BLOCK_M": 128, "BLOCK_N": 64, "CAUSAL": True}, 8, 3, (80, 90)),
    "fused_moe": (kernels.fused_moe,
                  [("c_ptr", BF16), ("a_ptr", BF16), ("b_ptr", BF16), ("weights_ptr", "*fp32:16"),
                   ("sorted_slots_ptr", "*i32:16"), ("expert_ids_ptr", "*i32:16"), ("padded_slots_ptr", "*i32:16"),
                   ("slots", "i32"), ("n", "i32:16"), ("k", "i32:16")],
                  {"TOP_K": 2, "BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 64}, 4, 3, (80, 90)),
    "paged_decode": (kernels.paged_decode,
                     [("partial_ptr", "*fp32:16"), ("lse_ptr", "*fp32:16"), ("q_ptr", BF16), ("k_cache_ptr", BF16),
                      ("v_cache_ptr", BF16), ("block_table_ptr", "*i32:16"), ("lengths_ptr", "*i32:16"), ("scale", "fp32"),
                      ("table_stride", "i32"), ("kv_heads", "i32")],
                     {"GROUP": 4, "HEAD_DIM": 128, "PAGE": 16, "BLOCK_N": 32, "SPLITS": 4}, 4, 2, (80, 90)),
    "paged_decode_merge": (kernels.paged_decode_merge, [("out_ptr", BF16), ("partial_ptr", "*fp32:16"), ("lse_ptr", "*fp32:16")],
                           {"HEAD_DIM": 128, "SPLITS": 4}, 4, 1, (80, 90)),
}


def compile_kernel(name, arch, out):
    function, parameters, constants, warps, stages, _ = TABLE[name]
    triton_kernel.compile_kernel(triton_kernel.Kernel(function, dict(parameters), constants, warps, stages), name, arch, Path(out))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", type=int, choices=(80, 90))
    parser.add_argument("--target", choices=("sm_80", "sm_90"), help="the same in the other way of writing")
    parser.add_argument("--out", required=True)
    parser.add_argument("--only", "--kernel", nargs="*", default=None, help="names from the table; all of the architecture by default")
    parser.add_argument("--list", action="store_true", help="print the names for the architecture and stop")
    arguments = parser.parse_args()
    if (arguments.arch is None) == (arguments.target is None):
        parser.error("give --arch or --target")
    arguments.arch = arguments.arch or int(arguments.target.removeprefix("sm_"))
    names = [n for n, row in TABLE.items() if arguments.arch in row[5]]
    if arguments.list:
        print("\n".join(names))
        return
    for name in arguments.only or names:
        if name not in names:
            parser.error(f"no kernel '{name}' for sm_{arguments.arch}; there are: {', '.join(names)}")
    os.makedirs(arguments.out, exist_ok=True)
    for name in arguments.only or names:
        compile_kernel(name, arguments.arch, arguments.out)


if __name__ == "__main__":
    main()

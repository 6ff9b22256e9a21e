#!/usr/bin/env python3
"""Compiles heddle's Triton kernels ahead of time, without a GPU.

usage: compile.py --arch 80|90 --out DIR [--only NAME ...] [--list]      (--target sm_80, --kernel NAME: the same)

Writes DIR/NAME.cubin and DIR/NAME.json: the kernel's symbol, warps and shared memory under the keys of Triton's own metadata,
and its parameters in launch order with what the compiler assumed about them. A launch must respect those assumptions. Two more pointers (global and profile scratch)
follow the listed parameters; they may be null.
"""

import argparse
import json
import os
import sys

# No debug sections (they hold this machine's paths), and multiply-add fusion as in every Triton up to 3.9.
os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

import triton  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kernels  # noqa: E402

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
    signature = {p: t.split(":")[0] for p, t in parameters} | {c: "constexpr" for c in constants}
    attributes = {(i,): [["tt.divisibility", 16]] for i, (_, t) in enumerate(parameters) if t.endswith(":16")}
    source = ASTSource(fn=function, signature=signature, constexprs=constants, attrs=attributes)
    kernel = triton.compile(source, target=GPUTarget("cuda", arch, 32), options={"num_warps": warps, "num_stages": stages})
    with open(os.path.join(out, name + ".cubin"), "wb") as f:
        f.write(kernel.asm["cubin"])
    metadata = kernel.metadata
    description = {
        "name": metadata.name,
        "arch": arch,
        "num_warps": metadata.num_warps,
        "num_ctas": metadata.num_ctas,
        "shared": metadata.shared,
        "global_scratch_size": metadata.global_scratch_size,
        "constants": constants,
        "parameters": [{"name": p, "type": t.split(":")[0], "divisible_by": 16 if t.endswith(":16") else 1}
                       for p, t in parameters],
        # Box, swizzle and element type of each descriptor, in order of the parameters.
        "tensor_descriptors": [dict(d) for d in getattr(metadata, "tensordesc_meta", None) or []],
        "triton": triton.__version__,
    }
    with open(os.path.join(out, name + ".json"), "w") as f:
        json.dump(description, f, indent=2)
        f.write("\n")


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

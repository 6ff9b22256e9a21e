#!/usr/bin/env python3
"""Describes ATen's memory-efficient attention backward: its cubin from the wheel, its inputs and gradients from NumPy.

usage: backward.py --kernel efficient_attention_backward --target sm_80|sm_90 --out DIR

The kernel takes what the forward pass leaves (output, log-sum-exp) and rowsum(output * gradient), which ATen computes with other
kernels in between. Here all of them come from double precision, as do the gradients that the kernel is compared with.
"""

import argparse
from pathlib import Path

import numpy as np

from builder import catalogue, packages

HEAD_DIM = 128
_LIBRARY = "torch/lib/libtorch_cuda.so"
_KERNEL = ("_Z44fmha_cutlassB_bf16_aligned_128x128_k128_sm80N22PyTorchMemEffAttention23AttentionBackwardKernelIN7cutlass4arch4Sm80ENS1_"
           "10bfloat16_tELb1ELb0ELb1ELi128ELi128ELi128ELb0EE6ParamsE")
_BLOCK = 128  # queries, and keys, that a step takes
_SHAPES = {"Llama-3.1-70B-TP8": {"length": 200, "heads": 8, "splits": 1}, "Llama-3.1-8B": {"length": 256, "heads": 32, "splits": 2}}


def bfloat16(values: np.ndarray) -> np.ndarray:
    """Rounded to the nearest bf16, ties to even; as the upper halves of floats."""
    bits = np.asarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def widened(halves: np.ndarray) -> np.ndarray:
    return (halves.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def inputs_and_gradients(length: int, heads: int) -> dict[str, np.ndarray]:
    """Of causal attention, [length, heads, dim] each but for the sums of rows, which are [heads, length]."""
    random = np.random.default_rng(1)
    halves = {name: bfloat16(random.standard_normal((length, heads, HEAD_DIM))) for name in ("q", "k", "v", "grad_out")}
    q, k, v, grad_out = (widened(h).transpose(1, 0, 2) for h in halves.values())
    scale = HEAD_DIM**-0.5
    scores = np.where(np.tri(length, dtype=bool), q @ k.transpose(0, 2, 1) * scale, -np.inf)
    largest = scores.max(-1, keepdims=True)
    sums = np.exp(scores - largest).sum(-1, keepdims=True)
    p = np.exp(scores - largest) / sums
    out = bfloat16(p @ v)
    delta = (widened(out) * grad_out).sum(-1)
    grad_scores = p * (grad_out @ v.transpose(0, 2, 1) - delta[..., None])
    by_row = lambda x: x.transpose(1, 0, 2)
    return halves | {"out": by_row(out), "lse": (largest + np.log(sums))[..., 0], "delta": delta,
                     "grad_q": by_row(grad_scores @ k) * scale, "grad_k": by_row(grad_scores.transpose(0, 2, 1) @ q) * scale,
                     "grad_v": by_row(p.transpose(0, 2, 1) @ grad_out)}


def describe(target: str, cubin: Path, folder: Path, length: int, heads: int, splits: int) -> str:
    """The description; its files go to the folder."""
    row, rows = heads * HEAD_DIM, -(-length // 32) * 32
    text = ('doc: "ATen\'s memory-efficient attention backward (CUTLASS), bf16, head dimension 128, causal, 128 x 128 a step; partial '
            f'sums of the queries\' gradients go through memory under locks."\ntarget: "{target}"\nmodule {{ cubin: "{cubin}" }}\n')
    data = inputs_and_gradients(length, heads)
    for name, values in data.items():
        path = folder / f"{name}.bin"
        if name in ("lse", "delta"):
            values = np.pad(values, ((0, 0), (0, rows - length)))  # rows for whole blocks of 32 queries
        (values if values.dtype == np.uint16 else values.astype(np.float32)).tofile(path)
        kind, content = "bf16" if values.dtype == np.uint16 else "f32", f'file {{ path: "{path}" }}'
        if name in ("grad_q", "grad_k", "grad_v"):
            kind, content = "bf16", "zeros {}"
        shape = [values.size] if name == "grad_q" else values.shape  # as one row: the first query's gradient is 0, so has no scale
        text += (f'buffer {{ name: "{name}" type: {kind} shape: [{", ".join(f"{chr(34)}{d}{chr(34)}" for d in shape)}] '
                 f"content {{ {content} }} }}\n")
    # a lock, a counter and a tile of floats for each block of queries
    workspace = heads * -(-length // _BLOCK) * (16 + 4 * _BLOCK * HEAD_DIM)
    text += f'buffer {{ name: "workspace" type: u8 shape: ["{workspace}"] content {{ zeros {{}} }} }}\n'
    fields = [("query_ptr", 0, "q"), ("key_ptr", 8, "k"), ("value_ptr", 16, "v"), ("logsumexp_ptr", 32, "lse"), ("output_ptr", 40, "out"),
              ("grad_output_ptr", 48, "grad_out"), ("delta_ptr", 56, "delta"), ("grad_query_ptr", 80, "grad_q"),
              ("grad_key_ptr", 88, "grad_k"), ("grad_value_ptr", 96, "grad_v"), ("workspace", 112, "workspace")]
    numbers = [("head_dim", 144, HEAD_DIM, "i32"), ("head_dim_value", 148, HEAD_DIM, "i32"), ("num_queries", 152, length, "i32"),
               ("num_keys", 156, length, "i32"), ("num_heads", 160, heads, "i32"), ("q_heads_per_kv", 164, 1, "i32"),
               ("custom_mask_type", 168, 1, "u8"), ("gQKV_strideM_multiplier", 224, 1, "i8"),
               ("num_batches", 384, 1, "i32")]  # what is added to the block's batch and head, at 388 and 392, is 0
    numbers += [(n, at, row, "i64") for n, at in (("q_strideM", 176), ("k_strideM", 184), ("v_strideM", 192), ("gO_strideM", 208))]
    numbers += [(n, at, HEAD_DIM, "i32") for n, at in (("q_strideH", 288), ("k_strideH", 292), ("v_strideH", 296))]
    numbers += [(n, at, rows, "i64") for n, at in (("lse_strideH", 360), ("delta_strideH", 376))]
    numbers += [(n, at, HEAD_DIM, "i64") for n, at in (("o_strideH", 280), ("gO_strideH", 440), ("gQ_strideH", 448), ("gK_strideH", 456),
                                                      ("gV_strideH", 464))]
    text += (f'launch {{\n  grid: ["{splits}", "{heads}", "1"]\n  block: ["512"]\n  dynamic_shared_bytes: "163840"\n'
             '  parameter { name: "params" struct {\n')
    text += "".join(f'    field {{ name: "{n}" at: "{at}" buffer: "{b}" }}\n' for n, at, b in fields)
    text += f'    field {{ name: "scale" at: "140" real: "{HEAD_DIM ** -0.5!r}" type: f32 }}\n'
    text += "".join(f'    field {{ name: "{n}" at: "{at}" int: "{v}" type: {t} }}\n' for n, at, v, t in numbers)
    text += "  } }\n}\ncheck {\n"
    # a query's gradient is a sum of terms that were rounded to bf16 and largely cancel where it sees few keys
    for name, absolute in (("grad_q", 0.06), ("grad_k", 0.02), ("grad_v", 0.02)):
        text += f'  compare {{ buffer: "{name}" file: "{folder / f"{name}.bin"}" file_type: f32 absolute: {absolute} relative: 0.01 }}\n'
    return text + "}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", required=True)
    parser.add_argument("--target", choices=("sm_80", "sm_90"), required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    framework, out = catalogue.read("pytorch"), Path(options.out).resolve()
    wheel = packages.wheel(framework.wheel_file, framework.wheel_sha256)
    cubin = out / f"{options.kernel}.cubin"
    cubin.write_bytes(packages.Library(packages.member(wheel, _LIBRARY)).kernel(options.target, _KERNEL))
    for name, shape in _SHAPES.items():
        folder = out / f"{options.kernel}.{name}"
        folder.mkdir(parents=True, exist_ok=True)
        (out / f"{options.kernel}.{name}.launch.textproto").write_text(
            "# proto-file: frontend/trace/launch.proto\n# proto-message: heddle.trace.pb.LaunchDescription\n" +
            describe(options.target, cubin, folder, **shape))


if __name__ == "__main__":
    packages.run(main)

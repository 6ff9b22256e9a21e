"""DeepGEMM's Hopper kernels: gemm.cu instantiates them with the headers of its wheel and makes their launches. Called by
builder/cubins.py: writes, for each shape of kernels.toml, NAME.SHAPE.launch.textproto and its cubins."""

from pathlib import Path

from builder import nvcc, recording
from builder.recorder import Recorder


def bf16_gemm(recorder: Recorder, m: int, n: int, k: int) -> tuple[str, str]:
    a = recorder.tensor("a", "bf16", [m, k], "normal { seed: 1 }")
    b = recorder.tensor("b", "bf16", [n, k], "normal { seed: 2 }")
    d = recorder.tensor("d", "bf16", [m, n], "zeros {}")
    recorder.run(f"bf16_gemm_{n}_{k}", a, b, d, m)
    return "DeepGEMM's bf16 GEMM: TMA, wgmma and two consumer warpgroups.", """
  op { out: "y" matmul { a: "a" b: "b" transpose_b: true } }
  compare { buffer: "d" reference: "y" absolute: 0.001 relative: 0.008 }"""


def fp8_gemm(recorder: Recorder, m: int, n: int, k: int) -> tuple[str, str]:
    a, b, sfa, sfb, d = _fp8_tensors(recorder, m, n, k, 1)
    recorder.run(f"fp8_gemm_{n}_{k}", a, sfa, b, sfb, d, m)
    return "DeepGEMM's fp8 GEMM, scales of A by 1 x 128 and of B by 128 x 128, promoted to fp32 every 128 of K.", _fp8_scaled(m, n, k, 1) + """
  op { out: "y" matmul { a: "a_real" b: "b_real" transpose_b: true } }
  compare { buffer: "d" reference: "y" absolute: 0.004 relative: 0.008 }"""


def fp8_m_grouped(recorder: Recorder, groups: int, rows: int, n: int, k: int) -> tuple[str, str]:
    """Each expert has `rows` rows, a multiple of 128 as the contiguous layout wants."""
    m = groups * rows
    a, b, sfa, sfb, d = _fp8_tensors(recorder, m, n, k, groups)
    layout = recorder.tensor("layout", "i32", [m], f'iota {{ start: "0" repeat: "{rows}" }}')
    recorder.run(f"fp8_contiguous_{groups}_{n}_{k}", a, sfa, b, sfb, d, layout, m)
    return "DeepGEMM's fp8 GEMM of experts whose rows lie one after the other.", _fp8_scaled(m, n, k, groups) + f"""
  op {{ out: "b_by_group" view {{ x: "b_real" shape: ["{groups}", "{n}", "{k}"] }} }}
  op {{ out: "y" grouped_matmul {{ x: "a_real" weight: "b_by_group" expert: "layout" transpose_b: true }} }}
  compare {{ buffer: "d" reference: "y" absolute: 0.004 relative: 0.008 }}"""


def _fp8_tensors(recorder: Recorder, m: int, n: int, k: int, groups: int) -> tuple:
    scale = 'uniform {{ low: "0.5" high: "2" seed: {} }}'
    return (recorder.tensor("a", "e4m3", [m, k], "normal { seed: 1 }"), recorder.tensor("b", "e4m3", [groups * n, k], "normal { seed: 2 }"),
            recorder.tensor("a_scale", "f32", [k // 128, -(-m // 4) * 4], scale.format(3)),
            recorder.tensor("b_scale", "f32", [groups, -(-n // 128), k // 128], scale.format(4)), recorder.tensor("d", "bf16", [m, n], "zeros {}"))


def _fp8_scaled(m: int, n: int, k: int, groups: int) -> str:
    """a_real and b_real: the matrices times their scales, which are repeated by views of stride 0 and by gathers."""
    blocks, scales, padded = -(-n // 128), k // 128, -(-m // 4) * 4
    return f"""
  op {{ out: "a_blocks" view {{ x: "a" shape: ["{m}", "{scales}", "128"] }} }}
  op {{ out: "a_factors" view {{ x: "a_scale" shape: ["{m}", "{scales}", "1"] stride: ["1", "{padded}", "1"] }} }}
  op {{ out: "a_scaled" binary {{ a: "a_blocks" b: "a_factors" function: multiply }} }}
  op {{ out: "a_real" view {{ x: "a_scaled" shape: ["{m}", "{k}"] }} }}
  op {{ out: "b_wide" view {{ x: "b_scale" shape: ["{groups}", "{blocks}", "128", "{scales}"] stride: ["{blocks * scales}", "{scales}", "0", "1"] }} }}
  op {{ out: "b_factors" view {{ x: "b_wide" shape: ["{groups}", "{n}", "{scales}", "1"] stride: ["{blocks * 128 * scales}", "{scales}", "1", "1"] }} }}
  op {{ out: "b_blocks" view {{ x: "b" shape: ["{groups}", "{n}", "{scales}", "128"] }} }}
  op {{ out: "b_scaled" binary {{ a: "b_blocks" b: "b_factors" function: multiply }} }}
  op {{ out: "b_real" view {{ x: "b_scaled" shape: ["{groups * n}", "{k}"] }} }}"""


def _library(framework, _kernel: str) -> Path:
    return nvcc.library(Path(__file__).with_name("gemm.cu"), [nvcc.headers(framework, "deep_gemm/include")])


if __name__ == "__main__":
    recording.main("deepgemm", _library, {k.__name__: k for k in (bf16_gemm, fp8_gemm, fp8_m_grouped)})

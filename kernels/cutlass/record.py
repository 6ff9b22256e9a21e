"""CUTLASS's warp-specialised GEMMs for Hopper: gemm.cu instantiates them with the headers of its wheel, its device adapter launches
them. Called by builder/cubins.py: writes, for each shape of kernels.toml, NAME.SHAPE.launch.textproto and its cubins."""

from functools import partial
from pathlib import Path

from builder import nvcc, recording
from builder.recorder import Recorder

_DOCS = {"cooperative_bf16": "CUTLASS warp-specialised cooperative GEMM, persistent, tiles of 128 x 256, clusters of 2 with multicast.",
         "pingpong_bf16": "CUTLASS warp-specialised pingpong GEMM, persistent, tiles of 64 x 128, clusters of 2 with multicast.",
         "pingpong_fp8": "CUTLASS warp-specialised pingpong GEMM of e4m3, persistent, tiles of 64 x 128 x 128."}
_CHECK = """
  op { out: "y" matmul { a: "a" b: "b" transpose_b: true } }
  compare { buffer: "d" reference: "y" absolute: 0.002 relative: 0.008 }"""


def _gemm(function: str, recorder: Recorder, m: int, n: int, k: int) -> tuple[str, str]:
    element = "e4m3" if function.endswith("fp8") else "bf16"
    a = recorder.tensor("a", element, [m, k], "normal { seed: 1 }")
    b = recorder.tensor("b", element, [n, k], "normal { seed: 2 }")
    d = recorder.tensor("d", "bf16", [m, n], "zeros {}")
    recorder.run(function, a, b, d, m, n, k)
    return _DOCS[function], _CHECK


def _library(framework, _kernel: str) -> Path:
    headers = nvcc.headers(framework, "cutlass_library/source")
    return nvcc.library(Path(__file__).with_name("gemm.cu"), [headers / "include", headers / "tools/util/include"], ["-DNDEBUG"])


if __name__ == "__main__":
    recording.main("cutlass", _library, {name: partial(_gemm, name) for name in _DOCS})

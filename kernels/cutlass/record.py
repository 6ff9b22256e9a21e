"""CUTLASS's warp-specialised GEMMs for Hopper: gemm.cu instantiates them with the headers of its wheel, its device adapter launches
them. Called by builder/cubins.py: writes, for each shape of kernels.toml, NAME.SHAPE.launch.textproto and its cubins."""

import argparse
import sys
from pathlib import Path

from builder import catalogue, nvcc
from builder.recorder import Recorder

_DOCS = {"cooperative_bf16": "CUTLASS warp-specialised cooperative GEMM, persistent, tiles of 128 x 256, clusters of 2 with multicast.",
         "pingpong_bf16": "CUTLASS warp-specialised pingpong GEMM, persistent, tiles of 64 x 128, clusters of 2 with multicast.",
         "pingpong_fp8": "CUTLASS warp-specialised pingpong GEMM of e4m3, persistent, tiles of 64 x 128 x 128."}
_CHECK = """
  op { out: "y" matmul { a: "a" b: "b" transpose_b: true } }
  compare { buffer: "d" reference: "y" absolute: 0.002 relative: 0.008 }"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernel", required=True, nargs="+")
    parser.add_argument("--target", required=True)
    parser.add_argument("--out", required=True, type=Path)
    arguments = parser.parse_args()
    framework = catalogue.read("cutlass")
    headers = nvcc.headers(framework, "cutlass_library/source")
    library = nvcc.library(Path(__file__).with_name("gemm.cu"), [headers / "include", headers / "tools/util/include"])
    for kernel in (k for k in framework.kernels if k.name in arguments.kernel):
        element = "e4m3" if kernel.name.endswith("fp8") else "bf16"
        for shape, s in kernel.shapes.items():
            recorder = Recorder(arguments.target)
            recorder.load(library)
            a = recorder.tensor("a", element, [s["m"], s["k"]], "normal { seed: 1 }")
            b = recorder.tensor("b", element, [s["n"], s["k"]], "normal { seed: 2 }")
            d = recorder.tensor("d", "bf16", [s["m"], s["n"]], "zeros {}")
            recorder.run(kernel.name, a, b, d, s["m"], s["n"], s["k"])
            recorder.write(arguments.out, kernel.name, shape, _DOCS[kernel.name], _CHECK)


if __name__ == "__main__":
    sys.exit(main())

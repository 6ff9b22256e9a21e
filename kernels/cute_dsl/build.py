#!/usr/bin/env python3
"""Compiles kernels in CuTe DSL ahead of time, without a GPU, and describes their launches.

usage: build.py --kernel NAME --target sm_80|sm_90|sm_90a --out DIR

Shapes are constants of the compiled code, so each has a cubin and a description of its own. Grid, block and shared memory are read
from the host code that the compiler made; the parameters are the tensors' addresses, and the numbers behind them.
"""

import argparse
import importlib
import os
import re
from pathlib import Path


def read_launch(module: str) -> tuple[list[int], list[int], int]:
    """Grid, block and dynamic shared memory, which the host code stores into a cudaLaunchConfig_t."""
    constants = {m[1]: int(m[2]) for m in re.finditer(r"(%\w+) = llvm\.mlir\.constant\((-?\d+) : i\d+\)", module)}
    fields = {m[1]: tuple(int(i) for i in m[2].split(",")) for m in re.finditer(
        r"(%\w+) = llvm\.getelementptr %\w+\[([\d, ]+)\] : \(!llvm\.ptr\) -> !llvm\.ptr, !llvm\.struct<", module)}
    found = {}
    for store in re.finditer(r"llvm\.store (%\w+), (%\w+) : i\d+, !llvm\.ptr", module):
        if store[2] in fields and store[1] in constants:
            found.setdefault(fields[store[2]], constants[store[1]])
    try:
        return [found[0, 0, i] for i in range(3)], [found[0, 1, i] for i in range(3)], found[0, 2]
    except KeyError as missing:
        raise SystemExit(f"cute_dsl: the host code stores no constant into field {missing} of its launch") from missing


def _quoted(numbers) -> str:
    return ", ".join(f'"{n}"' for n in numbers)


def describe(case, target: str, shape: dict, module: str, cubin: Path) -> str:
    """The description of one compiled kernel. In the case's texts {name} is a number of the shape."""
    grid, block, shared = read_launch(module)
    text = f'doc: "{case.doc}"\ntarget: "{target}"\nmodule {{ cubin: "{cubin}" }}\n'
    for name, tensor in case.tensors(**shape).items():
        text += f'buffer {{ name: "{name}" type: {tensor.type} shape: [{_quoted(tensor.shape)}] content {{ {tensor.content} }} }}\n'
    text += f'launch {{\n  grid: [{_quoted(grid)}]\n  block: [{_quoted(block)}]\n  dynamic_shared_bytes: "{shared}"\n'
    if case.cluster:
        text += f"  cluster: [{_quoted(case.cluster)}]\n"
    for parameter in case.parameters(**shape):
        text += f"  parameter {{ {parameter} }}\n"
    return text + "}\ncheck {\n" + case.check + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", required=True)
    parser.add_argument("--target", choices=("sm_80", "sm_90", "sm_90a"), required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    os.environ |= {"CUTE_DSL_ARCH": options.target, "CUTE_DSL_KEEP_CUBIN": "1", "CUTE_DSL_DUMP_DIR": options.out}
    import cutlass.cute as cute

    case = importlib.import_module("cases").CASES[options.kernel]
    out = Path(options.out).resolve()
    for name, shape in case.shapes.items():
        compiled = cute.compile(case.function, *case.arguments(**shape))
        cubin = out / f"{options.kernel}.{name}.cubin"
        cubin.write_bytes(compiled.__cubin__)
        (out / f"{options.kernel}.{name}.launch.textproto").write_text(
            "# proto-file: frontend/trace/launch.proto\n# proto-message: heddle.trace.pb.LaunchDescription\n" +
            describe(case, options.target, shape, str(compiled.ir_module), cubin))


if __name__ == "__main__":
    main()

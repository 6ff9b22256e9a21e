#!/usr/bin/env python3
"""Compiles JAX functions ahead of time with XLA:GPU, without a GPU, and describes their launches.

usage: build.py --kernel NAME --target sm_80|sm_90 --out DIR

XLA's own dump says everything: PTX by kernel (assembled here with ptxas), the thunks in their order with grid, block and shared
memory, the optimised HLO (which values a kernel reads and writes) and the assignment of values to buffers. One description holds
all launches of the function; its outputs are compared with JAX in double precision on the CPU.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

_GEMM = "block_m:64,block_n:64,block_k:32,split_k:1,num_stages:3,num_warps:4,num_ctas:1"
_FLAGS = ["--xla_gpu_cublas_fallback=false", "--xla_gpu_autotune_level=0", "--xla_gpu_triton_gemm_any=true",
          f"--xla_gpu_override_gemm_autotuner={_GEMM}", "--xla_gpu_enable_command_buffer="]
_TYPES = {"bfloat16": "bf16", "float32": "f32", "float16": "f16", "int32": "i32"}


def compile_function(function, arguments, target, dump):
    """Leaves XLA's dump of the function in the folder."""
    import jax
    from jax.experimental import topologies

    config = (Path(__file__).resolve().parent / f"{target}.txtpb").read_text()
    devices = topologies.get_topology_desc("", "cuda", target_config=config, topology="1x1x1").devices
    place = jax.sharding.SingleDeviceSharding(devices[0])
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=place) for a in arguments]
    jax.jit(function).lower(*shapes).compile()
    return max(dump.glob("*.thunk_sequence.txt")).name.removesuffix(".thunk_sequence.txt")


def read_thunks(text):
    """(kernel, grid, block, shared bytes) of every launch."""
    found = []
    for line in text.splitlines():
        kernel = re.search(r"kCustomKernel .*\] (\S+) grid: \[([\d, ]+)\] threads: \[([\d, ]+)\]\s+shared_memory: (\d+)", line)
        if not kernel:
            raise SystemExit(f"xla: a thunk that is no kernel: {line.strip()}")
        found.append((kernel[1], *[[int(x) for x in kernel[i].split(",")] for i in (2, 3)], int(kernel[4])))
    return found


def read_buffers(text):
    """Allocations {index: (bytes, kind, number of the parameter)}, and values {name: (allocation, offset, bytes)}."""
    allocations, values, current = {}, {}, None
    for line in text.splitlines():
        head = re.match(r"allocation (\d+): size (\d+), (.*)", line)
        value = re.match(r" value: <\d+ (\S+) @\d+> \(size=(\d+),offset=(\d+)\)", line)
        if head:
            current = int(head[1])
            parameter = re.search(r"parameter (\d+)", head[3])
            kind = "thread-local" if "thread-local" in head[3] else "constant" if "constant" in head[3] else "buffer"
            allocations[current] = (int(head[2]), kind, int(parameter[1]) if parameter else None)
        elif value and allocations[current][1] != "thread-local":
            values[value[1]] = (current, int(value[3]), int(value[2]))
        elif line.startswith("Total bytes"):
            break
    return allocations, values


class Module:
    """The entry computation of optimised HLO: which instruction has which operands."""

    def __init__(self, text):
        entry = text[text.index("\nENTRY ") :]
        self.operands, self.kinds, self.index, self.root = {}, {}, {}, None
        for line in entry.splitlines():
            match = re.match(r"\s+(ROOT )?%?([\w.\-]+) = (.+?) ([\w\-]+)\((.*?)\)(,|$)", line)
            if not match:
                continue
            name = match[2]
            self.kinds[name] = match[4]
            self.operands[name] = re.findall(r"%([\w.\-]+)", match[5])
            index = re.search(r"index=(\d+)", line)
            self.index[name] = int(index[1]) if index else None
            if match[1]:
                self.root = name

    def value(self, name, values):
        """Where the value is, through aliases."""
        if name in values:
            return values[name]
        if self.kinds[name] == "get-tuple-element":
            return values[f"{self.operands[name][0]}{{{self.index[name]}}}"]
        if self.kinds[name] == "bitcast":
            return self.value(self.operands[name][0], values)
        raise KeyError(name)

    def results(self, name, values):
        if name in values:
            return [values[name]]
        parts = sorted((int(m[1]), v) for n, v in values.items() if (m := re.fullmatch(re.escape(name) + r"\{(\d+)\}", n)))
        return [v for _, v in parts]


def describe(case, target, dump, prefix, folder, arguments, outputs):
    import numpy as np

    read = lambda suffix: next(dump.glob(f"{prefix}.{suffix}")).read_text()
    thunks = read_thunks(read("thunk_sequence.txt"))
    names = re.findall(r'profile_annotation: "([^"]+)"', read("thunk_metadata.txt"))
    allocations, values = read_buffers(read("sm_*_gpu_after_optimizations-buffer-assignment.txt"))
    module = Module(read("sm_*_gpu_after_optimizations.txt"))
    parameters = {}
    text = f'doc: "{case.doc}"\ntarget: "{target}"\n'
    for ptx in sorted(dump.glob(f"{prefix}.*.ptx")):
        for entry in re.finditer(r"\.entry (\w+)\((.*?)\n\)", ptx.read_text(), re.S):
            parameters[entry[1]] = entry[2].count(".param")
            cubin = folder / f"{entry[1]}.cubin"
            subprocess.run(["ptxas", "-arch=" + re.search(r"\.target (sm_\w+)", ptx.read_text())[1], "-o", str(cubin), str(ptx)], check=True)
            text += f'module {{ name: "{entry[1]}" cubin: "{cubin}" }}\n'
    outs = [module.value(n, values) for n in module.operands[module.root]] if module.kinds[module.root] == "tuple" else (
        module.results(module.root, values) or [module.value(module.root, values)])
    for index, (size, kind, parameter) in allocations.items():
        if kind == "thread-local":
            continue
        if kind == "constant":
            raise SystemExit("xla: constants in memory are not read yet")
        if parameter is not None:
            array = np.asarray(arguments[parameter])
            file = folder / f"argument{parameter}.bin"
            file.write_bytes(array.tobytes())
            text += (f'buffer {{ name: "b{index}" type: {_TYPES[array.dtype.name]} shape: ["{array.size}"] '
                     f'content {{ file {{ path: "{file}" }} }} }}\n')
        elif (output := next((i for i, o in enumerate(outs) if o[0] == index), None)) is not None and outs[output][2] == size:
            array = outputs[output]
            text += f'buffer {{ name: "b{index}" type: {_TYPES[array[1]]} shape: [{", ".join(f"{chr(34)}{d}{chr(34)}" for d in array[0].shape)}] content {{ zeros {{}} }} }}\n'
        else:
            text += f'buffer {{ name: "b{index}" type: u8 shape: ["{size}"] content {{ zeros {{}} }} }}\n'
    for name, (kernel, grid, block, shared) in zip(names, thunks, strict=True):
        slices = list(dict.fromkeys([module.value(o, values) for o in module.operands[name]] + module.results(name, values)))
        if len(slices) != parameters[kernel]:
            raise SystemExit(f"xla: {kernel} has {parameters[kernel]} parameters, its HLO {len(slices)} buffers")
        quote = lambda numbers: ", ".join(f'"{n}"' for n in numbers)
        text += f'launch {{\n  name: "{name}"\n  module: "{kernel}"\n  grid: [{quote(grid)}]\n  block: [{quote(block)}]\n'
        text += f'  dynamic_shared_bytes: "{shared}"\n'
        for allocation, offset, _ in slices:
            text += f'  parameter {{ buffer: "b{allocation}" offset: "{offset}" }}\n'
        text += "}\n"
    text += "check {\n"
    for i, (want, _) in enumerate(outputs):
        file = folder / f"output{i}.f64"
        file.write_bytes(np.asarray(want, dtype=np.float64).tobytes())
        text += (f'  compare {{ buffer: "b{outs[i][0]}" file: "{file}" file_type: f64 absolute: {case.absolute} '
                 f'relative: {case.relative} }}\n')
    return text + "}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", required=True)
    parser.add_argument("--target", choices=("sm_80", "sm_90"), required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["JAX_PLATFORMS"] = "cpu"
        os.environ["XLA_FLAGS"] = " ".join([*_FLAGS, f"--xla_dump_to={folder}"])
        import cases

        case = cases.CASES[options.kernel]
        for shape in case.shapes:
            function, arguments = case.make(shape)
            prefix = compile_function(function, arguments, options.target, Path(folder))
            outputs = case.reference(shape)
            data = Path(options.out).resolve() / f"{options.kernel}.{shape}"
            data.mkdir(parents=True, exist_ok=True)
            text = describe(case, options.target, Path(folder), prefix, data, arguments, outputs)
            (Path(options.out) / f"{options.kernel}.{shape}.launch.textproto").write_text(
                "# proto-file: frontend/trace/launch.proto\n# proto-message: heddle.trace.pb.LaunchDescription\n" + text)


if __name__ == "__main__":
    main()

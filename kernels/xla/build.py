#!/usr/bin/env python3
"""Compiles JAX functions ahead of time with XLA:GPU, without a GPU, and describes their launches.

usage: build.py --kernel NAME --target sm_80|sm_90 --out DIR

XLA's own dump says everything: PTX by kernel (assembled here with ptxas), the thunks in their order with grid, block and shared
memory, the optimised HLO (which values a kernel reads and writes) and the assignment of values to buffers. One description holds
all launches of the function; its outputs are compared with JAX in double precision on the CPU.
"""

import argparse
import importlib
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

_GEMM = "block_m:64,block_n:64,block_k:32,split_k:1,num_stages:3,num_warps:4,num_ctas:1"
_FLAGS = ["--xla_gpu_cublas_fallback=false", "--xla_gpu_autotune_level=0", "--xla_gpu_triton_gemm_any=true",
          f"--xla_gpu_override_gemm_autotuner={_GEMM}", "--xla_gpu_enable_command_buffer="]
_TYPES = {"bfloat16": "bf16", "float32": "f32", "float16": "f16", "int32": "i32", "uint8": "u8"}


def compile_function(function, arguments, target, dump):
    """Leaves XLA's dump of the function in the folder."""
    import jax
    from jax.experimental import topologies

    config = (Path(__file__).resolve().parent / f"{target.removesuffix('a')}.txtpb").read_text()
    devices = topologies.get_topology_desc("", "cuda", target_config=config, topology="1x1x1").devices
    place = jax.sharding.SingleDeviceSharding(devices[0])
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=place) for a in arguments]
    jax.jit(function).lower(*shapes).compile()
    return max(dump.glob("*.thunk_sequence.txt")).name.removesuffix(".thunk_sequence.txt")


@dataclass
class Launch:
    """As XLA makes it: the parameters are addresses of buffers, operands before results."""

    kernel: str
    grid: list[int]
    block: list[int]
    shared: int
    cluster: list[int] | None = None

    def text(self, buffers):
        return "".join(f"  parameter {{ {buffer} }}\n" for buffer in buffers)


def read_thunks(text, custom_calls):
    """Every launch. Where XLA calls code that launches a kernel of its own, it is the next of `custom_calls`."""
    found, custom_calls = [], iter(custom_calls)
    for line in text.splitlines():
        kernel = re.search(r"kCustomKernel .*\] (\S+) grid: \[([\d, ]+)\] threads: \[([\d, ]+)\]\s+shared_memory: (\d+)", line)
        if kernel:
            found.append(Launch(kernel[1], *[[int(x) for x in kernel[i].split(",")] for i in (2, 3)], int(kernel[4])))
            continue
        called = next(custom_calls, None) if " kCustomCall " in line else None
        if called is None:
            raise SystemExit(f"xla: a thunk that is no kernel: {line.strip()}")
        found.append(called)
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


def assemble(ptx, folder):
    """Writes the cubin of every entry of a PTX file; yields (entry, number of its parameters, path)."""
    text = ptx.read_text()
    for entry in re.finditer(r"\.entry (\w+)\((.*?)\n\)", text, re.S):
        cubin = folder / f"{entry[1]}.cubin"
        subprocess.run(["ptxas", "-arch=" + re.search(r"\.target (sm_\w+)", text)[1], "-o", str(cubin), str(ptx)], check=True)
        yield entry[1], entry[2].count(".param"), cubin


def _quoted(numbers):
    return ", ".join(f'"{n}"' for n in numbers)


def arguments_of(kernel, operands, results, count):
    """The buffers of a kernel's parameters. XLA passes a buffer that several values share once, or once for each: the number of
    parameters tells."""
    unique = list(dict.fromkeys(operands))
    found = {tuple(c) for c in (operands + results, unique + results, list(dict.fromkeys(unique + results))) if len(c) == count}
    if len(found) != 1:
        raise SystemExit(f"xla: {kernel} has {count} parameters, which its {len(operands)} operands and {len(results)} results "
                         f"do not explain")
    return list(*found)


def describe_buffers(allocations, outs, arguments, outputs, folder):
    """The buffers of a description: arguments from files, the others zeros; outputs with their type and shape."""
    import numpy as np

    text = ""
    for index, (size, kind, parameter) in allocations.items():
        if kind == "thread-local":
            continue
        if kind == "constant":
            raise SystemExit("xla: constants in memory are not read yet")
        output = next((i for i, o in enumerate(outs) if o[0] == index), None)
        if parameter is not None:
            array = np.asarray(arguments[parameter])
            file = folder / f"argument{parameter}.bin"
            file.write_bytes(array.tobytes())
            form, content = (array.dtype.name, [array.size]), f'file {{ path: "{file}" }}'
        elif output is not None and outs[output][2] == size:
            form, content = (outputs[output][1], outputs[output][0].shape or [1]), "zeros {}"
        else:
            form, content = ("uint8", [size]), "zeros {}"
        text += f'buffer {{ name: "b{index}" type: {_TYPES[form[0]]} shape: [{_quoted(form[1])}] content {{ {content} }} }}\n'
    return text


def describe(case, target, dump, prefix, folder, arguments, outputs, custom_calls=()):
    import numpy as np

    read = lambda suffix: next(dump.glob(f"{prefix}.{suffix}")).read_text()
    launches = read_thunks(read("thunk_sequence.txt"), custom_calls)
    names = re.findall(r'profile_annotation: "([^"]+)"', read("thunk_metadata.txt"))
    allocations, values = read_buffers(read("sm_*_gpu_after_optimizations-buffer-assignment.txt"))
    module = Module(read("sm_*_gpu_after_optimizations.txt"))
    parameters = {}
    text = f'doc: "{case.doc}"\ntarget: "{target}"\n'
    for ptx in [*sorted(dump.glob(f"{prefix}.*.ptx")), *(c.ptx for c in custom_calls)]:
        for entry, count, cubin in assemble(ptx, folder):
            parameters[entry] = count
            text += f'module {{ name: "{entry}" cubin: "{cubin}" }}\n'
    outs = [module.value(n, values) for n in module.operands[module.root]] if module.kinds[module.root] == "tuple" else (
        module.results(module.root, values) or [module.value(module.root, values)])
    text += describe_buffers(allocations, outs, arguments, outputs, folder)
    for name, launch in zip(names, launches, strict=True):
        operands, results = [module.value(o, values) for o in module.operands[name]], module.results(name, values)
        slices = operands + results
        if isinstance(launch, Launch):
            slices = arguments_of(launch.kernel, operands, results, parameters[launch.kernel])
        text += f'launch {{\n  name: "{name}"\n  module: "{launch.kernel}"\n  grid: [{_quoted(launch.grid)}]\n'
        text += f"  block: [{_quoted(launch.block)}]\n" + (f"  cluster: [{_quoted(launch.cluster)}]\n" if launch.cluster else "")
        text += f'  dynamic_shared_bytes: "{launch.shared}"\n'
        text += launch.text([f'buffer: "b{allocation}" offset: "{offset}"' for allocation, offset, _ in slices]) + "}\n"
    text += "check {\n"
    for i, (want, _) in enumerate(outputs):
        file = folder / f"output{i}.f32"  # double precision, rounded once: far below every tolerance, and half the bytes
        file.write_bytes(np.asarray(want, dtype=np.float32).tobytes())
        text += (f'  compare {{ buffer: "b{outs[i][0]}" file: "{file}" file_type: f32 absolute: {case.absolute} '
                 f'relative: {case.relative} }}\n')
    return text + "}\n"


def main(doc=__doc__, flags=_FLAGS, read_custom_calls=None):
    """Builds what the module `cases` beside the script that runs has. `read_custom_calls`: of a folder where Mosaic dumps."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", required=True)
    parser.add_argument("--target", choices=("sm_80", "sm_90", "sm_90a"), required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mosaic = Path(folder) / "mosaic"
        mosaic.mkdir()
        os.environ["JAX_PLATFORMS"] = "cpu"
        os.environ["MOSAIC_GPU_DUMP_TO"] = str(mosaic)
        os.environ["XLA_FLAGS"] = " ".join([*flags, f"--xla_dump_to={folder}"])
        case = importlib.import_module("cases").CASES[options.kernel]
        done = 0
        for shape in case.shapes:
            function, arguments = case.make(shape)
            prefix = compile_function(function, arguments, options.target, Path(folder))
            custom_calls = read_custom_calls(mosaic) if read_custom_calls else []
            outputs = case.reference(shape)
            data = Path(options.out).resolve() / f"{options.kernel}.{shape}"
            data.mkdir(parents=True, exist_ok=True)
            text = describe(case, options.target, Path(folder), prefix, data, arguments, outputs, custom_calls[done:])
            done = len(custom_calls)
            (Path(options.out) / f"{options.kernel}.{shape}.launch.textproto").write_text(
                "# proto-file: frontend/trace/launch.proto\n# proto-message: heddle.trace.pb.LaunchDescription\n" + text)


if __name__ == "__main__":
    main()

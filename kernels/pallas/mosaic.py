"""Launches of Mosaic GPU kernels, read from the host code that Mosaic generates.

Mosaic lowers a kernel to a module with a host function that encodes tensor maps, puts them into a scratch area, and launches. Its
dump (MOSAIC_GPU_DUMP_TO) has that function with every number as a constant, and the kernel's PTX. The function is evaluated here,
value by value, up to its calls of mosaic_gpu_init_tma_desc and its launch; what it does that is not known here is an error.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

# The number that mosaic_gpu_init_tma_desc takes as the element's type, in the words of launch.proto.
_ELEMENTS = {1: "u8", 2: "u16", 3: "u32", 4: "u64", 5: "f16", 6: "f32", 7: "bf16", 9: "s32", 10: "s64"}
_ELEMENT_BYTES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "f16": 2, "f32": 4, "bf16": 2, "s32": 4, "s64": 8}
_SWIZZLES = {16: "swizzle_none", 32: "swizzle_32b", 64: "swizzle_64b", 128: "swizzle_128b"}
_TENSOR_MAP_BYTES = 128


@dataclass
class Address:
    """So many bytes into an array of the kernel call, or into memory that the host function allocates."""

    base: str
    offset: int = 0


@dataclass
class TensorMap:
    array: int  # argument or result of the kernel call, counted together
    element: str
    size: list[int]  # slowest first, as Mosaic has them
    stride: list[int]  # elements
    box: list[int]
    swizzle: str

    def text(self, buffer: str) -> str:
        """The value of a parameter in a launch description, where dimensions stand fastest first."""
        numbers = lambda values: ", ".join(f'"{v}"' for v in reversed(values))
        bytes_of = [s * _ELEMENT_BYTES[self.element] for s in self.stride[:-1]]
        return (f'tensor_map {{ {buffer} element: "{self.element}" size: [{numbers(self.size)}] stride: [{numbers(bytes_of)}] '
                f'box: [{numbers(self.box)}] swizzle: {self.swizzle} }}')


@dataclass
class Launch:
    kernel: str = ""
    ptx: Path = Path()
    grid: list[int] = field(default_factory=list)
    block: list[int] = field(default_factory=list)
    cluster: list[int] = field(default_factory=list)
    shared: int = 0
    parameters: list = field(default_factory=list)  # of each: {offset: tensor map}, or the array that it points to

    def text(self, buffers: list[str]) -> str:
        """The parameters, where `buffers` names the arrays of the kernel call as a description does."""
        out = ""
        for parameter in self.parameters:
            if isinstance(parameter, int):
                out += f"  parameter {{ {buffers[parameter]} }}\n"
                continue
            maps = [f'    field {{ at: "{at}" {m.text(buffers[m.array])} }}\n' for at, m in sorted(parameter.items())]
            out += "  parameter { struct {\n" + "".join(maps) + "  } }\n"
        return out


def read(folder: Path) -> list[Launch]:
    """The kernels in Mosaic's dump, in the order in which they were compiled."""
    logs = sorted(folder.glob("*.mlir-passes.log"), key=lambda p: int(re.search(r"_(\d+)\.", p.name)[1]))
    return [_launch(log.read_text(), log.with_name(log.name.replace(".mlir-passes.log", ".ptx"))) for log in logs]


def _launch(log: str, ptx: Path) -> Launch:
    dumps = [d for d in log.split("// -----// IR Dump Before ") if "gpu.launch_func" in d and "gpu.binary" in d]
    if not dumps:
        raise SystemExit(f"mosaic: {ptx.name}: no host function in the dump")
    launch = evaluate(dumps[-1])
    launch.ptx = ptx
    return launch


class _Values(dict):
    """What is known of the host function's values, by name."""

    def __missing__(self, name):
        raise SystemExit(f"mosaic: the host function needs {name}, which is not understood")


def evaluate(text: str) -> Launch:
    """Runs the host function of a module."""
    values: dict[str, int | Address] = _Values({"%arg1": Address("arrays")})
    memory: dict[tuple[str, int], int] = {}
    maps: dict[str, dict[int, TensorMap]] = {}
    for line in text.splitlines():
        if constant := re.match(r"\s*(%\w+) = llvm\.mlir\.constant\((-?\d+) : ", line):
            values[constant[1]] = int(constant[2])
        elif define := re.match(r"\s*(%\w+) = (\S+) (.*)", line):
            value = _value(define[2], define[3], values, define[1])
            if value is not None:
                values[define[1]] = value
        elif store := re.match(r"\s*llvm\.store (%\w+), (%\w+) : i64", line):
            at = values[store[2]]
            memory[at.base, at.offset] = values[store[1]]
        elif call := re.match(r"\s*(?:func\.)?call @mosaic_gpu_init_tma_desc\((.*?)\)", line):
            host, base, element, rank, size, stride, swizzle, box = (values[name] for name in call[1].split(", "))
            array = lambda at: [memory[at.base, 8 * i] for i in range(rank)]
            if not base.base.startswith("array ") or base.offset:
                raise SystemExit("mosaic: a tensor map of what is no array of the call")
            maps.setdefault(host.base, {})[host.offset] = TensorMap(
                int(base.base.removeprefix("array ")), _ELEMENTS[element], array(size), array(stride), array(box), _SWIZZLES[swizzle])
        elif "gpu.launch_func" in line:
            return _launched(line, values, maps)
    raise SystemExit("mosaic: a host function without a launch")


def _launched(line: str, values: dict, maps: dict) -> Launch:
    def numbers(word):
        found = re.search(word + r" in \((%\w+), (%\w+), (%\w+)\)", line)
        return [values[name] for name in found.groups()] if found else []

    shared = re.search(r"dynamic_shared_memory_size (%\w+)", line)
    launch = Launch(kernel=re.search(r"@\w+::@(\w+)", line)[1], grid=numbers("blocks"), block=numbers("threads"),
                    cluster=numbers("clusters"), shared=values[shared[1]] if shared else 0)
    for name in re.findall(r"(%\w+) : ", re.search(r"args\((.*)\)", line)[1]):
        base = values[name].base
        launch.parameters.append(int(base.removeprefix("array ")) if base.startswith("array ") else maps.get(base, {}))
    return launch


def _value(operation: str, rest: str, values: dict, name: str) -> int | Address | None:
    """What an operation yields; None for what no tensor map and no launch may depend on."""
    if operation == "llvm.alloca":
        return Address(name)
    operands = re.findall(r"%\w+", rest.split(" : ")[0])
    known = values.get(operands[0]) if operands else None
    if operation == "llvm.getelementptr" and isinstance(known, Address):
        index = re.match(r"%\w+\[(\d+)\]", rest)
        if not index:
            return None
        width = 1 if re.search(r", i8\b", rest) else 8
        return Address(known.base, known.offset + width * int(index[1]))
    if operation == "llvm.load" and isinstance(known, Address):
        return Address(f"array {known.offset // 8}") if known.base == "arrays" else known
    if operation == "llvm.insertvalue":  # of a memref's descriptor only the pointer counts
        inserted, into = values.get(operands[0]), values.get(operands[1])
        return into if isinstance(into, Address) else inserted if isinstance(inserted, Address) else None
    if operation == "memref.reinterpret_cast" and "offset: [0]" not in rest:
        return None
    if operation in ("builtin.unrealized_conversion_cast", "memref.reinterpret_cast", "memref.transpose", "llvm.inttoptr",
                     "memref.extract_aligned_pointer_as_index", "llvm.extractvalue"):
        return known
    return None

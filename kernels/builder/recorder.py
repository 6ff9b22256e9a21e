"""Launches as a framework's own host code makes them, without a GPU.

A process loads `recorder/` (stand-ins for CUDA and for libtorch's C interface), then a framework's library, and calls its
operators with tensors that have addresses and no memory. What the library launches becomes a description: parameters byte by
byte, except that addresses name their buffer and tensor maps are given by their fields.

    recorder = Recorder("sm_90a")
    recorder.load(path)
    q = recorder.tensor("q", "bf16", [64, 128], "normal { seed: 1 }")
    recorder.call("_vllm_fa3_C::fwd", q, ...)
    recorder.write(folder, "fa3", doc, check)
"""

import ctypes
import os
import re
import shutil
import struct
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from . import catalogue, elf, packages

# The libraries that the stand-in is loaded for; the first one carries it, the others are empty and need it.
_STANDS_FOR = ("libcudart.so.13", "libcuda.so.1", "libtorch.so", "libtorch_cpu.so", "libtorch_cuda.so", "libc10.so", "libc10_cuda.so",
               "libnvrtc.so.13")
_VERSIONS = "libcudart.so.13 { global: cuda*; __cuda*; };\nheddle { global: cu[A-Z]*; aoti_*; torch_*; heddle_*; local: *; };\n"

# Name in descriptions: PyTorch's ScalarType, bytes.
_TYPES = {"u8": (0, 1), "i8": (1, 1), "i16": (2, 2), "i32": (3, 4), "i64": (4, 8), "f16": (5, 2), "f32": (6, 4), "f64": (7, 8),
          "boolean": (11, 1), "bf16": (15, 2), "e5m2": (23, 1), "e4m3": (24, 1), "u32": (28, 4)}

# sm: major, minor, SMs, shared bytes a block and an SM, registers, threads, L2: what arch_configs say of the machine that replays it.
_DEVICES = {"sm_80": (8, 0, 108, 166912, 167936, 65536, 2048, 40 << 20), "sm_90": (9, 0, 132, 232448, 233472, 65536, 2048, 50 << 20)}

# CUtensorMap's enumerations in the names of launch.proto, in CUDA's order.
_ELEMENTS = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz")
_INTERLEAVES = ("interleave_none", "interleave_16b", "interleave_32b")
_SWIZZLES = ("swizzle_none", "swizzle_32b", "swizzle_64b", "swizzle_128b")
_PROMOTIONS = ("promotion_none", "promotion_64b", "promotion_128b", "promotion_256b")
_FILLS = ("fill_zero", "fill_nan")
_MAP_MARK = b"HeddleTM"
_MAP_FIELDS = struct.Struct("<8sQ5Q4Q5H5B6B19x")


class _Launch(ctypes.Structure):
    _fields_ = [("kernel", ctypes.c_char_p), ("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3), ("cluster", ctypes.c_uint32 * 3),
                ("shared", ctypes.c_uint32), ("programmatic", ctypes.c_uint32), ("cooperative", ctypes.c_uint32),
                ("parameters", ctypes.POINTER(ctypes.c_void_p))]


class _Write(ctypes.Structure):
    _fields_ = [("destination", ctypes.c_uint64), ("source", ctypes.c_void_p), ("bytes", ctypes.c_uint64), ("value", ctypes.c_uint32)]


@dataclass
class Buffer:
    name: str
    type: str
    shape: list[int]
    content: str  # text of launch.proto's Content; of `data` it is the file that write() makes
    address: int
    bytes: int
    data: bytes | None = None


@dataclass
class Tensor:
    """A tensor as an operator takes it: in a buffer, perhaps strided."""
    address: int
    type: str
    shape: list[int]
    strides: list[int]

    def transposed(self) -> "Tensor":
        return Tensor(self.address, self.type, self.shape[:-2] + self.shape[:-3:-1], self.strides[:-2] + self.strides[:-3:-1])


@dataclass
class Launch:
    kernel: str
    grid: list[int]
    block: list[int]
    cluster: list[int]
    shared: int
    programmatic: bool
    cubin: bytes
    parameters: list[bytes] = field(default_factory=list)


def dense(shape: list[int]) -> list[int]:
    strides, stride = [], 1
    for size in reversed(shape):
        strides.insert(0, stride)
        stride *= size
    return strides


def _build() -> Path:
    """The stand-in, compiled once for each state of its sources. packages.Missing without a compiler or CUDA's headers."""
    out = catalogue.ROOT / "build" / "recorder"
    sources = sorted((catalogue.ROOT / "kernels" / "recorder").glob("*.cpp"))
    headers = next((p for p in (Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include",) if (p / "cuda.h").exists()), None)
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if headers is None or compiler is None:
        raise packages.Missing("the recorder needs a C++ compiler and the headers of CUDA 13 (CUDA_HOME)")
    first = out / _STANDS_FOR[0]
    newest = max(p.stat().st_mtime for p in sources[0].parent.iterdir())
    if first.exists() and first.stat().st_mtime > newest and (out / _STANDS_FOR[-1]).exists():
        return out
    out.mkdir(parents=True, exist_ok=True)
    (out / "versions").write_text(_VERSIONS)
    base = [compiler, "-std=c++20", "-O1", "-shared", "-fPIC", "-isystem", str(headers)]
    for name in reversed(_STANDS_FOR):
        what = [*map(str, sources), f"-Wl,--version-script={out / 'versions'}", "-ldl"] if name == _STANDS_FOR[0] else ["-x", "c++", "/dev/null"]
        subprocess.run([*base, f"-Wl,-soname,{name}", *what, "-o", str(out / name)], check=True)
    return out


class Recorder:
    def __init__(self, target: str):
        self.target = target
        self.buffers: list[Buffer] = []
        self.launches: list[Launch] = []
        self._libraries: list[packages.Library] = []
        folder = _build()
        self._c = [ctypes.CDLL(str(folder / name), mode=ctypes.RTLD_GLOBAL) for name in _STANDS_FOR][0]
        for name, result in (("heddle_allocate", ctypes.c_uint64), ("heddle_load", ctypes.c_char_p), ("heddle_tensor", ctypes.c_void_p),
                             ("heddle_schema", ctypes.c_char_p), ("heddle_call", ctypes.c_char_p), ("heddle_optional", ctypes.c_uint64)):
            getattr(self._c, name).restype = result
        self._callbacks = (ctypes.CFUNCTYPE(None, ctypes.POINTER(_Launch))(self._launched),
                           ctypes.CFUNCTYPE(None, ctypes.POINTER(_Write))(self._written),
                           ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64)(self._allocated))
        self._c.heddle_on_launch(self._callbacks[0])
        self._c.heddle_on_write(self._callbacks[1])
        self._c.heddle_on_allocation(self._callbacks[2])
        self._c.heddle_set_device((ctypes.c_int32 * 8)(*_DEVICES[target[:5]]))
        self._trouble: list[str] = []
        self._at_last_launch = 0  # buffers that a launch may have seen: contents are described as of the first one

    # ---- What the caller does.
    def load(self, path: Path) -> packages.Library:
        """A framework's library: its operators and its device code."""
        error = self._c.heddle_load(str(path).encode())
        if error:
            raise OSError(error.decode())
        library = packages.Library(path)
        self._libraries.append(library)
        self._loaded = ctypes.CDLL(str(path), mode=os.RTLD_LAZY)
        return library

    def tensor(self, name: str, type: str, shape: list[int], content: str) -> Tensor:
        """A buffer of its own, dense."""
        address = self._c.heddle_allocate(ctypes.c_uint64(_elements(shape) * _TYPES[type][1]))
        self.buffers[-1] = Buffer(name, type, shape, content, address, _elements(shape) * _TYPES[type][1])
        return Tensor(address, type, shape, dense(shape))

    def given(self, name: str, type: str, shape: list[int], data: bytes) -> Tensor:
        """A buffer whose contents no rule makes."""
        tensor = self.tensor(name, type, shape, "")
        self.buffers[-1].data = data
        return tensor

    def returned(self, value: int, type: str, shape: list[int]) -> Tensor:
        """The dense tensor that an operator returned as `value`."""
        self._c.heddle_address.restype = ctypes.c_uint64
        return Tensor(self._c.heddle_address(ctypes.c_void_p(value)), type, shape, dense(shape))

    def call(self, operator: str, *arguments) -> list:
        """An operator by its full name; arguments as its schema has them, None where an optional one is absent. Tensors that it
        returns become tensors, other results stay 64 bits."""
        schema = self._c.heddle_schema(operator.encode())
        if not schema:
            raise KeyError(f"no operator {operator}")
        taken, given = _schema(schema.decode())
        if len(taken) != len(arguments):
            raise TypeError(f"{len(arguments)} arguments for {schema.decode()}")
        values = [self._value(t, a) for t, a in zip(taken, arguments)]
        stack = (ctypes.c_uint64 * max(len(values), len(given), 1))(*values)
        error = self._c.heddle_call(operator.encode(), stack, ctypes.c_uint64(len(taken)), ctypes.c_uint64(len(given)))
        if error or self._trouble:
            raise RuntimeError(f"{operator}: {error.decode() if error else self._trouble[0]}")
        return list(stack[: len(given)])

    def run(self, function: str, *arguments) -> None:
        """An extern "C" function of a loaded library that returns 0: tensors are passed as addresses, integers as 32 bits."""
        values = [ctypes.c_uint64(a.address) if isinstance(a, Tensor) else ctypes.c_uint32(a) for a in arguments]
        result = getattr(self._loaded, function)(*values)
        if result or self._trouble:
            raise RuntimeError(f"{function}: {self._trouble[0] if self._trouble else f'returned {result}'}")

    def name_scratch(self, name: str, type: str, shape: list[int], index: int = 0) -> None:
        """Says what the index-th buffer is that host code allocated."""
        buffer = [b for b in self.buffers if b.name.startswith("scratch")][index]
        if _elements(shape) * _TYPES[type][1] != buffer.bytes:
            raise ValueError(f"{name} is {type} {shape}, and {buffer.bytes} bytes were allocated")
        buffer.name, buffer.type, buffer.shape = name, type, shape

    def name(self, name: str, type: str, shape: list[int], tensor: Tensor) -> None:
        """As name_scratch, of the buffer that a tensor lies in."""
        scratch = [b for b in self.buffers if b.name.startswith("scratch")]
        self.name_scratch(name, type, shape, next(i for i, b in enumerate(scratch) if b.address == tensor.address))

    def write(self, out: Path, name: str, shape: str, doc: str, check: str) -> None:
        """out/NAME.SHAPE.launch.textproto and its cubins."""
        modules: dict[str, str] = {}
        for launch in self.launches:
            if launch.kernel not in modules:
                modules[launch.kernel] = f"{name}.{shape}.{len(modules)}.cubin"
                (out / modules[launch.kernel]).write_bytes(launch.cubin)
        lines = ["# proto-file: frontend/trace/launch.proto", "# proto-message: heddle.trace.pb.LaunchDescription", f'doc: "{doc}"',
                 f'target: "{self.target}"']
        lines += [f'module {{ name: "m{i}" cubin: "{file}" }}' for i, file in enumerate(modules.values())]
        for b in self.buffers:
            if b.data is not None:
                b.content = f'file {{ path: "{name}.{shape}.{b.name}.bin" }}'
                (out / f"{name}.{shape}.{b.name}.bin").write_bytes(b.data)
            sizes = ", ".join(f'"{s}"' for s in b.shape)
            lines.append(f'buffer {{ name: "{b.name}" type: {b.type} shape: [{sizes}] alignment: "4096" content {{ {b.content} }} }}')
        for launch in self.launches:
            lines += self._launch_text(launch, list(modules).index(launch.kernel))
        lines.append(f"check {{{check}\n}}")
        (out / f"{name}.{shape}.launch.textproto").write_text("\n".join(lines) + "\n")

    # ---- What the stand-in tells. Exceptions cannot cross it: they wait for call().
    def _launched(self, record) -> None:
        try:
            r = record.contents
            kernel = r.kernel.decode()
            cubin = self._cubin(kernel)
            launch = Launch(kernel, list(r.grid), list(r.block), list(r.cluster), r.shared, bool(r.programmatic), cubin)
            for i, (_, size) in enumerate(elf.parameters(cubin, kernel)):
                launch.parameters.append(ctypes.string_at(r.parameters[i], size))
            self.launches.append(launch)
            self._at_last_launch = len(self.buffers)
        except Exception as e:
            self._trouble.append(f"{type(e).__name__}: {e}")

    def _written(self, record) -> None:
        w = record.contents
        buffer = self._at(w.destination)
        if buffer is None:
            return self._trouble.append(f"a write to {w.destination:#x}, where nothing is")
        if self.buffers.index(buffer) < self._at_last_launch:
            return self._trouble.append(f"{buffer.name} is written after a launch: not described")
        data = ctypes.string_at(w.source, w.bytes) if w.source else bytes([w.value]) * w.bytes
        if not any(data) and buffer.content in ("zeros {}", "unknown {}"):
            buffer.content = "zeros {}"
        elif w.destination == buffer.address and w.bytes % 4 == 0 and w.bytes == buffer.bytes:
            buffer.type, buffer.shape = "i32", [w.bytes // 4]
            values = ", ".join(f'"{v}"' for v in struct.unpack(f"<{w.bytes // 4}i", data))
            buffer.content = f"list {{ value: [{values}] }}"
        else:
            self._trouble.append(f"{buffer.name}: a part of it is written: not described")

    def _allocated(self, address: int, size: int) -> None:
        self.buffers.append(Buffer(f"scratch{len(self.buffers)}", "u8", [max(size, 1)], "unknown {}", address, size))

    # ---- Into text.
    def _cubin(self, kernel: str) -> bytes:
        for library in self._libraries:
            for target in (self.target, self.target.rstrip("a")):
                try:
                    return library.kernel(target, kernel)
                except KeyError:
                    pass
        raise KeyError(f"no device code of {kernel} for {self.target}")

    def _at(self, address: int) -> Buffer | None:
        return next((b for b in self.buffers if b.address <= address < b.address + max(b.bytes, 1)), None)

    def _launch_text(self, launch: Launch, module: int) -> list[str]:
        dims = lambda numbers: ", ".join(f'"{n}"' for n in numbers)
        lines = ["launch {", f'  module: "m{module}"', f"  grid: [{dims(launch.grid)}]", f"  block: [{dims(launch.block)}]",
                 f"  cluster: [{dims(launch.cluster)}]", f'  dynamic_shared_bytes: "{launch.shared}"', "  frozen_grid: true"]
        if launch.programmatic:
            lines.append("  programmatic: true")
        for data in launch.parameters:
            lines += ["  parameter {"] + ["    " + line for line in self._parameter_text(data)] + ["  }"]
        return lines + ["}"]

    def _parameter_text(self, data: bytes) -> list[str]:
        if len(data) == 8 and (pointer := self._pointer_text(data)):
            return [pointer]
        fields, raw, at = [], bytearray(data), 0
        while (at := data.find(_MAP_MARK, at)) >= 0:
            fields.append(f'field {{ at: "{at}" {self._map_text(data[at : at + 128])} }}')
            raw[at : at + 128] = bytes(128)
            at += 128
        for word in range(0, len(data) - 7, 8):
            if text := self._pointer_text(bytes(raw[word : word + 8])):
                fields.append(f'field {{ at: "{word}" {text} }}')
                raw[word : word + 8] = bytes(8)
        if not fields:
            return [f'raw: "{_escape(data)}"']
        # What is left, in runs that begin and end with a byte that is not zero: the struct is zero where no field is. Fields above
        # left at least 8 zeros, which end a run.
        runs = [(m.start(), m.group()) for m in re.finditer(rb"[^\0]+(?:\0{1,7}[^\0]+)*", bytes(raw), re.DOTALL)]
        fields += [f'field {{ at: "{start}" raw: "{_escape(run)}" }}' for start, run in runs]
        return ["struct {", *("  " + f for f in fields), "}"]

    def _pointer_text(self, word: bytes) -> str | None:
        address = int.from_bytes(word, "little")
        # One past the end is an address too: (buffer, its length) as begin and end.
        buffer = self._at(address) or next((b for b in self.buffers if b.address + b.bytes == address), None)
        if buffer is None:
            return None
        return f'buffer: "{buffer.name}"' + (f' offset: "{address - buffer.address}"' if address != buffer.address else "")

    def _map_text(self, data: bytes) -> str:
        v = _MAP_FIELDS.unpack(data)
        address, size, stride, box, steps = v[1], v[2:7], v[7:11], v[11:16], v[16:21]
        element, rank, interleave, swizzle, promotion, fill = v[21:27]
        buffer = self._at(address)
        if buffer is None:
            raise ValueError(f"a tensor map of {address:#x}, where nothing is")
        quote = lambda numbers: ", ".join(f'"{n}"' for n in numbers)
        text = f'buffer: "{buffer.name}" element: "{_ELEMENTS[element]}" size: [{quote(size[:rank])}] box: [{quote(box[:rank])}]'
        if rank > 1:
            text += f" stride: [{quote(stride[: rank - 1])}]"
        if address != buffer.address:
            text += f' offset: "{address - buffer.address}"'
        if any(s != 1 for s in steps[:rank]):
            text += f" element_stride: [{quote(steps[:rank])}]"
        return (f"tensor_map {{ {text} interleave: {_INTERLEAVES[interleave]} swizzle: {_SWIZZLES[swizzle]} "
                f"promotion: {_PROMOTIONS[promotion]} fill: {_FILLS[fill]} }}")

    # ---- Arguments of operators.
    def _value(self, kind: str, value) -> int:
        if kind.endswith("?"):
            return 0 if value is None else self._c.heddle_optional(ctypes.c_uint64(self._value(kind[:-1], value)))
        if kind == "Tensor":
            n = len(value.shape)
            return self._c.heddle_tensor(ctypes.c_uint64(value.address), _TYPES[value.type][0], ctypes.c_int64(n),
                                         (ctypes.c_int64 * n)(*value.shape), (ctypes.c_int64 * n)(*value.strides))
        if kind == "float":
            return struct.unpack("<Q", struct.pack("<d", value))[0]
        if kind == "ScalarType":
            return _TYPES[value][0]
        if kind == "str":
            text = ctypes.c_void_p()
            self._c.torch_new_string_handle(value.encode(), ctypes.c_size_t(len(value)), ctypes.byref(text))
            return text.value
        if kind in ("int", "SymInt", "bool"):
            return int(value) & (1 << 64) - 1
        raise TypeError(f"no argument of type {kind}")


def _elements(shape: list[int]) -> int:
    n = 1
    for size in shape:
        n *= size
    return n


def _escape(data: bytes) -> str:
    return "".join(f"\\x{b:02x}" for b in data)


def _schema(text: str) -> tuple[list[str], list[str]]:
    """The types of an operator's arguments and results, without marks of aliasing."""
    text = re.sub(r"\((?:[a-z]!?|[a-z])\)|(?<=Tensor)!", "", text)
    arguments, results = text[text.index("(") + 1 :].rsplit("->", 1)
    taken = [a.split()[0] for a in arguments.strip().removesuffix(")").split(",") if a.strip()]
    results = results.strip()
    given = [r.strip().split()[0] for r in results[1:-1].split(",") if r.strip()] if results.startswith("(") else [results]
    return taken, given

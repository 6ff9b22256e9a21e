"""Compiles Triton kernels ahead of time, without a GPU: our own, and those in other projects' packages."""

import argparse
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

# No debug sections (they hold this machine's paths), and multiply-add fusion as in every Triton up to 3.9.
os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

import triton  # noqa: E402
import triton.language  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402


@dataclass
class Kernel:
    """A kernel with its specialisation. The type of a parameter is Triton's; ":16" behind it declares divisibility by 16 (of the
    address, or of the number). Arguments of the function that are neither parameters nor constants have their defaults, or are None.
    """

    function: object
    parameters: dict[str, str]
    constants: dict[str, object] = field(default_factory=dict)
    warps: int = 4
    stages: int = 3


def compile_kernel(kernel: Kernel, name: str, arch: int, out: Path) -> None:
    """Writes out/NAME.cubin and out/NAME.json: the kernel's symbol, warps and shared memory under the keys of Triton's own metadata,
    and its parameters in launch order with what the compiler assumed about them. Two more pointers (global and profile scratch)
    follow the listed parameters; they may be null."""
    arguments = kernel.function.arg_names
    unknown = [n for n in kernel.parameters | kernel.constants if n not in arguments]
    if unknown:
        raise SystemExit(f"{name}: the kernel has no argument {', '.join(unknown)}")
    defaults = {p.name: p.default for p in kernel.function.params if p.has_default}
    constants = {a: kernel.constants.get(a, defaults.get(a)) for a in arguments if a not in kernel.parameters}
    signature = {a: kernel.parameters[a].split(":")[0] if a in kernel.parameters else "constexpr" for a in arguments}
    attributes = {(i,): [["tt.divisibility", 16]] for i, a in enumerate(arguments) if kernel.parameters.get(a, "").endswith(":16")}
    source = ASTSource(fn=kernel.function, signature=signature, constexprs=constants, attrs=attributes)
    compiled = triton.compile(source, target=GPUTarget("cuda", arch, 32),
                              options={"num_warps": kernel.warps, "num_stages": kernel.stages})
    (out / f"{name}.cubin").write_bytes(compiled.asm["cubin"])
    metadata = compiled.metadata
    description = {
        "name": metadata.name,
        "arch": arch,
        "num_warps": metadata.num_warps,
        "num_ctas": metadata.num_ctas,
        "shared": metadata.shared,
        "global_scratch_size": metadata.global_scratch_size,
        "constants": {n: c if isinstance(c, (int, float, str, type(None))) else str(c) for n, c in constants.items()},
        "parameters": [{"name": a, "type": kernel.parameters[a].split(":")[0],
                        "divisible_by": 16 if kernel.parameters[a].endswith(":16") else 1} for a in arguments if a in kernel.parameters],
        # Box, swizzle and element type of each descriptor, in order of the parameters.
        "tensor_descriptors": [dict(d) for d in getattr(metadata, "tensordesc_meta", None) or []],
        "triton": triton.__version__,
    }
    (out / f"{name}.json").write_text(json.dumps(description, indent=2) + "\n")


class _Stub(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules below some packages, except those that are given: mocks whose `triton` and `tl` are real."""

    def __init__(self, packages: set[str]):
        self._packages = packages

    def find_spec(self, fullname, path=None, target=None):
        if fullname.split(".")[0] not in self._packages:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        module = mock.MagicMock(name=spec.name)
        module.__spec__, module.__name__, module.__path__ = spec, spec.name, []
        module.triton, module.tl = triton, triton.language
        module.finfo.return_value = mock.NonCallableMagicMock(min=-448.0, max=448.0)  # torch's, which is asked for e4m3
        return module

    def exec_module(self, module):
        pass


def load(files: dict[str, Path], stubs: tuple[str, ...] = ("torch",)) -> dict[str, object]:
    """Imports the modules, from their files, while everything else in their packages and in `stubs` is a mock: kernels need Triton
    alone. In the order given: a module that another one uses stands in front of it."""
    finder = _Stub({name.split(".")[0] for name in files} | set(stubs))
    sys.meta_path.insert(0, finder)
    try:
        loaded = {}
        for name, path in files.items():
            importlib.import_module(name.rpartition(".")[0])
            spec = importlib.util.spec_from_file_location(name, path)
            sys.modules[name] = loaded[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(loaded[name])
        return loaded
    finally:
        sys.meta_path.remove(finder)


def main(doc: str, kernels: Callable[[str], dict[str, Kernel]]) -> None:
    """The command line of a script that compiles kernels of a package; `kernels` gives all of them for a target."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", nargs="+", required=True)
    parser.add_argument("--target", choices=("sm_80", "sm_90"), required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    known = kernels(options.target)
    for name in options.kernel:
        compile_kernel(known[name], name, int(options.target.removeprefix("sm_")), Path(options.out))

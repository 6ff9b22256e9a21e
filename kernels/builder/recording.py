"""The main program of a folder's record.py: records each kernel that builder/cubins.py asks for, at each of its shapes."""

import argparse
import sys
from pathlib import Path
from typing import Callable

from . import catalogue, packages
from .recorder import Recorder


def main(folder: str, library: Callable[[catalogue.Framework, str], Path], kernels: dict[str, Callable]) -> None:
    """`library` finds or makes what holds a kernel; kernels[name](recorder, **numbers of the shape) makes buffers, lets host code
    launch, and returns what the launch is and the text of its check."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernel", required=True, nargs="+")
    parser.add_argument("--target", required=True)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--bench", action="store_true")
    arguments = parser.parse_args()
    framework = catalogue.read(folder)
    try:
        for kernel in (k for k in framework.kernels if k.name in arguments.kernel):
            path = library(framework, kernel.name)
            for shape, numbers in (kernel.bench_shapes if arguments.bench else kernel.shapes).items():
                recorder = Recorder(arguments.target)
                recorder.load(path)
                doc, check = kernels[kernel.name](recorder, **numbers)
                recorder.write(arguments.out, kernel.name, shape, doc, check)
    except packages.Missing as missing:
        print(missing, file=sys.stderr)
        sys.exit(packages.MISSING)

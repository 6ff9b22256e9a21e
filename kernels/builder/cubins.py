"""Makes the cubins of a kernel: cut from a wheel, or compiled by the framework's own script."""

import functools
import os
import subprocess
import sys
import venv
from pathlib import Path

from . import catalogue, packages


def make(framework: catalogue.Framework, kernel: catalogue.Kernel, target: str, offline: bool, bench: bool = False) -> None:
    """Writes build/cubins/<target>/<framework>/*, or descriptions of its bench_shapes. packages.Missing where the cache does not have what is needed."""
    out = framework.output(target)
    out.mkdir(parents=True, exist_ok=True)
    if kernel.builder:
        command = [_python(framework, offline), str(framework.path / kernel.builder), "--kernel",
                   *(kernel.cubins or [kernel.name]), "--target", target, "--out", str(out), *(["--bench"] if bench else [])]
        environment = os.environ | {"PYTHONPATH": str(catalogue.ROOT / "kernels")} | ({"HEDDLE_OFFLINE": "1"} if offline else {})
        ended = subprocess.run(command, env=environment)
        if ended.returncode == packages.MISSING:
            raise packages.Missing(f"{kernel.builder} lacks what it said above")
        ended.check_returncode()
        return
    library = _library(framework.wheel_file, framework.wheel_sha256, kernel.library, offline)
    for file, name in kernel.cubins.items():
        (out / f"{file}.cubin").write_bytes(library.kernel(target, name if isinstance(name, str) else name[target]))


@functools.lru_cache(maxsize=2)
def _library(file: str, sha256: str, member: str, offline: bool) -> packages.Library:
    return packages.Library(packages.member(packages.wheel(file, sha256, offline), member))


@functools.lru_cache
def _python_of(folder: str, requirements: Path, offline: bool) -> str:
    """A Python with a framework's packages, in the cache. requirements.txt pins versions and SHA-256."""
    place = packages.cache_folder() / "environments" / folder
    python, stamp = place / "bin" / "python", place / "heddle-requirements.txt"
    if stamp.exists() and stamp.read_bytes() == requirements.read_bytes():
        return str(python)
    if offline:
        raise packages.Missing(f"the packages of kernels/{folder}/requirements.txt are not in {place}")
    print(f"installing the packages of kernels/{folder}/requirements.txt", file=sys.stderr)
    venv.create(place, with_pip=True, clear=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
                    "--require-hashes", "-r", str(requirements)], check=True)
    stamp.write_bytes(requirements.read_bytes())
    return str(python)


def _python(framework: catalogue.Framework, offline: bool) -> str:
    requirements = catalogue.ROOT / "kernels" / framework.environment / "requirements.txt"
    return _python_of(framework.environment, requirements, offline) if requirements.exists() else sys.executable

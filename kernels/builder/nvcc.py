"""Host code of our own around a framework's headers, compiled with its device code into a library that builder/recorder.py loads."""

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

from . import catalogue, packages


def headers(framework: catalogue.Framework, folder: str, offline: bool = False) -> Path:
    """A folder of the framework's wheel, unpacked once."""
    archive = packages.wheel(framework.wheel_file, framework.wheel_sha256, offline)
    place = packages.cache_folder() / "unpacked" / archive.stem
    if not (place / folder / ".complete").exists():
        with zipfile.ZipFile(archive) as members:
            members.extractall(place, [m for m in members.namelist() if m.startswith(folder + "/")])
        (place / folder / ".complete").touch()
    return place / folder


def library(source: Path, includes: list[Path], flags: list[str] = ()) -> Path:
    """The shared library of a .cu file; compiled again when the file has changed. packages.Missing without nvcc."""
    out = catalogue.ROOT / "build" / "recorder" / f"{source.parent.name}_{source.stem}.so"
    if out.exists() and out.stat().st_mtime > source.stat().st_mtime:
        return out
    compiler = os.environ.get("HEDDLE_NVCC") or shutil.which("nvcc")
    if compiler is None:
        raise packages.Missing("nvcc is not on PATH (HEDDLE_NVCC)")
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_suffix(".partial.so")
    subprocess.run([compiler, "-std=c++20", "-O3", "-gencode=arch=compute_90a,code=sm_90a", "-shared", "-Xcompiler", "-fPIC,-O1", "-cudart", "shared", "-w",
                    "--expt-relaxed-constexpr", *(f"-I{i}" for i in includes), *flags, "-o", str(partial), str(source)], check=True)
    partial.replace(out)
    Path(f"{out}.kernels.json").unlink(missing_ok=True)
    return out

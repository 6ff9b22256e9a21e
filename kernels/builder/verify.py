"""Builds kernels, runs them through `heddle trace verify --skeleton`, and keeps what came out in kernels/results.json."""

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from . import catalogue, cubins, packages

RESULTS = catalogue.ROOT / "kernels" / "results.json"
_GATE_FAILED = 6
_ARCH = {"sm_80": "a100_sxm4_80gb", "sm_90": "h100_sxm5", "sm_90a": "h100_sxm5"}


def heddle(*arguments: str) -> subprocess.CompletedProcess:
    program = os.environ.get("HEDDLE", str(catalogue.ROOT / "build/tools/heddle/heddle"))
    return subprocess.run([program, *arguments], capture_output=True, text=True)


def description_of(framework: catalogue.Framework, kernel: catalogue.Kernel, target: str, shape: str) -> Path:
    """The committed description, or the one that the builder made for this shape."""
    committed = framework.path / f"{kernel.name}.launch.textproto"
    return committed if committed.exists() else framework.output(target) / f"{kernel.name}.{shape}.launch.textproto"


def build_trace(framework: catalogue.Framework, kernel: catalogue.Kernel, target: str, shape: str, defines: dict[str, int]):
    """The trace's path, and how its build ended."""
    trace = framework.output(target) / f"{kernel.name}.{shape}.htrace"
    description = description_of(framework, kernel, target, shape)
    options = [f"--define={k}={v}" for k, v in defines.items()] if framework.path in description.parents else []
    return trace, heddle("trace", "build", str(description), "--target", target, *options, "-o", str(trace))


def build_for_bench(framework: catalogue.Framework, kernel: catalogue.Kernel, target: str) -> bool:
    """Traces of its bench_shapes, where tools/bench looks for them."""
    good = True
    for shape, defines in kernel.bench_shapes.items():
        trace, built = build_trace(framework, kernel, target, shape, defines)
        good &= built.returncode == 0
        print(built.stderr.strip() if built.returncode != 0 else f"built    {trace.relative_to(catalogue.ROOT)}", flush=True)
    return good


def verify_shape(framework: catalogue.Framework, kernel: catalogue.Kernel, target: str, shape: str) -> dict:
    trace, built = build_trace(framework, kernel, target, shape, kernel.shapes[shape])
    if built.returncode != 0:
        return {"shape": shape, "failed": built.stderr.strip()}
    ran = heddle("trace", "verify", "--skeleton", "--json", "--arch", _ARCH[target], str(trace))
    if ran.returncode not in (0, _GATE_FAILED):
        return {"shape": shape, "failed": ran.stderr.strip()}
    outcome = json.loads(ran.stdout)[0]
    wrong = [c for c in outcome["comparisons"] if not c["passed"]]
    result = {
        "shape": shape,
        "instructions": outcome["warp_instructions"],
        "elements": sum(c["elements"] for c in outcome["comparisons"]),
        "max_error": max((c["max_error"] for c in outcome["comparisons"]), default=0),
        "mean_error": max((c["mean_error"] for c in outcome["comparisons"]), default=0),
        "complete": not outcome["issues"],
    }
    if outcome["skeleton_differs"]:
        result["failed"] = "skeleton mode gives another stream"
    if outcome["issues"]:
        result["failed"] = "; ".join(f"{i['kind']}: {i['detail']}" for i in outcome["issues"])
    if wrong:
        c = wrong[0]
        result["failed"] = (f"{c['buffer']}: {c['outside']} of {c['elements']} elements are wrong; element {c['worst_index']} is "
                            f"{c['worst_got']} and should be {c['worst_want']}")
    if not outcome["comparisons"]:
        result["failed"] = f"no check: {outcome['no_check']}"
    return result


def verify(framework: catalogue.Framework, kernel: catalogue.Kernel, target: str) -> dict:
    began = time.process_time() + os.times().children_user
    shapes = [verify_shape(framework, kernel, target, shape) for shape in kernel.shapes]
    failed = [s for s in shapes if "failed" in s]
    seconds = time.process_time() + os.times().children_user - began
    print(f"{'WRONG   ' if failed else 'verified'} {framework.folder:10} {kernel.name:32} {target:7} {seconds:6.1f} s", flush=True)
    for shape in failed:
        print(f"           {shape['shape']}: {shape['failed']}", flush=True)
    return {"framework": framework.title, "kernel": kernel.name, "target": target, "note": kernel.note, "shapes": shapes}


def merge(framework: catalogue.Framework, rows: list[dict]) -> None:
    """Replaces these rows, and drops those of kernels that the framework no longer has."""
    known = {(k.name, t) for k in framework.kernels for t in k.targets}
    old = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    new = {(r["kernel"], r["target"]) for r in rows}
    kept = [r for r in old if r["folder"] != framework.folder or
            ((r["kernel"], r["target"]) in known and (r["kernel"], r["target"]) not in new)]
    kept += [{"folder": framework.folder} | r for r in rows]
    kept.sort(key=lambda r: (r["folder"], r["kernel"], r["target"]))
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/verify_kernels", description=__doc__)
    parser.add_argument("frameworks", nargs="*", metavar="FRAMEWORK", help="all of kernels/*/kernels.toml by default")
    parser.add_argument("--only", default="*")
    parser.add_argument("--target", default="")
    parser.add_argument("--offline", action="store_true")
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--bench", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    known = catalogue.all_frameworks()
    for name in arguments.frameworks:
        if name not in known:
            parser.error(f"no framework '{name}'; there are: {', '.join(known)}")
    skipped = unbuilt = wrong = right = 0
    for folder in arguments.frameworks or known:
        framework = catalogue.read(folder)
        rows = []
        for kernel in framework.kernels:
            if arguments.quick:
                kernel.shapes = dict(list(kernel.shapes.items())[:1])
            if not fnmatch.fnmatch(kernel.name, arguments.only):
                continue
            for target in kernel.targets:
                if arguments.target not in ("", target) or (arguments.bench and not kernel.bench_shapes):
                    continue
                if arguments.list:
                    print(f"{folder}\t{kernel.name}\t{target}\t{', '.join(kernel.shapes)}")
                    continue
                try:
                    cubins.make(framework, kernel, target, arguments.offline, arguments.bench)
                except packages.Missing as missing:
                    print(f"skipped  {framework.folder:10} {kernel.name:32} {target:7} {missing}", flush=True)
                    skipped += 1
                    continue
                except (subprocess.CalledProcessError, KeyError) as failure:
                    print(f"WRONG    {framework.folder:10} {kernel.name:32} {target:7} cannot be built: {failure}", flush=True)
                    unbuilt += 1
                    continue
                if arguments.build_only:
                    continue
                if arguments.bench:
                    unbuilt += not build_for_bench(framework, kernel, target)
                    continue
                rows.append(verify(framework, kernel, target))
                if not arguments.quick:
                    merge(framework, rows[-1:])
        failed = sum(any("failed" in s for s in r["shapes"]) for r in rows)
        wrong, right = wrong + failed, right + len(rows) - failed
    if not arguments.list and not arguments.build_only and not arguments.bench:
        print(f"{right} verified, {wrong} wrong, {unbuilt} not built, {skipped} skipped")
    return _GATE_FAILED if wrong or unbuilt else 0


if __name__ == "__main__":
    sys.exit(main())

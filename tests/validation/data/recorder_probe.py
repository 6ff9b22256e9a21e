"""Records recorder_probe.cu into OUT: recorder_probe.py OUT. Exit 77: no compiler here."""

import sys
from pathlib import Path

from builder import nvcc, packages
from builder.recorder import Recorder

out_folder = Path(sys.argv[1])
try:
    library = nvcc.library(Path(__file__).with_suffix(".cu"), [])
    recorder = Recorder("sm_90a")
except packages.Missing as missing:
    print(missing)
    sys.exit(77)
recorder.load(library)
x = recorder.tensor("x", "bf16", [40, 96], "normal { seed: 1 }")
table = recorder.tensor("table", "i32", [8], 'iota { start: "5" }')
out = recorder.tensor("out", "i32", [1], "zeros {}")
recorder.run("probe", x, table, out, 35)
recorder.write(out_folder, "probe", "small", "a probe", """
  op { out: "y" view { x: "table" shape: ["1"] offset: "2" } }
  op { out: "z" unary { x: "y" function: identity shift: "35" } }
  compare { buffer: "out" reference: "z" }""")

for word in (0, 3):
    recorder = Recorder("sm_90a")
    recorder.load(library)
    out = recorder.tensor("out", "i32", [2], "zeros {}")
    recorder.run("probe_padding", out, word)
    recorder.write(out_folder, "padding", f"word{word}", "a branch on one word of a wide load", ' none: "the branch is what is looked at"')

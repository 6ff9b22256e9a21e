#!/usr/bin/env python3
"""Compiles Pallas kernels ahead of time, without a GPU, and describes their launches.

usage: build.py --kernel NAME --target sm_80|sm_90|sm_90a --out DIR

XLA compiles them as it does any function, so kernels/xla does the work. A Triton kernel is one of XLA's launches; a Mosaic GPU
kernel is a custom call whose host code mosaic.py reads.
"""

import mosaic
from xla import build

if __name__ == "__main__":
    build.main(__doc__, read_custom_calls=mosaic.read)

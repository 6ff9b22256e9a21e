"""What is compiled with CuTe DSL: kernels of kernels.py, their shapes, buffers and checks."""

from dataclasses import dataclass, field
from typing import Callable

import cutlass
import hopper
import kernels
from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

_TYPES = {"bf16": cutlass.BFloat16, "f32": cutlass.Float32}


@dataclass
class Tensor:
    shape: tuple[int, ...]
    content: str = "zeros {}"
    type: str = "bf16"

    def fake(self):
        """What the compiler is given: row-major, aligned to 16 bytes."""
        return make_fake_compact_tensor(_TYPES[self.type], self.shape, stride_order=tuple(reversed(range(len(self.shape)))),
                                        assumed_align=16)


def normal(seed, *shape):
    return Tensor(shape, f"normal {{ seed: {seed} }}")


@dataclass
class Case:
    doc: str
    function: Callable
    shapes: dict[str, dict[str, int]]
    tensors: Callable[..., dict[str, Tensor]]  # of a shape's numbers, in the order of the parameters
    check: str
    numbers: dict[str, float] = field(default_factory=dict)  # arguments behind the tensors, and parameters
    trailing: tuple[str, ...] = ()  # parameters that only the compiled kernel has
    maps: Callable[..., dict[str, str]] = lambda **_: {}  # of a shape's numbers: tensor maps that stand for tensors
    cluster: tuple[int, ...] = ()

    def arguments(self, **shape):
        return [*(t.fake() for t in self.tensors(**shape).values()), *self.numbers.values(), make_fake_stream()]

    def parameters(self, **shape):
        maps = self.maps(**shape)
        yield from (maps.get(name, f'buffer: "{name}"') for name in self.tensors(**shape))
        yield from (f'name: "{name}" real: "{value}"' for name, value in self.numbers.items())
        yield from self.trailing


_GEMM_CHECK = """  op { out: "y" matmul { a: "a" b: "b" transpose_b: true } }
  compare { buffer: "c" reference: "y" absolute: 0.001 relative: 0.004 }"""


# the one byte that wgmma's descriptor object holds: whether it accumulates
_MMA_STATE = 'name: "tiled_mma" int: "0"'


def _hopper_maps(cluster):
    """TMA's boxes of a and b: 64 elements of k by the tile's rows, of b by the part that each CTA of the cluster loads."""
    box = lambda name, rows, size: (f'name: "{name}" tensor_map {{ buffer: "{name}" size: ["{size[1]}", "{size[0]}"] '
                                    f'box: ["64", "{rows}"] swizzle: swizzle_128b }}')
    return lambda m, n, k: {"a": box("a", 128, (m, k)), "b": box("b", 128 // cluster, (n, k))}


def _gemm_tensors(m, n, k):
    return {"a": normal(1, m, k), "b": normal(2, n, k), "c": Tensor((m, n))}


CASES = {
    "silu_and_mul": Case(
        "CuTe DSL: gated activation, 16 bytes a thread.", kernels.silu_and_mul,
        {"Llama-3.1-8B": {"tokens": 3, "intermediate": 14336}, "Llama-3.1-70B-TP8": {"tokens": 33, "intermediate": 3584}},
        lambda tokens, intermediate: {"x": normal(1, tokens, 2 * intermediate), "out": Tensor((tokens, intermediate))},
        '  op { out: "y" silu_and_mul { x: "x" } }\n  compare { buffer: "out" reference: "y" absolute: 0.001 relative: 0.006 }'),
    "rms_norm": Case(
        "CuTe DSL: RMSNorm, a block for each row.", kernels.rms_norm,
        {"Llama-3.1-8B": {"tokens": 3, "hidden": 4096}, "Llama-3.1-70B": {"tokens": 33, "hidden": 8192}},
        lambda tokens, hidden: {"x": normal(1, tokens, hidden), "weight": normal(2, hidden), "out": Tensor((tokens, hidden))},
        '  op { out: "y" rmsnorm { x: "x" weight: "weight" eps: "1e-5" } }\n'
        '  compare { buffer: "out" reference: "y" absolute: 0.001 relative: 0.006 }', {"epsilon": 1e-5}),
    "ampere_gemm": Case(
        "CuTe DSL: bf16 matmul for Ampere: cp.async in three stages, ldmatrix, mma.", kernels.ampere_gemm,
        {"Llama-3.1-8B-kv": {"m": 128, "n": 1024, "k": 4096}, "Llama-3.1-70B-TP8-kv": {"m": 256, "n": 128, "k": 8192}},
        _gemm_tensors, _GEMM_CHECK),
    "hopper_gemm": Case(
        "CuTe DSL: bf16 matmul for Hopper: TMA, wgmma, a loading and two computing warpgroups.", hopper.hopper_gemm,
        {"Llama-3.1-8B-kv": {"m": 128, "n": 1024, "k": 4096}, "Llama-3.1-70B-TP8-out": {"m": 256, "n": 8192, "k": 1024}},
        _gemm_tensors, _GEMM_CHECK, trailing=(_MMA_STATE,), maps=_hopper_maps(1)),
    "hopper_gemm_cluster": Case(
        "CuTe DSL: the same in clusters of two, which share b by multicast.", hopper.hopper_gemm_cluster,
        {"Llama-3.1-8B-kv": {"m": 256, "n": 1024, "k": 4096}, "Llama-3.1-70B-TP8-up": {"m": 256, "n": 3584, "k": 8192}},
        _gemm_tensors, _GEMM_CHECK, trailing=(_MMA_STATE,), maps=_hopper_maps(2), cluster=(2, 1, 1)),
}

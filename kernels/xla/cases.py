"""What is compiled with XLA: functions of a transformer, their inputs, and their values in double precision.

The reference is the same mathematics, evaluated by JAX on the CPU in float64: no code, schedule or rounding of the GPU's.
"""

from dataclasses import dataclass
from typing import Callable

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np


def widened(x):
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def rms_norm(x, weight):
    wide = widened(x)
    return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-5) * weight).astype(x.dtype)


def mlp(x, norm, up, down):
    """RMSNorm, GELU, two matrices, residual."""
    return x + jax.nn.gelu(rms_norm(x, norm) @ up) @ down


def attention(x, norm, query, key, value, output, heads):
    """RMSNorm, causal attention, residual. x: [tokens, hidden]."""
    tokens = x.shape[0]
    h = rms_norm(x, norm)
    q, k, v = ((h @ w).reshape(tokens, heads, -1).transpose(1, 0, 2) for w in (query, key, value))
    scores = widened(q @ k.transpose(0, 2, 1)) / q.shape[-1] ** 0.5
    scores = jnp.where(jnp.arange(tokens)[:, None] >= jnp.arange(tokens)[None, :], scores, -1e30)
    mixed = jax.nn.softmax(scores, axis=-1).astype(x.dtype) @ v
    return x + mixed.transpose(1, 0, 2).reshape(tokens, -1) @ output


def block(x, weights, heads):
    return mlp(attention(x, *weights[:5], heads), *weights[5:])


def gradients(numbers, x, *weights):
    """Of the block's sum of squares, by every input."""
    loss = lambda x, *w: jnp.sum(widened(block(x, w, numbers["heads"])) ** 2) / x.size**0.5
    return jax.grad(loss, argnums=tuple(range(len(weights) + 1)))(x, *weights)


@dataclass
class Case:
    doc: str
    function: Callable  # of a shape's numbers and the arguments
    first_weight: int  # inputs of the block in front of it, x aside, are not used
    absolute: float  # tolerance, of a row's root mean square: values are rounded to bf16 between kernels
    relative: float

    @property
    def shapes(self):
        return {"hidden-512": {"tokens": 128, "hidden": 512, "intermediate": 1024, "heads": 4},
                "hidden-1024": {"tokens": 64, "hidden": 1024, "intermediate": 1792, "heads": 8}}

    def make(self, shape):
        """The function of arrays, and its arguments."""
        numbers = self.shapes[shape]
        tokens, hidden, intermediate = (numbers[n] for n in ("tokens", "hidden", "intermediate"))
        random = np.random.default_rng(1)
        normal = lambda scale, *shape: (random.standard_normal(shape) * scale).astype(ml_dtypes.bfloat16)
        norm = lambda: (1 + 0.1 * random.standard_normal(hidden)).astype(np.float32)
        weights = [norm(), *(normal(hidden**-0.5, hidden, hidden) for _ in range(4)), norm(),
                   normal(hidden**-0.5, hidden, intermediate), normal(intermediate**-0.5, intermediate, hidden)]
        return (lambda *a: self.function(numbers, *a)), [normal(1, tokens, hidden), *weights[self.first_weight :]]

    def reference(self, shape):
        """(values in double precision, name of the type that the GPU computes) of each output."""
        function, arguments = self.make(shape)
        narrow = jax.tree.leaves(jax.eval_shape(function, *arguments))
        with jax.enable_x64(True):
            wide = jax.tree.leaves(function(*(jnp.asarray(np.asarray(a, dtype=np.float64)) for a in arguments)))
        return [(np.asarray(w), n.dtype.name) for w, n in zip(wide, narrow, strict=True)]


CASES = {
    "mlp": Case("XLA: RMSNorm, GELU MLP and residual of a transformer block, forward.", lambda n, *a: mlp(*a), 5, 0.03, 0.02),
    "block": Case("XLA: a transformer block forward: RMSNorm, causal attention, GELU MLP, residuals.",
                  lambda n, x, *w: block(x, w, n["heads"]), 0, 0.03, 0.02),
    "block_backward": Case("XLA: a transformer block forward and backward: gradients of its sum of squares by every input.",
                           gradients, 0, 0.08, 0.04),
}

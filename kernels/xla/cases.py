"""What is compiled with XLA: functions of a transformer, their inputs, and their values in double precision.

The reference is the same mathematics, evaluated by JAX on the CPU in float64: no code, schedule or rounding of the GPU's.
"""

from dataclasses import dataclass
from typing import Callable

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np


_HEAD_DIM = 128


def widened(x):
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def rms_norm(x, weight):
    wide = widened(x)
    return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-5) * weight).astype(x.dtype)


def mlp(x, norm, up, down):
    """RMSNorm, GELU, two matrices, residual."""
    return x + jax.nn.gelu(rms_norm(x, norm) @ up) @ down


def attention(x, norm, query, key, value, output, head_dim):
    """RMSNorm, causal attention, residual. x: [tokens, hidden]; fewer heads of keys than of queries are shared."""
    tokens = x.shape[0]
    h = rms_norm(x, norm)
    q, k, v = ((h @ w).reshape(tokens, -1, head_dim).transpose(1, 0, 2) for w in (query, key, value))
    k, v = (jnp.repeat(a, q.shape[0] // a.shape[0], axis=0) for a in (k, v))
    scores = widened(q @ k.transpose(0, 2, 1)) / q.shape[-1] ** 0.5
    scores = jnp.where(jnp.arange(tokens)[:, None] >= jnp.arange(tokens)[None, :], scores, -1e30)
    mixed = jax.nn.softmax(scores, axis=-1).astype(x.dtype) @ v
    return x + mixed.transpose(1, 0, 2).reshape(tokens, -1) @ output


def block(x, weights):
    return mlp(attention(x, *weights[:5], _HEAD_DIM), *weights[5:])


def gradients(x, *weights):
    """Of the block's sum of squares, by every input."""
    loss = lambda x, *w: jnp.sum(widened(block(x, w)) ** 2) / x.size**0.5
    return jax.grad(loss, argnums=tuple(range(len(weights) + 1)))(x, *weights)


_SHAPES = {
    "hidden-512": {"tokens": 128, "hidden": 512, "intermediate": 1024, "heads": 4, "kv_heads": 4},
    "hidden-1024": {"tokens": 64, "hidden": 1024, "intermediate": 1792, "heads": 8, "kv_heads": 8},
    "Llama-3.1-8B-TP8": {"tokens": 64, "hidden": 4096, "intermediate": 1792, "heads": 4, "kv_heads": 1},
}


@dataclass
class Case:
    doc: str
    function: Callable  # of the arguments
    first_weight: int  # inputs of the block in front of it, x aside, are not used
    shapes: tuple[str, ...]
    absolute: float  # tolerance, of a row's root mean square: values are rounded to bf16 between kernels
    relative: float

    def make(self, shape):
        """The function of arrays, and its arguments."""
        tokens, hidden, intermediate, heads, kv_heads = _SHAPES[shape].values()
        random = np.random.default_rng(1)
        normal = lambda rows, columns: (random.standard_normal((rows, columns)) * rows**-0.5).astype(ml_dtypes.bfloat16)
        norm = lambda: (1 + 0.1 * random.standard_normal(hidden)).astype(np.float32)
        weights = [norm(), *(normal(hidden, n * _HEAD_DIM) for n in (heads, kv_heads, kv_heads)), normal(heads * _HEAD_DIM, hidden),
                   norm(), normal(hidden, intermediate), normal(intermediate, hidden)]
        x = random.standard_normal((tokens, hidden)).astype(ml_dtypes.bfloat16)
        return self.function, [x, *weights[self.first_weight :]]

    def reference(self, shape):
        """(values in double precision, name of the type that the GPU computes) of each output."""
        function, arguments = self.make(shape)
        narrow = jax.tree.leaves(jax.eval_shape(function, *arguments))
        with jax.enable_x64(True):
            wide = jax.tree.leaves(function(*(jnp.asarray(np.asarray(a, dtype=np.float64)) for a in arguments)))
        return [(np.asarray(w), n.dtype.name) for w, n in zip(wide, narrow, strict=True)]


CASES = {
    "mlp": Case("XLA: RMSNorm, GELU MLP and residual of a transformer block, forward.", mlp, 5,
                ("hidden-512", "hidden-1024"), 0.03, 0.02),
    "block": Case("XLA: a transformer block forward: RMSNorm, causal attention, GELU MLP, residuals.", lambda x, *w: block(x, w), 0,
                  ("hidden-1024", "Llama-3.1-8B-TP8"), 0.03, 0.02),
    "block_backward": Case("XLA: a transformer block forward and backward: gradients of its sum of squares by every input.",
                           gradients, 0, ("hidden-1024", "Llama-3.1-8B-TP8"), 0.08, 0.04),
}

"""Pallas kernels that JAX ships, their inputs, and their values in double precision by plain JAX on the CPU."""

from dataclasses import dataclass
from typing import Callable
from unittest import mock

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax.experimental.pallas.ops.gpu import attention, attention_mgpu, decode_attention, hopper_matmul_mgpu, rms_norm

_HOPPER_SM_COUNT = 132


def causal_attention(q, k, v, causal=True):
    """[batch, length, heads, dim]; fewer heads of keys than of queries are shared."""
    k, v = (jnp.repeat(x, q.shape[2] // k.shape[2], axis=2) for x in (k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    if causal:
        scores = jnp.where(jnp.arange(q.shape[1])[:, None] >= jnp.arange(k.shape[1])[None, :], scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)


def decode(q, k, v):
    return causal_attention(q[:, None], k, v, causal=False)[:, 0]


def normalised(x, weight, bias):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5) * weight + bias


def matmul(a, b, **config):
    tuning = hopper_matmul_mgpu.TuningConfig(tile_m=128, tile_n=64, tile_k=64, max_concurrent_steps=4, **config)
    with mock.patch.object(hopper_matmul_mgpu, "get_num_sms", lambda: _HOPPER_SM_COUNT):  # it asks the GPU
        return hopper_matmul_mgpu.matmul(a, b, None, tuning)


def hopper_attention(q, k, v):
    tuning = attention_mgpu.TuningConfig(block_q=64, block_kv=128, max_concurrent_steps=2)
    with mock.patch.object(attention_mgpu, "cuda_versions", mock.MagicMock()):  # CUDA's version matters to causal attention alone
        return attention_mgpu.attention(q * q.shape[-1] ** -0.5, k, v, tuning)  # the kernel itself does not scale


@dataclass
class Case:
    doc: str
    function: Callable
    reference_function: Callable
    shapes: dict[str, list[tuple[int, ...]]]  # of the arguments
    absolute: float
    relative: float = 0.008
    type: np.dtype = ml_dtypes.bfloat16

    def make(self, shape):
        random = np.random.default_rng(1)
        return self.function, [random.standard_normal(s).astype(self.type) for s in self.shapes[shape]]

    def reference(self, shape):
        """(values in double precision, name of the type that the GPU computes) of the output."""
        function, arguments = self.make(shape)
        narrow = jax.eval_shape(function, *arguments)
        with jax.enable_x64(True):
            want = self.reference_function(*(jnp.asarray(a.astype(np.float64)) for a in arguments))
        return [(np.asarray(want), narrow.dtype.name)]


CASES = {
    "mha": Case("Pallas (Triton): JAX's fused attention, causal, bf16, head dimension 128.",
                lambda q, k, v: attention.mha(q, k, v, None, sm_scale=q.shape[-1] ** -0.5, causal=True,
                                              block_sizes=attention.BlockSizes(block_q=64, block_k=64)),
                causal_attention,
                {"Llama-3.1-70B-TP8": [(1, 320, 8, 128)] * 3, "Llama-3.1-8B": [(1, 128, 32, 128)] * 3}, 0.01),
    "decode_gqa": Case("Pallas (Triton): JAX's decode attention with grouped queries, keys split among blocks and merged by XLA.",
                       lambda q, k, v: decode_attention.gqa(q, k, v, block_k=64, k_splits=4), decode,
                       {"Llama-3.1-70B-TP8": [(3, 8, 128), (3, 1024, 1, 128), (3, 1024, 1, 128)],
                        "Llama-3.1-8B": [(2, 32, 128), (2, 512, 8, 128), (2, 512, 8, 128)]}, 0.03, 0.02),
    "rms_norm": Case("Pallas (Triton): JAX's RMSNorm with weight and bias, a block for each row.",
                     rms_norm.rms_norm, normalised,
                     {"Llama-3.1-8B": [(1, 3, 4096), (4096,), (4096,)], "Llama-3.1-70B": [(1, 33, 8192), (8192,), (8192,)]}, 0.006),
    "hopper_matmul": Case("Pallas (Mosaic GPU): JAX's matmul for Hopper: TMA, wgmma, warp specialised, persistent.",
                          matmul, lambda a, b: a @ b,
                          {"Llama-3.1-8B-kv": [(128, 4096), (4096, 1024)], "Llama-3.1-70B-TP8-out": [(256, 1024), (1024, 8192)]},
                          0.001, 0.004),
    "hopper_matmul_cluster": Case("Pallas (Mosaic GPU): the same in clusters of two with multicast.",
                                  lambda a, b: matmul(a, b, cluster_dimension=hopper_matmul_mgpu.MatmulDimension.M),
                                  lambda a, b: a @ b,
                                  {"Llama-3.1-8B-kv": [(256, 4096), (4096, 1024)],
                                   "Llama-3.1-70B-TP8-up": [(256, 8192), (8192, 3584)]}, 0.001, 0.004),
    "hopper_attention": Case("Pallas (Mosaic GPU): JAX's attention for Hopper: TMA, wgmma, two computing warpgroups that take turns.",
                             hopper_attention, lambda q, k, v: causal_attention(q, k, v, causal=False),
                             {"Llama-3.1-70B-TP8": [(1, 256, 8, 128), (1, 512, 1, 128), (1, 512, 1, 128)],
                              "Llama-3.1-8B": [(1, 128, 32, 128), (1, 256, 8, 128), (1, 256, 8, 128)]}, 0.004, 0.002, np.float16),  # its buffers are float16
}

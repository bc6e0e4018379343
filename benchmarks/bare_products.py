"""Contestant "bare products": the two float32 matrix products of a step, and nothing else.

    (N, D) @ (D, M), then (N, M) @ (M, D), on binary states, in a `lax.fori_loop`

It is a floor, not a sampler. Each product is kept whole in the loop's carry, and one row of the
next product's states is thresholded from it: so XLA can neither hoist a product out of the loop,
nor narrow it to a row, nor run the two at once (in a real step the second waits for the first).
The row costs 1/N of one element-wise pass.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

from annealz.models.rbm import RBM
from problem import Timing

__all__ = ["BareProducts"]


@jax.jit
def products(weights, v, h, num_steps):
    def binary_row(states, fields, row):
        threshold = (jax.lax.dynamic_slice_in_dim(fields, row, 1) > 0).astype(states.dtype)
        return jax.lax.dynamic_update_slice_in_dim(states, threshold, row, 0)

    def step(k, carry):
        v, h, _, _ = carry
        row = k % v.shape[0]
        h_fields = jnp.matmul(v, weights.T, precision="highest")
        h = binary_row(h, h_fields, row)
        v_fields = jnp.matmul(h, weights, precision="highest")
        v = binary_row(v, v_fields, row)
        return v, h, h_fields, v_fields

    return jax.lax.fori_loop(0, num_steps, step, (v, h, jnp.zeros_like(h), jnp.zeros_like(v)))


class BareProducts:
    """The floor under any step on one model."""

    name = "bare products"

    def __init__(self, model: RBM, num_chains: int):
        generator = np.random.default_rng(0)
        self._weights = model.weights
        self._v, self._h = (
            jnp.asarray(generator.integers(0, 2, (num_chains, units)), jnp.float32)
            for units in (model.num_visible, model.num_hidden)
        )

    def __call__(self, num_steps: int, seed: int = 0) -> Timing:
        steps = jnp.int32(num_steps)
        began = time.perf_counter()
        jax.block_until_ready(products(self._weights, self._v, self._h, steps))
        return Timing(time.perf_counter() - began)

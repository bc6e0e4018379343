"""Matrix products in the compiled step: the weight increment and the move of one annealing step.

XLA merges the equal products of `path.log_ratio` and `kernel.step`. The program is compiled for
the shapes of the race, and the `dot` instructions of its final text are counted (XLA's CPU compiler
wraps each in a fusion of its own); a product handed to a library shows as a custom call.
"""

import jax
import jax.numpy as jnp

from annealz.core.random import Stream
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.rbm import RBM
from engine import path_of
from problem import NUM_CHAINS

__all__ = ["num_dots"]

_MARKS = (" dot(", '"__cublas$gemm"', '"__onednn$matmul"')


def num_dots(model: RBM) -> int:
    """Products per step."""

    def step(path, stream, x, beta0, beta1, k):
        bits = stream.at(k, jnp.arange(x.shape[0]))
        return path.log_ratio(x, beta0, beta1), BlockGibbs().step(bits, x, path, beta1)

    x = jax.ShapeDtypeStruct((NUM_CHAINS, model.num_visible), jnp.float32)
    beta = jax.ShapeDtypeStruct((), jnp.float32)
    k = jax.ShapeDtypeStruct((), jnp.int32)
    lowered = jax.jit(step).lower(path_of(model), Stream(0, "anneal"), x, beta, beta, k)
    text = lowered.compile().as_text()
    assert text is not None
    return sum(text.count(mark) for mark in _MARKS)

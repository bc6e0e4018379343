"""Binary rows from intensities: v_ij = 1 with probability x_ij.

A unit's coin is a function of (seed, row, unit) alone, so that the first rows of a data set come out
the same whatever follows them. Binary data come back as they are.
"""

import jax
import jax.numpy as jnp
import numpy as np

from annealz.core.arrays import on_device
from annealz.core.random import Stream

__all__ = ["binarise"]

_ROWS = 4096  # at a time


def binarise(data: np.ndarray, seed: int = 0) -> np.ndarray:
    """One draw of every unit of data (rows, units) in [0, 1], as float32 zeros and ones."""
    stream = Stream(seed, "binarise")
    out = np.empty(data.shape, np.float32)
    for start in range(0, len(data), _ROWS):
        block = on_device(data[start : start + _ROWS])
        out[start : start + _ROWS] = _draw(stream, block, start)
    return out


@jax.jit
def _draw(stream: Stream, block, start):
    bits = stream.at(0, start + jnp.arange(len(block)))
    coins = bits.uniforms(block.shape[1], draw=0)
    return (coins < block) | (block >= 1)  # a coin may be rounded up to 1

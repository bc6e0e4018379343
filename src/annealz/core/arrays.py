"""Arrays of JAX from numbers of the host.

`jnp.asarray` compiles a program for every new shape and type, which takes longer than most of what is done
with small arrays; a transfer compiles nothing.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

__all__ = ["indices", "on_device"]


def on_device(values: Any, dtype: Any = np.float32) -> jax.Array:
    """A copy of these numbers on the device; what is traced, or of this type already, as it is."""
    if isinstance(values, Tracer):
        return jnp.asarray(values, dtype)
    if isinstance(values, jax.Array) and values.dtype == dtype:
        return values
    with np.errstate(over="ignore", invalid="ignore"):  # as JAX converts
        return jax.device_put(np.array(values, dtype))


def indices(number: int) -> jax.Array:
    """0, 1, ..., number - 1."""
    return on_device(np.arange(number), np.int32)

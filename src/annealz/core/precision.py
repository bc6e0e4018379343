"""Float64 for one computation: JAX's global flag stays as it is.

Inside `in_float64()` JAX makes arrays of float64. What is traced there keeps its types when the program
runs, so that a part of a float32 program may compute in float64.
"""

from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.experimental

__all__ = ["in_float64"]


def in_float64() -> AbstractContextManager[Any]:
    """A context in which JAX computes in float64, in this thread alone."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return jax.experimental.enable_x64()  # pyright: ignore  # before JAX 0.8

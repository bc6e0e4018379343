"""Arrays of JAX from numbers of the host, and products on the host.

`jnp.asarray` compiles a program for every new shape and type, which takes longer than most of what is done
with small arrays; a transfer compiles nothing.

JAX's global flag of float64 stays as it is: inside `in_float64()` JAX makes arrays of float64, and what is
traced there keeps its types when the program runs.

Products of many short rows with small matrices stay on the host. A library of linear algebra takes
threads for a product of thousands of rows, which wait for each other where the cores have other work, and
XLA's threads are such work: 4,352 rows of 50 took 215 ms on a busy machine. In blocks of 64 rows it takes
none, and 2 ms.
"""

from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

_BLOCK = 64  # rows


def on_device(values: Any, dtype: Any = np.float32) -> jax.Array:
    """Copy numbers to the device; what is traced, or of this type already, as it is."""
    if isinstance(values, Tracer):
        return jnp.asarray(values, dtype)
    if isinstance(values, jax.Array) and values.dtype == dtype:
        return values
    with np.errstate(over="ignore", invalid="ignore"):  # as JAX converts
        return jax.device_put(np.array(values, dtype))


def real_array(name: str, value: Any) -> np.ndarray:
    """Return finite real numbers in float32; a ValueError with this name where they are not."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}.")
    with np.errstate(over="ignore", invalid="ignore"):
        array = array.astype(np.float32)
    if not np.isfinite(array).all():
        raise ValueError(
            f"{name} must be finite in float32, got {int((~np.isfinite(array)).sum())} "
            f"NaN or infinite of {array.size} values."
        )
    return array


def indices(number: int) -> jax.Array:
    """Return 0, 1, ..., number - 1."""
    return on_device(np.arange(number), np.int32)


def in_float64() -> AbstractContextManager[Any]:
    """Return a context in which JAX computes in float64, in this thread alone."""
    return jax.enable_x64(True)


def moments(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """sum_n x_n y_n^T, of rows x (n, i) and y (n, j)."""
    return np.matmul(_blocks(first).transpose(0, 2, 1), _blocks(second)).sum(0)


def times(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """M x_n of every row."""
    return np.matmul(_blocks(rows), matrix.T).reshape(-1, len(matrix))[: len(rows)]


def _blocks(rows: np.ndarray) -> np.ndarray:
    """(blocks, 64, dim), filled up with zeros."""
    filled = np.pad(rows, ((0, -len(rows) % _BLOCK), (0, 0)))
    return filled.reshape(-1, _BLOCK, rows.shape[1])

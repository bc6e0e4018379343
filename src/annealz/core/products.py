"""Products of binary states with a real matrix, equal to float32 on any device.

The tensor cores of a GPU multiply half-precision numbers, ten times faster than other units multiply
float32 ones. There a matrix is held as two of them, side by side or one above the other,

    M = 2^e (high + low),     high = half(M / 2^e),     low = half(M / 2^e - high)
    x M = 2^e (x high + x low) = 2^e [x x] [high; low]

with e such that the largest entry lies between 2^13 and 2^14. High and low together carry 22 bits of
every entry, or leave an error of 2^-39 of the largest one where that is more; the states 0 and 1 are
exact, products with them are exact, and their sums are taken in float32: what differs from a float32
product is of the size of that product's own rounding. Either way it is one product, and the narrower of
its two sides is the one that is doubled. All axes are filled up with zeros to the multiples that tensor
cores take.

Elsewhere the matrix is held as it is. A CPU multiplies it with columns of zeros up to a multiple of 8: a
product with 21 columns takes a seventh longer than one with 24, and 29 take a third longer than 32.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from annealz.core.arrays import on_device
from annealz.core.devices import platform

__all__ = ["BinaryProduct", "matmul"]

_LARGEST_EXPONENT = 14
_ALIGNMENT = 16  # entries of an axis
_CPU_COLUMNS = 8  # whose multiples a CPU multiplies faster


def matmul(x, y):
    """The product in true float32, on any device."""
    return jnp.matmul(x, y, precision=jax.lax.Precision.HIGHEST)


class BinaryProduct(eqx.Module):
    """x -> x M for states x (chains, units) of zeros and ones.

    Parameters
    ----------
    matrix : M, (units, outputs)
    is_split : hold M as two half-precision matrices; by default on a GPU
    """

    matrix: Float[Array, "..."]
    scale: Float[Array, ""]
    wider: Float[Array, "units columns"] | None
    """M with columns of zeros, where a CPU multiplies it faster."""
    shape: tuple[int, int] = eqx.field(static=True)
    is_split: bool = eqx.field(static=True)

    def __init__(
        self, matrix: Float[Array | np.ndarray, "units outputs"], is_split: bool | None = None
    ):
        units, outputs = matrix.shape
        self.shape = (units, outputs)
        self.is_split = platform() == "gpu" if is_split is None else is_split
        self.wider = None
        if self.is_split:
            self.matrix, self.scale = _split(np.asarray(matrix, np.float64), self._is_wide)
        else:
            self.matrix, self.scale = on_device(matrix), on_device(1)
            if outputs % _CPU_COLUMNS and platform() == "cpu":
                self.wider = on_device(_filled(np.asarray(matrix), axis=1, multiple=_CPU_COLUMNS))

    @property
    def state_dtype(self):
        """The type in which states are multiplied."""
        return self.matrix.dtype

    def __call__(self, x: Float[Array, "chains units"]) -> Float[Array, "chains outputs"]:
        outputs = self.shape[1]
        if self.wider is not None:
            return matmul(x, self.wider)[..., :outputs]
        if not self.is_split:
            return matmul(x, self.matrix)
        x = x.astype(self.state_dtype)
        if not self._is_wide:
            x = jnp.concatenate([x, x], -1)
        x = jnp.pad(x, ((0, 0), (0, self.matrix.shape[0] - x.shape[1])))
        product = jnp.matmul(x, self.matrix, preferred_element_type=jnp.float32)
        if self._is_wide:
            half = product.shape[1] // 2
            return self.scale * (product[:, :outputs] + product[:, half : half + outputs])
        return self.scale * product[:, :outputs]

    @property
    def terms(self) -> tuple[Float[Array, "units outputs"], Float[Array, "units outputs"]]:
        """High and low, where M is split."""
        units, outputs = self.shape
        if self._is_wide:
            half = self.matrix.shape[1] // 2
            return self.matrix[:units, :outputs], self.matrix[:units, half : half + outputs]
        return self.matrix[:units, :outputs], self.matrix[units : 2 * units, :outputs]

    def dense(self) -> np.ndarray:
        """M itself, float64 (units, outputs), as it is held."""
        if not self.is_split:
            return np.asarray(self.matrix, np.float64)
        high, low = (np.asarray(term, np.float64) for term in self.terms)
        return float(self.scale) * (high + low)

    @property
    def _is_wide(self) -> bool:
        """Whether the halves lie side by side."""
        return self.shape[1] < self.shape[0]


def _split(exact: np.ndarray, is_wide: bool) -> tuple[Float[Array, "..."], Float[Array, ""]]:
    """([high low] or [high; low], 2^e)."""
    exponent = int(np.frexp(np.abs(exact).max(initial=0.0))[1]) - _LARGEST_EXPONENT
    scaled = np.ldexp(exact, -exponent)
    high = scaled.astype(np.float16)
    low = (scaled - high).astype(np.float16)
    if is_wide:
        both = np.concatenate([_filled(high, axis=1), _filled(low, axis=1)], axis=1)
    else:
        both = _filled(np.concatenate([high, low]), axis=1)
    return on_device(_filled(both, axis=0), np.float16), on_device(np.ldexp(1.0, exponent))


def _filled(matrix: np.ndarray, axis: int, multiple: int = _ALIGNMENT) -> np.ndarray:
    """The matrix with zeros up to the next multiple."""
    width = [(0, 0), (0, 0)]
    width[axis] = (0, -matrix.shape[axis] % multiple)
    return np.pad(matrix, width)

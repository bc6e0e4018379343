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

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from annealz.core.arrays import on_device
from annealz.core.devices import platform

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
    shape: tuple[int, int] = eqx.field(static=True)
    is_split: bool = eqx.field(static=True)

    def __init__(
        self,
        matrix: "Float[Array | np.ndarray, 'units outputs'] | _Halves",
        is_split: bool | None = None,
    ):
        if is_split is None:
            is_split = isinstance(matrix, _Halves) or platform() == "gpu"
        units, outputs = matrix.shape
        self.shape, self.is_split = (units, outputs), is_split
        if is_split:
            halves = matrix if isinstance(matrix, _Halves) else _Halves.of(matrix)
            self.matrix = on_device(halves.arranged(self._is_wide), np.float16)
            self.scale = on_device(np.ldexp(1.0, halves.exponent))
        else:
            self.matrix, self.scale = on_device(matrix), on_device(1)

    def transposed(
        self, matrix: Float[np.ndarray, "units outputs"], column: Float[np.ndarray, " outputs"]
    ) -> "BinaryProduct":
        """x -> x [M^T column], of the M that this is the product of: halves of M are not made again."""
        if self.is_split:
            high, low = (term.T for term in self._terms(np.asarray(self.matrix)))
            halves = _Halves(high, low, int(np.frexp(float(self.scale))[1]) - 1)
            if halves.holds(column):
                return BinaryProduct(halves.with_column(column))
        return BinaryProduct(np.concatenate([matrix, column[None]]).T, self.is_split)

    def widened(self) -> "BinaryProduct":
        """The same with columns of zeros, where a CPU multiplies it faster."""
        have = self.matrix.shape[-1]
        if self.is_split or have % _CPU_COLUMNS == 0 or platform() != "cpu":
            return self
        wider = _filled(np.asarray(self.matrix), axis=1, multiple=_CPU_COLUMNS)
        return eqx.tree_at(lambda product: product.matrix, self, on_device(wider))

    @property
    def state_dtype(self):
        """The type in which states are multiplied."""
        return self.matrix.dtype

    def __call__(self, x: Float[Array, "chains units"]) -> Float[Array, "chains outputs"]:
        outputs = self.shape[1]
        if not self.is_split:
            return matmul(x, self.matrix)[..., :outputs]
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
    def terms(self) -> tuple[np.ndarray, np.ndarray]:
        """High and low, where M is split, on the host: no program is compiled for them."""
        return self._terms(np.asarray(self.matrix))

    def _terms(self, both: Any) -> tuple[Any, Any]:
        units, outputs = self.shape
        if self._is_wide:
            half = both.shape[1] // 2
            return both[:units, :outputs], both[:units, half : half + outputs]
        return both[:units, :outputs], both[units : 2 * units, :outputs]

    def dense(self) -> np.ndarray:
        """M itself, float64 (units, outputs), as it is held."""
        if not self.is_split:
            return np.asarray(self.matrix, np.float64)[:, : self.shape[1]]
        high, low = (term.astype(np.float32) for term in self._terms(np.asarray(self.matrix)))
        return float(self.scale) * (high.astype(np.float64) + low)

    @property
    def _is_wide(self) -> bool:
        """Whether the halves lie side by side."""
        return self.shape[1] < self.shape[0]


class _Halves(NamedTuple):
    """High and low of a float32 matrix, and e: what is done with its numbers here is exact."""

    high: np.ndarray
    low: np.ndarray
    exponent: int

    @classmethod
    def of(cls, matrix: Any, exponent: int | None = None) -> "_Halves":
        exact = np.asarray(matrix, np.float32)
        exponent = _exponent(exact) if exponent is None else exponent
        scaled = np.ldexp(exact, -exponent)
        high = scaled.astype(np.float16)
        return cls(high, (scaled - high).astype(np.float16), exponent)

    @property
    def shape(self) -> tuple[int, int]:
        units, outputs = self.high.shape
        return units, outputs

    def holds(self, column: np.ndarray) -> bool:
        """Whether numbers of this size leave e as it is."""
        return _exponent(column) <= self.exponent

    def with_column(self, column: np.ndarray) -> "_Halves":
        """The same with one more output."""
        more = _Halves.of(column[:, None], self.exponent)
        high, low = np.hstack([self.high, more.high]), np.hstack([self.low, more.low])
        return _Halves(high, low, self.exponent)

    def arranged(self, is_wide: bool) -> np.ndarray:
        """[high low] or [high; low], filled up."""
        if is_wide:
            both = np.concatenate([_filled(term, axis=1) for term in self[:2]], axis=1)
        else:
            both = _filled(np.concatenate(self[:2]), axis=1)
        return _filled(both, axis=0)


def _exponent(exact: np.ndarray) -> int:
    """e, such that the largest number lies between 2^13 and 2^14 times 2^e."""
    return int(np.frexp(np.abs(exact).max(initial=0.0))[1]) - _LARGEST_EXPONENT


def _filled(matrix: np.ndarray, axis: int, multiple: int = _ALIGNMENT) -> np.ndarray:
    """The matrix with zeros up to the next multiple."""
    width = [(0, 0), (0, 0)]
    width[axis] = (0, -matrix.shape[axis] % multiple)
    return np.pad(matrix, width)

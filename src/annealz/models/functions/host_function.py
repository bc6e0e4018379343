"""A function of NumPy, called on the host in float64.

A compiled program calls it through `jax.pure_callback`: once for all chains of a block, whose points are
evaluated one by one, or all at once where the function is vectorised,

    value = float32( f(float64(x)) - offset )

There is no gradient. An exception, a NaN, +inf or a wrong shape becomes one sentence (`core/failures.py`);
-inf is a density of zero.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from annealz.core import interrupts
from annealz.core.failures import FunctionError, call_on_host, one_line
from annealz.models.functions.abstract import AbstractFunction


class HostFunction(AbstractFunction):
    """A function of NumPy, of one position or with `vectorized` of many.

    Parameters
    ----------
    function : of what `place` makes of a position: one real number; vectorised, one per position
    place : rows (points, dim) to what the function takes, the positions first in every array
    before : x (dim,) to the row that `place` gets, in JAX; by default x itself
    argument, label : how sentences call the function, and the model
    """

    function: Callable[[Any], Any]
    place: Callable[[np.ndarray], Any]
    argument: str = eqx.field(static=True)
    label: str = eqx.field(static=True)
    vectorized: bool = eqx.field(static=True)
    before: Callable[[Any], Any] | None = None

    def value(self, x, offset=0.0):
        shape = jax.ShapeDtypeStruct((), jnp.float32)

        def of_points(x, *traced):
            rows = np.array(x, np.float64)
            values = self.values(rows.reshape(-1, rows.shape[-1])).reshape(rows.shape[:-1])
            shift = np.asarray(traced[0], np.float64) if traced else offset
            with np.errstate(over="ignore"):
                return (values - shift).astype(np.float32)

        x = x if self.before is None else self.before(x)
        traced = (offset,) if isinstance(offset, jax.Array) else ()
        return call_on_host(of_points, shape, x, *traced)

    def value_and_gradient(self, x, offset=0.0):
        raise ValueError(
            f"{self.argument} of {self.label} is a NumPy function and has no gradient: take "
            "kernel=annealz.RandomWalk(), or write it with jax.numpy."
        )

    def values(self, rows: np.ndarray) -> np.ndarray:
        """f of every row (points, dim), float64."""
        interrupts.check()
        placed = self.place(rows)
        if self.vectorized:
            values = called(self.function, placed, self.argument, self.label)
        else:
            values = []
            for i in range(len(rows)):
                interrupts.check()
                values.append(called(self.function, at_point(placed, i), self.argument, self.label))
        return self._real(values, placed, len(rows))

    def _real(self, values: Any, placed: Any, count: int) -> np.ndarray:
        """The values, if they are as many real numbers and none is NaN or +inf."""
        try:
            array = np.asarray(values)
        except (TypeError, ValueError):  # of several shapes
            array = np.asarray(values, object)
        if array.shape != (count,) or array.dtype.kind not in "fiub":
            one: Any = values if self.vectorized else next(iter(values), 0.0)
            wanted = (
                f"{count} real numbers, one per position" if self.vectorized else "one real number"
            )
            got = (
                type(one).__name__ if np.shape(one) in ((), (count,)) else f"shape {np.shape(one)}"
            )
            raise FunctionError(f"{self.argument} of {self.label} must return {wanted}, got {got}.")
        wrong = np.flatnonzero(np.isnan(array) | (array == np.inf))
        if wrong.size:
            what = "NaN" if np.isnan(array[wrong[0]]) else "+inf"
            raise FunctionError(
                f"{self.argument} of {self.label} must return a real number or -inf, got {what} at "
                f"{_shown(at_point(placed, int(wrong[0])))}: return -inf where the density is zero."
            )
        return array.astype(np.float64)

    @property
    def is_differentiable(self) -> bool:
        return False

    @property
    def note(self) -> str:
        how = "many points at a time" if self.vectorized else "one point at a time"
        return (
            f"{self.argument} is a NumPy function, called on the host in float64, {how}, without "
            "gradients"
        )


def called(function: Callable[[Any], Any], point: Any, argument: str, label: str) -> Any:
    """function(point); what it raises in one sentence."""
    try:
        return function(point)
    except Exception as error:
        raise FunctionError(
            f"{argument} of {label} raised {one_line(error)} at {_shown(point)}."
        ) from error


def at_point(placed: Any, i: int) -> Any:
    """What belongs to one of the positions, as arrays of its own."""
    if isinstance(placed, np.ndarray):
        return placed[i].copy()
    return jax.tree.map(
        lambda values: np.array(values[i]) if values.ndim > 1 else values[i], placed
    )


def _shown(point: Any) -> str:
    """A point in a sentence, in one line."""
    with np.printoptions(precision=4, threshold=12, edgeitems=4):
        words = " ".join(str(point).split())
    return words if len(words) < 160 else words[:156] + " ..."

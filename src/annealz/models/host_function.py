"""Functions of NumPy, called on the host in float64, and how they are distinguished from functions of JAX.

A compiled program calls a function of NumPy through `jax.pure_callback`: once for all chains of a block,
whose points are evaluated one by one, or all at once where the function is vectorised,

    value = float32( f(float64(x)) - offset )

There is no gradient. An exception, a NaN, +inf or a wrong shape becomes one sentence (`core/failures.py`);
-inf is a density of zero.

A user's function is traced first. What fails is called on a point of NumPy, inside a trace of its own: what
uses JAX there meets traced values, so that a function that passes is NumPy's alone and may be called from a
compiled program. (JAX's functions may not: they would wait for the program that waits for them.)
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from annealz.core import interrupts
from annealz.core.arrays import in_float64
from annealz.core.failures import FunctionError, call_on_host, one_line
from annealz.core.own_arrays import with_own_arrays
from annealz.models.functions import AbstractFunction, JaxFunction
from annealz.models.layout import Layout, StateLayout


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
        """Return f of every row (points, dim), float64."""
        placed = self.place(rows)
        values = call_rows(self.function, placed, self.vectorized, self.argument, self.label)
        return self._real(values, placed, len(rows))

    def _real(self, values: Any, placed: Any, count: int) -> np.ndarray:
        """Return the values, if they are as many real numbers and none is NaN or +inf."""
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


def call_rows(
    function: Callable[[Any], Any], placed: Any, vectorized: bool, argument: str, label: str
) -> Any:
    """Return what a function makes of every position, or of all at once; what it raises in one sentence."""
    count = len(jax.tree.leaves(placed)[0])
    points = [placed] if vectorized else (at_point(placed, i) for i in range(count))
    values = []
    for point in points:
        interrupts.check()
        try:
            values.append(function(point))
        except Exception as error:
            raise FunctionError(
                f"{argument} of {label} raised {one_line(error)} at {_shown(point)}."
            ) from error
    return values[0] if vectorized else values


def at_point(placed: Any, i: int) -> Any:
    """Return what belongs to one of the positions, as arrays of its own."""
    if isinstance(placed, np.ndarray):
        return placed[i].copy()
    return jax.tree.map(
        lambda values: np.array(values[i]) if values.ndim > 1 else values[i], placed
    )


def _shown(point: Any) -> str:
    """Write a point in one line."""
    with np.printoptions(precision=4, threshold=12, edgeitems=4):
        words = " ".join(str(point).split())
    return words if len(words) < 160 else words[:156] + " ..."


def as_function(
    function: Callable[[Any], Any],
    layout: Layout | StateLayout,
    point: Any,
    *,
    label: str,
    vectorized: bool = False,
    dtype: str = "float32",
) -> AbstractFunction:
    """Return the log density `function` of what `layout` makes of a position, and of which kind it is.

    A function of NumPy is tried on `point`.
    """
    argument = f"fn of {label}"

    def of_one(x):
        return own(layout.split(x[None]))[0] if vectorized else own(layout.split(x))

    own = with_own_arrays(function) if dtype == "float64" else function
    failure = trace_failure(
        of_one, layout.dim, dtype, argument, ", the log density of its position"
    )
    if failure is None:
        return JaxFunction(own if layout.is_plain and not vectorized else of_one, dtype)
    many = jax.tree.map(lambda leaf: np.asarray(leaf)[None], point) if vectorized else point
    check_numpy(function, many, failure, argument, layout.shown)
    callable_ = function if hasattr(function, "__code__") else function.__call__
    return HostFunction(callable_, layout.split, "fn", label, vectorized)


def trace_failure(
    function: Callable[[Any], Any], dim: int, dtype: str, argument: str, meaning: str = ""
) -> Exception | None:
    """Return why JAX cannot trace a function of a position (dim,), None where it can.

    One that does not return one real number is refused.
    """
    try:
        if dtype == "float64":
            with in_float64():
                out = jax.eval_shape(function, jax.ShapeDtypeStruct((dim,), jnp.float64))
        else:
            out = jax.eval_shape(function, jax.ShapeDtypeStruct((dim,), jnp.float32))
    except Exception as error:
        return error
    shape = getattr(out, "shape", None)
    if shape != () or not jnp.issubdtype(out.dtype, jnp.floating):
        got = f"shape {shape}" if shape else out
        raise ValueError(f"{argument} must return one real number{meaning}, got {got}.")
    return None


def check_numpy(
    function: Callable[[Any], Any], point: Any, failure: Exception, argument: str, takes: str
) -> None:
    """Refuse a function that JAX cannot trace, and that is not NumPy's either."""
    try:
        is_numpys = _uses_no_jax(function, point)
    except Exception as error:
        is_jax = isinstance(failure, jax.errors.JAXTypeError)
        raise _traced_error(error if is_jax else failure, argument, takes) from error
    if not is_numpys:
        raise _traced_error(failure, argument, takes) from failure


def is_numpy(function: Callable[[Any], Any], point: Any) -> bool:
    """Check whether a function that JAX traces is NumPy's as well."""
    try:
        return _uses_no_jax(function, point)
    except Exception:
        return False


def _uses_no_jax(function: Callable[[Any], Any], point: Any) -> bool:
    """Check whether it takes a point of NumPy and uses nothing of JAX; raise what it raises else."""
    held = []

    def trial():
        held.append(function(point))
        return 0.0

    try:
        jax.eval_shape(trial)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError, jax.errors.UnexpectedTracerError):
        return False
    return not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(held))


def _traced_error(error: Exception, argument: str, takes: str) -> ValueError:
    """Return why a function that is not NumPy's alone could not be traced, in one sentence."""
    if isinstance(error, FunctionError):
        return ValueError(str(error))
    if isinstance(error, TypeError | IndexError) and "only integers" in str(error).replace(
        "string indexing", "only integers"
    ):
        return ValueError(
            f"{argument} looks parameters up by name and was given {takes}: give an example of them "
            'instead of dim, such as LogDensity(fn, {"mean": 0.0, "effects": np.zeros(3)}).'
        )
    kinds = (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError)
    if isinstance(error, kinds):
        return ValueError(
            f"{argument} mixes JAX with Python numbers or NumPy, which JAX cannot trace "
            f"({type(error).__name__}): leave out float(), if and NumPy's functions for jax.numpy's, or "
            "write all of it with NumPy."
        )
    return ValueError(f"{argument} must take {takes}, and it failed on one: {one_line(error)}.")

"""Whether a user's function is one of JAX or one of NumPy.

A function is traced first. What fails is called on a point of NumPy, inside a trace of its own: what uses
JAX there meets traced values, so that a function that passes is NumPy's alone and may be called from a
compiled program. (JAX's functions may not: they would wait for the program that waits for them.)
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from annealz.core.arrays import in_float64
from annealz.core.failures import FunctionError, one_line
from annealz.core.own_arrays import with_own_arrays
from annealz.models.functions.abstract import AbstractFunction
from annealz.models.functions.host_function import HostFunction
from annealz.models.functions.jax_function import JaxFunction
from annealz.models.layout import Layout


def as_function(
    function: Callable[[Any], Any],
    layout: Layout,
    point: Any,
    *,
    label: str,
    vectorized: bool = False,
    dtype: str = "float32",
) -> AbstractFunction:
    """The log density `function` of what `layout` makes of a position; NumPy's are tried on `point`."""
    argument = f"fn of {label}"

    def of_one(x):
        return own(layout.split(x[None]))[0] if vectorized else own(layout.split(x))

    own = with_own_arrays(function) if dtype == "float64" else function

    try:
        out = shape_when_traced(of_one, layout.dim, dtype)
    except Exception as error:
        failure = error
    else:
        shape = getattr(out, "shape", None)
        if shape != () or not jnp.issubdtype(out.dtype, jnp.floating):
            got = f"shape {shape}" if shape else out
            raise ValueError(
                f"{argument} must return one real number, the log density of its position, got {got}."
            )
        return JaxFunction(own if layout.is_plain and not vectorized else of_one, dtype)
    many = jax.tree.map(lambda leaf: np.asarray(leaf)[None], point) if vectorized else point
    if not _is_numpys(function, many, failure, argument, layout.shown):
        raise traced_error(failure, argument, layout.shown)
    callable_ = function if hasattr(function, "__code__") else function.__call__
    return HostFunction(callable_, layout.split, "fn", label, vectorized)


def _is_numpys(function, point, failure: Exception, argument: str, takes: str) -> bool:
    """Whether a function that JAX cannot trace is NumPy's; one sentence where it fails there too."""
    try:
        return is_numpy(function, point)
    except Exception as error:
        is_jax = isinstance(failure, jax.errors.JAXTypeError)
        raise traced_error(error if is_jax else failure, argument, takes) from error


def shape_when_traced(function: Callable[[Any], Any], dim: int, dtype: str) -> Any:
    """Shapes and types of what it returns for a position (dim,); raises what tracing it raises."""
    if dtype == "float64":
        with in_float64():
            return jax.eval_shape(function, jax.ShapeDtypeStruct((dim,), jnp.float64))
    return jax.eval_shape(function, jax.ShapeDtypeStruct((dim,), jnp.float32))


def is_numpy(function: Callable[[Any], Any], point: Any) -> bool:
    """Whether it takes a point of NumPy and uses nothing of JAX; raises what it raises else."""
    held = []

    def trial():
        held.append(function(point))
        return 0.0

    try:
        jax.eval_shape(trial)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError, jax.errors.UnexpectedTracerError):
        return False
    return not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(held))


def traced_error(error: Exception, argument: str, takes: str) -> ValueError:
    """Why a function that is not NumPy's alone could not be traced, in one sentence."""
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

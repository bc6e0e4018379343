"""A function that JAX traces, evaluated in float32 or in float64.

In float64 the position is converted, the function and its gradient are computed in a part of the program
that is traced with float64 (`core/arrays.py`), the offset is subtracted, and the result is rounded last:

    value = float32( f(float64(x)) - offset )
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from annealz.core.arrays import in_float64
from annealz.core.own_arrays import with_own_arrays
from annealz.models.functions.abstract import AbstractFunction


class JaxFunction(AbstractFunction):
    """A function of one position (dim,) that JAX traces."""

    function: Callable[[Any], Any]
    dtype: str = eqx.field(static=True, default="float32")
    has_gradient: bool = eqx.field(static=True, default=True)
    """False for one that calls a function of NumPy."""

    def value(self, x, offset=0.0):
        if self.dtype == "float32":
            return (jnp.asarray(self.function(x)) - offset).astype(jnp.float32)
        return self._double(x, offset)

    def _double(self, x, offset):
        @jax.custom_jvp
        def value(x):
            with in_float64():
                value = jnp.asarray(self.function(x.astype(jnp.float64))) - offset
                return value.astype(jnp.float32)

        @value.defjvp
        def _(primals, tangents):  # the gradient is taken where float64 holds
            f, gradient = self.value_and_gradient(primals[0], offset)
            return f, jnp.vdot(gradient, tangents[0], precision=jax.lax.Precision.HIGHEST)

        return value(x)

    def value_and_gradient(self, x, offset=0.0):
        if self.dtype == "float32":
            return super().value_and_gradient(x, offset)
        with in_float64():
            value, gradient = jax.value_and_grad(lambda x: jnp.asarray(self.function(x)) - offset)(
                x.astype(jnp.float64)
            )
            return value.astype(jnp.float32), gradient.astype(jnp.float32)

    @property
    def is_differentiable(self) -> bool:
        return self.has_gradient

    def rounding(self, x: np.ndarray) -> float:
        """Of the function as it is evaluated: float32 against float64, at these points."""
        if self.dtype == "float64":
            return 0.0
        points = np.asarray(x, np.float32)
        single = np.asarray(_values(self, points), np.float64)
        try:
            with in_float64():
                exact = _values_of_own(self.function, np.float64(points))
                errors = np.asarray(exact, np.float64) - single
        except (
            TypeError,
            ValueError,
        ):  # what cannot be compiled in float64: half a unit of the last digit
            errors = np.finfo(np.float32).epsneg * single
        errors = errors[np.isfinite(errors)]
        return float(np.sqrt(np.mean(errors**2))) if errors.size else 0.0

    @property
    def num_roundings(self) -> int:
        return 0 if self.dtype == "float64" else 2

    def program(self, dim: int) -> Any:
        if self.dtype == "float32":
            return jax.make_jaxpr(self.function)(jnp.zeros(dim, jnp.float32))
        return super().program(dim)


@eqx.filter_jit
def _values(function, points):
    return jax.vmap(function.value)(points)


@eqx.filter_jit
def _values_of_own(function, points):
    """With arrays that the function holds in its own precision."""
    other = with_own_arrays(function)
    return jax.vmap(lambda x: jnp.asarray(other(x)))(points)

"""Functions of one position, f(x) - offset as float32, whatever precision they compute in.

    value(x (dim,), offset) -> ()            the offset subtracted before anything is rounded to float32

`jax.vmap` of one is the function of many positions. In float64 the position is converted, the function and
its gradient are computed in a part of the program that is traced with float64, and the result is rounded
last:

    value = float32( f(float64(x)) - offset )

Functions of NumPy are in `host_function.py`.
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from annealz.bases.warped import Warp
from annealz.core.arrays import in_float64, on_device
from annealz.core.own_arrays import with_own_arrays

Offset = float | Array


class AbstractFunction(eqx.Module):
    """A function that a density evaluates."""

    @abc.abstractmethod
    def value(self, x: Float[Array, " dim"], offset: Offset = 0.0) -> Float[Array, ""]:
        """Return f(x) - offset, float32."""

    def value_and_gradient(
        self, x: Float[Array, " dim"], offset: Offset = 0.0
    ) -> tuple[Float[Array, ""], Float[Array, " dim"]]:
        """Return f(x) - offset and its gradient, both float32."""
        return jax.value_and_grad(lambda x: self.value(x, offset))(x)

    def __call__(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        return self.value(x)

    @property
    @abc.abstractmethod
    def is_differentiable(self) -> bool:
        """Whether JAX can take its gradient."""

    @property
    def note(self) -> str | None:
        """What users should know of how it is evaluated, if anything."""
        return None

    def rounding(self, x: np.ndarray) -> float:
        """Return the root mean square error of a float32 value at these points (points, dim)."""
        return 0.0

    @property
    def num_roundings(self) -> int:
        """Evaluations that `rounding` takes per point."""
        return 0

    def program(self, dim: int) -> Any:
        """Return the program that JAX makes of it: its identity."""
        return jax.make_jaxpr(self.value)(jnp.zeros(dim, jnp.float32))


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
        """Compare float32 with float64 at these points, of the function as it is evaluated."""
        if self.dtype == "float64":
            return 0.0
        points = np.asarray(x, np.float32)
        single = np.asarray(_values(self, points), np.float64)
        try:
            with in_float64():
                exact = _values_of_own(self.function, np.float64(points))
                errors = np.asarray(exact, np.float64) - single
        except (TypeError, ValueError):  # not compiled in float64: half a unit of the last digit
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
    """Evaluate it with arrays that the function holds in its own precision."""
    other = with_own_arrays(function)
    return jax.vmap(lambda x: jnp.asarray(other(x)))(points)


class AbstractWrapper(AbstractFunction):
    """A function around another one, which is evaluated as that is."""

    inner: AbstractFunction

    @property
    def is_differentiable(self) -> bool:
        return self.inner.is_differentiable

    @property
    def note(self) -> str | None:
        return self.inner.note

    def rounding(self, x: np.ndarray) -> float:
        return self.inner.rounding(x)

    @property
    def num_roundings(self) -> int:
        return self.inner.num_roundings


class Posterior(AbstractWrapper):
    """Prior times likelihood, log L(theta(x)) + log p(x), in unconstrained coordinates x.

    The offset goes with the likelihood, whose precision it is for; the prior is of order dim, in float32.
    """

    log_prior: Callable[[Any], Any]

    def value(self, x, offset=0.0):
        return self.inner.value(x, offset) + self.log_prior(x).astype(jnp.float32)

    def value_and_gradient(self, x, offset=0.0):
        value, gradient = self.inner.value_and_gradient(x, offset)
        prior, slope = jax.value_and_grad(self.log_prior)(x)
        return value + prior.astype(jnp.float32), gradient + slope.astype(jnp.float32)


class WarpedFunction(AbstractWrapper):
    """A function in other coordinates, x = warp(u): the log density of u, f(x) + log |dx/du|."""

    warp: Warp

    def value(self, x: Float[Array, " dim"], offset: Offset = 0.0) -> Float[Array, ""]:
        value = self.inner.value(self.warp.forward(x), offset) + self.warp.log_stretch(x)
        return jnp.where(self.warp.is_resolved(x), value, -jnp.inf)

    def rounding(self, x: np.ndarray) -> float:
        rows = self.warp.forward(on_device(np.asarray(x)))
        return self.inner.rounding(np.asarray(rows))

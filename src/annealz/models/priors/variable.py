"""One parameter under its prior: its value as a function of unconstrained coordinates, and their law.

    theta = value(x),    x (size,) with the normalised log density `log_density` and exact draws

A variable without `density` has standard normal coordinates. Distributions of NumPyro are moved to the
reals by the bijection of their support,

    theta = b(x),     log p(x) = log p(theta) + log |d theta / dx|

which serves any continuous distribution that can be drawn from and has a density: Dirichlet, LKJ and others
too. Those of SciPy are in `scipy_variable.py`.
"""

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

NUM_STARTS = 8  # points that are drawn from a prior
_FAR = 80.0  # where a coordinate is put whose draw was rounded onto the edge of its support


@dataclasses.dataclass(frozen=True)
class Variable:
    """A parameter of this shape, of `size` unconstrained coordinates."""

    shape: tuple[int, ...]
    size: int
    value: Callable[[Array], Any]
    """x (size,) to the parameter, of this shape."""
    coordinates: Callable[[np.ndarray], np.ndarray] | None = None
    """Parameters (draws, ...) back to rows (draws, size)."""
    density: Callable[[Array], Array] | None = None
    drawn: Callable[[Array], Array] | None = None

    @property
    def is_normal(self) -> bool:
        return self.density is None

    def log_density(self, x: Array) -> Array:
        """Return the log of the normalised density of the coordinates."""
        if self.density is not None:
            return self.density(x)
        return -0.5 * (x**2).sum() - self.size / 2 * np.log(2 * np.pi)

    def draw(self, key: Array) -> Array:
        """Return an exact draw of the coordinates (size,)."""
        if self.drawn is None:
            return jax.random.normal(key, (self.size,), jnp.float32)
        return self.drawn(key)


def is_numpyro(given: Any) -> bool:
    """Check whether it is one of NumPyro's distributions; NumPyro is not imported to see that."""
    module = sys.modules.get("numpyro.distributions")
    return module is not None and isinstance(given, module.Distribution)


def numpyro_variable(name: str, given: Any) -> Variable:
    """Return the parameter of this name; a ValueError where the distribution has no density."""
    from numpyro.distributions import biject_to

    kind = type(given).__name__
    remedy = "sum it out, or take a continuous distribution that can be drawn from."
    if given.is_discrete:
        raise ValueError(
            f"prior of {name} must be a continuous distribution with a density, and {kind} is discrete: "
            f"{remedy}"
        )
    shape = tuple(given.batch_shape) + tuple(given.event_shape)
    try:
        bijection = biject_to(given.support)
        inner = tuple(bijection.inverse_shape(shape))
        jax.eval_shape(lambda key: given.log_prob(given.sample(key)), jax.random.key(0))
    except Exception as error:
        raise ValueError(
            f"prior of {name} must be a distribution with a density and with draws, and {kind} is not "
            f"({type(error).__name__}): {remedy}"
        ) from error
    size = int(np.prod(inner))

    def value(x):
        return bijection(x.reshape(inner))

    def density(x):
        x = x.reshape(inner)
        theta = bijection(x)
        jacobian = bijection.log_abs_det_jacobian(x, theta)
        return given.log_prob(theta).sum() + jnp.sum(jacobian)

    def draw(key):
        return finite(bijection.inv(given.sample(key)).reshape(size))

    def coordinates(values):
        rows = jax.jit(jax.vmap(bijection.inv))(np.asarray(values, np.float32))
        return np.asarray(rows, np.float64).reshape(-1, size)

    return Variable(shape, size, value, coordinates, density, draw)


def finite(x: Array) -> Array:
    """Return coordinates of a draw in float32, at a finite place where it was rounded onto an edge."""
    return jnp.nan_to_num(x.astype(jnp.float32), posinf=_FAR, neginf=-_FAR)

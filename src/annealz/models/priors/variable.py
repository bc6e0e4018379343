"""One parameter under its prior: its value as a function of unconstrained coordinates, and their law.

    theta = value(x),    x (size,) with the normalised log density `log_density` and exact draws

A variable without `log_density` has standard normal coordinates.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array


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
        """log of the normalised density of the coordinates."""
        if self.density is not None:
            return self.density(x)
        return -0.5 * (x**2).sum() - self.size / 2 * np.log(2 * np.pi)

    def draw(self, key: Array) -> Array:
        """An exact draw of the coordinates (size,)."""
        if self.drawn is None:
            return jax.random.normal(key, (self.size,), jnp.float32)
        return self.drawn(key)

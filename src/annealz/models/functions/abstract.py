"""A function of one position, f(x) - offset as float32, whatever precision it computes in.

    value(x (dim,), offset) -> ()            the offset subtracted before anything is rounded to float32

`jax.vmap` of it is the function of many positions.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Offset = float | Array


class AbstractFunction(eqx.Module):
    """What a density evaluates."""

    @abc.abstractmethod
    def value(self, x: Float[Array, " dim"], offset: Offset = 0.0) -> Float[Array, ""]:
        """f(x) - offset, float32."""

    def value_and_gradient(
        self, x: Float[Array, " dim"], offset: Offset = 0.0
    ) -> tuple[Float[Array, ""], Float[Array, " dim"]]:
        """f(x) - offset and its gradient, both float32."""
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
        """Root mean square error of a float32 value, at these points (points, dim)."""
        return 0.0

    @property
    def num_roundings(self) -> int:
        """Evaluations that `rounding` takes per point."""
        return 0

    def program(self, dim: int) -> Any:
        """The program that JAX makes of it: its identity."""
        return jax.make_jaxpr(self.value)(jnp.zeros(dim, jnp.float32))

"""A function in other coordinates, x = warp(u): the log density of u, f(x) + log |dx/du|."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from annealz.bases.warped import Warp
from annealz.core.arrays import on_device
from annealz.models.functions.abstract import AbstractFunction, Offset


class WarpedFunction(AbstractFunction):
    """Of u, given a function of x."""

    inner: AbstractFunction
    warp: Warp

    def value(self, x: Float[Array, " dim"], offset: Offset = 0.0) -> Float[Array, ""]:
        value = self.inner.value(self.warp.forward(x), offset) + self.warp.log_stretch(x)
        return jnp.where(self.warp.is_resolved(x), value, -jnp.inf)

    @property
    def is_differentiable(self) -> bool:
        return self.inner.is_differentiable

    def rounding(self, x: np.ndarray) -> float:
        rows = self.warp.forward(on_device(np.asarray(x)))
        return self.inner.rounding(np.asarray(rows))

    @property
    def num_roundings(self) -> int:
        return self.inner.num_roundings

    def program(self, dim: int) -> Any:
        return jax.make_jaxpr(self.value)(jnp.zeros(dim, jnp.float32))

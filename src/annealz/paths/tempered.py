"""The geometric path between a base and any density.

    log p*_beta(x) = (1 - beta) log p*_A(x) + beta f(x)            f the model's log density
    U(x)           = f(x) - log p*_A(x)                            whatever beta
    log ratio      = (beta1 - beta0) U(x)                          exact, one evaluation of f

From a base that has a frame, x = m + S z (`bases/gaussian.py`), the states are its own coordinates z, so
that at beta = 0 they are all alike and a kernel need not know S. Both ends are counted as densities of x,
dx = |S| dz: log Z_A is that of the base, and log Z_B the model's own. Where the frame is not the same
everywhere (`bases/warped.py`) the rest of log |dx/dz| is a part of f.

A base may carry an offset c near the largest f. The path is then that of f - c, which float32 holds with
more digits where f itself was computed in float64, and c is added to log Z_A.

Where f is -inf the density is zero. There f counts as -1e18, which is finite, so that no sum becomes NaN,
and makes any weight zero.
"""

import math
from typing import TYPE_CHECKING, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from annealz.bases.abstract import AbstractBase
from annealz.bases.gaussian import AbstractFrameBase
from annealz.core.random import Bits
from annealz.paths.abstract import AbstractPath

if TYPE_CHECKING:
    from annealz.models.abstract import AbstractModel

Parts = TypeVar("Parts")  # of a state

ZERO_DENSITY = -1e18  # log of no density; its square fits into float32


class TemperedPath(AbstractPath):
    """From a base to a model that defines `log_density`.

    Examples
    --------
    >>> import annealz
    >>> import jax.numpy as jnp
    >>> model = annealz.LogDensity(lambda x: -0.5 * jnp.sum((x - 1) ** 2), dim=2)
    >>> path = annealz.TemperedPath(annealz.GaussianBase.standard(2), model)
    >>> path.log_density(jnp.ones((1, 2)), 0.5).tolist()  # halfway between -1 and 0
    [-0.5]
    """

    base: AbstractBase
    model: "AbstractModel"

    def __init__(self, base: AbstractBase, model: "AbstractModel"):
        dim = getattr(model, "dim", None)
        if not isinstance(base, AbstractBase):
            raise ValueError(
                f"base of {model.name} must be an annealz.AbstractBase, got {type(base).__name__}."
            )
        if dim is not None and getattr(base, "dim", dim) != dim:
            raise ValueError(
                f"base of {model.name} must have its dimension {dim}, got {getattr(base, 'dim', None)}."
            )
        self.base, self.model = base, model

    @property
    def log_z0(self) -> float:
        offset = self._offset
        return self.base.log_z + (0.0 if offset is None else float(offset))

    @property
    def sweep_size(self) -> float:
        return getattr(self.model, "evaluation_size", math.inf)

    def sample(self, bits: Bits) -> Float[Array, "chains ..."]:
        if isinstance(self.base, AbstractFrameBase):
            return self.base.sample_unit(bits)
        return self.base.sample(bits)

    def log_density(self, x, beta):
        return self.base_value(x) + beta * self.slope(x, beta)

    def log_target(self, x):
        return self.value(x) - self.stretch(x)

    def log_ratio(self, x, beta0, beta1):
        return (beta1 - beta0) * self.slope(x, beta0)

    def slope(self, x, beta):
        return self.value(x) - self.base_value(x)

    def position(self, x):
        return self.base.from_unit(x) if isinstance(self.base, AbstractFrameBase) else x

    def state(self, bits, position):
        position = jnp.asarray(position, jnp.float32)
        return self.base.to_unit(position) if isinstance(self.base, AbstractFrameBase) else position

    def stretch(self, x) -> Float[Array, " chains"] | float:
        """What of f at these states is the change of volume, not the model's log density."""
        return self.base.log_stretch(x) if isinstance(self.base, AbstractFrameBase) else 0.0

    def value(self, x) -> Float[Array, " chains"]:
        """f - c at these states, one evaluation of each."""
        return floored(self._model_value(x))

    def value_and_gradient(self, x) -> tuple[Float[Array, " chains"], Float[Array, "chains dim"]]:
        """f - c at these states, and its gradient in them."""
        values, gradient = with_gradient(self._model_value, x)
        is_zero = (values < ZERO_DENSITY)[:, None] | ~jnp.isfinite(gradient)
        return floored(values), jnp.where(is_zero, 0, gradient)

    def base_value(self, x) -> Float[Array, " chains"]:
        """log p*_A at these states."""
        if isinstance(self.base, AbstractFrameBase):
            return self.base.log_density_unit(x)
        return self.base.log_density(x)

    @property
    def _offset(self):
        return getattr(self.base, "offset", None)

    def _model_value(self, x):
        given = () if self._offset is None else (self._offset,)
        values = self.model.log_density(self.position(x), *given)  # pyright: ignore[reportCallIssue]
        values = values + self.stretch(x)
        resolved = self.base.is_resolved(x) if isinstance(self.base, AbstractFrameBase) else True
        return values if resolved is True else jnp.where(resolved, values, -jnp.inf)


def with_gradient(function, x):
    """Return the values of every chain, and their gradients."""
    values, pull = jax.vjp(function, x)
    return values, pull(jnp.ones_like(values))[0]


def floored(values):
    """Count a density of zero as -1e18."""
    return jnp.where(values < ZERO_DENSITY, ZERO_DENSITY, values)


def where(accept: Bool[Array, " chains"], one: Parts, two: Parts) -> Parts:
    """Return the parts of one state where a chain accepts, those of the other elsewhere."""

    def choose(one, two):
        return jnp.where(accept.reshape(-1, *(1,) * (one.ndim - 1)), one, two)

    return jax.tree.map(choose, one, two)

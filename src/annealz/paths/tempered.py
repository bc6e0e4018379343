"""The geometric path between a base and any density.

    log p*_beta(x) = (1 - beta) log p*_A(x) + beta f(x)            f the model's log density
    U(x)           = f(x) - log p*_A(x)                            whatever beta
    log ratio      = (beta1 - beta0) U(x)                          exact, one evaluation of f

From a Gaussian N(m, S S^T) the states are its own coordinates z, x = m + S z, so that at beta = 0 they are
all alike and a kernel need not know S. log p*_A is then -|z|^2 / 2. Both ends are counted as densities
of x, dx = |S| dz: log Z_A is that of the base, and log Z_B the model's own.
"""

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jaxtyping import Array, Float

from annealz.core.random import Bits
from annealz.paths.abstract import AbstractPath
from annealz.paths.bases.abstract import AbstractBase
from annealz.paths.bases.gaussian import GaussianBase

if TYPE_CHECKING:
    from annealz.models.abstract import AbstractModel

__all__ = ["TemperedPath"]


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
        return self.base.log_z

    def sample(self, bits: Bits) -> Float[Array, "chains ..."]:
        if isinstance(self.base, GaussianBase):
            return bits.normals(self.base.dim, draw=0)
        return self.base.sample(bits)

    def log_density(self, x, beta):
        return self._base_density(x) + beta * self.slope(x, beta)

    def log_ratio(self, x, beta0, beta1):
        return (beta1 - beta0) * self.slope(x, beta0)

    def slope(self, x, beta):
        return self.model.log_density(self.position(x)) - self._base_density(x)

    def position(self, x):
        return self.base.from_unit(x) if isinstance(self.base, GaussianBase) else x

    def state(self, bits, position):
        position = jnp.asarray(position, jnp.float32)
        return self.base.to_unit(position) if isinstance(self.base, GaussianBase) else position

    def _base_density(self, x) -> Float[Array, " chains"]:
        if isinstance(self.base, GaussianBase):
            return -0.5 * (x**2).sum(-1)
        return self.base.log_density(x)

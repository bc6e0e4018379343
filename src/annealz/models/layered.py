"""What RBMs with visible units of another kind have in common: paths, enumeration and exact draws.

log p*(v, h) = b.e(v) + r(v) + a.h + h.W e(v) + f         h in {0, 1}^M; e and r as in `annealz.core.units`
"""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from annealz.core.arrays import indices, on_device
from annealz.core.units import AbstractUnits, BernoulliUnits
from annealz.models.abstract import AbstractModel

__all__ = ["AbstractLayered"]


class AbstractLayered(AbstractModel):
    """Binary hidden units, visible ones of some kind."""

    hidden_bias: eqx.AbstractVar[Float[Array, " hidden"]]

    marginals: ClassVar[tuple[str, ...]] = ("visible", "hidden")

    @property
    @abc.abstractmethod
    def units(self) -> AbstractUnits:
        """The kind of the visible units."""

    @property
    @abc.abstractmethod
    def natural(self) -> tuple[Float[Array, "hidden fields"], Float[Array, " fields"], float]:
        """W, b and f of the form above."""

    @abc.abstractmethod
    def start(self, base: Any) -> Float[Array, " fields"]:
        """The b of a base."""

    @property
    def num_hidden(self) -> int:
        return self.hidden_bias.shape[0]

    def path(self, base, marginal: str = "visible"):
        from annealz.paths.bases.mixture import MixtureBase
        from annealz.paths.layers import LayerPath
        from annealz.paths.mixture import mixture_path

        if isinstance(base, MixtureBase):
            return mixture_path(base, self.path(self.flat_base(), marginal), self.name)
        weights, bias, constant = self.natural
        offset = constant or None
        visible = self.start(base), bias
        hidden = jnp.zeros_like(self.hidden_bias), self.hidden_bias
        if marginal == "visible":
            return LayerPath(base, weights, self.units, BernoulliUnits(), visible, hidden, offset)
        return LayerPath(base, weights.T, BernoulliUnits(), self.units, hidden, visible, offset)

    def kernel(self):
        from annealz.kernels.gibbs import BlockGibbs

        return BlockGibbs()

    def exact_log_z_if_cheap(self) -> float | None:
        from annealz.models.exact_layers import is_cheap

        return self.exact_log_z() if is_cheap(self.num_hidden, self.natural[1].size) else None

    def exact_log_z(self) -> float:
        """log Z by enumerating the hidden units."""
        from annealz.models.exact_layers import log_sum_of_hidden

        return log_sum_of_hidden(*self._in_float64(), self.units) + self.natural[2]

    @property
    def has_exact_draws(self) -> bool:
        from annealz.models.exact import MAX_UNITS

        return self.num_hidden <= MAX_UNITS

    def exact_draws(self, num_draws: int, seed: int, marginal: str = "visible") -> np.ndarray:
        from annealz.core.random import Stream
        from annealz.models.exact_layers import draw_hidden

        hidden, fields = draw_hidden(*self._in_float64(), self.units, num_draws, seed)
        if marginal == "hidden":
            return hidden
        bits = Stream(seed, "exact draws").at(0, indices(num_draws))
        return np.asarray(self.units.sample(bits, on_device(fields), 0))

    def _in_float64(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        weights, bias, _ = self.natural
        first, second, third = (
            np.asarray(a, np.float64) for a in (weights, self.hidden_bias, bias)
        )
        return first, second, third

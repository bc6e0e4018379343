"""What RBMs with units of other kinds have in common: paths, enumeration and exact draws.

log p*(v, h) = b.e(v) + r(v) + a.h + r(h) + h.W e(v) + f         e and r as in `annealz.core.units`

Hidden units are 0 and 1 except in `layered_rbm.py`. Of a layer with few values all states are enumerated.
"""

import abc
import math
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from annealz.core.arrays import indices, on_device
from annealz.core.units import AbstractUnits, BernoulliUnits, SoftmaxUnits
from annealz.models.abstract import AbstractModel


class AbstractLayered(AbstractModel):
    """Visible and hidden units of some kinds."""

    hidden_bias: eqx.AbstractVar[Float[Array, " hidden"]]

    marginals: ClassVar[tuple[str, ...]] = ("visible", "hidden")

    @property
    @abc.abstractmethod
    def units(self) -> AbstractUnits:
        """The kind of the visible units."""

    @property
    def of_hidden(self) -> AbstractUnits:
        """The kind of the hidden units."""
        return getattr(self, "hidden_units", BernoulliUnits())

    @property
    @abc.abstractmethod
    def natural(self) -> tuple[Any, Any, float]:
        """W (hidden, fields), b (fields,) and f of the form above."""

    @property
    def natural_hidden_bias(self) -> Any:
        """a of the form above."""
        return self.hidden_bias

    @abc.abstractmethod
    def start(self, base: Any) -> Float[Array, " fields"]:
        """The b of a base."""

    @property
    def num_hidden(self) -> int:
        return self.hidden_bias.shape[0]

    def path(self, base, marginal: str = "visible"):
        from annealz.bases.mixture import MixtureBase
        from annealz.paths.layers import LayerPath
        from annealz.paths.mixture import mixture_path

        if isinstance(base, MixtureBase):
            return mixture_path(base, self.path(self.flat_base(), marginal), self.name)
        weights, bias, constant = self.natural
        offset = constant or None
        visible = self.start(base), bias
        hidden_bias = self.natural_hidden_bias
        hidden = np.zeros(self.num_hidden), hidden_bias
        if marginal == "visible":
            return LayerPath(base, weights, self.units, self.of_hidden, visible, hidden, offset)
        return LayerPath(base, weights.T, self.of_hidden, self.units, hidden, visible, offset)

    def kernel(self):
        from annealz.kernels.gibbs import BlockGibbs

        return BlockGibbs()

    def exact_log_z_if_cheap(self) -> float | None:
        from annealz.models.exact_layers import is_cheap

        hidden, visible = self.num_hidden, self.natural[1].size
        if isinstance(self.of_hidden, BernoulliUnits):
            return self.exact_log_z() if is_cheap(hidden, visible) else None
        if self.units.is_real:
            return None
        return self.exact_log_z() if is_cheap(self._num_bits, hidden) else None

    def exact_log_z(self) -> float:
        """log Z by enumerating the hidden units, or the visible ones where those are real."""
        from annealz.models.exact_layers import log_sum_of_states

        return log_sum_of_states(self._enumerated()) + self.natural[2]

    @property
    def has_exact_draws(self) -> bool:
        from annealz.models.exact import MAX_UNITS

        if isinstance(self.of_hidden, BernoulliUnits):
            return self.num_hidden <= MAX_UNITS
        return not self.units.is_real and self._num_bits <= MAX_UNITS

    def exact_draws(self, num_draws: int, seed: int, marginal: str = "visible") -> np.ndarray:
        from annealz.core.random import Stream
        from annealz.models.exact_layers import draw_states

        table = self._enumerated()
        states, fields = draw_states(table, num_draws, seed)
        is_hidden = isinstance(self.of_hidden, BernoulliUnits)
        if (marginal == "hidden") == is_hidden:
            return states
        bits = Stream(seed, "exact draws").at(0, indices(num_draws))
        return np.asarray(table.other_units.sample(bits, on_device(fields), 0))

    @property
    def _num_bits(self) -> float:
        """log2 of the number of visible states."""
        size = self.natural[1].size
        if not isinstance(self.units, SoftmaxUnits):
            return size
        return size / self.units.num_states * math.log2(self.units.num_states)

    def _enumerated(self):
        """The layer whose states are enumerated, and the other one."""
        from annealz.models.exact_layers import Enumerated

        weights, bias, _ = self.natural
        arrays = (weights, self.natural_hidden_bias, bias)
        matrix, hidden, visible = (np.asarray(a, np.float64) for a in arrays)
        if isinstance(self.of_hidden, BernoulliUnits):
            return Enumerated(matrix, hidden, visible, 1, self.units)
        if self.units.is_real:
            raise ValueError(
                f"no way is known to compute log Z of {self.name} exactly: both layers are real."
            )
        states = self.units.num_states if isinstance(self.units, SoftmaxUnits) else 1
        return Enumerated(matrix.T, visible, hidden, states, self.of_hidden)

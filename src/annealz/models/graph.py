"""Models of units of few states on a graph, with fields of their own: Ising, Potts, factor graphs."""

import abc
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from annealz.bases.abstract import AbstractBase
from annealz.bases.bernoulli import BernoulliBase
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.colours import Graph, two_colours
from annealz.models.abstract import AbstractUnitModel
from annealz.models.contraction import contracted_log_z, contracted_log_z_if_cheap
from annealz.models.enumeration import Enumeration

_CHEAP_BITS = 20  # 2^20 states, that nobody waits for


class AbstractGraphModel(AbstractUnitModel):
    """Units on a graph, which start without a preference, or as their fields have them."""

    @property
    @abc.abstractmethod
    def num_units(self) -> int: ...

    @abc.abstractmethod
    def fields_base(self) -> Any:
        """The units as they are where nothing couples them."""

    def named_bases(self) -> Mapping[str, Callable[[], AbstractBase]]:
        """The bases that differ."""
        bases = {"uniform": self.flat_base}
        if not np.array_equal(self.fields_base().logits, self.flat_base().logits):
            bases["fields"] = self.fields_base
        return bases

    def choose_base(self, base: Any = "auto", data: Any = None) -> Any:
        if data is None and isinstance(base, str) and base == "fields":  # even without any
            return self.fields_base()
        return super().choose_base(base, data)


class AbstractPairModel(AbstractGraphModel):
    """Units coupled in pairs: few of them are enumerated."""

    @property
    def num_states(self) -> int:
        return 2

    def exact_log_z_if_cheap(self) -> float | None:
        if self.has_exact_draws:
            return self._enumeration().log_sum()
        return contracted_log_z_if_cheap(self.factors())

    def exact_log_z(self) -> float:
        """log Z by enumeration, or by contraction."""
        factors = self.factors()
        assert factors is not None
        return self._enumeration().log_sum() if self.has_exact_draws else contracted_log_z(factors)

    @property
    def has_exact_draws(self) -> bool:
        return self.num_units * math.log2(self.num_states) <= _CHEAP_BITS

    def exact_draws(self, num_draws: int, seed: int, marginal: str = "visible") -> np.ndarray:
        return self._enumeration().draw(num_draws, seed)

    def _enumeration(self) -> Enumeration:
        path: Any = self.path(self.choose_base())
        return Enumeration(self.num_units, self.num_states, path.exact_energies)


class AbstractIsing(AbstractPairModel):
    """Spins; states are 0 for spin down and 1 for spin up."""

    sums_out_own: ClassVar[bool] = True

    @property
    @abc.abstractmethod
    def site_fields(self) -> np.ndarray:
        """h of every unit."""

    def flat_base(self) -> BernoulliBase:
        return BernoulliBase.uniform(self.num_units)

    def fields_base(self) -> BernoulliBase:
        return BernoulliBase.from_logits(2 * self.site_fields, "fields")

    @abc.abstractmethod
    def clusters(self) -> AbstractKernel:
        """The kernel that turns clusters of spins."""

    def named_kernels(self) -> Mapping[str, Callable[[], AbstractKernel]]:
        return {"gibbs": self.kernel, "clusters": self.clusters}


def two_layers(graph: Graph) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the units of two colours, the fewer first; None where two are not enough."""
    colours = two_colours(graph)
    if colours is None:
        return None
    first, second = np.flatnonzero(colours == 0), np.flatnonzero(colours == 1)
    return (first, second) if len(first) <= len(second) else (second, first)

"""The Potts model on any graph: units of q states that are coupled where they agree.

    log p*(x) = sum_{i<j} J_ij [x_i = x_j] + sum_i h[i, x_i],      x in {0 .. q - 1}^n

The temperature is part of J and h. All units are annealed; a sweep draws one colour of the graph after the
other (`kernels/colours.py`).
"""

from typing import Any, Self

import numpy as np
from jaxtyping import Array, ArrayLike, Float

from annealz.core.arrays import on_device
from annealz.models.abstract import AbstractModel
from annealz.models.contraction import Factors, contracted_log_z, contracted_log_z_if_cheap
from annealz.models.ising import check_couplings, lattice_couplings
from annealz.models.rbm import real_array

__all__ = ["Potts"]


class Potts(AbstractModel):
    """Units of several states, coupled in pairs.

    Parameters
    ----------
    couplings : (units, units), symmetric, with zeros on the diagonal
    num_states : q
    fields : (units, states), zero by default

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> pair = annealz.Potts([[0.0, 1.0], [1.0, 0.0]], num_states=3)
    >>> round(annealz.exact_log_z(pair), 4), round(float(np.log(3 * np.e + 6)), 4)
    (2.6501, 2.6501)
    >>> annealz.Potts.square(4, num_states=3, coupling=0.8).name
    'potts-16x3'
    """

    couplings: Float[Array, "units units"]
    fields: Float[Array, "units states"]

    def __init__(self, couplings: ArrayLike, num_states: int, fields: ArrayLike | None = None):
        self.couplings = on_device(check_couplings(couplings))
        if num_states < 2:
            raise ValueError(f"num_states must be at least 2, got {num_states}.")
        wanted = (self.couplings.shape[0], num_states)
        given = np.zeros(wanted) if fields is None else real_array("fields", fields)
        if given.shape != wanted:
            raise ValueError(f"fields must be (units, states) = {wanted}, got shape {given.shape}.")
        self.fields = on_device(given)

    @classmethod
    def square(
        cls,
        side: int | tuple[int, int],
        num_states: int,
        coupling: float,
        *,
        is_periodic: bool = True,
    ) -> Self:
        """A square lattice (height, width); critical at log(1 + sqrt q) where it is infinite."""
        height, width = (side, side) if isinstance(side, int) else side
        couplings = lattice_couplings(height, width, (coupling, coupling), is_periodic)
        return cls(couplings, num_states)

    @property
    def num_units(self) -> int:
        return self.fields.shape[0]

    @property
    def num_states(self) -> int:
        return self.fields.shape[1]

    @property
    def name(self) -> str:
        return f"potts-{self.num_units}x{self.num_states}"

    def check(self) -> None:
        check_couplings(self.couplings)
        shape = real_array("fields", self.fields).shape
        if len(shape) != 2 or shape[0] != len(self.couplings) or shape[1] < 2:
            raise ValueError(
                f"fields must be (units, states) of {len(self.couplings)} units, got shape {shape}."
            )

    def choose_base(self, base: Any = "auto", data: Any = None):
        from annealz.paths.bases.categorical import CategoricalBase
        from annealz.paths.bases.choose import choose_named

        options = {
            "uniform": self.flat_base,
            "fields": lambda: CategoricalBase.from_logits(self.fields, "fields"),
        }
        return choose_named(options, base, data, CategoricalBase, self.num_units)

    def flat_base(self):
        from annealz.paths.bases.categorical import CategoricalBase

        return CategoricalBase.uniform(self.num_units, self.num_states)

    def named_bases(self):
        from annealz.paths.bases.categorical import CategoricalBase

        bases = {"uniform": self.flat_base}
        if np.any(self.fields):
            bases["fields"] = lambda: CategoricalBase.from_logits(self.fields, "fields")
        return bases

    def path(self, base, marginal: str = "visible"):
        from annealz.paths.bases.mixture import MixtureBase
        from annealz.paths.mixture import mixture_path
        from annealz.paths.pairs import PairPath

        if isinstance(base, MixtureBase):
            return mixture_path(base, self.path(self.flat_base()), self.name)
        return PairPath(base, base.logits, self.couplings, self.fields)

    def kernel(self):
        from annealz.kernels.colours import ColourGibbs

        return ColourGibbs.of_graph(np.asarray(self.couplings) != 0)

    def exact_log_z_if_cheap(self) -> float | None:
        if self.has_exact_draws:
            return self.exact_log_z()
        return contracted_log_z_if_cheap(self.factors())

    def factors(self) -> Factors:
        couplings = np.asarray(self.couplings, np.float64)
        fields = np.asarray(self.fields, np.float64)
        pairs = np.argwhere(np.triu(couplings)).tolist()
        held: list[tuple[tuple[int, ...], np.ndarray]] = [
            ((i,), field) for i, field in enumerate(fields)
        ]
        held += [((i, j), couplings[i, j] * np.eye(self.num_states)) for i, j in pairs]
        return (self.num_states,) * self.num_units, held

    def exact_log_z(self) -> float:
        """log Z by enumeration, or by contraction."""
        from annealz.models.exact_pairs import log_sum_of_states

        if not self.has_exact_draws:
            return contracted_log_z(self.factors())
        return log_sum_of_states(self.path(self.choose_base()))

    @property
    def has_exact_draws(self) -> bool:
        from annealz.models.exact_pairs import is_cheap

        return is_cheap(self.num_units, self.num_states)

    def exact_draws(self, num_draws: int, seed: int, marginal: str = "visible") -> np.ndarray:
        from annealz.models.exact_pairs import draw_states

        return draw_states(self.path(self.choose_base()), num_draws, seed)

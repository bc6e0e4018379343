"""The Ising model on a periodic square lattice of even sides: that of `ising.py` with fast products.

    log p*(s) = K_h sum_{neighbours in a row} s s' + K_v sum_{neighbours in a column} s s' + h sum_i s_i

The two colours of the checkerboard are the layers of an RBM; the odd one is summed out. Without a field
log Z is known at any size (`exact_ising.py`). On a side of 2 each neighbour counts twice.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from annealz.core.arrays import on_device
from annealz.models.abstract import AbstractModel
from annealz.models.contraction import Factors, contracted_log_z, contracted_log_z_if_cheap
from annealz.models.exact_ising import square_ising_log_z
from annealz.models.ising import Ising, lattice_couplings
from annealz.models.rbm import real_array

_MOST_UNITS = 2**26
_MOST_LISTED = 1000  # units whose factors are listed to see whether contraction is cheap


class SquareIsing(AbstractModel):
    """Spins on a periodic square lattice.

    Parameters
    ----------
    side : the side, or (height, width), even
    coupling : K = J / kT, or K along rows and along columns
    field : h / kT, the same at every site

    Examples
    --------
    >>> import annealz
    >>> model = annealz.SquareIsing(8, coupling=0.3)
    >>> estimate = annealz.estimate_log_z(
    ...     model, base="uniform", num_steps=100, num_chains=100, second_opinion=False
    ... )
    >>> abs(estimate.log_z - annealz.square_ising_log_z(8, 0.3)) < 5 * estimate.std_err
    True
    """

    sums_out_own: ClassVar[bool] = True

    couplings: Float[Array, "2"]
    field: Float[Array, ""]
    height: int = eqx.field(static=True)
    width: int = eqx.field(static=True)

    def __init__(
        self,
        side: int | tuple[int, int],
        coupling: float | tuple[float, float],
        field: float = 0.0,
    ):
        self.height, self.width = (side, side) if isinstance(side, int) else side
        self._check_sides()
        along = np.broadcast_to(real_array("coupling", coupling), 2)
        self.couplings = on_device(along)
        self.field = on_device(real_array("field", field).reshape(()))

    @property
    def num_units(self) -> int:
        return self.height * self.width

    @property
    def name(self) -> str:
        return f"ising-{self.height}x{self.width}"

    @property
    def _along(self) -> tuple[float, float]:
        first, second = np.asarray(self.couplings).tolist()
        return first, second

    def as_ising(self) -> Ising:
        """The same as a model on a graph, with its matrix of couplings."""
        couplings = lattice_couplings(self.height, self.width, self._along)
        return Ising(couplings, np.full(self.num_units, self.field))

    def log_density(self, x: Float[Array, "chains units"], /) -> Float[Array, " chains"]:
        """log p* of all spins row by row, 0 for down and 1 for up."""
        spins = 2 * jnp.asarray(x, jnp.float32) - 1
        lattice = spins.reshape(*spins.shape[:-1], self.height, self.width)
        ahead = [jnp.roll(lattice, -1, axis) for axis in (-1, -2)]
        pull = self.couplings[0] * ahead[0] + self.couplings[1] * ahead[1] + self.field
        return (lattice * pull).sum((-2, -1))

    @property
    def offset(self) -> float:
        """What log p* is more than that of the RBM, in float64."""
        return self.num_units * float(np.float64(self.couplings).sum() - np.float64(self.field))

    def check(self) -> None:
        self._check_sides()
        if self.num_units > _MOST_UNITS:
            raise ValueError(
                f"a lattice may have {_MOST_UNITS:,} units, got {self.height} x {self.width}."
            )
        real_array("coupling", self.couplings)
        real_array("field", self.field)

    def _check_sides(self) -> None:
        for name, value in (("height", self.height), ("width", self.width)):
            if value < 2 or value % 2:
                raise ValueError(
                    f"the lattice's {name} must be even and at least 2, got {value}: Ising.square takes "
                    "other sides."
                )

    def choose_base(self, base: Any = "auto", data: Any = None):
        from annealz.bases.bernoulli import BernoulliBase
        from annealz.bases.choose import choose_named

        fields = np.full(self.num_units, 2 * self.field)
        options = {
            "uniform": self.flat_base,
            "fields": lambda: BernoulliBase.from_logits(fields, "fields"),
        }
        return choose_named(options, base, data, BernoulliBase, self.num_units)

    def flat_base(self):
        from annealz.bases.bernoulli import BernoulliBase

        return BernoulliBase.uniform(self.num_units)

    def named_bases(self):
        from annealz.bases.bernoulli import BernoulliBase

        fields = np.full(self.num_units, 2 * self.field)
        bases = {"uniform": self.flat_base}
        if np.any(fields):
            bases["fields"] = lambda: BernoulliBase.from_logits(fields, "fields")
        return bases

    def path(self, base, marginal: str = "visible"):
        from annealz.bases.mixture import MixtureBase
        from annealz.paths.lattice import LatticePath
        from annealz.paths.lattice_product import colour_sites
        from annealz.paths.mixture import mixture_path

        if isinstance(base, MixtureBase):
            return mixture_path(base, self.path(self.flat_base()), self.name)
        even, odd = colour_sites(self.height, self.width)
        couplings, logits = np.asarray(self.couplings), np.asarray(base.logits)
        bias = np.full(even.size, 2 * np.asarray(self.field) - 4 * couplings.sum())
        state, latent = (logits[even], bias), (logits[odd], bias)
        sides = self.height, self.width
        return LatticePath(base, sides, state, latent, on_device(4 * couplings), self.offset)

    def kernel(self):
        from annealz.kernels.gibbs import BlockGibbs

        return BlockGibbs()

    def named_kernels(self):
        return {"gibbs": self.kernel, "clusters": self._clusters}

    def _clusters(self):
        from annealz.kernels.clusters import Clusters
        from annealz.paths.lattice_product import colour_sites

        place = np.argsort(np.concatenate(colour_sites(self.height, self.width)))
        sites = place.reshape(self.height, self.width)  # the even ones first
        edges = [np.stack([sites, np.roll(sites, -1, axis)], -1).reshape(-1, 2) for axis in (1, 0)]
        couplings = np.repeat(2 * np.asarray(self.couplings), self.num_units)
        return Clusters(np.concatenate(edges), couplings, self.num_units)

    def exact_log_z_if_cheap(self) -> float | None:
        if self.field == 0:
            return self.exact_log_z()
        if self.has_exact_draws:
            return self.as_ising().exact_log_z_if_cheap()
        return contracted_log_z_if_cheap(self.factors()) if self.num_units <= _MOST_LISTED else None

    def factors(self) -> Factors:
        along, field = np.asarray(self.couplings, np.float64), float(self.field)
        spins = np.array([-1.0, 1.0])
        sites = np.arange(self.num_units).reshape(self.height, self.width)
        held = [((i,), field * spins) for i in range(self.num_units)]
        for axis, coupling in ((1, along[0]), (0, along[1])):
            ahead = np.roll(sites, -1, axis)  # on a side of 2 each neighbour counts twice
            table = coupling * np.outer(spins, spins)
            pairs = zip(sites.ravel().tolist(), ahead.ravel().tolist(), strict=True)
            held += [(pair, table) for pair in pairs]
        return (2,) * self.num_units, held

    def exact_log_z(self) -> float:
        """log Z: in closed form without a field, else by enumeration of one colour or contraction."""
        if self.field == 0:
            return square_ising_log_z((self.height, self.width), self._along)
        if self.has_exact_draws:
            return self.as_ising().exact_log_z()
        return contracted_log_z(self.factors())

    @property
    def has_exact_draws(self) -> bool:
        return self.num_units <= 50  # one colour can be enumerated

    def exact_draws(self, num_draws: int, seed: int, marginal: str = "visible") -> np.ndarray:
        from annealz.models.exact import exact_samples
        from annealz.models.rbm import RBM
        from annealz.paths.lattice_product import colour_sites

        even, odd = colour_sites(self.height, self.width)
        model = self.as_ising()
        biases = 2 * model.fields - 2 * model.couplings.sum(0)
        rbm = RBM(4 * model.couplings[np.ix_(odd, even)], biases[odd], biases[even])
        return exact_samples(rbm, num_draws, seed)[0]

"""The Ising model on a periodic square lattice of even sides: that of `ising.py` with fast products.

    log p*(s) = K_h sum_{neighbours in a row} s s' + K_v sum_{neighbours in a column} s s' + h sum_i s_i

The two colours of the checkerboard are the layers of an RBM; the odd one is summed out. On a side of 2 each
neighbour counts twice. Without a field log Z is known at any size (Kaufman 1949), here in float64.

For m rows of n sites, K_h along rows and K_v along columns, all at least 0 (on even sides the sign does not
matter: turning over one colour changes it),

    Z = (2 sinh 2K_v)^(mn/2) / 2  ×  [ prod_r 2 cosh(m g_{2r+1} / 2) + prod_r 2 sinh(m g_{2r+1} / 2)
                                     + prod_r 2 cosh(m g_{2r} / 2)   + prod_r 2 sinh(m g_{2r} / 2) ]

    cosh g_l = (cosh 2K_v cosh 2K_h - sinh 2K_h cos(pi l / n)) / sinh 2K_v,     r = 0 .. n - 1

with g_l > 0, but g_0 = 2K_h + log tanh K_v, which changes its sign where the infinite lattice is critical:
sinh 2K_h sinh 2K_v = 1, K = log(1 + sqrt 2) / 2 = 0.4407 where both are equal.
"""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from annealz.core.arrays import on_device, real_array
from annealz.core.numerics import log_sum
from annealz.kernels.clusters import Clusters
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.abstract import AbstractEquivalent
from annealz.models.contraction import Factors
from annealz.models.enumeration import MAX_UNITS
from annealz.models.graph import AbstractIsing
from annealz.models.ising import Ising, lattice_couplings
from annealz.paths.lattice import LatticePath, colour_sites

CRITICAL_COUPLING = math.log(1 + math.sqrt(2)) / 2
_MOST_UNITS = 2**26
_MOST_LISTED = 1000  # units whose factors are listed to see whether contraction is cheap


class SquareIsing(AbstractEquivalent, AbstractIsing):
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
    >>> model.name, round(annealz.exact_log_z(model), 3)
    ('ising-8x8', 50.609)
    """

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
    def site_fields(self) -> np.ndarray:
        return np.full(self.num_units, np.asarray(self.field))

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
        return Ising(couplings, self.site_fields)

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

    def product_path(self, base: Any, marginal: str):
        even, odd = colour_sites(self.height, self.width)
        couplings, logits = np.asarray(self.couplings), np.asarray(base.logits)
        bias = np.full(even.size, 2 * np.asarray(self.field) - 4 * couplings.sum())
        state, latent = (logits[even], bias), (logits[odd], bias)
        sides = self.height, self.width
        return LatticePath(base, sides, state, latent, on_device(4 * couplings), self.offset)

    def kernel(self):
        return BlockGibbs()

    def clusters(self) -> Clusters:
        place = np.argsort(np.concatenate(colour_sites(self.height, self.width)))
        sites = place.reshape(self.height, self.width)  # the even ones first
        edges = [np.stack([sites, np.roll(sites, -1, axis)], -1).reshape(-1, 2) for axis in (1, 0)]
        couplings = np.repeat(2 * np.asarray(self.couplings), self.num_units)
        return Clusters(np.concatenate(edges), couplings, self.num_units)

    def exact_log_z_if_cheap(self) -> float | None:
        if self.field == 0:
            return self.exact_log_z()
        return super().exact_log_z_if_cheap() if self.num_units <= _MOST_LISTED else None

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
        return super().exact_log_z()

    def equivalent(self) -> tuple[Ising, float] | None:
        """Return the model on a graph where one colour can be enumerated."""
        return (self.as_ising(), 0.0) if self.num_units <= 2 * MAX_UNITS else None


def square_ising_log_z(side: int | tuple[int, int], coupling: float | tuple[float, float]) -> float:
    """log Z of (height, width) spins, with the coupling along rows and along columns.

    Examples
    --------
    >>> import annealz
    >>> round(annealz.square_ising_log_z(2, 0.0), 4)  # 4 log 2
    2.7726
    """
    height, width = (side, side) if isinstance(side, int) else side
    along = (coupling, coupling) if isinstance(coupling, float | int) else coupling
    if min(height, width) < 2:
        raise ValueError(f"the lattice's sides must be at least 2, got {height} and {width}.")
    for name, length, value in (("row", width, along[0]), ("column", height, along[1])):
        if value < 0 and length % 2:
            raise ValueError(
                f"a negative coupling along a {name} needs an even number of sites there, got {length}."
            )
    horizontal, vertical = (abs(float(value)) for value in along)
    if vertical == 0:  # rows that know nothing of each other
        return height * _ring_log_z(width, horizontal)
    front = height * width / 2 * _log_2sinh(2 * vertical)
    terms = []
    for first in (1, 0):
        modes = _modes(width, horizontal, vertical, first)
        even = _log_2cosh(height * modes / 2).sum()
        odd = np.array([_log_2sinh(height * abs(mode) / 2) for mode in modes]).sum()
        terms += [(even, 1), (odd, np.sign(modes).prod())]
    largest = max(size for size, _ in terms)
    total = sum(sign * math.exp(size - largest) for size, sign in terms)
    return float(front - math.log(2) + largest + math.log(total))


def _modes(width: int, horizontal: float, vertical: float, first: int) -> np.ndarray:
    """g_l for l = first, first + 2, …"""
    order = 2 * np.arange(width) + first
    # cosh g - 1 without cancellation: cosh(2K* - 2K_h) - 1 + (1 - cos) sinh 2K_h / sinh 2K_v
    gap = 2 * horizontal + math.log(math.tanh(vertical))
    excess = 2 * np.sinh(gap / 2) ** 2 + (
        2
        * np.sin(np.pi * order / (2 * width)) ** 2
        * math.sinh(2 * horizontal)
        / math.sinh(2 * vertical)
    )
    modes = np.log1p(excess + np.sqrt(excess * (excess + 2)))
    if first == 0:
        modes[0] = gap
    return modes


def _ring_log_z(length: int, coupling: float) -> float:
    """(2 cosh K)^n + (2 sinh K)^n."""
    terms = [length * float(_log_2cosh(coupling)), length * _log_2sinh(coupling)]
    return log_sum(np.array(terms))


def _log_2cosh(x):
    return np.logaddexp(x, -x)


def _log_2sinh(x: float) -> float:
    return -math.inf if x == 0 else x + math.log(-math.expm1(-2 * x))

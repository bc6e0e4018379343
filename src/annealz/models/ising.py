"""The Ising model on any graph, also known as the fully visible Boltzmann machine.

    log p*(s) = sum_{i<j} J_ij s_i s_j + sum_i h_i s_i,     s in {-1, 1}^n;  temperature is part of J and h

As units x = (1 + s) / 2 of 0 and 1:  J s s' = 4 J x x' - 2 J (x + x') + J  and  h s = 2 h x - h.

A graph whose units have two colours, no two of one colour coupled, is an RBM with the colours as layers,

    W_ij = 4 J_ij,    bias_i = 2 h_i - 2 sum_j J_ij,    and a constant  f = sum_{i<j} J_ij - sum_i h_i

so that one colour is summed out and a sweep draws one colour after the other (checkerboard). Other graphs
are annealed with all units, J s s' = 2 J [s = s'] - J, a colour after the other (`kernels/colours.py`).
States are 0 for spin down and 1 for spin up.
"""

from typing import TYPE_CHECKING, Any, Self

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from annealz.core.arrays import on_device, real_array
from annealz.core.products import matmul
from annealz.kernels.clusters import Clusters
from annealz.kernels.colours import ColourGibbs, graph_of
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.abstract import AbstractEquivalent
from annealz.models.contraction import Factors, Tables
from annealz.models.graph import AbstractIsing, two_layers
from annealz.models.rbm import RBM
from annealz.paths.geometric import GeometricPath
from annealz.paths.pairs import PairPath

if TYPE_CHECKING:
    from annealz.models.ising_lattice import SquareIsing


class Ising(AbstractEquivalent, AbstractIsing):
    """Spins coupled in pairs.

    Parameters
    ----------
    couplings : (units, units), symmetric, with zeros on the diagonal
    fields : (units,), zero by default

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> triangle = annealz.Ising(0.5 * (np.ones((3, 3)) - np.eye(3)))
    >>> round(annealz.exact_log_z(triangle), 4)  # log(2 e^1.5 + 6 e^-0.5)
    2.5339
    """

    couplings: Float[Array, "units units"]
    fields: Float[Array, " units"]

    def __init__(self, couplings: ArrayLike, fields: ArrayLike | None = None):
        self.couplings = on_device(check_couplings(couplings))
        number = self.couplings.shape[0]
        given = real_array("fields", np.zeros(number) if fields is None else fields)
        if given.shape != (number,):
            raise ValueError(
                f"fields must be a vector of {number} numbers, got shape {given.shape}."
            )
        self.fields = on_device(given)

    @classmethod
    def square(
        cls,
        side: int | tuple[int, int],
        coupling: float | tuple[float, float],
        field: float = 0.0,
        *,
        is_periodic: bool = True,
    ) -> "Self | SquareIsing":
        """A square lattice (height, width); couplings along rows and columns.

        Periodic lattices of even sides become a `SquareIsing`, which is faster.
        """
        from annealz.models.ising_lattice import SquareIsing

        height, width = (side, side) if isinstance(side, int) else side
        if is_periodic and height % 2 == width % 2 == 0:
            return SquareIsing(side, coupling, field)
        along = (coupling, coupling) if isinstance(coupling, float | int) else coupling
        couplings = lattice_couplings(height, width, along, is_periodic)
        return cls(couplings, np.full(height * width, field))

    @property
    def num_units(self) -> int:
        return self.fields.shape[0]

    @property
    def site_fields(self) -> np.ndarray:
        return np.asarray(self.fields)

    @property
    def name(self) -> str:
        return f"ising-{self.num_units}"

    @property
    def layers(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The units of two colours, the fewer first; None where two are not enough."""
        return two_layers(graph_of(np.asarray(self.couplings) != 0))

    @property
    def offset(self) -> float:
        """f, in float64."""
        return float(np.float64(self.couplings).sum() / 2 - np.float64(self.fields).sum())

    def as_rbm(self) -> RBM:
        """The RBM of a graph of two colours, log Z of which is the model's less `offset`."""
        if (layers := self.layers) is None:
            raise ValueError("the units have no two colours, so that the model is not an RBM.")
        visible, hidden = layers
        couplings, fields = np.asarray(self.couplings), np.asarray(self.fields)
        sums = np.asarray(self.couplings.sum(0))  # in JAX's order, which NumPy's is not
        biases = 2 * fields - 2 * sums
        return RBM(4 * couplings[np.ix_(hidden, visible)], biases[hidden], biases[visible])

    def log_density(self, x: Float[Array, "chains units"], /) -> Float[Array, " chains"]:
        """log p* of all spins, 0 for down and 1 for up."""
        spins = 2 * jnp.asarray(x, jnp.float32) - 1
        return (spins * (0.5 * matmul(spins, self.couplings) + self.fields)).sum(-1)

    def check(self) -> None:
        type(self)(self.couplings, self.fields)

    def product_path(self, base: Any, marginal: str):
        layers = self.layers
        if layers is None:
            signs = np.array([-1, 1], np.float32)
            start = np.asarray(base.logits)[:, None] * np.array([0, 1], np.float32)
            fields = np.asarray(self.fields)[:, None] * signs
            offset = -float(np.float64(self.couplings).sum() / 2)
            return PairPath(base, start, 2 * np.asarray(self.couplings), fields, offset)
        first, second = (on_device(np.asarray(base.logits)[layer]) for layer in layers)
        return GeometricPath(
            base, self.as_rbm(), "visible", logits=(first, second), offset=self.offset
        )

    def kernel(self):
        if self.layers is None:
            return ColourGibbs.of_graph(graph_of(np.asarray(self.couplings) != 0))
        return BlockGibbs()

    def clusters(self) -> Clusters:
        layers = self.layers
        order = np.arange(self.num_units) if layers is None else np.concatenate(layers)
        return Clusters.of_matrix(2 * np.asarray(self.couplings)[np.ix_(order, order)])

    def factors(self) -> Factors:
        couplings = np.asarray(self.couplings, np.float64)
        fields = np.asarray(self.fields, np.float64)
        spins = np.array([-1.0, 1.0])
        pairs = np.argwhere(np.triu(couplings)).tolist()
        held: Tables = [((i,), field * spins) for i, field in enumerate(fields.tolist())]
        held += [((i, j), couplings[i, j] * np.outer(spins, spins)) for i, j in pairs]
        return (2,) * self.num_units, held

    def equivalent(self) -> tuple[RBM, float] | None:
        return None if self.layers is None else (self.as_rbm(), self.offset)


def lattice_couplings(
    height: int, width: int, along: tuple[float, float], is_periodic: bool = True
) -> np.ndarray:
    """The couplings (sites, sites) of a square lattice, along rows and along columns."""
    for name, side in (("height", height), ("width", width)):
        if side < 2:
            raise ValueError(f"the lattice's {name} must be at least 2, got {side}.")
    sites = np.arange(height * width).reshape(height, width)
    couplings = np.zeros((sites.size, sites.size))
    for axis, coupling in ((1, along[0]), (0, along[1])):
        ahead = np.roll(sites, -1, axis)
        kept = slice(None) if is_periodic else slice(-1)
        pick = (slice(None), kept) if axis == 1 else (kept, slice(None))
        np.add.at(couplings, (sites[pick].ravel(), ahead[pick].ravel()), coupling)
    return couplings + couplings.T


def check_couplings(couplings: ArrayLike) -> np.ndarray:
    """The couplings in float32, if they are symmetric and couple no unit with itself."""
    array = real_array("couplings", couplings)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or 0 in array.shape:
        raise ValueError(f"couplings must be a (units, units) matrix, got shape {array.shape}.")
    if not (array == array.T).all():
        raise ValueError("couplings must be symmetric: each pair appears twice, above and below.")
    if np.diagonal(array).any():
        raise ValueError(
            "couplings must have zeros on the diagonal: no unit is coupled with itself."
        )
    return array

"""Small models that are run with a block per chain on a GPU: lattices, sparse graphs, tables of pairs."""

from typing import Any

import numpy as np

from annealz.bases.bernoulli import BernoulliBase
from annealz.models.ising import Ising
from annealz.models.ising_lattice import SquareIsing
from annealz.models.potts import Potts

__all__ = ["SYSTEMS", "sparse_tables", "system"]


def _lattice(height: int, width: int):
    """Unequal couplings, a field, and a base that is not flat: no sign or side can be taken for another."""
    model = SquareIsing((height, width), coupling=(0.3, -0.2), field=0.1)
    return model, BernoulliBase.from_logits(np.linspace(-1, 1, height * width))


def _potts(side: int):
    fields = np.random.default_rng(3).normal(0, 0.3, (side * side, 3))
    flat = Potts.square(side, 3, 0.5)
    return Potts(np.asarray(flat.couplings), 3, fields), None


def _ring(units: int):
    """Odd, so that its three colours are of unlike width."""
    ring = np.roll(np.eye(units), 1, 0) + np.roll(np.eye(units), -1, 0)
    couplings = ring * np.random.default_rng(4).normal(0, 0.5, units)
    return Ising((couplings + couplings.T) / 2, np.linspace(-0.3, 0.3, units)), None


def sparse_tables(units: int, states: int, reach: int, scale: float = 0.3) -> Potts:
    """Every unit coupled with those that are at most `reach` away, on a line."""
    apart = np.abs(np.arange(units)[:, None] - np.arange(units))
    is_pair = ((apart > 0) & (apart <= reach))[:, None, :, None]
    generator = np.random.default_rng(5)
    given = np.where(is_pair, generator.normal(0, scale, (units, states, units, states)), 0)
    return Potts(
        given + given.transpose(2, 3, 0, 1), fields=generator.normal(0, 1, (units, states))
    )


_MAKE: dict[str, Any] = {
    "lattice 4x6": lambda: _lattice(4, 6),
    "lattice 6x2": lambda: _lattice(6, 2),
    "potts 8x8": lambda: _potts(8),
    "ring of 33": lambda: _ring(33),
    "tables, all coupled": lambda: (sparse_tables(36, 4, 36, 0.05), None),
    "tables, on a line": lambda: (sparse_tables(12, 5, 1), None),
    "tables, some coupled": lambda: (sparse_tables(24, 3, 5, 0.2), None),
}
SYSTEMS = tuple(_MAKE)


def system(name: str) -> tuple[Any, Any]:
    """Its path from a base, and its kernel."""
    model, base = _MAKE[name]()
    return model.path(model.flat_base() if base is None else base), model.kernel()

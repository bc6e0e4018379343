"""The models other than RBMs, each with its contestants: annealz, its rivals, and the bare arithmetic."""

from collections.abc import Callable
from typing import Any, NamedTuple

import density
import lattice
import potts

__all__ = ["OTHERS", "Other"]


class Other(NamedTuple):
    """A model that is raced on."""

    name: str
    contestants: Callable[[int], list[Any]]
    """Of a number of chains."""
    exact: float | None
    chains_on_cpu: int
    """Fewer where plain programs are slow."""
    steps_on_gpu: int


OTHERS = (
    Other(density.NAME, density.contestants, density.EXACT, 1000, 10_000),
    Other(lattice.NAME, lattice.contestants, lattice.EXACT, 100, 10_000),
    Other(potts.NAME, potts.contestants, None, 100, 2_000),
    Other(potts.FULL_NAME, potts.full_contestants, None, 100, 200),
)

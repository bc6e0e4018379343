"""Steps of units coupled by a table for every pair (`paths/pair_tables.py`), colour by colour.

A lane of a warp has one of the states of a unit: the row of a table that a neighbour's state chooses lies
side by side for them. Where a colour has few units, as where all are coupled, several warps share the
neighbours of one. log w takes the energy of all units, added up before the first colour.
"""

from typing import ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int

from annealz.core.arrays import on_device
from annealz.engine.gpu.chain_steps import ChainSteps, Launch
from annealz.engine.gpu.pairs import MOST_STATES
from annealz.kernels.colours import ColourGibbs
from annealz.paths.pairs import PairTablePath

_WARPS = 8  # of a block
_LEAST_NEIGHBOURS = 4  # of a unit, for every warp
_MOST_NUMBERS = 2**31  # of all tables: they are counted with 32 bits


class TableSteps(ChainSteps):
    """Tables of every unit and its neighbours, as the path has them."""

    name: ClassVar[str] = "table"

    sites: Int[Array, "colours width"]
    near: Int[Array, "units degree"]
    """Of none, where all units are neighbours in their order."""
    tables: Float[Array, "units degree states states"]
    start: Float[Array, "units states"]
    change: Float[Array, "units states"]
    offset: Float[Array, " 1"]
    is_dense: bool = eqx.field(static=True)

    @classmethod
    def of(cls, path, kernel):
        if type(path) is not PairTablePath or type(kernel) is not ColourGibbs:
            return None
        if path.num_states > MOST_STATES or path.tables.size >= _MOST_NUMBERS:
            return None
        is_dense = path.neighbours is None
        near = on_device(np.zeros((1, 1)), np.int32) if path.neighbours is None else path.neighbours
        offset = on_device([float(path.offset)])
        sites = on_device(kernel.blocks, np.int32)
        return cls(sites, near, path.tables, path.start, path.change, offset, is_dense)

    @property
    def arrays(self):
        return self.sites, self.near, self.tables, self.start, self.change, self.offset

    @property
    def launch(self):
        units, degree, states = self.tables.shape[:3]
        colours, width = self.sites.shape
        constants = {
            "UNITS": units,
            "STATES": states,
            "DEGREE": degree,
            "WIDTH": width,
            "TEAM": _team(width, degree),
            "IS_DENSE": int(self.is_dense),
        }
        return Launch(constants, colours, 32 * _WARPS, units)


def _team(width: int, degree: int) -> int:
    """Warps that share a unit: a power of two."""
    team = _WARPS
    while team > 1 and (team * width > _WARPS or team * _LEAST_NEIGHBOURS > degree):
        team //= 2
    return team

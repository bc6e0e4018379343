"""Steps of units coupled with few others where they agree (`paths/pairs.py`), colour by colour.

Each thread draws one unit: it looks at its neighbours' states, adds up the logits of its own, and inverts
their cumulative sum. log w takes the energy of all units, added up before the first colour. What belongs to
a unit lies in the order in which colours are drawn, (colours, ..., width): threads beside each other read
numbers that are.
"""

from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int

from annealz.core.arrays import on_device
from annealz.engine.gpu.chain_steps import ChainSteps, Launch, num_threads
from annealz.kernels.colours import ColourGibbs
from annealz.paths.pairs import PairPath

MOST_STATES = 32  # of a unit


class PairSteps(ChainSteps):
    """Neighbours and couplings of every unit, by colours."""

    name: ClassVar[str] = "pair"

    sites: Int[Array, "colours width"]
    near: Int[Array, "colours degree width"]
    couplings: Float[Array, "colours degree width"]
    start: Float[Array, "colours states width"]
    change: Float[Array, "colours states width"]
    offset: Float[Array, " 1"]
    num_units: int = eqx.field(static=True)

    @classmethod
    def of(cls, path, kernel):
        if type(path) is not PairPath or type(kernel) is not ColourGibbs:
            return None
        if path.neighbours is None or path.num_states > MOST_STATES:
            return None
        blocks, units = np.asarray(kernel.blocks), len(path.start)
        if not np.array_equal(np.sort(blocks[blocks < units]), np.arange(units)):
            return None  # the energy of a unit counts where the unit is drawn, so once

        def by_colour(array: Any) -> np.ndarray:
            """(colours, ..., width) of what belongs to a unit; what fills a colour up is not read."""
            return np.asarray(array)[np.minimum(blocks, units - 1)].swapaxes(1, 2)

        return cls(
            sites=on_device(blocks, np.int32),
            near=on_device(by_colour(path.neighbours), np.int32),
            couplings=on_device(by_colour(path.couplings)),
            start=on_device(by_colour(path.start)),
            change=on_device(by_colour(path.change)),
            offset=on_device([float(path.offset)]),
            num_units=units,
        )

    @property
    def arrays(self):
        return self.sites, self.near, self.couplings, self.start, self.change, self.offset

    @property
    def launch(self):
        colours, width = self.sites.shape
        constants = {
            "UNITS": self.num_units,
            "STATES": self.start.shape[1],
            "DEGREE": self.near.shape[1],
            "WIDTH": width,
        }
        return Launch(constants, colours, num_threads(width), self.num_units)

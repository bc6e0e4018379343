"""Gibbs sweeps over units in the order of their colours.

Units of one colour are not coupled with each other: given all others they are independent, and are drawn at
once. A checkerboard has two colours; where every pair is coupled each unit has a colour of its own and a
sweep is sequential. Each draw leaves p_beta invariant and is reversible, so that the reversal of a sweep
takes the colours in the opposite order.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from annealz.core.arrays import on_device
from annealz.core.random import Bits
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.factors import FactorPath
from annealz.paths.mixture import MixturePairPath
from annealz.paths.pairs import AbstractPairPath

__all__ = ["ColourGibbs", "colour_graph", "two_colours"]

_BLOCK_PRICE = 8  # units: what a block takes whatever its width


class ColourGibbs(AbstractKernel):
    """One sweep over all units, colour by colour.

    Parameters
    ----------
    blocks : (colours, width), the units of each colour; filled up with the number of units

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> ring = np.roll(np.eye(5), 1, 0) + np.roll(
    ...     np.eye(5), -1, 0
    ... )  # odd, so that no two colours do
    >>> kernel = annealz.Ising(0.5 * ring).kernel()
    >>> type(kernel).__name__, kernel.blocks.tolist()
    ('ColourGibbs', [[0, 2], [1, 3], [4, 5]])
    """

    blocks: Int[Array, "colours width"]

    @classmethod
    def of_graph(cls, is_coupled: np.ndarray) -> "ColourGibbs":
        """The colours of a graph, given as a matrix of booleans."""
        colours = colour_graph(is_coupled)
        width = np.bincount(colours).max()
        blocks = np.full((colours.max() + 1, width), len(colours))
        for colour in range(len(blocks)):
            units = np.flatnonzero(colours == colour)
            blocks[colour, : units.size] = units
        return cls(on_device(blocks, np.int32))

    @classmethod
    def of_work(cls, is_coupled: np.ndarray, work: np.ndarray) -> "ColourGibbs":
        """The colours of a graph in blocks of units that take about equally long.

        A block takes as long as its longest unit, times its width: a few units of much work are not drawn
        with many of little. Units of one colour may be drawn in turn, too.
        """
        colours = colour_graph(is_coupled)
        groups = [np.flatnonzero(colours == colour) for colour in range(colours.max() + 1)]
        groups = [units[np.argsort(-work[units], kind="stable")] for units in groups]

        def starts(width: int) -> list[np.ndarray]:
            return [
                units[first : first + width]
                for units in groups
                for first in range(0, len(units), width)
            ]

        def price(width: int) -> float:
            return sum(
                float(work[units[0]] + 1) * (width + _BLOCK_PRICE) for units in starts(width)
            )

        widest = max(map(len, groups))
        widths = {widest, *(2**power for power in range(2, 20) if 2**power < widest)}
        width = min(sorted(widths, reverse=True), key=price)
        chosen = starts(width)
        blocks = np.full((len(chosen), width), len(colours))
        for row, units in zip(blocks, chosen, strict=True):
            row[: units.size] = units
        return cls(on_device(blocks, np.int32))

    def step(self, bits: Bits, x, path: AbstractPairPath | FactorPath | MixturePairPath, beta):
        num_units = x.shape[-1]
        given = path.conditioned(
            bits, x, beta
        )  # one component for all colours, so that it reverses

        def update(k, x):
            sites = self.blocks[k]
            inside = jnp.minimum(sites, num_units - 1)  # the filling is drawn as well, and dropped
            logits = given.site_logits(x, inside, beta)
            new = given.units.sample(bits, logits.reshape(x.shape[0], -1), k)
            return x.at[:, sites].set(new, mode="drop")

        return jax.lax.fori_loop(0, len(self.blocks), update, x)

    def reversed(self) -> "ColourGibbs":
        return ColourGibbs(self.blocks[::-1])


def two_colours(is_coupled: np.ndarray) -> np.ndarray | None:
    """Colours 0 or 1 of all units, no two of one colour coupled; None if that is impossible."""
    colours = np.full(len(is_coupled), -1)
    for root in range(len(is_coupled)):
        if colours[root] >= 0:
            continue
        colours[root], front = 0, [root]
        while front:
            unit = front.pop()
            others = np.flatnonzero(is_coupled[unit])
            if (colours[others] == colours[unit]).any():
                return None
            front += others[colours[others] < 0].tolist()
            colours[others] = 1 - colours[unit]
    return colours


def colour_graph(is_coupled: np.ndarray) -> np.ndarray:
    """The colour of every unit: two colours where they do, else greedily, most coupled units first."""
    colours = two_colours(is_coupled)
    if colours is not None:
        return colours
    colours = np.full(len(is_coupled), -1)
    for unit in np.argsort(-is_coupled.sum(0), kind="stable"):
        taken = set(colours[np.flatnonzero(is_coupled[unit])].tolist())
        colours[unit] = next(c for c in range(len(colours)) if c not in taken)
    return colours

"""Gibbs sweeps over units in the order of their colours.

Units of one colour are not coupled with each other: given all others they are independent, and are drawn at
once. A checkerboard has two colours; where every pair is coupled each unit has a colour of its own and a
sweep is sequential. Each draw leaves p_beta invariant and is reversible, so that the reversal of a sweep
takes the colours in the opposite order.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from annealz.core.arrays import on_device
from annealz.core.random import Bits
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.mixture import MixturePairPath
from annealz.paths.pairs import AbstractUnitPath

Graph = Sequence[np.ndarray]
"""The neighbours of every unit, in ascending order."""

_BLOCK_PRICE = 8  # units: what a block takes whatever its width
_WIDEST = 2**13  # units of a block: more take memory and no less time


class ColourGibbs(AbstractKernel):
    """One sweep over all units, colour by colour.

    Parameters
    ----------
    blocks : (colours, width), the units of each colour; filled up with the number of units

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> ring = np.roll(np.eye(5), 1, 0) + np.roll(np.eye(5), -1, 0)  # odd: two colours do not do
    >>> kernel = annealz.Ising(0.5 * ring).kernel()
    >>> type(kernel).__name__, kernel.blocks.tolist()
    ('ColourGibbs', [[0, 2], [1, 3], [4, 5]])
    """

    blocks: Int[Array, "colours width"]

    @classmethod
    def of_graph(cls, graph: Graph, work: np.ndarray | None = None) -> "ColourGibbs":
        """Return the sweep over the colours of a graph.

        With the `work` that each unit takes, units of a colour are drawn in blocks of about equally much: a
        block takes as long as its longest unit, times its width.
        """
        colours = colour_graph(graph)
        groups = [np.flatnonzero(colours == colour) for colour in range(colours.max() + 1)]
        width = max(map(len, groups))
        if work is not None:
            groups = [units[np.argsort(-work[units], kind="stable")] for units in groups]
            widths = {width, *(2**power for power in range(2, 20) if 2**power < width)}
            allowed = [width for width in widths if width <= max(_WIDEST, min(widths))]

            def price(width: int) -> float:
                blocks = _blocks(groups, width)
                return sum(float(work[units[0]] + 1) * (width + _BLOCK_PRICE) for units in blocks)

            width = min(sorted(allowed, reverse=True), key=price)
        chosen = _blocks(groups, width)
        blocks = np.full((len(chosen), width), len(colours))
        for row, units in zip(blocks, chosen, strict=True):
            row[: units.size] = units
        return cls(on_device(blocks, np.int32))

    def step(self, bits: Bits, x, path: AbstractUnitPath | MixturePairPath, beta):
        num_units = x.shape[-1]
        given = path.conditioned(bits, x, beta)  # once for all colours, so that it reverses

        def update(k, x):
            sites = self.blocks[k]
            inside = jnp.minimum(sites, num_units - 1)  # the filling is drawn as well, and dropped
            logits = given.site_logits(x, inside, beta)
            new = given.units.sample(bits, logits.reshape(x.shape[0], -1), k)
            return x.at[:, sites].set(new, mode="drop")

        return jax.lax.fori_loop(0, len(self.blocks), update, x)

    def reversed(self) -> "ColourGibbs":
        return ColourGibbs(self.blocks[::-1])


def _blocks(groups: list[np.ndarray], width: int) -> list[np.ndarray]:
    """Return the units of every colour in blocks of at most this width."""
    return [units[i : i + width] for units in groups for i in range(0, len(units), width)]


def graph_of(is_coupled: np.ndarray) -> list[np.ndarray]:
    """Return the graph of a matrix of booleans."""
    return [np.flatnonzero(row) for row in is_coupled]


def two_colours(graph: Graph) -> np.ndarray | None:
    """Return colours 0 or 1 of all units, no two of one colour coupled; None if that is impossible."""
    colours = np.full(len(graph), -1)
    for root in range(len(graph)):
        if colours[root] >= 0:
            continue
        colours[root], front = 0, [root]
        while front:
            unit = front.pop()
            others = graph[unit]
            if (colours[others] == colours[unit]).any():
                return None
            front += others[colours[others] < 0].tolist()
            colours[others] = 1 - colours[unit]
    return colours


def colour_graph(graph: Graph) -> np.ndarray:
    """Return the colour of every unit: two where they do, else greedily, most coupled units first."""
    colours = two_colours(graph)
    if colours is not None:
        return colours
    colours = np.full(len(graph), -1)
    for unit in np.argsort([-len(others) for others in graph], kind="stable"):
        taken = set(colours[graph[unit]].tolist())
        colours[unit] = next(c for c in range(len(colours)) if c not in taken)
    return colours

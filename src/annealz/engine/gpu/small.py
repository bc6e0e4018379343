"""All steps of a chunk in one program per eight chains, for models whose weights fit into a multiprocessor.

The weights are two half-precision terms side by side, W = [high low], as exact as those of
`core/products.py`. Units are cut into tiles of 16, and every warp has some of them, for good: it

    multiplies    W h of a tile                      (16 units, 8 chains)
    draws         the tile's units
    multiplies    W^T v, its part of the sums        (2 latent, 8 chains)

and keeps all of it in registers, with as much of the weights as fits; the rest is in shared memory. Then
the warps add up their parts, and eight of them draw the latent units of a chain each, and pass the weights
on while the others go on. The units' uniforms are computed while the latent units are drawn. The least tile
of a tensor core, 16 × 8, is filled by as few chains as can be: 1,000 of them keep 125 multiprocessors busy.

Random bits are the same as elsewhere, and no chain's numbers depend on its neighbours. The rows' keys of
the random bits are computed beforehand, a piece of steps at a time.
"""

import math
from typing import ClassVar

import numpy as np
from jaxtyping import Array, Float, Float16

from annealz.core.arrays import on_device
from annealz.core.products import BinaryProduct
from annealz.engine.gpu import cuda
from annealz.engine.gpu.chunk import NEVER, FusedSteps, largest_field
from annealz.paths.geometric import GeometricPath

_CHAINS, _WARPS = 8, 12  # a program
_MOST_GROUPS = 8  # of eight latent units, for the sake of registers
_HELD = 12  # pieces of the weights, 16 × 16, that a warp holds in registers


class SmallSteps(FusedSteps):
    """Weights in halves of half precision."""

    block: ClassVar[int] = _CHAINS

    up: Float16[Array, "tiles groups 8 4 2 2 2"]
    down: Float16[Array, "tiles groups 8 4 2 2 2"]
    state_power: Float[Array, " units"]
    latent_bias: Float[Array, " latent"]
    latent_change: Float[Array, " latent"]
    scalars: Float[Array, " 2"]
    """Scale of the product, and the largest field."""

    @classmethod
    def fits(cls, path, num_chains, num_processors):
        tiles, groups = _sizes(path)
        return groups <= _MOST_GROUPS and _shared_bytes(tiles, groups) <= cuda.SHARED_BYTES

    @classmethod
    def of(cls, path, num_processors):
        return cls(path)

    def __init__(self, path: GeometricPath):
        product = path.to_latent
        if not product.is_split:
            product = BinaryProduct(product.dense(), is_split=True)
        (units, outputs), (tiles, groups) = product.shape, _sizes(path)
        both = np.zeros((16 * tiles, 2, 8 * groups), np.float16)
        for i, term in enumerate(product.terms):
            both[:units, i, :outputs] = term
        both = both.reshape(16 * tiles, 16 * groups)
        self.up = on_device(_pieces(both.T).swapaxes(0, 1), np.float16)
        self.down = on_device(_pieces(both), np.float16)
        bias = np.pad(path.state_bias, (0, 16 * tiles - units), constant_values=NEVER)
        self.state_power = on_device(-math.log2(math.e) * bias)
        self.latent_bias, self.latent_change = path.latent_bias, path.latent_bias_change
        largest = largest_field(product.dense()[:, :-1].T, path)
        self.scalars = on_device([float(product.scale), largest])

    @property
    def width(self):
        return len(self.state_power)

    def take(self, count, slots, betas, keys, held):
        tiles, groups = self.up.shape[:2]
        num_chains = len(held[0])
        constants = {
            "WARPS": _WARPS,
            "HELD": min(tiles // _WARPS, _HELD // groups),
            "TILES": tiles,
            "GROUPS": groups,
            "NUM_UNITS": 16 * tiles,
            "NUM_LATENT": len(self.latent_bias),
            "NUM_CHAINS": num_chains,
            "LENGTH": len(slots),
        }
        vectors = (self.state_power, self.latent_bias, self.latent_change, self.scalars)
        args = (count, slots, betas, keys, self.up, self.down, *vectors, *held)
        aliases = {len(args) - len(held) + i: i for i in range(len(held))}
        launch = (num_chains // _CHAINS, 32 * _WARPS, _shared_bytes(tiles, groups))
        text = cuda.source("small")
        return cuda.call("small_steps", text, constants, args, list(held), aliases, launch)


def _sizes(path: GeometricPath) -> tuple[int, int]:
    """Tiles of 16 units, and groups of eight latent ones and what drives the state."""
    units, outputs = path.to_latent.shape
    return -(-units // 16), -(-outputs // 8)


def _shared_bytes(tiles: int, groups: int) -> int:
    """Weights, once a product, partial sums, latent units, and barriers."""
    stride = -(-groups // 4) * 32 + 4
    return _CHAINS * (128 * tiles * groups + 4 * _WARPS * stride + 16 * groups) + 16


def _pieces(matrix: np.ndarray) -> np.ndarray:
    """Pieces of 16 × 16 in the order in which the lanes of a warp hold them: eight numbers each."""
    rows, columns = (size // 16 for size in matrix.shape)
    cut = matrix.reshape(rows, 2, 8, columns, 2, 4, 2)
    return cut.transpose(0, 3, 2, 5, 4, 1, 6)

"""All steps of a chunk in one program for 128 chains each, for models of hundreds of units and many chains.

The weights stream past the chains, out of the cache that all multiprocessors share:

    up      products of the state with the weights of 64 latent units, their part of log w, and their draw
    down    products of the latent units with the weights of 64 units of the state, and their draw

One warpgroup does nothing but fetch weights, some pieces ahead, over the ends of tiles and steps. Two
others have 64 chains each. A thread draws the units that it needs itself as an operand of the next product:
states are bits of its own, which no other thread reads. No program waits for another, and no chain's
numbers depend on its neighbours.

Products are sums of integers, and exact (`integers.py`); random bits are the same as elsewhere.
"""

from typing import ClassVar

import equinox as eqx

from annealz.engine.gpu import cuda
from annealz.engine.gpu.chunk import FusedSteps
from annealz.engine.gpu.integers import Cut, IntegerWeights, source
from annealz.engine.gpu.large import FEW_CHAINS
from annealz.paths.geometric import GeometricPath

_CHAINS, _GROUPS = 64, 2  # chains a warpgroup, and warpgroups
_TILES = 8  # of eight units, whose weights are multiplied at once
_CHUNKS = 4  # of 32 inputs, a piece of the weights
_PIECE_BYTES = _CHUNKS * 32 * 24 * _TILES
_FEWEST_STAGES, _MOST_STAGES = 3, 8  # pieces ahead
_MOST_SHARES = 16  # of a layer: a word each, in registers


class ManySteps(FusedSteps):
    """Shares of the weights are multiplied one after the other."""

    weights: IntegerWeights
    chunks: tuple[int, int] = eqx.field(static=True)
    """Of 32 inputs: of the state, and of the latent units."""
    block: ClassVar[int] = _CHAINS * _GROUPS

    @classmethod
    def fits(cls, path, num_chains, num_processors):
        shares = [_cut(size).shares for size in path.to_latent.shape]
        is_small = max(shares) <= _MOST_SHARES and _stages(*shares) >= _FEWEST_STAGES
        return num_chains > FEW_CHAINS and is_small

    @classmethod
    def of(cls, path: GeometricPath, num_processors: int):
        units, outputs = path.to_latent.shape
        weights = IntegerWeights(path, _cut(outputs), _cut(units))
        chunks = -(-units // 32), -(-(outputs - 1) // 32)  # without the drive
        up, down = weights.up[:, : chunks[0]], weights.down[:, : chunks[1]]
        return cls(eqx.tree_at(lambda w: (w.up, w.down), weights, (up, down)), chunks)

    @property
    def width(self):
        return self.weights.state[:, 0].size

    def take(self, count, slots, betas, keys, held):
        num_chains, weights = len(held[0]), self.weights
        shares = len(weights.state), len(weights.latent)
        stages = _stages(*shares)
        constants = {
            "UNIT_TILES": shares[0],
            "LATENT_TILES": shares[1],
            "UNIT_CHUNKS": self.chunks[0],
            "LATENT_CHUNKS": self.chunks[1],
            "NUM_LATENT": weights.num_latent,
            "NUM_CHAINS": num_chains,
            "PIECE": _CHUNKS,
            "STAGES": stages,
        }
        args = (count, slots, betas, keys, *weights.arrays, *held)
        aliases = {len(args) - len(held) + i: i for i in range(len(held))}
        shared = stages * (_PIECE_BYTES + 16) + _other_bytes(*shares)
        launch = (num_chains // self.block, 128 * (_GROUPS + 1), shared)
        text = source("many", 24 * _TILES)
        return cuda.call("many_steps", text, constants, args, list(held), aliases, launch)


def _cut(size: int) -> Cut:
    """Of a layer: inputs are taken from four tiles beside each other."""
    return Cut(-(-size // (8 * _TILES)), _TILES, 1)


def _other_bytes(*shares: int) -> int:
    """Of shared memory beside the pieces: three numbers of every unit, and the words of every thread."""
    return sum(shares) * 4 * (3 * 8 * _TILES + 128 * _GROUPS)


def _stages(*shares: int) -> int:
    """Pieces of the weights that there is space for."""
    left = cuda.SHARED_BYTES - _other_bytes(*shares)
    return min(left // (_PIECE_BYTES + 16), _MOST_STAGES)

"""All steps of a chunk by groups of programs that share the weights, for models of hundreds of units.

Weights that do not fit into one multiprocessor are distributed over the members of a group. A member has a
share of the latent units and one of the state's, with their weights in its shared memory for good, and two
warpgroups of 64 chains each:

    up      fields of my latent units, the draw of them, and their part of log w      (64, latent)
    down    logits of my units of the state, and the draw of them                      (64, units)

States travel as bits through the cache that all multiprocessors share, in words that also say which step
they are of: a thread waits until the words of all members are of this step. While it waits, the other
warpgroup works. A thread reads what the same threads of other members wrote and no others: none can
overwrite what another has yet to read. What a step adds to the weights is added up by a program of its own,
after a piece of steps.

Products are sums of integers, and exact (`integers.py`). No chain's numbers depend on its neighbours, and
random bits are the same as elsewhere.

A group can only wait for itself where all of it runs at once: one program per multiprocessor. Should one be
kept from running, the others stop waiting after some seconds and the log weights become NaN, which the
engine refuses.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from annealz.engine.gpu import cuda
from annealz.engine.gpu.chunk import FusedSteps
from annealz.engine.gpu.integers import Cut, IntegerWeights, source
from annealz.paths.geometric import GeometricPath

FEW_CHAINS = 12_288  # per block: up to so many are run faster by groups
_CHAINS = 64  # a warpgroup
_MEMBERS = 16  # of a group
_MOST_TILES = 8  # of eight units, a member: a thread draws two of each in two chains, 32 bits


class LargeSteps(FusedSteps):
    """Shares of the weights are those of the members of a group."""

    weights: IntegerWeights
    num_groups: int = eqx.field(static=True)
    block: ClassVar[int] = _CHAINS

    @classmethod
    def fits(cls, path, num_chains, num_processors):
        if num_chains > FEW_CHAINS or num_processors < _MEMBERS:
            return False
        state, latent = (_cut(size) for size in path.to_latent.shape)
        weights = 8 * _MEMBERS * (state.tiles * latent.rows + latent.tiles * state.rows)
        shared = weights + 96 * (state.tiles + latent.tiles)
        return shared <= cuda.SHARED_BYTES and max(state.tiles, latent.tiles) <= _MOST_TILES

    @classmethod
    def of(cls, path: GeometricPath, num_processors: int):
        state, latent = (_cut(size) for size in path.to_latent.shape)
        return cls(IntegerWeights(path, latent, state), num_processors // _MEMBERS)

    @property
    def width(self):
        return self.weights.state[:, 0].size

    def take(self, count, slots, betas, keys, held):
        v, *sums = held
        num_chains, weights = len(v), self.weights
        num_blocks = num_chains // _CHAINS
        rows = [8 * a.shape[2] for a in (weights.up, weights.down)]
        constants = {
            "MEMBERS": _MEMBERS,
            "UNIT_TILES": weights.state.shape[2] // 8,
            "LATENT_TILES": weights.latent.shape[2] // 8,
            "UP_ROWS": rows[0],
            "DOWN_ROWS": rows[1],
            "NUM_LATENT": weights.num_latent,
            "NUM_CHAINS": num_chains,
            "LENGTH": len(slots),
        }
        text = source("large", *rows)
        posted = jnp.zeros((2, num_blocks, _MEMBERS, 128, 2), jnp.uint32)
        parts = jax.ShapeDtypeStruct((len(slots), _MEMBERS, num_chains), jnp.float32)
        args = (count, slots, betas, keys, *weights.arrays, v, posted)
        numbers = weights.latent.size + weights.state.size
        shared = (weights.up.size + weights.down.size + 4 * numbers) // _MEMBERS
        launch = (min(self.num_groups, num_blocks) * _MEMBERS, 256, shared)
        like, aliases = [v, posted, parts, parts], {9: 0, 10: 1}
        v, _, terms, slopes = cuda.call("large_steps", text, constants, args, like, aliases, launch)
        args = (count, slots, terms.sum(1), slopes, *sums)
        aliases, launch = {4 + i: i for i in range(len(sums))}, (num_chains // 32, 32, 0)
        sums = cuda.call("account_steps", text, constants, args, sums, aliases, launch)
        return (v, *sums)


def _cut(size: int) -> Cut:
    """Of a layer: its tiles go to the members, and inputs are taken from four members at a time."""
    tiles = -(-size // (8 * _MEMBERS))
    return Cut(_MEMBERS, tiles, tiles)

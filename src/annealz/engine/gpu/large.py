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

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int8

from annealz.core.arrays import on_device
from annealz.core.random import Stream
from annealz.core.recent import Recent
from annealz.engine.gpu import cuda
from annealz.engine.gpu.chunk import NEVER, Chains, Span, fused_chunk, largest_field
from annealz.engine.gpu.integers import signed_bytes
from annealz.paths.geometric import GeometricPath

__all__ = ["LargeSteps", "fits"]

_CHAINS = 64  # a warpgroup
_MEMBERS = 16  # of a group
_MOST_TILES = 8  # of eight units, a member: a thread draws two of each in two chains, 32 bits


def fits(path: GeometricPath, num_processors: int) -> bool:
    """Whether the weights fit into the programs of a group, and the group into the device."""
    wide, high = (_tiles(size) for size in path.to_latent.shape)
    weights = 8 * _MEMBERS * (wide * _num_rows(high) + high * _num_rows(wide))
    is_small = weights + 96 * (wide + high) <= cuda.SHARED_BYTES
    return is_small and max(wide, high) <= _MOST_TILES and num_processors >= _MEMBERS


class LargeSteps(eqx.Module):
    """The arrays of one path as the programs take them."""

    up: Int8[Array, "members unit_tiles latent_rows 256"]
    down: Int8[Array, "members latent_tiles unit_rows 256"]
    latent: Float[Array, "members 3 latent"]
    """Scale of the product, bias, and its change."""
    state: Float[Array, "members 3 units"]
    largest: Float[Array, " 1"]
    num_latent: int = eqx.field(static=True)
    num_groups: int = eqx.field(static=True)

    def __init__(self, path: GeometricPath, num_processors: int):
        shared = _shared.get([path.to_state.matrix], lambda: _of_weights(path))
        weights, up, up_scale, self.down, down_scale = shared
        change = np.asarray(path.state_bias_change, np.float64)
        outputs = path.to_latent.shape[1]
        self.up, up_scale = _with_row(up, up_scale, outputs - 1, change)
        latent = (path.latent_bias, 0), (path.latent_bias_change, 0)
        state = (path.state_bias, NEVER), (path.state_bias_change, 0)
        self.latent = _vectors(up_scale, latent)
        self.state = _vectors(down_scale, state)
        self.largest = on_device([largest_field(weights, path)])
        self.num_latent, self.num_groups = outputs - 1, num_processors // _MEMBERS

    def __call__(self, stream: Stream, chains: Chains, betas, span: Span):
        """The chains after the steps of `span`, and what was recorded on the way."""
        width = self.state[:, 0].size
        return fused_chunk(stream, chains, betas, span, _CHAINS, width, self._take)

    def _take(self, count, slots, window, keys, held):
        v, *sums = held
        num_chains = len(v)
        num_blocks = num_chains // _CHAINS
        rows = [8 * a.shape[2] for a in (self.up, self.down)]
        constants = {
            "MEMBERS": _MEMBERS,
            "UNIT_TILES": self.state.shape[2] // 8,
            "LATENT_TILES": self.latent.shape[2] // 8,
            "UP_ROWS": rows[0],
            "DOWN_ROWS": rows[1],
            "NUM_LATENT": self.num_latent,
            "NUM_CHAINS": num_chains,
            "LENGTH": len(slots),
        }
        text = cuda.source("large", "".join(map(_multiply, sorted(set(rows)))))
        posted = jnp.zeros((2, num_blocks, _MEMBERS, 128, 2), jnp.uint32)
        parts = jax.ShapeDtypeStruct((len(slots), _MEMBERS, num_chains), jnp.float32)
        arrays = (self.up, self.down, self.latent, self.state, self.largest)
        args = (count, slots, window, keys, *arrays, v, posted)
        numbers = self.latent.size + self.state.size
        shared = (self.up.size + self.down.size + 4 * numbers) // _MEMBERS
        launch = (min(self.num_groups, num_blocks) * _MEMBERS, 256, shared)
        like, aliases = [v, posted, parts, parts], {9: 0, 10: 1}
        v, _, terms, slopes = cuda.call("large_steps", text, constants, args, like, aliases, launch)
        args = (count, slots, terms.sum(1), slopes, *sums)
        aliases, launch = {4 + i: i for i in range(len(sums))}, (num_chains // 32, 32, 0)
        sums = cuda.call("account_steps", text, constants, args, sums, aliases, launch)
        return (v, *sums)


def _tiles(size: int) -> int:
    """Of eight units, a member."""
    return -(-size // (8 * _MEMBERS))


def _num_rows(tiles: int) -> int:
    """Of a product: three bytes per unit, filled to a number that tensor cores take."""
    rows = 24 * tiles
    return rows if rows <= 32 else -(-rows // 16) * 16


_shared = Recent(2)  # what all paths of a model have in common


def _of_weights(path: GeometricPath):
    """What all paths of a model share: its weights, those of the members for both products, and scales."""
    weights = path.to_state.dense()  # (latent, units)
    latent, units = weights.shape
    sizes = [8 * _MEMBERS * _tiles(size) for size in (latent + 1, units)]
    padded = np.pad(
        weights, [(0, size - have) for size, have in zip(sizes, weights.shape, strict=True)]
    )
    up, up_scale = _shares(padded)
    down, down_scale = _shares(padded.T)
    return weights, up, up_scale, on_device(down, np.int8), down_scale


def _with_row(shares: np.ndarray, scale: np.ndarray, row: int, weights: np.ndarray):
    """The same with one more row of weights: what drives the state is an output of the product up, too."""
    rest = len(scale) // (8 * _MEMBERS)  # tiles of outputs, a member
    member, tile, place = row // (8 * rest), row // 8 % rest, row % 8
    inner = shares.shape[1] // (_MEMBERS // 4)
    padded = np.pad(weights, (0, 8 * _MEMBERS * inner - weights.size))
    terms, own = signed_bytes(padded[None])
    cut = terms.reshape(3, _MEMBERS // 4, 4, inner, 4, 2).transpose(1, 3, 0, 5, 4, 2)
    shares, scale = shares.copy(), scale.copy()
    here = shares[member].reshape(_MEMBERS // 4, inner, -1, 2, 8, 4, 4)
    here[:, :, tile : 3 * rest : rest, :, place] = cut
    scale[row] = own[0]
    return on_device(shares, np.int8), scale


def _shares(matrix: np.ndarray):
    """The members' weights (outputs, inputs) as bytes in the order of a product, and the outputs' scales.

    A product takes 32 inputs at a time: of four members, two in eight of a tile each.
    """
    terms, scale = signed_bytes(matrix)
    tiles, inner = (size // (8 * _MEMBERS) for size in matrix.shape)
    # byte, member, tile, row; four members, which of them, tile, two of eight, and which of these
    cut = terms.reshape(3, _MEMBERS, tiles, 8, _MEMBERS // 4, 4, inner, 4, 2)
    cut = cut.transpose(1, 4, 6, 0, 2, 8, 3, 7, 5)
    cut = cut.reshape(_MEMBERS, _MEMBERS // 4 * inner, 3 * tiles, 256)
    fill = _num_rows(tiles) // 8 - 3 * tiles
    return np.pad(cut, ((0, 0), (0, 0), (0, fill), (0, 0))), scale


def _vectors(scale: np.ndarray, vectors) -> Float[Array, "members 3 units"]:
    """Every member's part of the scale and of these vectors, filled up."""
    padded = (
        np.pad(vector, (0, len(scale) - len(vector)), constant_values=value)
        for vector, value in vectors
    )
    return on_device(np.stack([a.reshape(_MEMBERS, -1) for a in (scale, *padded)], axis=1))


def _multiply(rows: int) -> str:
    """A function that adds a product of 32 bytes each with so many rows of the weights to the sums."""
    count = rows // 2
    sums, x = (", ".join(f"%{i}" for i in range(*ends)) for ends in ((count,), (count, count + 4)))
    outputs = ", ".join(f'"+r"(sums[{i}])' for i in range(count))
    inputs = ", ".join(f'"r"(x[{i}])' for i in range(4))
    return (
        "__device__ __forceinline__ void multiply("
        f"int (&sums)[{count}], const u32 (&x)[4], u64 weights, int is_more) {{\n"
        f'    asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{count + 5}, 0;\\n'
        f"wgmma.mma_async.sync.aligned.m64n{rows}k32.s32.s8.s8 {{{sums}}}, {{{x}}}, %{count + 4}, p;"
        f'\\n}}" : {outputs} : {inputs}, "l"(weights), "r"(is_more));\n}}\n'
    )

"""Weights as integers of three signed bytes, whose products with binary states are exact.

A row of the weights, of largest entry m, is held as 24-bit integers,

    W = s (2^16 t0 + 2^8 t1 + t2) + r,     s = m / (127 2^16),     |r| <= s / 2 = m 2^-23.99

so that r is at most about 1 % above the rounding of a float32 of the size of m; tensor cores
multiply bytes twice as fast as half-precision numbers. The order of summation changes nothing.

Outputs of a product lie in shares of some tiles of eight units each. Its inputs are taken 32 at a time, in
an order in which a thread that has drawn units can use them as they are: of four tiles of eight, two each.
What is computed with them is in integers.cu.
"""

from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int8

from annealz.core.arrays import on_device
from annealz.core.programs import Recent
from annealz.engine.gpu import cuda
from annealz.engine.gpu.chunk import NEVER, largest_field
from annealz.paths.geometric import GeometricPath

_LARGEST = 127 << 16


class Cut(NamedTuple):
    """How the units of a layer are cut: into shares of so many tiles of eight.

    As inputs they are taken from tiles that are `apart` from each other, four at a time.
    """

    shares: int
    tiles: int
    apart: int

    @property
    def size(self) -> int:
        """Units, with those that fill it up."""
        return 8 * self.shares * self.tiles

    @property
    def rows(self) -> int:
        """Of a share as outputs: three bytes per unit, filled to a number that tensor cores take."""
        rows = 24 * self.tiles
        return rows if rows <= 32 else -(-rows // 16) * 16

    def split(self) -> tuple[int, ...]:
        """As inputs: quads, which of four, tile, which two of eight, and which of these."""
        return self.size // (32 * self.apart), 4, self.apart, 4, 2


class IntegerWeights(eqx.Module):
    """The arrays of one path: both products, and every unit's scale of the product, bias, and change."""

    up: Int8[Array, "latent_shares unit_tiles latent_rows 256"]
    down: Int8[Array, "unit_shares latent_tiles unit_rows 256"]
    latent: Float[Array, "latent_shares 3 latent"]
    state: Float[Array, "unit_shares 3 units"]
    largest: Float[Array, " 1"]
    num_latent: int = eqx.field(static=True)

    def __init__(self, path: GeometricPath, latent: Cut, state: Cut):
        shared = _shared.get(
            [path.to_state.matrix, str((latent, state))], lambda: _of_model(path, latent, state)
        )
        weights, up, up_scale, self.down, down_scale = shared
        change = np.asarray(path.state_bias_change, np.float64)
        self.num_latent = len(weights)
        up, up_scale = _with_row(up, up_scale, self.num_latent, change, latent, state)
        self.up = on_device(up, np.int8)
        of_latent = (path.latent_bias, 0), (path.latent_bias_change, 0)
        of_state = (path.state_bias, NEVER), (path.state_bias_change, 0)
        self.latent = _vectors(up_scale, of_latent, latent)
        self.state = _vectors(down_scale, of_state, state)
        self.largest = on_device([largest_field(weights, path)])

    @property
    def arrays(self) -> tuple[Any, ...]:
        """In the order in which programs take them."""
        return self.up, self.down, self.latent, self.state, self.largest


def source(name: str, *rows: int) -> str:
    """The text of a program that multiplies weights of so many rows."""
    shared = (Path(__file__).parent / "integers.cu").read_text()
    return cuda.source(name, "".join(map(_multiply, sorted(set(rows)))) + shared)


def signed_bytes(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Three signed bytes of every entry (3, rows, columns), and the scale of every row."""
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    scale = (np.where(largest > 0, largest, 1.0) / _LARGEST).astype(np.float32)
    raised = np.rint(matrix / scale.astype(np.float64)).astype(np.int32) + 0x808080
    terms = [
        ((raised >> shift).astype(np.uint8) ^ 0x80).view(np.int8) for shift in (16, 8, 0)
    ]  # each byte was 128 more than it is
    return np.stack(terms), scale[:, 0]


_shared = Recent(2)  # what all paths of a model have in common


def _of_model(path: GeometricPath, latent: Cut, state: Cut):
    """What all paths of a model share: its weights, those of both products, and scales."""
    weights = path.to_state.dense()  # (latent, units)
    fill = (latent.size - weights.shape[0], state.size - weights.shape[1])
    padded = np.pad(weights, [(0, more) for more in fill])
    up, up_scale = _shares(padded, latent, state)
    down, down_scale = _shares(padded.T, state, latent)
    return weights, up, up_scale, on_device(down, np.int8), down_scale


def _shares(matrix: np.ndarray, outputs: Cut, inputs: Cut):
    """The shares of the weights (outputs, inputs) in the order of a product, and the outputs' scales."""
    terms, scale = signed_bytes(matrix)
    # byte, share, tile, row; quad, which of four, tile, two of eight, and which of these
    cut = terms.reshape(3, outputs.shares, outputs.tiles, 8, *inputs.split())
    cut = cut.transpose(1, 4, 6, 0, 2, 8, 3, 7, 5)
    cut = cut.reshape(outputs.shares, inputs.size // 32, 3 * outputs.tiles, 256)
    fill = outputs.rows // 8 - 3 * outputs.tiles
    return np.pad(cut, ((0, 0), (0, 0), (0, fill), (0, 0))), scale


def _with_row(shares: np.ndarray, scale: np.ndarray, row: int, weights, outputs: Cut, inputs: Cut):
    """The same with one more row of weights: what drives the state is an output of the product up, too."""
    tiles = outputs.tiles
    share, tile, place = row // (8 * tiles), row // 8 % tiles, row % 8
    terms, own = signed_bytes(np.pad(weights, (0, inputs.size - weights.size))[None])
    cut = terms.reshape(3, *inputs.split()).transpose(1, 3, 0, 5, 4, 2)
    shares, scale = shares.copy(), scale.copy()
    here = shares[share].reshape(*cut.shape[:2], -1, 2, 8, 4, 4)
    here[:, :, tile : 3 * tiles : tiles, :, place] = cut
    scale[row] = own[0]
    return shares, scale


def _vectors(scale: np.ndarray, vectors, cut: Cut) -> Float[Array, "shares 3 units"]:
    """Every share of the scale and of these vectors, filled up."""
    padded = (
        np.pad(vector, (0, cut.size - len(vector)), constant_values=value)
        for vector, value in vectors
    )
    return on_device(np.stack([a.reshape(cut.shares, -1) for a in (scale, *padded)], axis=1))


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

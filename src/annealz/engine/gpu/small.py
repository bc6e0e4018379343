"""All steps of a chunk in one program per group of chains, for models whose weights fit into it.

A program of the GPU holds 8 chains, and its states never leave it. The weights, as two half-precision
terms side by side, [high low] of shape (units, 2 latent), stay in its shared memory and serve both
products,

    [high low]^T v      (2 latent, chains): the fields, and in one more row v . (b - b_A)
    [high low] [h; h]   (units, chains): the logits of the state

with units down the rows and chains across, so that the least tile of a tensor core, 16 × 8, is filled by
as few chains as possible and 1,000 chains keep 125 multiprocessors busy. An axis is cut into powers of
two, for Triton knows no others. Products are as exact as those of `core/products.py`, random bits are the
same, and no chain's numbers depend on its neighbours.

The rows' keys of the random bits are computed beforehand, a piece of steps at a time: inside, every thread
would compute them again.
"""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float

from annealz.core.numerics import add_compensated
from annealz.core.products import BinaryProduct
from annealz.core.random import Stream
from annealz.engine.gpu.arithmetic import LOG2_E, NARROW, exp2, is_one, softplus_difference
from annealz.engine.gpu.chunk import SHARED_BYTES, Chains, Span, in_pieces, largest_field
from annealz.paths.geometric import GeometricPath

__all__ = ["SmallSteps", "fits"]

_CHAINS = 8  # a program
_LARGEST_TILE = 256
_NUM_WARPS = 4
_NEVER = -1e4  # logit of a unit that is only filling


def fits(path: GeometricPath) -> bool:
    """Whether the model is small enough."""
    units, outputs = path.to_latent.shape
    filled, rows = sum(_tiles(units)), _rows(outputs)
    return (
        2 * filled * (2 * 2 * rows + _CHAINS) <= SHARED_BYTES
    )  # weights, once a product, and states


class SmallSteps(eqx.Module):
    """The arrays of one path as the program takes them."""

    weights: Float[Array, "units terms"]
    scalars: Float[Array, " 2"]
    latent_bias: Float[Array, " latent"]
    latent_change: Float[Array, " latent"]
    state_power: Float[Array, " units"]
    num_latent: int = eqx.field(static=True)
    num_units: int = eqx.field(static=True)
    interpret: bool = eqx.field(static=True)

    def __init__(self, path: GeometricPath, interpret: bool = False):
        product = path.to_latent
        if not product.is_split:
            product = BinaryProduct(product.matrix, is_split=True)
        units, outputs = product.shape
        rows, filled = _rows(outputs), sum(_tiles(units))
        fill = ((0, filled - units), (0, rows - outputs))
        self.weights = jnp.concatenate([jnp.pad(term, fill) for term in product.terms], axis=1)
        self.scalars = jnp.stack([product.scale, jnp.float32(largest_field(product.dense(), path))])
        latent, units_left = (0, rows - outputs + 1), (0, filled - units)
        self.latent_bias = jnp.tile(jnp.pad(path.latent_bias, latent), 2)
        self.latent_change = jnp.tile(jnp.pad(path.latent_bias_change, latent), 2)
        bias = jnp.pad(path.state_bias, units_left, constant_values=_NEVER)
        self.state_power = -LOG2_E * bias
        self.num_latent, self.num_units, self.interpret = outputs - 1, units, interpret

    def __call__(self, stream: Stream, chains: Chains, betas, span: Span):
        """The chains after the steps of `span`, and what was recorded on the way."""
        count = chains.log_weights.shape[0]
        fill = -count % _CHAINS
        indices = jnp.pad(chains.indices.astype(jnp.uint32), (0, fill))
        states = chains.x.astype(self.weights.dtype)
        states = jnp.pad(states, ((0, fill), (0, self.weights.shape[0] - self.num_units))).T
        pair = tuple(jnp.pad(a, (0, fill)) for a in (chains.log_weights, chains.compensation))
        records = tuple(jnp.zeros((span.capacity, count + fill), jnp.float32) for _ in range(3))
        held = (states, *pair, *records)
        states, *pair, log_weights, compensation, slope = in_pieces(
            stream, indices, betas, span, held, self._call
        )
        x = states.T[:count, : self.num_units].astype(chains.x.dtype)
        after = Chains(chains.indices, x, *(a[:count] for a in pair))
        return after, tuple(a[:, :count] for a in (log_weights, compensation, slope))

    def _call(self, count, slots, window, keys, held):
        count = count.reshape(1)
        arrays = (
            self.weights,
            self.scalars,
            self.latent_bias,
            self.latent_change,
            self.state_power,
        )
        across = [_across(a) for a in held]
        whole = [pl.BlockSpec(a.shape, lambda i, n=a.ndim: (0,) * n) for a in arrays]
        plain = [pl.BlockSpec(a.shape, lambda i: (0,)) for a in (count, slots, window)]
        body = functools.partial(
            _program,
            tiles=_tiles(self.num_units),
            num_latent=self.num_latent,
            interpret=self.interpret,
        )
        first = len(plain) + 1 + len(arrays)
        return pl.pallas_call(
            body,
            grid=(held[0].shape[1] // _CHAINS,),
            in_specs=[*plain, _across(keys), *whole, *across],
            out_specs=across,
            out_shape=[jax.ShapeDtypeStruct(a.shape, a.dtype) for a in held],
            input_output_aliases={first + i: i for i in range(len(held))},
            compiler_params=triton.CompilerParams(num_warps=_NUM_WARPS, num_stages=1),
            interpret=self.interpret,
        )(count, slots, window, keys, *arrays, *held)


class _Given(NamedTuple):
    """What a program reads: the piece of steps, its keys, and the arrays of the path."""

    count: Any
    slots: Any
    betas: Any
    keys: Any
    weights: Any
    scalars: Any
    latent_bias: Any
    latent_change: Any
    state_power: Any


def _program(*refs, tiles, num_latent: int, interpret: bool):
    """The steps of one piece for one group of chains."""
    num_given = len(_Given._fields)
    given, held, out = _Given(*refs[:num_given]), refs[num_given:][:6], refs[num_given:][6:]
    (v_in, total_in, carry_in), (v_out, total_out, carry_out, *records) = held[:3], out
    count = given.count[0]
    cuts = [(sum(tiles[:i]), tile) for i, tile in enumerate(tiles)]
    weights = [given.weights[pl.ds(at, tile), :] for at, tile in cuts]
    bias = [given.state_power[pl.ds(at, tile)][:, None] for at, tile in cuts]
    latent_bias, latent_change = given.latent_bias[...][:, None], given.latent_change[...][:, None]
    scale, largest = given.scalars[0], given.scalars[1]
    rows = latent_bias.shape[0] // 2
    row = jnp.arange(2 * rows, dtype=jnp.int32)[:, None] % rows
    is_latent = row < num_latent
    is_first = jnp.arange(2 * rows, dtype=jnp.int32)[:, None] < rows

    def step(i, held):
        v, total, carry = held
        beta0, beta1 = given.betas[i], given.betas[i + 1]
        low, high = jnp.minimum(beta0, beta1), jnp.maximum(beta0, beta1)
        h0, h1, v0, v1 = (given.keys[i, j, :][None, :] for j in range(4))

        parts = [scale * _dot(w, x, over=0) for w, x in zip(weights, v, strict=True)]
        halves = functools.reduce(jnp.add, parts).reshape(2, rows, _CHAINS)
        product = jnp.broadcast_to(halves.sum(0)[None], (2, rows, _CHAINS))
        product = product.reshape(2 * rows, _CHAINS)  # both halves of the sum, twice
        fields = jnp.where(is_latent, product + latent_change, 0.0)
        drive = jnp.where(row == num_latent, product, 0.0)
        power = -LOG2_E * (latent_bias + beta1 * fields)
        h = is_latent & is_one(h0, h1, row.astype(jnp.uint32), power, interpret)
        h = (h | (row == num_latent)).astype(jnp.float16)  # the last row adds b - b_A
        new = []
        for (at, tile), w, b in zip(cuts, weights, bias, strict=True):
            down = b + (-LOG2_E * beta1 * scale) * _dot(w, h, over=1)
            units = (at + jnp.arange(tile, dtype=jnp.int32)).astype(jnp.uint32)[:, None]
            new.append(is_one(v0, v1, units, down, interpret).astype(jnp.float16))

        width = high - low
        at_low, is_narrow = latent_bias + low * fields, width * largest < NARROW
        terms = softplus_difference(at_low, width * fields, is_narrow, interpret)
        terms = jnp.where(is_latent, terms, width * drive)
        increment = jnp.where(is_first, terms, 0.0).sum(0)
        increment = jnp.where(beta1 >= beta0, increment, -increment)
        total, carry = add_compensated(total, carry, increment)

        slot = given.slots[i]

        @pl.when(slot >= 0)
        def _():
            slope = drive + fields / (1 + exp2(power, interpret))
            values = (total, carry, jnp.where(is_first, slope, 0.0).sum(0))
            for ref, value in zip(records, values, strict=True):
                ref[slot, :] = value

        return tuple(new), total, carry

    v = tuple(v_in[pl.ds(at, tile), :] for at, tile in cuts)
    held = (v, total_in[...], carry_in[...])
    v, total_out[...], carry_out[...] = jax.lax.fori_loop(0, count, step, held)
    for (at, tile), x in zip(cuts, v, strict=True):
        v_out[pl.ds(at, tile), :] = x


def _dot(weights, x, over: int):
    """weights^T x or weights x, summed in float32."""
    axes = (((over,), (0,)), ((), ()))
    return jax.lax.dot_general(weights, x, axes, preferred_element_type=jnp.float32)


def _across(array) -> pl.BlockSpec:
    """A program's share of an array whose last axis is that of the chains."""
    axes = array.ndim - 1
    return pl.BlockSpec((*array.shape[:-1], _CHAINS), lambda i: (0,) * axes + (i,))


def _tiles(size: int) -> tuple[int, ...]:
    """Powers of two, at least 16, that cover an axis: the largest first."""
    left, tiles = -(-size // 16) * 16, []
    while left:
        tiles.append(min(_LARGEST_TILE, 1 << (left.bit_length() - 1)))
        left -= tiles[-1]
    return tuple(tiles)


def _rows(size: int) -> int:
    """The next power of two, at least 16."""
    return max(16, 1 << (size - 1).bit_length())

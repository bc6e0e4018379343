"""All steps of a chunk in one grid of programs that share the weights, for models of hundreds of units.

Weights that do not fit into one multiprocessor are distributed. Groups of programs run blocks of 128
chains. Some of a group draw latent units, some the state, each with its share of the weights in shared
memory:

    up      fields of my 32 latent units, their part of log w, and the draw of them      (chains, 32)
    down    logits of my 64 units of the state, and the draw of them                      (chains, 64)

Those above start on a block when all of those below have done its last step, and the other way round, so
that with two blocks per group all are busy. Weights are passed on after the draws, while those below draw,
and added up a step later, by the first of these. States travel as bytes through the cache that all
multiprocessors share.

Products are sums of integers, and exact (`integers.py`). No chain's numbers depend on its neighbours, and
random bits are the same as elsewhere.

A grid can only wait for itself where all of it runs at once: one program per multiprocessor. Should one be
kept from running, the others stop waiting after some seconds and the log weights become NaN, which the
engine refuses. The interpreter runs programs one after the other, and so it is called once per half step.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float, Int8

from annealz.core.numerics import add_compensated
from annealz.core.random import Stream
from annealz.engine.gpu.arithmetic import LOG2_E, NARROW, exp2, is_one, softplus_difference
from annealz.engine.gpu.chunk import SHARED_BYTES, Chains, Span, in_pieces, largest_field
from annealz.engine.gpu.integers import BYTE_VALUES, filled, signed_bytes
from annealz.paths.geometric import GeometricPath

__all__ = ["LargeSteps", "fits"]

_CHAINS = 128  # at a time
_LATENT, _STATE = 32, 64  # units per program
_LARGEST_TILE = 512
_NUM_WARPS = 8
_NEVER = -1e4  # logit of a unit that is only filling
_PATIENCE = 20_000_000  # looks at a counter, per piece
_LINE = 32  # integers per line of the cache
_UP, _DOWN = ((0, 1, 2, None),), ((0, 1), (2,))  # bytes that are multiplied together; None is zero


def fits(path: GeometricPath, num_processors: int) -> bool:
    """Whether the weights fit into the programs of a group, and the group into the device."""
    units, outputs = path.to_latent.shape
    wide, high = filled(outputs, _LATENT), filled(units, _STATE)
    above = (_CHAINS + len(_UP[0]) * _LATENT) * high  # states and weights
    below = (_CHAINS + 3 * _STATE) * wide
    return max(above, below) <= SHARED_BYTES and wide // _LATENT + high // _STATE <= num_processors


class LargeSteps(eqx.Module):
    """The arrays of one path as the programs take them."""

    up: tuple[Int8[Array, "latent_terms units"], ...]
    up_scale: Float[Array, " latent"]
    down: tuple[Int8[Array, "units_terms latent"], ...]
    down_scale: Float[Array, " units"]
    latent_bias: Float[Array, " latent"]
    latent_change: Float[Array, " latent"]
    state_bias: Float[Array, " units"]
    state_change: Float[Array, " units"]
    largest: Float[Array, " 1"]
    num_latent: int = eqx.field(static=True)
    num_units: int = eqx.field(static=True)
    num_processors: int = eqx.field(static=True)
    interpret: bool = eqx.field(static=True)

    def __init__(self, path: GeometricPath, num_processors: int, interpret: bool = False):
        matrix = path.to_latent.dense()  # (units, latent + 1)
        units, outputs = matrix.shape
        latent = outputs - 1
        right = (0, filled(outputs, _LATENT) - outputs)
        below = (0, filled(units, _STATE) - units)
        padded = np.pad(matrix, (below, right))
        self.up, self.up_scale = signed_bytes(padded.T, _LATENT, _UP)
        padded[:, latent] = 0
        self.down, self.down_scale = signed_bytes(padded, _STATE, _DOWN)
        self.largest = jnp.full(1, largest_field(matrix, path), jnp.float32)
        right = (0, right[1] + 1)
        self.latent_bias = jnp.pad(path.latent_bias, right)
        self.latent_change = jnp.pad(path.latent_bias_change, right)
        self.state_bias = jnp.pad(path.state_bias, below, constant_values=_NEVER)
        self.state_change = jnp.pad(path.state_bias_change, below)
        self.num_latent, self.num_units = latent, units
        self.num_processors, self.interpret = num_processors, interpret

    @property
    def _roles(self) -> tuple[int, int]:
        """How many of a group draw latent units, and how many the state."""
        return len(self.latent_bias) // _LATENT, len(self.state_bias) // _STATE

    def __call__(self, stream: Stream, chains: Chains, betas, span: Span):
        """The chains after the steps of `span`, and what was recorded on the way."""
        count = chains.log_weights.shape[0]
        fill = -count % _CHAINS
        indices = jnp.pad(chains.indices.astype(jnp.uint32), (0, fill))
        v = jnp.pad(
            chains.x.astype(jnp.int8), ((0, fill), (0, len(self.state_bias) - self.num_units))
        )
        h = jnp.zeros((count + fill, len(self.latent_bias)), jnp.int8)
        parts = jnp.zeros((4, 1 << (self._roles[0] - 1).bit_length(), count + fill), jnp.float32)
        pair = tuple(jnp.pad(a, (0, fill)) for a in (chains.log_weights, chains.compensation))
        records = tuple(jnp.zeros((span.capacity, count + fill), jnp.float32) for _ in range(3))
        held = (v, h, parts, *pair, *records)
        held = in_pieces(stream, indices, betas, span, held, self._steps)
        v, _, _, *pair, log_weights, compensation, slope = held
        x = v[:count, : self.num_units].astype(chains.x.dtype)
        after = Chains(chains.indices, x, *(a[:count] for a in pair))
        return after, tuple(a[:, :count] for a in (log_weights, compensation, slope))

    def _steps(self, count, slots, window, keys, held):
        if not self.interpret:
            span = jnp.stack([jnp.int32(0), count])
            return self._call(span, slots, window, keys, held, phase=None)

        def step(i, held):
            span = jnp.stack([i, i + 1])
            for phase in (_up, _down):
                held = self._call(span, slots, window, keys, held, phase)
            return held

        return jax.lax.fori_loop(0, count, step, tuple(held))

    def _call(self, span, slots, window, keys, held, phase):
        blocks = held[0].shape[0] // _CHAINS
        above, below = self._roles
        if phase is None:
            grid = (above + below, min(blocks, self.num_processors // (above + below)))
        else:
            grid = (above if phase is _up else below, blocks)
        arrays = (
            (*self.up, self.up_scale, self.latent_bias, self.latent_change, self.largest),
            (*self.down, self.down_scale, self.state_bias, self.state_change, self.largest),
        )
        counters = jnp.zeros(3 * blocks * _LINE, jnp.int32)
        inputs = (span, slots, window, keys, *arrays[0], *arrays[1], *held, counters)
        whole = [pl.BlockSpec(a.shape, lambda j, i, n=a.ndim: (0,) * n) for a in inputs]
        first = 4 + sum(map(len, arrays))
        body = functools.partial(
            _program,
            num_latent=self.num_latent,
            roles=(above, below),
            num_blocks=blocks,
            phase=phase,
            interpret=self.interpret,
        )
        out = pl.pallas_call(
            body,
            grid=grid,
            in_specs=whole,
            out_specs=whole[first:],
            out_shape=[jax.ShapeDtypeStruct(a.shape, a.dtype) for a in inputs[first:]],
            input_output_aliases={first + i: i for i in range(len(held) + 1)},
            compiler_params=triton.CompilerParams(num_warps=_NUM_WARPS, num_stages=1),
            interpret=self.interpret,
        )(*inputs)
        return tuple(out[:-1])


def _program(*refs, num_latent: int, roles, num_blocks: int, phase, interpret: bool):
    """One program of a group: its part of every step of a piece, or of half of one step."""
    span, slots, betas, keys, *refs = refs
    ends = len(_UP) + 4, len(_UP) + len(_DOWN) + 8
    arrays, held = (refs[: ends[0]], refs[ends[0] : ends[1]]), refs[ends[1] :]
    *state, counters = held[len(held) // 2 :]
    member, group = pl.program_id(0), pl.program_id(1)
    num_groups = pl.num_programs(1)
    above, below = roles

    def mine(role: int, which):
        return _Mine(role, which, num_latent, arrays[role], state, keys, interpret)

    if phase is not None:
        i = span[0]
        part, at = mine(int(phase is _down), member), group * _CHAINS
        after = phase(part, at, part.ahead(at, i), betas[i], betas[i + 1], slots[i], i & 1)
        if phase is _up:
            after()
        else:
            _account(part, at, slots[i], i & 1, part.sums(at, i & 1))
        return

    count, num_mine = span[1], (num_blocks - group + num_groups - 1) // num_groups
    done = [lambda at, role=role: (3 * at + role) * _LINE for role in (0, 1)]

    def announced(at):
        return (3 * at + 2) * _LINE

    def each_block(do, patience):
        return jax.lax.fori_loop(
            0, num_mine, lambda n, left: do(group + n * num_groups, left), patience
        )

    def give_up(patience):
        """Set the log weights to NaN: some program did not come."""

        @pl.when(patience == 0)
        def _():
            def block(at, _):
                state[3][pl.ds(at * _CHAINS, _CHAINS)] = jnp.full(_CHAINS, jnp.nan)

            each_block(block, None)

    @pl.when(member < above)
    def _():
        part = mine(0, member)

        def step(i, patience):
            beta0, beta1, slot = betas[i], betas[i + 1], slots[i]

            def block(at, patience):
                ahead = part.ahead(at * _CHAINS, i)
                patience = _wait(counters, done[1](at), below * i, patience)
                weigh = _up(part, at * _CHAINS, ahead, beta0, beta1, slot, i & 1)
                _signal(counters, done[0](at))
                weigh()  # while those below draw
                return patience

            return each_block(block, patience)

        give_up(jax.lax.fori_loop(0, count, step, jnp.int32(_PATIENCE)))
        each_block(lambda at, _: _signal(counters, announced(at)), None)

    @pl.when(member >= above)
    def _():
        part = mine(1, member - above)

        def step(i, patience):
            beta0, beta1 = betas[i], betas[i + 1]
            slot = slots[jnp.maximum(i - 1, 0)]

            def block(at, patience):
                ahead = part.ahead(at * _CHAINS, i)
                patience = _wait(counters, done[0](at), above * (i + 1), patience)
                sums = part.sums(at * _CHAINS, (i + 1) & 1)  # read early by all, for speed
                _down(part, at * _CHAINS, ahead, beta0, beta1, slot, i & 1)

                @pl.when((part.which == 0) & (i > 0))
                def _():
                    _account(part, at * _CHAINS, slot, (i + 1) & 1, sums)

                _signal(counters, done[1](at))
                return patience

            return each_block(block, patience)

        patience = jax.lax.fori_loop(0, count, step, jnp.int32(_PATIENCE))

        @pl.when(part.which == 0)
        def _():
            def block(at, patience):
                patience = _wait(counters, announced(at), above, patience)
                sums = part.sums(at * _CHAINS, (count + 1) & 1)
                _account(part, at * _CHAINS, slots[count - 1], (count + 1) & 1, sums)
                return patience

            give_up(each_block(block, patience))


class _Mine:
    """What one program holds all the time, and where the rest is."""

    def __init__(self, role, which, num_latent: int, arrays, state, keys, interpret: bool):
        self.role, self.which, self.num_latent, self.interpret = role, which, num_latent, interpret
        self.v, self.h, self.parts, self.total, self.carry, *self.records = state
        self.groups, self.width = ((_UP, _LATENT), (_DOWN, _STATE))[role]
        self.first = which * self.width
        *terms, scale, bias, change, largest = arrays
        self.cuts = _cuts(terms[0].shape[1])
        self.weights = [
            [
                ref[pl.ds(which * len(group) * self.width, len(group) * self.width), pl.ds(*cut)]
                for ref, group in zip(terms, self.groups, strict=True)
            ]
            for cut in self.cuts
        ]
        self.largest, self._vectors, self._keys = largest[0], (scale, bias, change), keys

    def ahead(self, at, i):
        """What can be read before the others are done: keys (chains, 1), and vectors (1, units)."""
        rows, units = pl.ds(at, _CHAINS), pl.ds(self.first, self.width)
        keys = [self._keys[i, 2 * self.role + j, rows][:, None] for j in (0, 1)]
        return keys, [ref[units][None, :] for ref in self._vectors]

    def sums(self, at, parity):
        """What all those above added to the weights, and the weights, of these chains."""
        rows = pl.ds(at, _CHAINS)
        return self.parts[2 * parity, :, rows], self.total[rows], self.carry[rows]


def _up(mine: _Mine, at, ahead, beta0, beta1, slot, parity):
    """Fields and draws of my latent units; what is returned passes on their part of the weights."""
    rows = pl.ds(at, _CHAINS)
    (row0, row1), (scale, bias, change) = ahead
    product = _product(mine.v, rows, mine) * scale
    column = (mine.first + jnp.arange(_LATENT, dtype=jnp.int32))[None, :]
    is_latent = column < mine.num_latent
    drive = jnp.where(column == mine.num_latent, product, 0.0)
    fields = jnp.where(is_latent, product + change, 0.0)
    power = -LOG2_E * (bias + beta1 * fields)
    h = is_latent & is_one(row0, row1, column.astype(jnp.uint32), power, mine.interpret)
    mine.h[rows, pl.ds(mine.first, _LATENT)] = h.astype(jnp.int8)

    def weigh():
        low, width = jnp.minimum(beta0, beta1), jnp.abs(beta1 - beta0)
        is_narrow = width * mine.largest < NARROW
        terms = softplus_difference(bias + low * fields, width * fields, is_narrow, mine.interpret)
        terms = jnp.where(is_latent, terms, width * drive).sum(1)
        mine.parts[2 * parity, mine.which, rows] = jnp.where(beta1 >= beta0, terms, -terms)

        @pl.when(slot >= 0)
        def _():
            slope = drive + fields / (1 + exp2(power, mine.interpret))
            mine.parts[2 * parity + 1, mine.which, rows] = slope.sum(1)

    return weigh


def _down(mine: _Mine, at, ahead, beta0, beta1, slot, parity):
    """Draws of my units of the state."""
    rows = pl.ds(at, _CHAINS)
    (row0, row1), (scale, bias, change) = ahead
    product = _product(mine.h, rows, mine)
    power = -LOG2_E * (bias + beta1 * change + (beta1 * scale) * product)
    column = (mine.first + jnp.arange(_STATE, dtype=jnp.int32)).astype(jnp.uint32)
    v = is_one(row0, row1, column[None, :], power, mine.interpret)
    mine.v[rows, pl.ds(mine.first, _STATE)] = v.astype(jnp.int8)


def _account(mine: _Mine, at, slot, parity, sums):
    """Add up the weights of a step, by the first of those below."""

    @pl.when(mine.which == 0)
    def _():
        rows = pl.ds(at, _CHAINS)
        parts, total, carry = sums
        total, carry = add_compensated(total, carry, parts.sum(0))
        mine.total[rows], mine.carry[rows] = total, carry

        @pl.when(slot >= 0)
        def _():
            slope = mine.parts[2 * parity + 1, :, rows].sum(0)
            for ref, value in zip(mine.records, (total, carry, slope), strict=True):
                ref[slot, rows] = value


def _product(states, rows, mine: _Mine):
    """states W / scale, (chains, outputs), exact up to its own rounding to float32."""
    tiles = [states[rows, pl.ds(*cut)] for cut in mine.cuts]  # all under way at once
    axes = (((1,), (1,)), ((), ()))
    total = jnp.float32(0)
    for g, group in enumerate(mine.groups):
        products = [
            jax.lax.dot_general(x, weights[g], axes, preferred_element_type=jnp.int32)
            for x, weights in zip(tiles, mine.weights, strict=True)
        ]
        product = functools.reduce(jnp.add, products).astype(jnp.float32)
        total = total + _together(product, group, mine.width)
    return total


def _together(product, group, width: int):
    """The sum of the bytes' products, each times its value."""
    if len(group) == 1:
        return BYTE_VALUES[group[0]] * product
    term = jnp.arange(len(group), dtype=jnp.int32)
    values = jnp.zeros(len(group), jnp.float32)
    for i, byte in enumerate(group):
        values = jnp.where(term == i, 0.0 if byte is None else BYTE_VALUES[byte], values)
    return (product.reshape(_CHAINS, len(group), width) * values[None, :, None]).sum(1)


def _signal(counters, at):
    """That I have done my part of a block."""
    triton.debug_barrier()
    triton.atomic_add(counters, (at,), 1)


def _wait(counters, at, target, patience):
    """Until this counter has reached `target` or patience is at its end; what is left of it."""

    def look(held):
        return triton.atomic_add(counters, (at,), 0), held[1] - 1

    seen = triton.atomic_add(counters, (at,), 0)
    _, patience = jax.lax.while_loop(
        lambda held: (held[0] < target) & (held[1] > 0), look, (seen, patience)
    )
    triton.debug_barrier()
    return patience


def _cuts(size: int) -> list[tuple[int, int]]:
    """(start, width) of the tiles of an axis, powers of two."""
    at, cuts = 0, []
    while at < size:
        width = min(_LARGEST_TILE, 1 << ((size - at).bit_length() - 1))
        cuts.append((at, width))
        at += width
    return cuts

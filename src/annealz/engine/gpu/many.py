"""All steps of a chunk in one program for 128 chains each, for models of hundreds of units and many chains.

A program holds the states of its chains in shared memory as bytes, those of the latent units too, and the
weights stream past them, out of the cache that all multiprocessors share, 64 × 64 of them at a time:

    up      products of the state with the weights of 64 latent units, their part of log w, and their draw
    down    products of the latent units with the weights of 64 units of the state, and their draw

One warpgroup does nothing but fetch weights, up to four pieces ahead, over the ends of tiles and steps. Two
others have 64 chains each: they multiply, draw, and write what they have drawn where the next product
finds it. No program waits for another, and no chain's numbers depend on its neighbours.

Products are sums of integers, and exact (`integers.py`); random bits are the same as elsewhere.

Written for Mosaic, the backend of Pallas that knows the asynchronous instructions of capability 9.0. Its
compiler is allowed to approximate exp2 and the like.
"""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.mosaic import gpu as mgpu
from jax.experimental.pallas import mosaic_gpu as plgpu
from jaxtyping import Array, Float, Int8

from annealz.core.arrays import on_device
from annealz.core.numerics import add_compensated
from annealz.core.random import Stream
from annealz.engine.gpu.arithmetic import LOG2_E, NARROW, is_one, softplus_difference
from annealz.engine.gpu.chunk import NEVER, Chains, Span, fused_chunk, largest_field
from annealz.engine.gpu.integers import BYTE_VALUES, filled, signed_bytes
from annealz.paths.geometric import GeometricPath

__all__ = ["ManySteps", "fits"]

_CHAINS, _GROUPS = 64, 2  # chains a warpgroup, and warpgroups
_UNITS = 64  # a tile
_ROWS = 3 * _UNITS  # of a piece of the weights: three bytes of every unit
_STAGES = 4  # pieces ahead
_SLICE = 16  # units of a tile that are drawn at a time, for the sake of registers
_FETCHING, _COMPUTING = 24, 240  # registers a thread
_SHARED_BYTES = 228_000  # that a program may plan with: 4 kB less than there are
_TILED = (plgpu.TilingTransform((8, _UNITS)), plgpu.SwizzleTransform(_UNITS))
_TILE = plgpu.Layout.WGMMA
_ROW, _COLUMN = _TILE.reduce(1), _TILE.reduce(0)


def fits(path: GeometricPath) -> bool:
    """Whether the states of a program's chains fit beside the pieces of the weights."""
    units, outputs = path.to_latent.shape
    states = _GROUPS * _CHAINS * (filled(units, _UNITS) + filled(outputs, _UNITS))
    return states + _STAGES * _ROWS * _UNITS <= _SHARED_BYTES


class ManySteps(eqx.Module):
    """The arrays of one path as the program takes them."""

    up: Int8[Array, "latent_terms units"]
    down: Int8[Array, "units_terms latent"]
    latent: tuple[Float[Array, " latent"], ...]
    """Scale of the product, bias, and its change."""
    state: tuple[Float[Array, " units"], ...]
    largest: Float[Array, " 1"]
    num_latent: int = eqx.field(static=True)
    interpret: Any = eqx.field(static=True)
    """How the interpreter is to run it, in place of a GPU."""

    def __init__(self, path: GeometricPath, interpret: Any = None):
        matrix = path.to_latent.dense()  # (units, latent + 1)
        units, outputs = matrix.shape
        latent = outputs - 1
        right = (0, filled(outputs, _UNITS) - outputs)
        below = (0, filled(units, _UNITS) - units)
        padded = np.pad(matrix, (below, right))
        self.up, up_scale = _by_tiles(padded.T)
        padded[:, latent] = 0
        self.down, down_scale = _by_tiles(padded)
        right = (0, right[1] + 1)
        change = jnp.pad(path.latent_bias_change, right)
        self.latent = (up_scale, jnp.pad(path.latent_bias, right), change)
        bias = jnp.pad(path.state_bias, below, constant_values=NEVER)
        self.state = (down_scale, bias, jnp.pad(path.state_bias_change, below))
        self.largest = jnp.full(1, largest_field(matrix[:, :-1].T, path), jnp.float32)
        self.num_latent, self.interpret = latent, interpret

    def __call__(self, stream: Stream, chains: Chains, betas, span: Span):
        """The chains after the steps of `span`, and what was recorded on the way."""
        block, width = _GROUPS * _CHAINS, len(self.state[0])
        return fused_chunk(stream, chains, betas, span, block, width, self._take)

    def _take(self, count, slots, window, keys, held):
        v, total, carry, *records = held
        units, latent = (len(vectors[0]) // _UNITS for vectors in (self.state, self.latent))
        smem = functools.partial(plgpu.SMEM, dtype=jnp.int8, transforms=_TILED)
        v, total, carry, *new = plgpu.kernel(
            functools.partial(_program, num_latent=self.num_latent, interpret=self.interpret),
            out_type=[jax.ShapeDtypeStruct(a.shape, a.dtype) for a in held],
            grid=(len(v) // (_GROUPS * _CHAINS),),
            grid_names=("block",),
            num_threads=_GROUPS + 1,
            thread_name="group",
            scratch_types=[
                smem((_GROUPS, units, _CHAINS, _UNITS)),
                smem((_GROUPS, latent, _CHAINS, _UNITS)),
                smem((_STAGES, _ROWS, _UNITS)),
                plgpu.Barrier(num_barriers=_STAGES),
                plgpu.Barrier(num_arrivals=_GROUPS, num_barriers=_STAGES),
                plgpu.Barrier(num_arrivals=units, num_barriers=_GROUPS),
            ],
            compiler_params=plgpu.CompilerParams(
                approx_math=True,
                unsafe_no_auto_barriers=True,  # what is written is read by products alone
                lowering_semantics=plgpu.LoweringSemantics.Lane,
            ),
            interpret=self.interpret,
        )(
            count, slots, window, keys, self.up, self.down, self.largest,
            *self.latent, *self.state, v, total, carry,
        )  # fmt: skip
        is_taken = jnp.arange(len(slots)) < count
        rows = jnp.arange(records[0].shape[0])[:, None]
        is_new = ((slots == rows) & is_taken).any(1)[:, None]
        return (v, total, carry, *(jnp.where(is_new, *a) for a in zip(new, records, strict=True)))


def _by_tiles(matrix: np.ndarray) -> tuple[Int8[Array, "rows columns"], Float[Array, " rows"]]:
    """Three bytes of every entry, one after the other a tile of rows, and the scale of every row."""
    terms, scale = signed_bytes(matrix)
    tiles = terms.reshape(3, -1, _UNITS, matrix.shape[1]).swapaxes(0, 1)
    return on_device(tiles.reshape(-1, matrix.shape[1]), np.int8), on_device(scale)


class _Refs(NamedTuple):
    """What a program reads, writes, and holds in shared memory."""

    count: Any
    slots: Any
    betas: Any
    keys: Any
    up: Any
    down: Any
    largest: Any
    up_scale: Any
    latent_bias: Any
    latent_change: Any
    down_scale: Any
    state_bias: Any
    state_change: Any
    v_in: Any
    total_in: Any
    carry_in: Any
    v_out: Any
    total_out: Any
    carry_out: Any
    recorded_total: Any
    recorded_carry: Any
    recorded_slope: Any
    v: Any
    h: Any
    weights: Any
    full: Any
    empty: Any
    loaded: Any

    @property
    def num_tiles(self) -> tuple[int, int]:
        """Of the state and of the latent units."""
        return self.v.shape[1], self.h.shape[1]

    @property
    def half(self) -> int:
        """Pieces of the weights a half step."""
        return self.v.shape[1] * self.h.shape[1]


def _program(*refs, num_latent: int, interpret: Any):
    """The steps of one piece for the chains of one program."""
    all_refs = _Refs(*refs)
    group, block = jax.lax.axis_index("group"), jax.lax.axis_index("block")
    count = all_refs.count[0]

    @pl.when(group == _GROUPS)
    def _():
        _fetch(all_refs, count)

    @pl.when(group < _GROUPS)
    def _():
        _compute(all_refs, count, group, block, num_latent, interpret)


def _fetch(refs: _Refs, count) -> None:
    """Bring the weights of all steps to shared memory, piece after piece."""
    plgpu.set_max_registers(_FETCHING, action="decrease")
    (num_v, num_h), half = refs.num_tiles, refs.half

    def fetch(n, ref, tile, cut):
        slot = jax.lax.rem(n, _STAGES)

        @pl.when(n >= _STAGES)
        def _():
            plgpu.barrier_wait(refs.empty.at[slot])

        part = ref.at[pl.ds(tile * _ROWS, _ROWS), pl.ds(cut * _UNITS, _UNITS)]
        plgpu.copy_gmem_to_smem(part, refs.weights.at[slot], refs.full.at[slot])

    def step(i, _):
        ups, downs = (2 * i * half, refs.up, num_v), ((2 * i + 1) * half, refs.down, num_h)
        for first, ref, cuts in (ups, downs):

            def one(n, _, first=first, ref=ref, cuts=cuts):
                fetch(first + n, ref, jax.lax.div(n, cuts), jax.lax.rem(n, cuts))

            jax.lax.fori_loop(0, half, one, None)

    jax.lax.fori_loop(0, count, step, None)
    for slot in range(_STAGES):
        plgpu.barrier_wait(refs.empty.at[slot])


def _compute(refs: _Refs, count, group, block, num_latent: int, interpret: Any) -> None:
    """All steps of the chains of one warpgroup."""
    plgpu.set_max_registers(_COMPUTING, action="increase")
    rows = pl.ds((block * _GROUPS + group) * _CHAINS, _CHAINS)
    parts = [(c, pl.ds(c * _UNITS, _UNITS)) for c in range(refs.num_tiles[0])]
    for c, columns in parts:
        source, place = refs.v_in.at[rows, columns], refs.v.at[group, c]
        plgpu.copy_gmem_to_smem(source, place, refs.loaded.at[group])
    plgpu.barrier_wait(refs.loaded.at[group])
    chains = _Group(refs, group, rows, num_latent, interpret)
    held = tuple(chains.registers.read(ref, rows, _ROW) for ref in (refs.total_in, refs.carry_in))
    held = jax.lax.fori_loop(0, count, chains.step, held)
    refs.total_out[rows], refs.carry_out[rows] = held
    for c, columns in parts:
        plgpu.copy_smem_to_gmem(refs.v.at[group, c], refs.v_out.at[rows, columns])
    plgpu.wait_smem_to_gmem(0)


class _Now(NamedTuple):
    """Step i of a piece: where it starts and ends, its keys, and whether it is recorded."""

    i: Any
    beta1: Any
    low: Any
    width: Any
    is_narrow: Any
    slot: Any
    keys: tuple[Any, ...]


class _Group:
    """The chains of one warpgroup."""

    def __init__(self, refs: _Refs, group, rows, num_latent: int, interpret: Any):
        self.refs, self.group, self.rows, self.num_latent = refs, group, rows, num_latent
        self.registers = _Registers(interpret)
        pieces = refs.weights, refs.full, refs.empty
        self._multiply = functools.partial(_multiply, interpret, pieces, group)

    def step(self, i, held):
        """log w and its compensation after step i; the states in shared memory go along."""
        refs, registers = self.refs, self.registers
        beta0, beta1, slot = refs.betas[i], refs.betas[i + 1], refs.slots[i]
        low, width = jnp.minimum(beta0, beta1), jnp.abs(beta1 - beta0)
        is_narrow = width * refs.largest[0] < NARROW
        keys = tuple(
            registers.across(registers.read(refs.keys, (i, j, self.rows), _ROW)) for j in range(4)
        )
        now = _Now(i, beta1, low, width, is_narrow, slot, keys)
        num_v, num_h = refs.num_tiles
        first = (registers.zeros(), registers.zeros())
        above, below = functools.partial(self._above, now), functools.partial(self._below, now)
        terms, slope = jax.lax.fori_loop(0, num_h, above, first)
        plgpu.commit_smem()
        total, carry = held
        terms = jnp.where(beta1 >= beta0, terms, -terms)
        total, carry = add_compensated(total, carry, terms)

        @pl.when(slot >= 0)
        def _():
            refs.recorded_total[slot, self.rows] = total
            refs.recorded_carry[slot, self.rows] = carry
            refs.recorded_slope[slot, self.rows] = slope

        jax.lax.fori_loop(0, num_v, below, None)
        plgpu.commit_smem()
        return total, carry

    def _above(self, now: _Now, tile, sums):
        """Draw the latent units of a tile; their part of the increment, and of the slope."""
        (terms, slope), (h0, h1, _, _) = sums, now.keys
        refs, num_v = self.refs, self.refs.num_tiles[0]
        columns = self._vectors(tile, refs.up_scale, refs.latent_bias, refs.latent_change)
        product = self._multiply(refs.v, num_v, 2 * now.i * refs.half + tile * num_v)
        drawn = []
        for units, part, scale, bias, change in self._slices(product, tile, *columns):
            is_latent = units < self.num_latent
            fields = part * scale + change  # of the column after the last latent unit, the drive
            power = -LOG2_E * (bias + now.beta1 * fields)
            is_new = is_latent & is_one(h0, h1, units.astype(jnp.uint32), power)
            drawn.append(jnp.where(is_new, 1, 0).astype(jnp.int8))
            at_low = bias + now.low * fields
            term = softplus_difference(at_low, now.width * fields, now.is_narrow)
            terms = terms + jnp.where(is_latent, term, now.width * fields).sum(1)

            def rise(is_latent=is_latent, fields=fields, power=power):
                rises = fields / (1 + jnp.exp2(power))
                return jnp.where(is_latent, rises, fields).sum(1)

            slope = slope + jax.lax.cond(now.slot >= 0, rise, self.registers.zeros)
        refs.h[self.group, tile] = self.registers.beside(drawn)
        return terms, slope

    def _below(self, now: _Now, tile, _) -> None:
        """Draw the units of a tile of the state."""
        (_, _, v0, v1), refs, num_h = now.keys, self.refs, self.refs.num_tiles[1]
        columns = self._vectors(tile, refs.down_scale, refs.state_bias, refs.state_change)
        product = self._multiply(refs.h, num_h, (2 * now.i + 1) * refs.half + tile * num_h)
        drawn = []
        for units, part, scale, bias, change in self._slices(product, tile, *columns):
            power = -LOG2_E * (bias + now.beta1 * (change + scale * part))
            is_new = is_one(v0, v1, units.astype(jnp.uint32), power)
            drawn.append(jnp.where(is_new, 1, 0).astype(jnp.int8))
        refs.v[self.group, tile] = self.registers.beside(drawn)

    def _vectors(self, tile, *refs):
        """Of a tile's units."""
        units = pl.ds(tile * _UNITS, _UNITS)
        return [self.registers.read(ref, units, _COLUMN) for ref in refs]

    def _slices(self, product, tile, *columns):
        """A tile by parts: its units, its product with the weights, and vectors of its columns."""
        for cut in range(0, _UNITS, _SLICE):
            units = self.registers.units(tile * _UNITS + cut)
            beside = (self.registers.along(vector)[:, cut : cut + _SLICE] for vector in columns)
            yield units, product(cut), *beside


def _multiply(interpret, pieces, group, states, cuts: int, first):
    """states W / scale of a tile, exact up to its own rounding to float32, by columns from a given one."""
    weights, full, empty = pieces

    def slot(cut: int):
        return jax.lax.rem(first + cut, _STAGES)

    def on_gpu(sums):
        for cut in range(cuts):
            plgpu.barrier_wait(full.at[slot(cut)])
            turned = plgpu.transpose_ref(weights.at[slot(cut)], (1, 0))
            plgpu.wgmma(sums, states.at[group, cut], turned)
            if cut:
                plgpu.wgmma_wait(1)
                plgpu.barrier_arrive(empty.at[slot(cut - 1)])
        value = sums[...]
        plgpu.barrier_arrive(empty.at[slot(cuts - 1)])
        return value

    def interpreted():
        """The interpreter knows no transposed operands."""
        sums = jnp.zeros((_CHAINS, _ROWS), jnp.int32)
        for cut in range(cuts):
            plgpu.barrier_wait(full.at[slot(cut)])
            x, w = (a.astype(jnp.int32) for a in (states[group, cut], weights[slot(cut)]))
            sums = sums + x @ w.T
            plgpu.barrier_arrive(empty.at[slot(cut)])
        return sums

    sums_of = plgpu.ACC((_CHAINS, _ROWS), jnp.int32)  # pyright: ignore[reportPrivateImportUsage]
    sums = interpreted() if interpret else pl.run_scoped(on_gpu, sums_of)

    def columns(at: int):
        starts = range(at, _ROWS, _UNITS)
        terms = [sums[:, start : start + _SLICE].astype(jnp.float32) for start in starts]
        return functools.reduce(jnp.add, (t * b for t, b in zip(terms, BYTE_VALUES, strict=True)))

    return columns


class _Registers:
    """Arrays in the registers of a warpgroup, laid out as products are; in the interpreter, plain ones."""

    def __init__(self, interpret: Any):
        self._interpret = interpret

    def read(self, ref, index, layout):
        if self._interpret:
            return ref[index]
        return plgpu.load(ref, index, layout=layout, optimized=False)

    def zeros(self):
        """A number per chain."""
        zeros = jnp.zeros(_CHAINS, jnp.float32)
        return zeros if self._interpret else plgpu.layout_cast(zeros, _ROW)

    def units(self, first):
        """The numbers of the units of a slice."""
        columns = jax.lax.broadcasted_iota(jnp.int32, (_CHAINS, _SLICE), 1)
        return first + (columns if self._interpret else plgpu.layout_cast(columns, _TILE))

    def across(self, array):
        """One number per row of a slice."""
        return jax.lax.broadcast_in_dim(array, (_CHAINS, _SLICE), (0,))

    def along(self, array):
        """One number a column of a tile."""
        return jax.lax.broadcast_in_dim(array, (_CHAINS, _UNITS), (1,))

    def beside(self, parts):
        """Slices put together to a tile again."""
        if self._interpret:
            return jnp.concatenate(parts, axis=1)
        tile = plgpu.ShapeDtypeStruct((_CHAINS, _UNITS), jnp.int8, layout=_TILE)

        @plgpu.inline_mgpu(arg_types=(_TILE,) * len(parts), return_type=tile)
        def join(_, *arrays):
            registers = np.concatenate([a.registers for a in arrays], axis=1)
            return mgpu.FragmentedArray(
                _registers=registers, _layout=arrays[0].layout, _is_signed=True
            )

        return join(*parts)

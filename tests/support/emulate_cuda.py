"""The CUDA programs of `engine/gpu` in JAX: the same arguments, the same results, one step after the other.

It reads weights in the order in which the programs do, and so tests the arrays that they are given. The
programs themselves are tested on a GPU (test_fused_gpu.py).
"""

from typing import Any

import jax
import jax.numpy as jnp

from annealz.core.numerics import add_compensated
from annealz.core.random import threefry, unit_words
from support.gpu_arithmetic import LOG2_E, NARROW, is_one, softplus_difference


def call(entry: str, _text, constants, args, like, aliases, launch) -> Any:
    """In the place of `cuda.call`."""
    results = _PROGRAMS[entry](constants, launch, *args)
    for index, result in aliases.items():
        assert (args[index].shape, args[index].dtype) == (like[result].shape, like[result].dtype)
    for found, wanted in zip(results, like, strict=True):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    return results


def _small(constants, launch, count, slots, betas, keys, up, down, *rest):
    power, bias, change, scalars, *held = rest
    blocks, _, shared = launch
    assert blocks * 8 == len(held[0])
    assert shared <= 232_448
    tiles, groups = up.shape[:2]
    # (tile, group, row, quad, column half, row half, column) to rows and columns
    up = up.transpose(1, 5, 2, 0, 4, 3, 6).reshape(16 * groups, 16 * tiles)
    down = down.transpose(0, 5, 2, 1, 4, 3, 6).reshape(16 * tiles, 16 * groups)
    up, down = up.astype(jnp.float32), down.astype(jnp.float32)
    latent, (scale, largest) = constants["NUM_LATENT"], scalars

    def step(i, held):
        v, total, carry, *records = held
        h0, h1, v0, v1 = (keys[i, j][:, None] for j in range(4))
        parts = v.astype(jnp.float32) @ up.T
        product = scale * (parts[:, : 8 * groups] + parts[:, 8 * groups :])
        fields, drive = product[:, :latent] + change, product[:, latent]
        h_power = -LOG2_E * (bias + betas[i + 1] * fields)
        h = is_one(h0, h1, jnp.arange(latent, dtype=jnp.uint32), h_power)
        h = jnp.pad(h, ((0, 0), (0, 1)), constant_values=True)
        h = jnp.pad(h, ((0, 0), (0, 8 * groups - latent - 1))).astype(jnp.float32)
        down_power = power - LOG2_E * betas[i + 1] * scale * (jnp.tile(h, 2) @ down.T)
        v = is_one(v0, v1, jnp.arange(16 * tiles, dtype=jnp.uint32), down_power).astype(jnp.int8)
        terms, slope = _weigh(betas[i], betas[i + 1], fields, bias, drive, largest, h_power)
        total, carry = add_compensated(total, carry, terms)
        return (v, total, carry, *_recorded(records, slots[i], (total, carry, slope)))

    return jax.lax.fori_loop(0, count[0], step, tuple(held))


def _large(constants, launch, count, slots, betas, keys, *rest):
    *arrays, v, posted = rest
    members = constants["MEMBERS"]
    blocks, _, shared = launch
    assert blocks % members == 0
    assert shared <= 232_448
    tiles = constants["UNIT_TILES"], constants["LATENT_TILES"]
    weights = _Weights(constants["NUM_LATENT"], *arrays, apart=tiles)
    nothing = jnp.full((len(slots), members, len(v)), jnp.nan)

    def step(i, held):
        v, terms, slopes = held
        v, *parts = weights.step(betas[i], betas[i + 1], keys[i], v, members)
        return v, terms.at[i].set(parts[0].T), slopes.at[i].set(parts[1].T)

    v, terms, slopes = jax.lax.fori_loop(0, count[0], step, (v, nothing, nothing))
    return v, posted, terms, slopes


def _many(constants, launch, count, slots, betas, keys, *rest):
    arrays, held = rest[:5], rest[5:]
    blocks, threads, shared = launch
    assert (blocks * 128, threads) == (len(held[0]), 384)
    assert shared <= 232_448
    up, down = arrays[:2]
    assert up.shape[:2] == (constants["LATENT_TILES"], constants["UNIT_CHUNKS"])
    assert down.shape[:2] == (constants["UNIT_TILES"], constants["LATENT_CHUNKS"])
    weights = _Weights(constants["NUM_LATENT"], *arrays, apart=(1, 1))

    def step(i, held):
        v, total, carry, *records = held
        v, terms, slope = weights.step(betas[i], betas[i + 1], keys[i], v)
        total, carry = add_compensated(total, carry, terms)
        return (v, total, carry, *_recorded(records, slots[i], (total, carry, slope)))

    return jax.lax.fori_loop(0, count[0], step, held)


def _by_chain(program):
    """A program with a block per chain: `program` gives a step of its own arrays."""

    def run(constants, launch, count, slots, betas, key, first, indices, *rest):
        arrays, held = rest[:-6], rest[-6:]
        blocks, threads, shared = launch
        assert (blocks, threads) == (len(held[0]), constants["THREADS"])
        assert (blocks, shared) == (constants["NUM_CHAINS"], held[0].shape[1] * program.layers)
        draws = jnp.arange(constants["DRAWS"], dtype=jnp.uint32)
        of_draw = threefry(key[0], key[1], draws, jnp.uint32(0))
        take = program(constants, *arrays)

        def step(i, held):
            x, total, carry, *records = held
            at = (first[0] + 1 + i).astype(jnp.uint32)
            rows = threefry(*(word[:, None] for word in of_draw), indices, at)  # (draws, chains)
            x, increment, slope = take(rows, x.astype(jnp.int32), betas[i], betas[i + 1])
            total, carry = add_compensated(total, carry, increment)
            values = total, carry, slope
            return (x.astype(jnp.int8), total, carry, *_recorded(records, slots[i], values))

        return jax.lax.fori_loop(0, count[0], step, held)

    return run


def _lattice(constants, scalars, latent_bias, latent_change, state_bias, state_change):
    sites, half, height = (constants[name] for name in ("SITES", "HALF", "HEIGHT"))
    across, down, offset, largest = scalars
    units = jnp.arange(sites, dtype=jnp.uint32)

    def around(x, is_right_in_even_rows):
        x = x.reshape(-1, height, half)
        is_right = (jnp.arange(height)[:, None] % 2 == 0) == is_right_in_even_rows
        beside = jnp.where(is_right, jnp.roll(x, -1, 2), jnp.roll(x, 1, 2))
        columns = jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1)
        return (across * (x + beside) + down * columns).reshape(-1, sites)

    def take(rows, x, beta0, beta1):
        (h0, v0), (h1, v1) = (words[..., None] for words in rows)
        fields = around(x, True) + latent_change
        power = -LOG2_E * (latent_bias + beta1 * fields)
        h = is_one(h0, h1, units, power).astype(jnp.int32)
        logits = state_bias + beta1 * (around(h, False) + state_change)
        drive = x @ state_change + offset
        terms, slope = _weigh(beta0, beta1, fields, latent_bias, drive, largest, power)
        return is_one(v0, v1, units, -LOG2_E * logits), terms, slope

    return take


def _pair(constants, sites, near, couplings, start, change, offset):
    colours, width = sites.shape
    assert (colours, width) == (constants["DRAWS"], constants["WIDTH"])
    is_real = sites < constants["UNITS"]

    def energy(x):
        total = offset[0]
        for c in range(colours):
            here = x[:, sites[c]]  # what fills a colour up is clipped, and left out
            alike = (x[:, near[c]] == here[:, None]) * couplings[c]
            alone = jnp.take_along_axis(change[c][None], here[:, None], 1)[:, 0]
            total = total + jnp.where(is_real[c], 0.5 * alike.sum(1) + alone, 0).sum(-1)
        return total

    def take(rows, x, beta0, beta1):
        slope = energy(x)
        for c in range(colours):
            hot = jax.nn.one_hot(x[:, near[c]], constants["STATES"])  # (chains, degree, width, q)
            fields = (hot * couplings[c][..., None]).sum(1) + change[c].T
            drawn = _drawn(rows, c, start[c].T + beta1 * fields)
            x = x.at[:, sites[c]].set(drawn, mode="drop")
        return x, (beta1 - beta0) * slope, slope

    return take


def _table(constants, sites, near, tables, start, change, offset):
    units, degree, states = tables.shape[:3]
    assert (units, degree, states) == tuple(constants[n] for n in ("UNITS", "DEGREE", "STATES"))
    assert constants["THREADS"] // 32 % constants["TEAM"] == 0
    order = jnp.broadcast_to(jnp.arange(units), (units, units))
    near = order if constants["IS_DENSE"] else near

    def fields(x, which):
        slots = jnp.arange(degree)
        return tables[which[:, None], slots, x[:, near[which]]].sum(2) + change[which]

    def take(rows, x, beta0, beta1):
        all_units = jnp.arange(units)
        own = jnp.take_along_axis(fields(x, all_units), x[..., None], 2)[..., 0]
        alone = jnp.take_along_axis(change[None], x[..., None], 2)[..., 0]
        slope = (0.5 * (own + alone)).sum(-1) + offset[0]
        for c, which in enumerate(sites):
            here = jnp.minimum(which, units - 1)
            drawn = _drawn(rows, c, start[here] + beta1 * fields(x, here))
            x = x.at[:, which].set(drawn, mode="drop")
        return x, (beta1 - beta0) * slope, slope

    return take


_lattice.layers, _pair.layers, _table.layers = 2, 1, 1  # whose states are in shared memory


def _drawn(rows, draw: int, logits):
    """States of some units (chains, units) by their logits (chains, units, states)."""
    words = unit_words(*(words[draw, :, None] for words in rows), _numbers(logits.shape[1]))
    uniforms = (words & jnp.uint32(0xFFFFFFFE)).astype(jnp.float32) * jnp.float32(2**-32)
    sums = jnp.cumsum(jnp.exp2(LOG2_E * (logits - logits.max(-1, keepdims=True))), -1)
    return (uniforms[..., None] * sums[..., -1:] > sums[..., :-1]).sum(-1)


def _numbers(count: int):
    return jnp.arange(count, dtype=jnp.uint32)


class _Weights:
    """Both products of weights of three bytes, and a step with them."""

    def __init__(self, num_latent: int, up, down, latent, state, largest, apart):
        tiles = [a.shape[2] // 8 for a in (state, latent)]
        self.up, self.down = _whole(up, tiles[1], apart[0]), _whole(down, tiles[0], apart[1])
        self.latent, self.state = (a.swapaxes(0, 1).reshape(3, -1) for a in (latent, state))
        self.num_latent, self.largest = num_latent, largest[0]

    def step(self, beta0, beta1, keys, v, members=None):
        """The states after a step, and what it adds to log w and the slope, of every member if any."""
        (up_scale, h_bias, change), (down_scale, v_bias, v_change) = self.latent, self.state
        h0, h1, v0, v1 = (key[:, None] for key in keys)
        latent, units = (jnp.arange(len(a), dtype=jnp.uint32) for a in (h_bias, v_bias))
        fields = _times(v, self.up) * up_scale + change
        h_power = -LOG2_E * (h_bias + beta1 * fields)
        is_latent = latent < self.num_latent
        h = is_latent & is_one(h0, h1, latent, h_power)
        v_power = -LOG2_E * (v_bias + beta1 * (_times(h, self.down) * down_scale + v_change))
        v = is_one(v0, v1, units, v_power).astype(jnp.int8)
        rest = (fields, h_bias, 0.0, self.largest, h_power)
        return v, *_weigh(beta0, beta1, *rest, is_latent, members)


def _whole(share, tiles: int, apart: int):
    """(3, outputs, inputs) of all shares, as `signed_bytes` gives them."""
    cut = share[:, :, : 3 * tiles].reshape(len(share), -1, apart, 3, tiles, 2, 8, 4, 4)
    cut = cut.astype(jnp.float32).transpose(3, 0, 4, 6, 1, 8, 2, 7, 5)
    return cut.reshape(3, 8 * len(share) * tiles, -1)


def _times(x, terms):
    inputs = x.astype(jnp.float32)[:, : terms.shape[2]]
    first, second, third = (inputs @ term.T for term in terms)
    return 65536 * first + (256 * second + third)


def _account(_, launch, count, slots, increments, slopes, *held):
    assert launch[0] * 32 == len(held[0])

    def step(i, held):
        total, carry, *records = held
        total, carry = add_compensated(total, carry, increments[i])
        values = (total, carry, slopes[i].sum(0))
        return (total, carry, *_recorded(records, slots[i], values))

    return jax.lax.fori_loop(0, count[0], step, held)


def _weigh(beta0, beta1, fields, bias, drive, largest, power, is_latent: Any = True, members=None):
    """The rise of log w and the slope, of every member if there are any."""
    low, width = jnp.minimum(beta0, beta1), jnp.abs(beta1 - beta0)
    rise = softplus_difference(bias + low * fields, width * fields, width * largest < NARROW)
    terms = jnp.where(is_latent, rise, width * fields)
    slopes = jnp.where(is_latent, fields / (1 + jnp.exp2(power)), fields)
    if members:
        terms, slopes = (a.reshape(len(a), members, -1) for a in (terms, slopes))
    terms = terms.sum(-1) + width * drive
    return jnp.where(beta1 >= beta0, terms, -terms), slopes.sum(-1) + drive


def _recorded(records, slot, values):
    at = jnp.where(slot >= 0, slot, len(records[0]))
    return [a.at[at].set(x, mode="drop") for a, x in zip(records, values, strict=True)]


_PROGRAMS = {
    "small_steps": _small,
    "large_steps": _large,
    "account_steps": _account,
    "many_steps": _many,
    "lattice_steps": _by_chain(_lattice),
    "pair_steps": _by_chain(_pair),
    "table_steps": _by_chain(_table),
}

"""The engine: annealed importance sampling (Neal 2001) of independent chains.

    v_0 ~ p_0 (once)                                     log w = 0
    for k = 1..K:
        log w += log p*_{beta_k}(v_{k-1}) - log p*_{beta_{k-1}}(v_{k-1})
        record, if k is a recorded step: statistics of v_{k-1} under the weights just updated
        v_k ~ T_{beta_k}(. | v_{k-1})

E[w] = Z_B / Z_A whatever the kernel's mixing; log of the mean of w is biased low (Jensen).
In reverse the chains start from draws of p_1 and come down the schedule (`reverse.py`). They may be
resampled on the way up, in islands (`resampling.py`).

The loop over k runs on the device in chunks, so that the host can report, checkpoint and be
interrupted between them. Chains run in blocks of one size that share nothing, and binary ones are
kept as bits between chunks, so that a million of them fit into any machine. A block's part of each
statistic is merged with the others' on the host, in float64. Random bits depend on the seed, the
purpose, the chain and the step alone. So chunks, resumes and the order of blocks change no bit of
the result. One compiled program serves every chunk of every schedule length.
"""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from annealz.checkpoint import Checkpoint, Standing, digest_of
from annealz.estimators import effective_sample_size, log_mean
from annealz.kernels.abstract import AbstractKernel
from annealz.numerics import add_compensated
from annealz.observers import AbstractObserver, Slope
from annealz.pace import Pace
from annealz.paths.abstract import AbstractBipartitePath, AbstractPath
from annealz.random import Stream, check_seed
from annealz.resampling import Resampling, island_size
from annealz.reverse import check_start
from annealz.run import Run, Trace
from annealz.schedules.schedule import Schedule

__all__ = ["Progress", "anneal", "block_size", "check_memory"]

_CHUNK_CAPACITY = 4096  # steps a compiled chunk can hold
_RECORD_CAPACITY = 256  # records a compiled chunk can hold
_MAX_BLOCK = {"cpu": 1024}  # chains a block, by platform
_MAX_BLOCK_ELSEWHERE = 16384
_ROUND_STEPS = {"gpu": 16}  # steps a round of known length, by platform; elsewhere none
_NUM_RECORDS = 1000  # recorded steps by default
_WEIGHT_BYTES = 100  # a chain: its weight in two precisions, and copies


class Progress(NamedTuple):
    """Where a run stands; `log_z` ends as the estimate of the target's log Z, in either direction."""

    step: int
    num_steps: int
    log_z: float
    ess: float


class Block(eqx.Module):
    """The state of one block of chains."""

    x: Any
    log_weights: jax.Array
    compensation: jax.Array
    carries: dict[str, Any]
    num_resamplings: Any = None  # (islands,), where there are any


class Record(eqx.Module):
    """A block's part of the statistics of one recorded step, mergeable across blocks."""

    largest: jax.Array  # max log w
    weight: jax.Array  # sum of w / e^largest
    weight_squared: jax.Array  # sum of (w / e^largest)^2
    means: dict[str, jax.Array]
    variances: dict[str, jax.Array]


def anneal(
    path: AbstractPath,
    kernel: AbstractKernel,
    schedule: Schedule,
    *,
    num_chains: int,
    seed: int = 0,
    purpose: str = "anneal",
    start: ArrayLike | None = None,
    reverse: bool = False,
    resample: float | None = None,
    observers: Mapping[str, AbstractObserver] | None = None,
    record_every: int | None = None,
    chunk_steps: int | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = 15.0,
    on_progress: Callable[[Progress], None] | None = None,
) -> Run:
    """Anneal `num_chains` chains along `path` over `schedule`.

    Parameters
    ----------
    start, reverse : anneal from `start`, draws from the target, one a chain, down to the base. Give a
        `purpose` of its own to a run in reverse, or it shares random bits with the forward run.
    resample : resample the islands of chains whose ESS falls below this share of their size; by
        default never
    observers : what to record besides log Z and ESS; by default the slope, under "slope"
    record_every : steps between records (the last step is always recorded); by default about
        1000 records a run
    chunk_steps : steps between returns to the host; by default chosen by the clock. It changes no
        bit of the result.
    checkpoint : a file written as the run goes, and continued from where it exists
    on_progress : called after every chunk
    """
    num_steps = schedule.num_steps
    counts = {"num_chains": num_chains, "record_every": record_every, "chunk_steps": chunk_steps}
    for name, value in counts.items():
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}.")
    observers = {"slope": Slope()} if observers is None else dict(observers)
    every = record_every or -(-num_steps // _NUM_RECORDS)
    betas = schedule.betas.astype(np.float32)
    stream = Stream(check_seed(seed), purpose)
    _check_direction(start, reverse, resample)
    resampling = None if resample is None else Resampling(resample, island_size(num_chains))
    size = None if resampling is None else resampling.island_size
    starts, width = _blocks(num_chains, size or 1)
    check_memory(path, num_chains)
    inputs, mode = (
        (path, kernel, observers),
        "" if resample is None else f" resample {float(resample)}",
    )
    if reverse:
        draws = check_start(path, start, num_chains)
        inputs, mode = (*inputs, draws), " reverse"
        betas, kernel = betas[::-1], kernel.reversed()
        first = [
            _start_reverse(path, kernel, observers, stream, jnp.int32(i), x)
            for i, x in zip(starts, _cut(draws, starts, width), strict=True)
        ]
    else:
        first = [_start(path, observers, stream, jnp.int32(i), width, size) for i in starts]

    saver = None
    if checkpoint is not None:
        settings = f"{seed} {purpose} {num_chains} {width} {every} {schedule.digest}{mode}"
        saver = Checkpoint(Path(checkpoint), digest_of(inputs, settings))
    now, spent = Standing(0, first, []), 0.0
    if saver is not None and saver.exists():
        now, spent = saver.load(now)

    pace, limit = Pace(chunk_steps), min(_CHUNK_CAPACITY, (_RECORD_CAPACITY - 1) * every)
    log_z0 = path.log_z0
    messages: list[str] = []
    began = saved = time.monotonic()
    try:
        while now.step < num_steps:
            stop = now.step + pace.take(min(limit, num_steps - now.step))
            with pace:
                window = _window(betas, now.step)
                advanced = [
                    _advance(path, kernel, observers, stream, block, jnp.int32(i),
                             jnp.int32(num_chains), window, jnp.int32(now.step), jnp.int32(stop),
                             jnp.int32(every), jnp.int32(num_steps), reverse, resampling)
                    for block, i in zip(now.blocks, starts, strict=True)
                ]  # fmt: skip
                jax.block_until_ready(advanced)
            blocks = [block for block, _ in advanced]
            log_weights = _log_weights(blocks, num_chains)
            _check_finite(log_weights, stop, num_steps, betas[stop])
            records = _merge([part for _, part in advanced], now.step, stop, every, num_steps)
            now = Standing(stop, blocks, now.records + records)  # in one go: an interrupt may come
            if on_progress is not None:
                log_z = log_z0 + log_mean(log_weights) * (-1 if reverse else 1)
                on_progress(Progress(stop, num_steps, log_z, effective_sample_size(log_weights)))
            if saver is not None and time.monotonic() - saved > checkpoint_seconds:
                _save(saver, messages, now, spent + time.monotonic() - began)
                saved = time.monotonic()
    finally:
        if saver is not None:
            _save(saver, messages, now, spent + time.monotonic() - began)

    return Run(
        log_weights=_log_weights(now.blocks, num_chains),
        log_z0=log_z0,
        schedule=schedule,
        seed=seed,
        purpose=purpose,
        trace=_trace(now.records, betas, log_z0, None if reverse else num_chains),
        states=_states(path, now.blocks, num_chains),
        carries=_gather([block.carries for block in now.blocks], num_chains),
        seconds=spent + time.monotonic() - began,
        messages=tuple(messages),
        is_reverse=reverse,
        island_size=size,
        num_resamplings=_num_resamplings(now.blocks, num_chains, size),
    )


# --- on the device ---------------------------------------------------------------------------


@eqx.filter_jit
def _start(path, observers, stream: Stream, first_chain, block_size: int, size=None) -> Block:
    """A block of draws from p_0, in islands of this size if any."""
    x = path.sample(stream.at(0, first_chain + jnp.arange(block_size)))
    counts = None if size is None else jnp.zeros(block_size // size, jnp.int32)
    return _unweighted(path, observers, x, counts)


@eqx.filter_jit
def _start_reverse(path, kernel, observers, stream: Stream, first_chain, x) -> Block:
    """A block of draws from p_1, after the move at beta = 1 that a forward run ends with."""
    bits = stream.at(0, first_chain + jnp.arange(x.shape[0]))
    return _unweighted(path, observers, kernel.step(bits, x, path, jnp.float32(1)))


def _unweighted(path, observers, x, num_resamplings=None) -> Block:
    zeros = jnp.zeros(x.shape[0], jnp.float32)
    carries = {name: observer.init(x, path) for name, observer in observers.items()}
    return Block(path.store(x), zeros, zeros, carries, num_resamplings)


@eqx.filter_jit
def _advance(
    path, kernel, observers, stream, block, first_chain, num_chains, betas, start, stop, every, last,
    is_reverse: bool = False, resampling: Resampling | None = None,
):  # fmt: skip
    """Steps start + 1 .. stop of one block; betas[i] is beta_{start + i}, counted from where it began."""
    chains = first_chain + jnp.arange(block.log_weights.shape[0])
    is_real = chains < num_chains  # the last block is filled up with chains that do not count

    def weigh(k, block: Block):
        """The block after the increment of step k, its states unpacked; and beta_k."""
        beta0, beta1 = betas[k - 1 - start], betas[k - start]
        x = path.unpack(block.x)
        low, high = (beta1, beta0) if is_reverse else (beta0, beta1)
        increment = path.log_ratio(x, low, high)  # upwards, where it keeps its digits
        if is_reverse:
            increment = -increment
        total, rest = add_compensated(block.log_weights, block.compensation, increment)
        carries = {
            name: observer.update(block.carries[name], x, path, beta0, beta1)
            for name, observer in observers.items()
        }
        return Block(x, total, rest, carries, block.num_resamplings), beta1

    def move(k, block: Block, beta):
        x = path.pack(kernel.step(stream.at(k, chains), block.x, path, beta))
        if resampling is None:
            return Block(x, block.log_weights, block.compensation, block.carries)
        bits = stream.at(k, chains[:: resampling.island_size])
        held = x, block.carries
        total, rest, held, which = resampling(bits, block.log_weights, block.compensation, held)
        return Block(held[0], total, rest, held[1], block.num_resamplings + which)

    def plain(k, block: Block):
        return move(k, *weigh(k, block))

    def recorded(k, block: Block):
        block, beta = weigh(k, block)
        return move(k, block, beta), _record(path, observers, block, beta, is_real)

    def segment(loop):
        """Plain steps up to the next recorded one (or the chunk's last), and that one."""
        k, slot, block, records = loop
        target = jnp.minimum((k // every + 1) * every, last)
        end = jnp.minimum(target, stop)
        block = _repeat(plain, k + 1, end, block)
        block, record = recorded(end, block)
        records = jax.tree.map(lambda all, one: all.at[slot].set(one), records, record)
        return end, slot + (end == target), block, records  # an unrecorded slot is written again

    block = eqx.tree_at(lambda b: b.x, block, path.pack(path.restore(block.x)))
    like = jax.eval_shape(recorded, jnp.int32(1), block)[1]
    records = jax.tree.map(lambda a: jnp.zeros((_RECORD_CAPACITY, *a.shape), a.dtype), like)
    loop = (start, jnp.int32(0), block, records)
    _, _, block, records = jax.lax.while_loop(lambda loop: loop[0] < stop, segment, loop)
    return eqx.tree_at(lambda b: b.x, block, path.store(path.unpack(block.x))), records


def _repeat(step, start, stop, block: Block) -> Block:
    """step(stop - 1, … step(start, block)).

    At every turn of a loop of unknown length a GPU asks the host whether to go on, which costs a
    fifth of a small step. So most of the steps are taken in rounds of known length.
    """
    size = _ROUND_STEPS.get(jax.default_backend())
    if size is not None:
        rounds = (stop - start) // size

        def take_round(i, block):
            first = start + i * size
            return jax.lax.fori_loop(0, size, lambda j, b: step(first + j, b), block)

        block = jax.lax.fori_loop(0, rounds, take_round, block)
        start = start + rounds * size
    return jax.lax.fori_loop(start, stop, step, block)


def _record(path, observers, block: Block, beta, is_real) -> Record:
    largest = jnp.max(jnp.where(is_real, block.log_weights, -jnp.inf))
    weights = jnp.where(is_real, jnp.exp(block.log_weights - largest + block.compensation), 0)
    total = weights.sum()
    means, variances = {}, {}
    for name, observer in observers.items():
        values = observer.measure(block.carries[name], block.x, path, beta)
        shares = (weights / total).reshape(-1, *(1,) * (values.ndim - 1))
        means[name] = (shares * values).sum(0)
        variances[name] = (shares * (values - means[name]) ** 2).sum(0)
    return Record(largest, total, (weights**2).sum(), means, variances)


# --- on the host -----------------------------------------------------------------------------


def _check_direction(start, reverse: bool, resample: float | None) -> None:
    if reverse and start is None:
        raise ValueError(
            "reverse=True needs start, draws from the target, one a chain, got none: give exact draws, "
            "such as exact_samples of a small model."
        )
    if start is not None and not reverse:
        raise ValueError(
            "start is where a run in reverse begins, got it without reverse=True: a forward run draws "
            "its own start from the base."
        )
    if reverse and resample is not None:
        raise ValueError(
            f"resample must be None where reverse=True, got {resample}: a resampled path has no time "
            "reversal; leave out one of them."
        )


def block_size(num_chains: int) -> int:
    """How many chains advance together."""
    return _blocks(num_chains)[1]


def _blocks(num_chains: int, unit: int = 1) -> tuple[list[int], int]:
    """First chain of every block, and the size of a block, in whole units: of num_chains alone."""
    largest = _MAX_BLOCK.get(jax.default_backend(), _MAX_BLOCK_ELSEWHERE)
    num_units = -(-num_chains // unit)
    count = -(-num_units // max(largest // unit, 1))
    size = -(-num_units // count) * unit
    return [i * size for i in range(count)], size


def _cut(x: np.ndarray, starts: list[int], size: int) -> list[np.ndarray]:
    """The blocks of these states, the last one filled up."""
    filling = np.repeat(x[-1:], starts[-1] + size - len(x), axis=0)
    return np.split(np.concatenate([x, filling]), starts[1:])


def _window(betas: np.ndarray, step: int) -> jax.Array:
    """betas[step : step + capacity + 1], filled up with ones."""
    window = np.ones(_CHUNK_CAPACITY + 1, np.float32)
    here = betas[step : step + _CHUNK_CAPACITY + 1]
    window[: here.size] = here
    return jnp.asarray(window)


def _merge(
    parts: list[Record], start: int, stop: int, every: int, last: int
) -> list[dict[str, Any]]:
    """The records of steps start + 1 .. stop, each merged over the blocks."""
    steps = [k for k in range(start + 1, stop + 1) if k % every == 0 or k == last]
    parts = jax.tree.map(lambda a: np.asarray(a, np.float64), parts)
    return [_merge_one(jax.tree.map(lambda a: a[i], parts), k) for i, k in enumerate(steps)]  # noqa: B023 (used at once)


def _merge_one(parts: list[Record], step: int) -> dict[str, Any]:
    largest = max(float(part.largest) for part in parts)
    scales = [np.exp(part.largest - largest) for part in parts]
    weight = sum(s * part.weight for s, part in zip(scales, parts, strict=True))
    squared = sum(s**2 * part.weight_squared for s, part in zip(scales, parts, strict=True))
    shares = [s * part.weight / weight for s, part in zip(scales, parts, strict=True)]
    out = {"step": step, "log_sum": largest + np.log(weight), "ess": weight**2 / squared}
    for name in parts[0].means:
        mean = sum(c * p.means[name] for c, p in zip(shares, parts, strict=True))
        within = sum(c * p.variances[name] for c, p in zip(shares, parts, strict=True))
        between = sum(c * (p.means[name] - mean) ** 2 for c, p in zip(shares, parts, strict=True))
        out[f"mean:{name}"], out[f"variance:{name}"] = mean, within + between
    return out


def _trace(
    records: list[dict[str, Any]], betas: np.ndarray, log_z0: float, num_chains: int | None
) -> Trace:
    """The records in columns; without num_chains log Z is known at the last of them, as log_z0."""
    columns = {key: np.array([record[key] for record in records]) for key in records[0]}
    named = {kind: {key.removeprefix(kind): column for key, column in columns.items()
                    if key.startswith(kind)} for kind in ("mean:", "variance:")}  # fmt: skip
    known = columns["log_sum"][-1] if num_chains is None else np.log(num_chains)
    return Trace(
        steps=columns["step"],
        betas=betas[columns["step"]].astype(np.float64),
        log_z=log_z0 + columns["log_sum"] - known,
        ess=columns["ess"],
        means=named["mean:"],
        variances=named["variance:"],
    )


def _gather(trees: list[Any], num_chains: int) -> Any:
    """The blocks' arrays joined along the chain axis, without the filling."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:num_chains], *trees)


def _states(path: AbstractPath, blocks: list[Block], num_chains: int) -> np.ndarray:
    """The last states of all chains; binary ones as bytes."""
    if not isinstance(path, AbstractBipartitePath):
        return _gather([block.x for block in blocks], num_chains)
    bits = np.concatenate([block.x for block in blocks])[:num_chains]
    return np.unpackbits(bits, axis=-1, count=path.num_units)


def _log_weights(blocks: list[Block], num_chains: int) -> np.ndarray:
    pairs = [
        np.asarray(b.log_weights, np.float64) + np.asarray(b.compensation, np.float64)
        for b in blocks
    ]
    return np.concatenate(pairs)[:num_chains]


def _num_resamplings(blocks: list[Block], num_chains: int, size: int | None) -> int:
    if size is None:
        return 0
    return int(_gather([block.num_resamplings for block in blocks], num_chains // size).sum())


def check_memory(path: AbstractPath, num_chains: int) -> None:
    """Refuse what the machine cannot hold: of every chain its states as they are stored, twice, and as
    they come back, and its weights with the copies that a judgement makes of them.
    """
    if jax.default_backend() != "cpu" or not hasattr(os, "sysconf"):
        return

    def one():
        x = path.sample(Stream(0, "").at(0, jnp.zeros(1, jnp.int32)))
        stored = path.store(x)
        is_binary = isinstance(path, AbstractBipartitePath)
        return stored, stored, x.astype(jnp.uint8) if is_binary else x

    leaves = jax.tree.leaves(jax.eval_shape(one))
    each = _WEIGHT_BYTES + sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)
    needed, memory = num_chains * each, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > memory:
        raise ValueError(
            f"num_chains = {num_chains:,} needs about {needed / 2**30:,.0f} GiB of memory and the "
            f"machine has {memory / 2**30:.0f}: take fewer chains."
        )


def _check_finite(log_weights: np.ndarray, step: int, num_steps: int, beta: float) -> None:
    wrong = int((~np.isfinite(log_weights)).sum())
    if wrong:
        raise ValueError(
            f"{wrong} of {log_weights.size} log weights became infinite or NaN by step {step} of "
            f"{num_steps} (beta = {beta:.4g}): the model's fields are too large for "
            "float32 or the steps too wide; take more steps, or rescale the model."
        )


def _save(saver: Checkpoint, messages: list[str], now: Standing, seconds: float) -> None:
    """Write a checkpoint; a disk that refuses it is mentioned once and stops nothing."""
    try:
        saver.save(now, seconds)
    except OSError as error:
        message = f"could not write the checkpoint {saver.path}: {error.strerror or error}."
        if message not in messages:
            messages.append(message)

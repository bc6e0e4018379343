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

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import ArrayLike

from annealz.core.errors import InputError
from annealz.core.pace import Pace
from annealz.core.random import check_seed
from annealz.engine.advance import CHUNK_CAPACITY, Block
from annealz.engine.blocks import check_memory, gather, last_states, log_weights_of
from annealz.engine.checkpoint import Checkpoint, Saver, Standing
from annealz.engine.context import Context
from annealz.engine.observers import AbstractObserver, Slope
from annealz.engine.open_blocks import Blocks, idle, open_blocks, saved
from annealz.engine.progress import Progress
from annealz.engine.reverse import check_start
from annealz.engine.run import Run
from annealz.engine.statistics import Tally, merge_records, merge_tallies, recorded_steps, trace_of
from annealz.engine.work import Work
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.abstract import AbstractPath
from annealz.schedules.schedule import Schedule

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["anneal"]

_NUM_RECORDS = 1000  # recorded steps by default


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
    client: Client | None = None,
) -> Run:
    """Anneal `num_chains` chains along `path` over `schedule`.

    Parameters
    ----------
    start, reverse : anneal from `start`, draws from the target, one per chain, down to the base. Give a
        `purpose` of its own to a run in reverse, or it shares random bits with the forward run.
    resample : resample the islands of chains whose ESS falls below this share of their size; by
        default never
    observers : what to record besides log Z and ESS; by default the slope, under "slope"
    record_every : steps between records (the last step is always recorded); by default about
        1000 records per run
    chunk_steps : steps between returns to the host; by default chosen by the clock. It changes no
        bit of the result.
    checkpoint : a file written as the run goes, and continued from where it exists
    on_progress : called after every chunk
    client : of a Dask cluster whose workers share the chains; by default this process alone, with all its
        devices. It changes no bit of the result.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> path = annealz.GeometricPath(annealz.BernoulliBase.uniform(6), random_rbm(4, 6))
    >>> run = annealz.anneal(
    ...     path, annealz.BlockGibbs(), annealz.linear(100), num_chains=100, seed=1
    ... )
    >>> run.log_weights.shape, run.states.shape, sorted(run.trace.means)
    ((100,), (100, 6), ['slope'])
    """
    counts = {"num_chains": num_chains, "record_every": record_every, "chunk_steps": chunk_steps}
    for name, value in counts.items():
        if value is not None and value < 1:
            raise InputError(name, "must be at least 1", value)
    _check_direction(start, reverse, resample)
    path = kernel.extend(path)
    check_memory(path, num_chains, "num_chains")
    work = Work(
        path,
        kernel,
        {"slope": Slope()} if observers is None else dict(observers),
        schedule,
        num_chains,
        check_seed(seed),
        purpose,
        record_every or _usual_spacing(schedule.num_steps),
        reverse,
        resample,
    )
    draws = check_start(path, start, num_chains) if reverse else None
    kept = None
    if checkpoint is not None:
        work, kept = _kept(work, Path(checkpoint), () if draws is None else (draws,))
    with Context(client=client), open_blocks(work) as blocks:
        pace = Pace(chunk_steps, blocks.span_seconds, work.first_steps)
        return _run(work, blocks, draws, Saver(kept, checkpoint_seconds), pace, on_progress)


def _usual_spacing(num_steps: int) -> int:
    """Steps between records, where nothing else is asked for."""
    return -(-num_steps // _NUM_RECORDS)


def _kept(work: Work, path: Path, draws: tuple) -> tuple[Work, Checkpoint]:
    """The run and its checkpoint; in blocks as they were if that was written by an earlier version."""
    kept = Checkpoint(path, work.digest(*draws))
    whole = dataclasses.replace(work, is_whole=True)
    if kept.exists() and not kept.is_of_this_run():
        earlier = Checkpoint(path, whole.digest(*draws))
        if earlier.is_of_this_run():
            return whole, earlier
    return work, kept


def _run(
    work: Work,
    blocks: Blocks,
    draws: np.ndarray | None,
    saver: Saver,
    pace: Pace,
    on_progress: Callable[[Progress], None] | None,
) -> Run:
    now = _begin(work, blocks, draws, saver)
    limit = min(CHUNK_CAPACITY, (work.record_capacity - 1) * work.every)

    def standing() -> Standing | None:
        step, records = now
        held = saved(blocks, step)
        return None if held is None else Standing(step, held, records)

    with saver.keeping(standing):
        while now[0] < work.num_steps:
            step, records = now
            stop = step + pace.take(min(limit, work.num_steps - step))
            with pace:
                parts = blocks.advance(step, stop)
            tallies = [part.tally for part in parts]
            _check_finite(tallies, work, stop)
            steps = recorded_steps(step, stop, work.every, work.num_steps)
            now = stop, records + merge_records([part.record for part in parts], steps)  # in one go
            if on_progress is not None:
                on_progress(_progress(work, stop, tallies))
            saver.save_if_due()
    return _finished(work, blocks, now[1], saver)


def _begin(
    work: Work, blocks: Blocks, draws: np.ndarray | None, saver: Saver
) -> tuple[int, list[dict[str, Any]]]:
    """Stand where the run was left, or before its first step: the step, and the records so far."""
    kept = saver.load(lambda: Standing(0, [work.like] * len(work.blocks[0]), []))
    if kept is None:
        blocks.begin(draws)
        return 0, []
    blocks.put(kept.step, kept.blocks)
    return kept.step, kept.records


def _progress(work: Work, step: int, tallies: list[Tally]) -> Progress:
    log_sum, ess = merge_tallies(tallies)
    gain = log_sum - np.log(work.num_chains)
    log_z = work.log_z0 - gain if work.is_reverse else work.log_z0 + gain
    return Progress(step, work.num_steps, log_z, ess, num_chains=work.num_chains)


def _finished(work: Work, held: Blocks, records: list[dict[str, Any]], saver: Saver) -> Run:
    blocks, num_chains, size = held.at(work.num_steps), work.num_chains, work.island_size
    return Run(
        log_weights=np.concatenate([log_weights_of(block) for block in blocks])[:num_chains],
        log_z0=work.log_z0,
        schedule=work.schedule,
        seed=work.seed,
        purpose=work.purpose,
        trace=trace_of(records, work.betas, work.log_z0, None if work.is_reverse else num_chains),
        states=last_states(work.path, blocks, num_chains),
        carries=gather([block.carries for block in blocks], num_chains),
        seconds=saver.seconds,
        messages=(*idle(held, num_chains), *saver.messages),
        is_reverse=work.is_reverse,
        island_size=size,
        num_resamplings=_num_resamplings(blocks, num_chains, size),
        num_filling=work.num_filling,
    )


def _check_direction(start, reverse: bool, resample: float | None) -> None:
    if reverse and start is None:
        raise ValueError(
            "reverse=True needs start, draws from the target, one per chain, got none: give exact draws, "
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


def _num_resamplings(blocks: list[Block], num_chains: int, size: int | None) -> int:
    if size is None:
        return 0
    return int(gather([block.num_resamplings for block in blocks], num_chains // size).sum())


def _check_finite(tallies: list[Tally], work: Work, step: int) -> None:
    wrong = sum(tally.num_wrong for tally in tallies)
    if wrong:
        raise ValueError(
            f"{wrong} of {work.num_chains} log weights became infinite or NaN by step {step} of "
            f"{work.num_steps} (beta = {work.betas[step]:.4g}): the log density is NaN there, or too "
            "large for float32; return -inf where the density is zero, take more steps, or rescale it."
        )

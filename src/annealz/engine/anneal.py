"""The engine: annealed importance sampling (Neal 2001) of independent chains.

    v_0 ~ p_0 (once)                                     log w = 0
    for k = 1..K:
        log w += log p*_{beta_k}(v_{k-1}) - log p*_{beta_{k-1}}(v_{k-1})
        record, if k is a recorded step: statistics of v_{k-1} under the weights just updated
        v_k ~ T_{beta_k}(. | v_{k-1})

E[w] = Z_B / Z_A whatever the kernel's mixing; log of the mean of w is biased low (Jensen). The chains may
be resampled on the way up, in islands (`resampling.py`).

In reverse they start from draws of the target and come down the same frozen schedule. The time reversal of
the whole path is

    v_K ~ p_1
    for k = K..1:
        v_{k-1} ~ R_{beta_k}(. | v_k)                                      log w = 0 before k = K
        log w += log p*_{beta_{k-1}}(v_{k-1}) - log p*_{beta_k}(v_{k-1})

where R_beta is the reversal of T_beta: p_beta(x) T_beta(y | x) = p_beta(y) R_beta(x | y). On one path
the two weights are each other's inverse, and with P and Q the distributions of forward and reverse paths

    P(v) w(v) / Q(v) = Z_B / Z_A            w the forward weight, 1 / w the reverse one

so that E_Q[1/w] = Z_A / Z_B, E_P[log w] <= log Z_B / Z_A <= E_Q[log w], and the two samples of log w
may be joined (BAR). The first and the bounds hold for any kernel that leaves p_beta invariant, the
last for its reversal alone. All of it holds for exact draws from p_1; from approximate draws the upper
side is approximate. The first move, at beta = 1, is part of the start. What is left has the shape of the
forward loop (increment from beta_k to beta_{k-1}, then move at beta_{k-1}) and its cost. The move that
this adds at beta = 0 touches no weight.

The loop over k runs on the device in chunks (`loop.py`, `advance.py`), and chains in blocks (`blocks.py`).
Binary ones are kept as bits between chunks, so that a million of them fit into any machine. A block's part
of each statistic is merged with the others' on the host, in float64 (`statistics.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import ArrayLike

from annealz.core.errors import InputError
from annealz.core.failures import user_errors
from annealz.core.random import check_seed
from annealz.engine.blocks import (
    check_memory,
    check_start,
    gather,
    last_states,
    log_weights_of,
)
from annealz.engine.checkpoint import Checkpoint, Saver
from annealz.engine.cluster import on_cluster
from annealz.engine.loop import Finished, take_steps
from annealz.engine.observers import AbstractObserver, Slope
from annealz.engine.progress import Progress
from annealz.engine.run import Run
from annealz.engine.run_program import RunProgram
from annealz.engine.statistics import trace_of
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.abstract import AbstractPath
from annealz.schedules.schedule import Schedule

if TYPE_CHECKING:
    from distributed import Client

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
    >>> run = annealz.anneal(path, annealz.BlockGibbs(), annealz.linear(100), num_chains=100)
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
    program = RunProgram(
        path,
        kernel,
        {"slope": Slope()} if observers is None else dict(observers),
        schedule,
        num_chains,
        check_seed(seed),
        purpose,
        record_every or -(-schedule.num_steps // _NUM_RECORDS),
        reverse,
        resample,
    )
    draws = check_start(path, start, num_chains) if reverse else None
    kept = None if checkpoint is None else Checkpoint(Path(checkpoint), program.digest(draws))
    saver = Saver(kept, checkpoint_seconds)
    with on_cluster(client), user_errors():
        done = take_steps(
            program, saver, draws=draws, chunk_steps=chunk_steps, on_progress=on_progress
        )
    blocks, size = done.blocks, program.island_size
    num_resamplings = 0
    if size is not None:
        counts = gather([block.num_resamplings for block in blocks], num_chains // size)
        num_resamplings = int(counts.sum())
    known = None if reverse else num_chains
    return Run(
        log_weights=np.concatenate([log_weights_of(block) for block in blocks])[:num_chains],
        log_z0=program.log_z0,
        schedule=schedule,
        seed=program.seed,
        purpose=purpose,
        trace=trace_of(done.records, program.betas, program.log_z0, known),
        states=last_states(path, blocks, num_chains),
        carries=gather([block.carries for block in blocks], num_chains),
        seconds=done.seconds,
        messages=(*_idle(program, done), *done.messages),
        is_reverse=reverse,
        island_size=size,
        num_resamplings=num_resamplings,
        num_filling=program.num_filling,
    )


def _idle(program: RunProgram, done: Finished) -> list[str]:
    """Say where some devices had no block."""
    (starts, width), (num_places, name) = program.blocks, done.places
    count = len(starts)
    if count >= num_places:
        return []
    return [
        f"{count} of {num_places} {name} had work: {program.num_chains:,} chains are {count} of the blocks "
        f"that {name} take; {num_places * width:,} chains would take no longer."
    ]


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

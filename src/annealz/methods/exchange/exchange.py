"""The engine of replica exchange: independent ensembles, in rounds of doubling length.

    x ~ p_0 at every beta; the ladder opens from beta = 0 during the first half of the first round
    each round:  sweeps and swaps on a fixed ladder (`advance.py`), sums over each half of it
    after it:    betas by equal rejection, C_r from log Z so far (`rounds.py`)

Nothing before the last round enters the estimate. Random bits depend on the seed, the purpose, the row and
the sweep alone, and a ladder on the sums before it. So chunks and resumes change no bit of the result. One
compiled program serves every round.
"""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import ArrayLike

from annealz.core.arrays import indices, on_device
from annealz.core.errors import InputError
from annealz.core.failures import user_errors
from annealz.core.numerics import whole_number
from annealz.core.random import Stream, check_seed
from annealz.diagnostics.exchange import LEAST_ENSEMBLES
from annealz.engine.blocks import check_memory, split_chains, states_like
from annealz.engine.checkpoint import Checkpoint, Saver, digest_of
from annealz.engine.cluster import on_cluster
from annealz.engine.loop import BlockProgram, take_steps
from annealz.engine.progress import Progress
from annealz.kernels.abstract import AbstractKernel
from annealz.methods.exchange.advance import Ensembles, Sweeps, advance, is_by_rung, start
from annealz.methods.exchange.result import Exchange
from annealz.methods.exchange.rounds import (
    LEAST_SWEEPS,
    MOST_SWEEPS,
    HalfRound,
    Ladder,
    Records,
    check_ladder,
    halves_of,
    ladder_after,
    log_z_of,
    round_lengths,
    rounds_of,
)
from annealz.paths.abstract import AbstractPath

if TYPE_CHECKING:
    from distributed import Client

_LEAST = {
    "num_rungs": (2, "one at the base and one at the target"),
    "num_ensembles": (LEAST_ENSEMBLES, "the error comes from their spread"),
    "num_sweeps": (LEAST_SWEEPS, "rounds take that many"),
    "num_draws": (0, ""),
    "chunk_sweeps": (1, ""),
}
"""The least numbers, and why."""


def exchange(
    path: AbstractPath,
    kernel: AbstractKernel,
    *,
    num_rungs: int = 32,
    num_ensembles: int = 32,
    num_sweeps: int = 10_000,
    betas: ArrayLike | None = None,
    num_draws: int = 0,
    seed: int = 0,
    purpose: str = "exchange",
    chunk_sweeps: int | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = 15.0,
    on_progress: Callable[[Progress], None] | None = None,
    client: "Client | None" = None,
) -> Exchange:
    """Estimate log Z by replica exchange between values of beta along `path`.

    Parameters
    ----------
    num_rungs : R, betas from 0 to 1, one replica at each; about twice the barrier is enough
    num_ensembles : independent copies of the ladder, from which the error comes; at least 5
    num_sweeps : of every replica, in all rounds together; the last round has half of them
    betas : the first ladder, (num_rungs,); by default at equal distances. Later rounds move the betas.
    num_draws : draws of the target to keep, evenly over the last round and all ensembles
    purpose : of the random bits; runs of different purposes share none
    chunk_sweeps : sweeps between returns to the host; by default chosen by the clock. It changes no bit
        of the result.
    checkpoint : a file written as the run goes, and continued from where it exists
    on_progress : called after every chunk
    client : of a Dask cluster whose workers share the ensembles; it changes no bit of the result

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> path = random_rbm(4, 6).path(annealz.BernoulliBase.uniform(6))
    >>> options = {"num_rungs": 6, "num_ensembles": 16, "num_sweeps": 400, "seed": 1}
    >>> result = annealz.exchange(path, annealz.BlockGibbs(), **options)
    >>> abs(result.log_z - annealz.exact_log_z(random_rbm(4, 6))) < 5 * result.std_err
    True
    """
    num_rungs, num_ensembles, num_sweeps, num_draws = check_counts(
        num_rungs, num_ensembles, num_sweeps, num_draws, chunk_sweeps
    )
    path = kernel.extend(path)
    check_memory(path, num_rungs * num_ensembles, "num_ensembles", "num_rungs")
    program = _ExchangeProgram(
        path,
        kernel,
        num_rungs,
        num_ensembles,
        num_sweeps,
        check_ladder(betas, num_rungs),
        num_draws,
        check_seed(seed),
        purpose,
    )
    kept = None if checkpoint is None else Checkpoint(Path(checkpoint), program.digest())
    with on_cluster(client), user_errors():
        done = take_steps(
            program,
            Saver(kept, checkpoint_seconds),
            chunk_steps=chunk_sweeps,
            on_progress=on_progress,
        )
    draws = np.concatenate([np.asarray(block.draws) for block in done.blocks], axis=1)
    return Exchange(
        rounds=rounds_of(program.halves, done.records, path.log_z0),
        log_z0=path.log_z0,
        seed=program.seed,
        purpose=purpose,
        draws=_positions(path, draws[:, :num_ensembles], num_draws),
        seconds=done.seconds,
        num_filling=program.num_filling,
        extra_messages=done.messages,
    )


def check_counts(
    num_rungs: int, num_ensembles: int, num_sweeps: int, num_draws: int, chunk_sweeps: int | None
) -> tuple[int, int, int, int]:
    """Return temperatures, ensembles, sweeps and draws as whole numbers that make a run."""
    chunk_sweeps = 1 if chunk_sweeps is None else chunk_sweeps
    given = num_rungs, num_ensembles, num_sweeps, num_draws, chunk_sweeps
    counts = [whole_number(name, value) for name, value in zip(_LEAST, given, strict=True)]
    for (name, (least, reason)), count in zip(_LEAST.items(), counts, strict=True):
        if count < least:
            raise InputError(name, f"must be at least {least}", count, reason)
    num_rungs, num_ensembles, num_sweeps, num_draws, _ = counts
    if num_sweeps > MOST_SWEEPS:
        raise InputError("num_sweeps", f"must be at most {MOST_SWEEPS:,}", num_sweeps)
    most = round_lengths(num_sweeps)[-1] * num_ensembles
    if num_draws > most:
        raise InputError(
            "num_draws",
            f"must be at most {most:,}, one per ensemble and sweep of the last round",
            num_draws,
            "take more sweeps",
        )
    return num_rungs, num_ensembles, num_sweeps, num_draws


class _Block(eqx.Module):
    """Ensembles, and the draws of the target that they gave so far."""

    ensembles: Ensembles
    draws: Any  # (draws of each ensemble, ensembles, ...), as they are stored


@dataclasses.dataclass(frozen=True)
class _ExchangeProgram(BlockProgram):
    """A run in blocks of ensembles: what every block needs, how it begins and how it goes on."""

    path: AbstractPath
    kernel: AbstractKernel
    num_rungs: int
    num_ensembles: int
    num_steps: int
    first_betas: np.ndarray
    num_draws: int
    seed: int
    purpose: str

    @functools.cached_property
    def blocks(self) -> tuple[list[int], int]:
        rows, width = split_chains(self.num_ensembles * self.num_rungs, self.num_rungs)
        return rows, width // self.num_rungs

    @property
    def num_filling(self) -> int:
        """Replicas that fill up the last block."""
        rows, ensembles = self.blocks
        return (len(rows) * ensembles - self.num_ensembles) * self.num_rungs

    @functools.cached_property
    def given(self) -> tuple:
        return self.path.unnamed(), self.kernel, Stream(self.seed, self.purpose)

    @functools.cached_property
    def halves(self) -> list[HalfRound]:
        return halves_of(self.num_steps)

    @functools.cached_property
    def draw_sweeps(self) -> list[int]:
        """After which sweeps of the last round draws are taken, one of each ensemble."""
        first, stop = self.halves[-2].first, self.halves[-1].stop
        count = -(-self.num_draws // self.num_ensembles)
        return [first + (j + 1) * (stop - first) // count for j in range(count)]

    @functools.cached_property
    def _by_rung(self) -> bool:
        return is_by_rung(self.path, self.blocks[1], self.num_rungs)

    def digest(self) -> str:
        """Return the digest of everything that the run is given."""
        settings = (self.seed, self.purpose, self.num_ensembles, self.num_steps, self.num_draws)
        words = " ".join(map(str, ("exchange", *settings, *self.blocks)))
        return digest_of((self.path, self.kernel, self.first_betas), words)

    def first(self, given: tuple, i: int, _: Any = None) -> _Block:
        path, _, stream = given
        first_row = np.int32(self.blocks[0][i])
        ensembles = start(path, stream, first_row, self.blocks[1], self.num_rungs)
        stored = self.like.draws
        return _Block(ensembles, np.zeros(stored.shape, stored.dtype))

    @functools.cached_property
    def like(self) -> _Block:
        path, count = self.path, self.blocks[1]
        arguments = self.given[0], self.given[2], np.int32(0), count, self.num_rungs
        stored = eqx.filter_eval_shape(path.store, states_like(path, count))
        shape = (len(self.draw_sweeps), *stored.shape)
        return _Block(
            eqx.filter_eval_shape(start, *arguments), jax.ShapeDtypeStruct(shape, stored.dtype)
        )

    def limit(self, step: int) -> int:
        ends = [sweep for sweep in self.draw_sweeps if sweep > step]
        return min(self.half_at(step).stop, *ends, self.num_steps) - step

    def terms(self, records: Records) -> tuple[Ladder]:
        return (ladder_after(self.first_betas, self.halves, records),)

    def advance(self, given: tuple, i: int, block: _Block, step: int, stop: int, *terms: Any):
        half, (path, kernel, stream), (ladder,) = self.half_at(step), given, terms
        is_first = step == half.first
        sweeps = Sweeps(
            np.int32(self.blocks[0][i]),
            on_device(ladder.betas),
            on_device(ladder.constants),
            np.int32(step),
            np.int32(stop),
            np.float32(self.halves[0].stop),
            (np.bool_(is_first), np.bool_(is_first and not half.is_second)),
        )
        done = advance(path, kernel, stream, block.ensembles, sweeps, self._by_rung)
        done = jax.block_until_ready(done)
        draws = block.draws
        if stop in self.draw_sweeps:  # the states at beta = 1
            x, replicas = jax.device_get((done.x, done.replicas))
            draws = np.array(draws)
            rows = replicas[:, -1] + self.num_rungs * np.arange(len(replicas))
            draws[self.draw_sweeps.index(stop)] = x[rows]
        high, low, trips = jax.device_get((done.sums, done.compensation, done.trips))
        return _Block(done, draws), (np.float64(high) + low, trips)

    def merge(
        self, step: int, stop: int, parts: list[tuple[np.ndarray, np.ndarray]], records: Records
    ):
        count, half = self.num_ensembles, self.half_at(step)
        ladder = ladder_after(self.first_betas, self.halves, records)
        sums, trips = (np.concatenate(part)[:count] for part in zip(*parts, strict=True))
        wrong = ~np.isfinite(sums).all((0, 2))
        if wrong.any():
            pair = int(np.argmax(wrong))
            raise InputError(
                "",
                f"the work between temperatures {pair} and {pair + 1} (beta = {ladder.betas[pair]:.4g}) "
                f"became infinite or NaN by sweep {stop} of {self.num_steps}",
                remedy="the model's fields are too large for float32 or the temperatures too far apart; "
                "take more of them ({num_rungs}), or rescale the model",
            )
        new = []
        if stop == half.stop:
            new = [{"step": stop, **ladder._asdict(), "sums": sums, "trips": trips}]
        log_z, first = np.nan, half.first  # while the ladder opens
        if step >= self.halves[0].stop:
            if half.is_second and len(records) > 1:
                sums, first = sums + records[-1]["sums"], self.halves[len(records) - 1].first
            log_z = self.path.log_z0 + log_z_of(sums, ladder.constants, stop - first)
        return new, Progress(stop, self.num_steps, log_z, np.nan, "exchange")

    def half_at(self, step: int) -> HalfRound:
        """Return the half of a round that sweep step + 1 belongs to."""
        return next(half for half in self.halves if step < half.stop)


def _positions(path: AbstractPath, draws: np.ndarray, num_draws: int) -> np.ndarray:
    """Return the model's variables of the draws that are wanted."""
    if num_draws == 0:
        like = jax.eval_shape(lambda: path.position(path.sample(Stream(0, "").at(0, indices(1)))))
        return np.zeros((0, *like.shape[1:]), like.dtype)
    flat = draws.reshape(-1, *draws.shape[2:])[:num_draws]
    return np.asarray(path.position(path.restore(on_device(flat, flat.dtype))))

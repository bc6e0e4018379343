"""The engine of replica exchange: independent ensembles, in rounds of doubling length.

    x ~ p_0 at every beta; the ladder opens from beta = 0 during the first half of the first round
    each round:  sweeps and swaps on a fixed ladder (`advance.py`), sums over each half of it
    after it:    betas by equal rejection (`ladder.py`), C_r from log Z so far (`ratios.py`)

Nothing before the last round enters the estimate. Random bits depend on the seed, the purpose, the row and
the sweep alone, and a ladder on the sums before it. So chunks and resumes change no bit of the result. One
compiled program serves every round.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import ArrayLike

from annealz.core.arrays import indices, on_device
from annealz.core.errors import InputError
from annealz.core.numerics import whole_number
from annealz.core.pace import Pace
from annealz.core.random import Stream, check_seed
from annealz.diagnostics.exchange import LEAST_ENSEMBLES
from annealz.engine.progress import Progress
from annealz.engine.blocks import check_memory, split_chains
from annealz.engine.checkpoint import Checkpoint, Saver, Standing, digest_of
from annealz.engine.context import Context
from annealz.engine.open_blocks import Blocks, open_blocks, saved
from annealz.kernels.abstract import AbstractKernel
from annealz.methods.exchange.advance import REJECTED, Ensembles, Sweeps, advance, is_by_rung, start
from annealz.methods.exchange.ladder import (
    LEAST_SWEEPS,
    MOST_SWEEPS,
    check_ladder,
    equal_rejection,
    interpolated,
    round_lengths,
)
from annealz.methods.exchange.ratios import log_ratios, log_z_of, middles, pseudo_values
from annealz.methods.exchange.result import Exchange, Round
from annealz.paths.abstract import AbstractPath

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Leg", "check_counts", "exchange", "legs_of", "rounds_of"]

_WHY_SO_MANY = {
    "num_rungs": "one at the base and one at the target",
    "num_ensembles": "the error comes from their spread",
    "num_sweeps": "rounds take that many",
}


class Leg(NamedTuple):
    """Half a round: sweeps first + 1 .. stop."""

    first: int
    stop: int
    is_second: bool


class Ladder(NamedTuple):
    """What is fixed during a round."""

    betas: np.ndarray
    constants: np.ndarray


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
    """log Z by replica exchange between values of beta along `path`.

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
    >>> model = random_rbm(4, 6)
    >>> path = model.path(annealz.BernoulliBase.uniform(6))
    >>> result = annealz.exchange(
    ...     path, annealz.BlockGibbs(), num_rungs=6, num_ensembles=16, num_sweeps=400, seed=1
    ... )
    >>> abs(result.log_z - annealz.exact_log_z(model)) < 5 * result.std_err
    True
    """
    num_rungs, num_ensembles, num_sweeps, num_draws = check_counts(
        num_rungs, num_ensembles, num_sweeps, num_draws, chunk_sweeps
    )
    path = kernel.extend(path)
    check_memory(path, num_rungs * num_ensembles, "num_ensembles", "num_rungs")
    run = _Exchanging(
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
    kept = None if checkpoint is None else Checkpoint(Path(checkpoint), run.digest())
    with Context(client=client), open_blocks(run) as blocks:
        pace = Pace(chunk_sweeps, blocks.span_seconds)
        return _run(run, blocks, Saver(kept, checkpoint_seconds), pace, on_progress)


def check_counts(
    num_rungs: int, num_ensembles: int, num_sweeps: int, num_draws: int, chunk_sweeps: int | None
) -> tuple[int, int, int, int]:
    """Temperatures, ensembles, sweeps and draws as whole numbers; refused where they make no run."""
    counts = {
        "num_rungs": (num_rungs, 2),
        "num_ensembles": (num_ensembles, LEAST_ENSEMBLES),
        "num_sweeps": (num_sweeps, LEAST_SWEEPS),
        "num_draws": (num_draws, 0),
        "chunk_sweeps": (chunk_sweeps, 1),
    }
    found = []
    for name, (value, least) in counts.items():
        if value is None:
            continue
        found.append(whole_number(name, value))
        if found[-1] < least:
            raise InputError(name, f"must be at least {least}", value, _WHY_SO_MANY.get(name, ""))
    num_rungs, num_ensembles, num_sweeps, num_draws = found[:4]
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


@dataclasses.dataclass
class _Exchanging:
    """A run in blocks of ensembles: what every block needs, how it begins and how it goes on."""

    path: AbstractPath
    kernel: AbstractKernel
    num_rungs: int
    num_ensembles: int
    num_sweeps: int
    first_betas: np.ndarray
    num_draws: int
    seed: int
    purpose: str

    def __post_init__(self):
        self.legs = legs_of(self.num_sweeps)
        self.ladder = Ladder(self.first_betas, np.zeros(self.num_rungs - 1))

    @functools.cached_property
    def blocks(self) -> tuple[list[int], int]:
        """First row of every block, and the ensembles of a block."""
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
    def by_rung(self) -> bool:
        return is_by_rung(self.path, self.blocks[1], self.num_rungs)

    def digest(self) -> str:
        settings = (self.seed, self.purpose, self.num_ensembles, self.num_sweeps, self.num_draws)
        words = " ".join(map(str, ("exchange", *settings, *self.blocks)))
        return digest_of((self.path, self.kernel, self.first_betas), words)

    def first(self, given: tuple, i: int, _: Any = None) -> Ensembles:
        """Block i before its first sweep."""
        path, _, stream = given
        return start(path, stream, np.int32(self.blocks[0][i]), self.blocks[1], self.num_rungs)

    def fresh(self) -> "_Exchanging":
        """The same run, with nothing that was made on this machine."""
        return dataclasses.replace(self)

    def advance(self, given: tuple, i: int, block: Ensembles, step: int, stop: int, *terms: Any):
        """Block i after sweeps step + 1 .. stop, and its sums and trips."""
        leg, (path, kernel, stream), (ladder,) = self.leg_at(step), given, terms
        fresh = step == leg.first, step == leg.first and not leg.is_second
        betas, constants = (on_device(a) for a in ladder)
        sweeps = Sweeps(
            np.int32(self.blocks[0][i]),
            betas,
            constants,
            np.int32(step),
            np.int32(stop),
            np.float32(self.legs[0].stop),
            tuple(map(np.bool_, fresh)),
        )
        done = advance(path, kernel, stream, block, sweeps, self.by_rung)
        done = jax.block_until_ready(done)
        high, low, trips = jax.device_get((done.sums, done.compensation, done.trips))
        return done, (np.float64(high) + low, trips)

    def leg_at(self, step: int) -> Leg:
        """The leg of sweep step + 1."""
        return next(leg for leg in self.legs if step < leg.stop)

    def ladder_after(self, records: list[dict[str, Any]]) -> Ladder:
        """The ladder of the round that comes after these legs."""
        done = len(records) // 2  # rounds
        if done == 0:
            return Ladder(self.first_betas, np.zeros(self.num_rungs - 1))
        i = 2 * (done - 1)
        both, lengths = records[i : i + 2], [leg.stop - leg.first for leg in self.legs[i : i + 2]]
        sums, count = _settled(i, both, lengths)
        sums, terms = sums.sum(0), len(sums) * count
        betas, constants = both[0]["betas"], both[0]["constants"]
        ratios = middles(sums, terms) if done == 1 else log_ratios(sums, constants, terms)
        log_z = np.concatenate([[0.0], np.cumsum(ratios)])
        new = equal_rejection(betas, sums[:, REJECTED] / terms)
        return Ladder(new, np.diff(interpolated(betas, log_z, new)))

    @functools.cached_property
    def draw_sweeps(self) -> list[int]:
        """After which sweeps of the last round draws are taken, one of each ensemble."""
        first, stop = self.legs[-2].first, self.legs[-1].stop
        count = -(-self.num_draws // self.num_ensembles)
        return [first + (j + 1) * (stop - first) // count for j in range(count)]


def legs_of(num_sweeps: int) -> list[Leg]:
    """The halves of all rounds."""
    legs, first = [], 0
    for length in round_lengths(num_sweeps):
        middle = first + length // 2
        legs += [Leg(first, middle, False), Leg(middle, first + length, True)]
        first += length
    return legs


def _run(
    run: _Exchanging,
    held: Blocks,
    saver: Saver,
    pace: Pace,
    on_progress: Callable[[Progress], None] | None,
) -> Exchange:
    log_z0, count = run.path.log_z0, run.num_ensembles
    step, records, draws = _begin(run, held, saver)
    now = step, records
    run.ladder = run.ladder_after(records)

    def standing() -> Standing | None:
        step, records = now
        blocks = saved(held, step)
        return None if blocks is None else Standing(step, [*blocks, draws], records)

    with saver.keeping(standing):
        while now[0] < run.num_sweeps:
            step, records = now
            leg = run.leg_at(step)
            if leg.first == step and not leg.is_second:
                run.ladder = run.ladder_after(records)
            ends = [sweep for sweep in run.draw_sweeps if sweep > step]
            stop = step + pace.take(min(leg.stop, *ends, leg.stop) - step)
            with pace:
                parts = held.advance(step, stop, run.ladder)
            sums, trips = (np.concatenate(part)[:count] for part in zip(*parts, strict=True))
            _check_finite(sums, run, stop)
            if stop in run.draw_sweeps:
                draws[run.draw_sweeps.index(stop)] = _at_target(run, held.at(stop))
            now = stop, records + [_record(run, stop, sums, trips)] * (stop == leg.stop)
            if on_progress is not None:
                log_z = log_z0 + _log_z_so_far(run, now[1], sums, stop)
                on_progress(Progress(stop, run.num_sweeps, log_z, np.nan, stage="exchange"))
            saver.save_if_due()
    return Exchange(
        rounds=rounds_of(run.legs, now[1], log_z0),
        log_z0=log_z0,
        seed=run.seed,
        purpose=run.purpose,
        draws=_positions(run, draws),
        seconds=saver.seconds,
        num_filling=run.num_filling,
        extra_messages=tuple(saver.messages),
    )


def _begin(
    run: _Exchanging, held: Blocks, saver: Saver
) -> tuple[int, list[dict[str, Any]], np.ndarray]:
    """Stand where the run was left, or before its first sweep: sweeps done, records of the legs, draws."""
    path, ensembles = run.path, on_device(np.zeros(run.num_ensembles), np.int32)
    top = jax.eval_shape(lambda: path.store(path.sample(Stream(0, "").at(0, ensembles))))
    draws = np.zeros((len(run.draw_sweeps), *top.shape), top.dtype)

    def start() -> Standing:
        like = eqx.filter_eval_shape(lambda: run.first(run.given, 0))
        return Standing(0, [*[like] * len(run.blocks[0]), draws], [])

    kept = saver.load(start)
    if kept is None:
        held.begin()
        return 0, [], draws
    held.put(kept.step, kept.blocks[:-1])
    return kept.step, kept.records, np.array(kept.blocks[-1])


def _record(run: _Exchanging, step: int, sums, trips) -> dict[str, Any]:
    betas, constants = run.ladder
    return {"step": step, "betas": betas, "constants": constants, "sums": sums, "trips": trips}


def rounds_of(legs: list[Leg], records: list[dict[str, Any]], log_z0: float) -> tuple[Round, ...]:
    """What the sums of all legs come to."""
    rounds = []
    for i in range(0, len(records), 2):
        one, two = records[i : i + 2]
        lengths = [leg.stop - leg.first for leg in legs[i : i + 2]]
        constants = one["constants"]
        halves = [
            pseudo_values(half["sums"], constants, length)
            for half, length in zip((one, two), lengths, strict=True)
        ]
        sums, count = _settled(i, (one, two), lengths)
        terms = len(sums) * count
        rounds.append(
            Round(
                num_sweeps=sum(lengths),
                betas=one["betas"],
                rejections=sums.sum(0)[:, REJECTED] / terms,
                log_ratios=log_ratios(sums.sum(0), constants, terms),
                log_z0=log_z0,
                values=log_z0 + pseudo_values(sums, constants, count),
                half_values=log_z0 + np.array(halves),
                round_trips=two["trips"],
            )
        )
    return tuple(rounds)


def _settled(i: int, halves, lengths: list[int]) -> tuple[np.ndarray, int]:
    """The sums of a round and their sweeps; of the first round from when its ladder was open."""
    if i == 0:
        return halves[1]["sums"], lengths[1]
    return halves[0]["sums"] + halves[1]["sums"], sum(lengths)


def _log_z_so_far(run: _Exchanging, records: list[dict[str, Any]], sums, step: int) -> float:
    """log Z_B / Z_A from the round that runs, NaN while its ladder opens."""
    if step <= run.legs[0].stop:
        return np.nan
    leg = next(leg for leg in run.legs if step <= leg.stop)
    if step == leg.stop:
        records = records[:-1]
    first = leg.first
    if leg.is_second and len(records) > 1:
        sums, first = sums + records[-1]["sums"], run.legs[len(records) - 1].first
    return log_z_of(sums, run.ladder.constants, step - first)


def _check_finite(sums: np.ndarray, run: _Exchanging, step: int) -> None:
    wrong = ~np.isfinite(sums).all((0, 2))
    if wrong.any():
        pair = int(np.argmax(wrong))
        raise InputError(
            "",
            f"the work between temperatures {pair} and {pair + 1} (beta = {run.ladder.betas[pair]:.4g}) "
            f"became infinite or NaN by sweep {step} of {run.num_sweeps}",
            remedy="the model's fields are too large for float32 or the temperatures too far apart; take "
            "more of them ({num_rungs}), or rescale the model",
        )


def _at_target(run: _Exchanging, blocks: Sequence[Any]) -> np.ndarray:
    """(ensembles, ...): the states at beta = 1, as they are stored."""
    found = []
    for block in blocks:
        x, replicas = jax.device_get((block.x, block.replicas))
        found.append(x[replicas[:, -1] + run.num_rungs * np.arange(len(replicas))])
    return np.concatenate(found)[: run.num_ensembles]


def _positions(run: _Exchanging, draws: np.ndarray) -> np.ndarray:
    """The model's variables of the draws that are wanted."""
    path = run.path
    if run.num_draws == 0:
        bits = Stream(0, "").at(0, indices(1))
        like = jax.eval_shape(lambda: path.position(path.sample(bits)))
        return np.zeros((0, *like.shape[1:]), like.dtype)
    flat = draws.reshape(-1, *draws.shape[2:])[: run.num_draws]
    return np.asarray(path.position(path.restore(on_device(flat, flat.dtype))))

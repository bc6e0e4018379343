"""The engine of nested sampling (Skilling 2006): one run of live points up the likelihood.

    draw num_live points from the prior
    repeat    the num_delete points of the lowest L die; as many are drawn from the prior above them
    until     what is left, at most X L_max, is below `tolerance` of the evidence so far

L_max is found uphill from the live points, when they themselves hold less than that (`ascend`).

The prior mass X that is left shrinks at each death by a factor whose law is known, Beta(n, 1) with n live
points: this gives the volumes, and with them log Z (`diagnostics/nested.py`).

Likelihoods are kept in float32 relative to an offset, which follows the highest live point: differences
near the top are exact to 1e-5 whatever log L is there. They are collected in float64. Random numbers
depend on the seed, the purpose and the step alone; pieces change no bit of the result.
"""

import time
from collections.abc import Callable

import numpy as np

from annealz.core import interrupts
from annealz.core.arrays import indices, on_device
from annealz.core.errors import InputError
from annealz.core.random import Stream
from annealz.engine.progress import Progress
from annealz.methods.nested.advance import (
    Dead,
    Sampler,
    advance,
    ascend,
    begin,
    moved_to,
    rounds_of,
)
from annealz.methods.nested.result import Ending, NestedRun
from annealz.methods.nested.walk import Target

_INFINITE = "the likelihood is infinite at some positions: give a density that is finite."
_PIECE = 10  # steps between returns to the host
_MOST_HEIGHT = 64.0  # nats between the offset and the highest live point
_MOST_SHRINKAGE = 20.0  # nats per variable: as far as float32 resolves positions


def nested(
    target: Target,
    *,
    num_live: int,
    num_delete: int,
    num_inner_steps: int,
    tolerance: float,
    seed: int,
    purpose: str,
    max_evaluations: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> NestedRun:
    """One run; a likelihood that is NaN or infinite on draws from the prior is refused."""
    began = time.monotonic()
    stream, log_z0 = Stream(seed, purpose), target.prior.log_z
    offset, record = 0.0, _Record()
    sampler = begin(target.prior.sample(stream.at(0, indices(num_live))), target, on_device(offset))
    _check(np.asarray(sampler.state.particles.loglikelihood))
    evaluations, last_cost = num_live, 0
    limit = np.inf if max_evaluations is None else max_evaluations
    uphill = _Uphill(Stream(seed, f"{purpose} uphill"), num_delete, target.model.dim)
    while True:
        top = float(sampler.state.particles.loglikelihood.max())
        if abs(top) > _MOST_HEIGHT:
            before, offset = offset, float(np.float32(offset + top))
            change = on_device(offset - before)
            sampler = moved_to(sampler, target, on_device(offset), change)
            evaluations += num_live
        ending = _ending(sampler, tolerance, num_delete, uphill.top - offset)
        last_cost = uphill.cost if ending is Ending.DONE else last_cost
        if ending in (None, Ending.DONE) and evaluations + last_cost > limit:
            ending = Ending.OUT_OF_EVALUATIONS
        if ending is Ending.DONE:  # if nothing higher is near
            uphill.look(sampler, target, offset)
            evaluations += last_cost
            ending = _ending(sampler, tolerance, num_delete, uphill.top - offset)
        if ending is not None:
            break
        sampler, dead = advance(
            sampler, stream, target, on_device(offset), _PIECE, num_delete, num_inner_steps
        )
        last_cost = num_delete * record.add(dead, offset + log_z0)
        interrupts.check()
        evaluations += last_cost
        _report(on_progress, sampler, offset + log_z0, tolerance, uphill.top - offset)
    return NestedRun(
        **record.with_live(sampler, offset + log_z0),
        num_live=num_live,
        ending=ending,
        top=uphill.top + log_z0,
        share_left=float(1 / (1 + np.exp(-_left(sampler)))),
        evaluations=evaluations,
        num_slices=num_inner_steps * num_delete * len(record.contours),
        num_failed=record.num_failed,
        num_nan=record.num_nan,
        seconds=time.monotonic() - began,
    )


class _Uphill:
    """The highest likelihood that was found uphill from live points."""

    def __init__(self, stream: Stream, num_points: int, dim: int):
        self.top = -np.inf
        self.cost = num_points * (1 + rounds_of(dim))
        """Evaluations that a look takes."""
        self._stream, self._num_points, self._num_steps = stream, num_points, 0

    def look(self, sampler: Sampler, target: Target, offset: float) -> None:
        """Go uphill from some live points."""
        x = sampler.state.particles.position[: self._num_points]
        factor = sampler.state.inner_kernel_params["factor"]
        first = on_device(self._num_steps, np.uint32)
        found = float(ascend(self._stream, first, x, factor, target, on_device(offset)))
        if np.isposinf(found):
            raise ValueError(_INFINITE)
        self.top = max(self.top, offset + found)
        self._num_steps += rounds_of(x.shape[1])


class _Record:
    """The dead points so far, in float64, and the contour of every step."""

    def __init__(self):
        self.contours: list[float] = []
        self.num_failed = self.num_nan = 0
        self._pieces: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, dead: Dead, shift: float) -> int:
        """Take in a piece, and return the rounds of evaluations it made."""
        is_made = np.asarray(dead.is_made)
        x, born = np.asarray(dead.x)[is_made], np.asarray(dead.born)[is_made]
        deaths = np.asarray(dead.log_likelihood, np.float64)[is_made] + shift
        self._pieces.append((x.reshape(-1, x.shape[-1]), deaths.ravel(), born.ravel()))
        self.contours += deaths.max(1, initial=-np.inf).tolist()
        self.num_failed += int(dead.walked.num_failed.sum())
        self.num_nan += int(dead.walked.num_nan.sum())
        return int(dead.walked.rounds.sum())

    def with_live(self, sampler: Sampler, shift: float) -> dict[str, np.ndarray]:
        """Return positions, deaths and births of all points, the live ones last."""
        live = sampler.state.particles
        deaths = np.asarray(live.loglikelihood, np.float64) + shift
        last = np.asarray(live.position), deaths, np.asarray(sampler.born)
        x, deaths, born = map(np.concatenate, zip(*self._pieces, last, strict=True))
        births = np.array([*self.contours, np.nan])[born]  # -1, the last, of draws from the prior
        return {"x": x, "deaths": deaths, "births": births}


def _check(log_likelihood: np.ndarray) -> None:
    """Refuse what no run can start from."""
    count, size = int(np.isnan(log_likelihood).sum()), log_likelihood.size
    if count:
        raise ValueError(
            f"the density must be a number at every draw from the prior, got NaN at {count} of {size}: "
            "return -inf where the likelihood is zero."
        )
    if np.isposinf(log_likelihood).any():
        raise ValueError(_INFINITE)
    if np.isneginf(log_likelihood).all():
        raise InputError(
            "",
            f"the likelihood is zero at all {size} draws from the prior",
            remedy="take a prior that is nearer to the likelihood, or a larger {num_live}",
        )


def _ending(sampler: Sampler, tolerance: float, num_delete: int, height: float) -> Ending | None:
    """Why the run ends here; None if it goes on. `height` is the highest likelihood found uphill."""
    live, evidence = sampler.state.particles, sampler.state.integrator
    likelihoods = np.sort(np.asarray(live.loglikelihood))
    if np.isposinf(likelihoods[-1]):
        raise ValueError(_INFINITE)
    if np.log1p(np.exp(_left(sampler, height))) < tolerance:
        return Ending.DONE
    if likelihoods[-1] <= likelihoods[num_delete - 1]:
        return Ending.PLATEAU
    most = _MOST_SHRINKAGE * (live.position.shape[1] + 1)
    return Ending.UNRESOLVED if -float(evidence.logX) > most else None


def _left(sampler: Sampler, height: float = -np.inf) -> float:
    """log of what the live points hold, or what could be there, relative to the evidence so far."""
    evidence = sampler.state.integrator
    held = max(float(evidence.logZ_live), float(evidence.logX) + height)
    return min(held - float(evidence.logZ), 500.0)


def _report(
    on_progress: Callable[[Progress], None] | None,
    sampler: Sampler,
    shift: float,
    tolerance: float,
    height: float,
) -> None:
    """How far the volume has shrunk, of what is known to be needed, in thousandths of a nat."""
    if on_progress is None:
        return
    evidence = sampler.state.integrator
    done = -float(evidence.logX)
    left = max(_left(sampler, height) - np.log(tolerance), 0.0)
    steps, total = int(1000 * done), int(1000 * (done + left))
    on_progress(Progress(steps, total, float(evidence.logZ) + shift, np.nan, "nested"))

"""The pilot that asks how the chains mix: g and tau along the path, within a given number of sweeps.

A population of chains goes up the path from knot to knot. Where the effective number of them has fallen
below half, it is resampled by the weights of its jumps (annealed SMC: chains trapped in a mode that lost
its weight are dropped). At each knot it runs at fixed beta for a while, which gives mean, variance g and
autocorrelation time tau of the slope there. Three rounds:

    1   few knots, equally spaced in beta, a short run at fixed beta
    2   knots where the schedule of round 1 spends its time (half of them), the others equally spaced
    3   longer runs where tau is not resolved yet, half as long again each time, the shortest first

What is left of the budget when every tau is resolved is not spent. Where the budget ends first, tau is
guessed from what was seen (`autocorrelation.py`) and marked as a bound. With a twentieth of the sweeps of a
run of 1000 chains, and 50 chains, a run at a knot is about as long as the main run will spend around it.
All chains use a stream of their own and enter no estimate.
"""

import dataclasses
import functools
import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import ArrayLike

from annealz.core.arrays import indices
from annealz.core.failures import user_errors
from annealz.core.interrupts import Pace
from annealz.core.random import Stream
from annealz.core.weights import log_mean
from annealz.engine.progress import OnProgress, Progress
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.adaptation import AbstractTunedKernel
from annealz.paths import programs
from annealz.paths.abstract import AbstractPath
from annealz.paths.tempered import ZERO_DENSITY
from annealz.pilots.autocorrelation import Memory, measure_memory
from annealz.pilots.run_at_beta import CAPACITY
from annealz.pilots.visits import MOST_KNOTS, MOST_LEGS, MOST_SWEEPS, Leg, Population, Seen, visit
from annealz.schedules.steps import clock
from annealz.schedules.terrain import Terrain

_MAX_CHAINS, _MIN_CHAINS = 50, 20
_MAX_KNOTS, _MIN_KNOTS = 32, 8
_LEAST_SWEEPS = 4  # sweeps
LEAST_BUDGET = 4 * _MIN_CHAINS * _MIN_KNOTS * _LEAST_SWEEPS
_SHARES = (0.2, 0.4)  # of the budget, for rounds 1 and 2
_BURN_IN = 0.2  # of a run at a knot
_RESOLVED = 20.0  # a run of this many tau is long enough


@dataclasses.dataclass
class _Knot:
    """The population at one knot: its slopes so far, (sweeps, chains)."""

    beta: float
    number: int
    slopes: np.ndarray

    def longer(self, slopes: np.ndarray) -> "_Knot":
        """Return the same with more sweeps."""
        both = np.concatenate([self.slopes, _finite(slopes, self.beta)])
        return _Knot(self.beta, self.number, both)

    @property
    def length(self) -> int:
        return len(self.slopes)

    @functools.cached_property
    def memory(self) -> Memory:
        slopes = self.slopes
        is_zero = slopes < ZERO_DENSITY / 2  # no weight there, at any beta
        if is_zero.any() and not is_zero.all():
            slopes = np.where(is_zero, slopes[~is_zero].min(), slopes)
        kept = slopes[int(np.ceil(_BURN_IN * self.length)) :]
        return measure_memory(kept if len(kept) > 1 else slopes)

    @property
    def is_resolved(self) -> bool:
        """Whether the run is long enough to resolve tau."""
        return not self.memory.is_bound and self.length > _RESOLVED * self.memory.tau


@user_errors()
def survey_mixing(
    path: AbstractPath,
    kernel: AbstractKernel,
    *,
    budget: int = 500_000,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Terrain:
    """g and tau along the path for at most `budget` sweeps.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> path = annealz.GeometricPath(annealz.BernoulliBase.uniform(6), random_rbm(4, 6))
    >>> terrain = annealz.survey_mixing(path, annealz.BlockGibbs(), budget=20_000)
    >>> terrain.tau.shape == terrain.betas.shape, terrain.sweeps <= 20_000
    (True, True)
    """
    walk = _Walk(path, kernel, budget, seed, on_progress)
    first = walk.pass_up(_first_knots(kernel, walk.num_knots // 2), _SHARES[0])
    knots = walk.pass_up(_knots(walk.terrain(first), walk.num_knots), _SHARES[1])
    return walk.terrain(walk.lengthened(knots))


class _Walk:
    """The population, its random stream, and what it has spent."""

    def __init__(self, path, kernel, budget: int, seed: int, on_progress):
        if budget < LEAST_BUDGET:
            raise ValueError(
                f"a survey of mixing takes at least {LEAST_BUDGET:,} sweeps, got {budget:,}."
            )
        self.path = kernel.extend(path).unnamed()
        self.kernel, self.budget, self.seed = kernel, budget, seed
        self.num_chains = int(np.clip(np.sqrt(budget) / 10, _MIN_CHAINS, _MAX_CHAINS))
        sweeps = budget // self.num_chains
        self.num_knots = int(np.clip(np.sqrt(sweeps) / 2, _MIN_KNOTS, _MAX_KNOTS)) // 2 * 2
        self.piece = max(_LEAST_SWEEPS, min(64, int(_SHARES[1] * sweeps / self.num_knots) // 4))
        self.work = budget * self.path.sweep_size
        self.stream, self.chains = Stream(seed, "survey-mixing"), indices(self.num_chains)
        self.uniforms = np.random.default_rng([seed, 1]).random(2 * MOST_KNOTS)
        self.pace = Pace()
        self.done = 0  # sweeps of the population
        self.starts = 0  # chains, over all ways up
        self.resamplings = 0
        self.log_z = np.nan  # by the last way up the path
        self.began = time.monotonic()
        self._report = on_progress

    @property
    def left(self) -> int:
        """Sweeps of the population that are left."""
        return self.budget // self.num_chains - self.done

    def pass_up(self, betas: np.ndarray, share: float) -> list[_Knot]:
        """One pass up the path, with a run at every knot."""
        self.done += 1
        self.starts += self.num_chains
        first = programs.sample(
            self.path, self.stream, np.int32(self.done), self.chains, work=self.work
        )
        self.population, self.betas = Population.at_first(first, self.resamplings), betas
        self.log_z, log_weights = self.path.log_z0, np.zeros(self.num_chains)
        length = max(share * self.budget / self.num_chains / len(betas), _LEAST_SWEEPS)
        most, left = math.ceil(length / self.piece), self.left
        legs = []
        for i in range(len(betas)):
            count = self.piece * max(min(most, math.ceil(left / self.piece) - 1), 0)
            legs.append(Leg(max(i - 1, 0), i, count))
            left -= count
        none = np.empty((0, self.num_chains))
        knots = [_Knot(float(beta), i, none) for i, beta in enumerate(betas)]
        for seen in self.take(legs):
            knot = knots[seen.leg.knot]
            log_weights = log_weights + _finite(seen.jump, knot.beta)
            self.resamplings += seen.is_resampled
            if seen.is_resampled:
                self.log_z += log_mean(log_weights)
                log_weights = np.zeros(self.num_chains)
            knots[knot.number] = knot.longer(seen.slopes)
        self.log_z += log_mean(log_weights)
        return [knot for knot in knots if knot.length > 1]

    def lengthened(self, knots: list[_Knot]) -> list[_Knot]:
        """Run on where tau is not resolved, the shortest first, until all are or the budget is spent."""
        found = {knot.number: knot for knot in knots}
        while legs := self._longer([knot for knot in found.values() if not knot.is_resolved]):
            for seen in self.take(legs):
                found[seen.leg.knot] = found[seen.leg.knot].longer(seen.slopes)
        return list(found.values())

    def terrain(self, knots: list[_Knot]) -> Terrain:
        """Return what the knots show of the path."""
        columns = zip(*(knot.memory for knot in knots), strict=True)
        mean, variance, tau, is_bound = (np.array(column) for column in columns)
        lengths = np.array([knot.length for knot in knots])
        independent = self.num_chains * (1 - _BURN_IN) * lengths / np.maximum(tau, 1.0)
        known: dict[str, Any] = {}
        if (each := self.kernel.evaluations) is not None:
            known["starts"] = self.starts * (1 - each)  # counted as sweeps, with one evaluation
            known["is_dense"] = isinstance(self.kernel, AbstractTunedKernel)
        return Terrain(
            betas=np.array([knot.beta for knot in knots]),
            mean=mean,
            variance=variance,
            ess=np.maximum(independent, 1.0),
            tau=tau,
            tau_is_bound=is_bound,
            sweeps=self.done * self.num_chains,
            seconds=time.monotonic() - self.began,
            provenance={
                "pilot": "mixing",
                "num_knots": len(knots),
                "num_chains": self.num_chains,
                "budget": self.budget,
                "seed": self.seed,
                "log_z": float(self.log_z),  # rough, unbiased as Z: for choosing between bases
                **known,
            },
        )

    def _longer(self, pending: list[_Knot]) -> list[Leg]:
        """Half as long again each, the shortest first, up to one whose own slopes decide what is next."""
        legs, left, longest = [], self.left, math.inf
        for knot in sorted(pending, key=lambda knot: knot.length):
            count = min(-(-knot.length // (2 * self.piece)), left // self.piece) * self.piece
            if not count or knot.length >= longest:
                break
            legs.append(Leg(knot.number, knot.number, count))
            left -= count
            longest = min(longest, knot.length + count)
        return legs

    def take(self, legs: list[Leg]) -> Iterator[Seen]:
        """What these legs show, as many of their sweeps at a time as the clock allows."""
        while legs:
            count = min(sum(leg.num_sweeps for leg in legs), MOST_SWEEPS)
            now, legs = _cut(legs, self.pace.take(count))
            with self.pace:
                self.population, seen = visit(
                    self.path, self.kernel, self.stream, self.chains, self.population, self.betas,
                    now, self.uniforms, self.done, work=self.work,
                )  # fmt: skip
            self.done += sum(leg.num_sweeps for leg in now)
            if self._report is not None:
                total = self.budget // self.num_chains
                self._report(Progress(self.done, total, np.nan, np.nan, "pilot"))
            yield from seen


def _cut(legs: list[Leg], count: int) -> tuple[list[Leg], list[Leg]]:
    """Legs of so many sweeps for one launch, and what is left of them."""
    now: list[Leg] = []
    legs = list(legs)
    while legs and len(now) < MOST_LEGS and (count or not legs[0].num_sweeps):
        leg = legs.pop(0)
        taken = min(leg.num_sweeps, count, CAPACITY)
        now.append(leg._replace(num_sweeps=taken))
        count -= taken
        if taken < leg.num_sweeps:
            legs.insert(0, Leg(leg.knot, leg.knot, leg.num_sweeps - taken))
    return now, legs


def _finite(values: ArrayLike, beta: float) -> np.ndarray:
    """The same in float64; where the model's fields are beyond float32, a refusal."""
    values64 = np.asarray(values, np.float64)
    wrong = int((~np.isfinite(values64)).sum())
    if wrong:
        raise ValueError(
            f"{wrong} of {values64.size} slopes or log weights of the pilot became infinite or NaN at "
            f"beta = {beta:.4g}: the log density is NaN there, or too large for float32; return -inf "
            "where the density is zero, or rescale the model."
        )
    return values64


def _first_knots(kernel: AbstractKernel, count: int) -> np.ndarray:
    """Equally spaced betas; of a kernel tuned along the path, at equal steps of its temperatures."""
    tuning = kernel.tuning if isinstance(kernel, AbstractTunedKernel) else None
    if tuning is None or tuning.betas.size == 1:
        return np.linspace(0, 1, count)
    knots = np.asarray(tuning.betas, np.float64)
    betas = np.interp(np.linspace(0, 1, count), np.linspace(0, 1, knots.size), knots)
    return np.unique(np.concatenate([betas, [0.0, 1.0]]))


def _knots(terrain: Terrain, count: int) -> np.ndarray:
    """Betas at equal steps of the mean of beta itself and of the clock of the terrain's schedule."""
    grid, friction = terrain.on_grid(with_memory=True)
    mixed = clock(grid, np.sqrt(friction)) / 2 + grid / 2
    knots = np.interp(np.linspace(0, 1, count), mixed, grid)
    knots[0], knots[-1] = 0.0, 1.0
    return knots

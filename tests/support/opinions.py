"""Estimates made from parts, to be compared with a second opinion."""

from typing import Any

import numpy as np

from annealz.core.weights import log_mean
from annealz.diagnostics.diagnostics import Judgement, judge
from annealz.engine.run import Run, Runs
from annealz.methods.annealing.estimate import Estimate
from annealz.methods.annealing.second_opinion import SecondOpinion
from annealz.schedules.rules import linear
from annealz.schedules.schedule import Schedule
from support.settings import annealing_plan


def weights(log_z: float, variance: float = 0.04, size: int = 400, seed: int = 0) -> np.ndarray:
    """Log weights whose mean weight is e^log_z, exactly."""
    values = np.random.default_rng(seed).normal(0, np.sqrt(variance), size)
    return values - log_mean(values) + log_z


GOOD = judge(weights(5.0))


def opinion(log_z: float, std_err: float = 0.01, second: Judgement = GOOD, **options):
    """Of a first estimate `log_z` and a second one of 7, 2 of it of the base."""
    return SecondOpinion(log_z, std_err, second, log_z0=2.0, base="uniform", **options)


def run_of(log_weights: np.ndarray, schedule: Schedule | None = None) -> Run:
    """A run of which the weights and the schedule count."""
    schedule = linear(100) if schedule is None else schedule
    trace: Any = None
    states = np.zeros((log_weights.size, 1))
    return Run(log_weights, 2.0, schedule, 0, "anneal", trace, states, {}, 0.0)


def pieces(
    first: np.ndarray | None = None, told=None, schedule: Schedule | None = None, **settings: Any
) -> Estimate:
    """An estimate from parts: log Z of the first is 7 by default."""
    run = run_of(weights(5.0) if first is None else first, schedule)
    return Estimate(
        annealing_plan(**settings), Runs(run), judge(run.log_weights), second_opinion=told
    )


AGREES, HIGHER, LOWER = opinion(7.0), opinion(6.9), opinion(7.1)

"""log Z from the births and deaths of a nested sampler's points (Skilling 2006; Fowlie et al. 2021).

Sorted by likelihood, the point that dies as number i was one of n_i live points: those born below its
likelihood and not dead yet. The prior mass above it is then

    X_i = X_{i-1} t_i,    t_i ~ Beta(n_i, 1),    X_0 = 1
    Z = sum_i L_i (X_{i-1} - X_{i+1}) / 2

The t_i are not known, only their law. It is simulated: each simulated sequence gives a log Z; their mean is
the estimate and their standard deviation its error. Points of equal likelihood, such as those where it is
zero, die together before any is born above them. Runs are merged by putting their points together: live
points of several runs add up.

What this error leaves out: walks that are too short, and modes whose share of the live points drifts. Both
differ between independent runs.

Can the estimate be trusted? Independent runs are compared.

With log Z_r of R runs and the simulated error s_r of each, and m their weighted mean,

    Q = sum_r (log Z_r - m)^2 / s_r^2        chi-squared, R - 1 degrees of freedom

if the runs differ in nothing but the chances of their volumes. The error of the merged runs is enlarged by
sqrt(Q / median of chi-squared) where that is above 1. Fatal are

    disagreement    Q beyond 0.99 of chance, so that 1 % of good estimates are called unreliable
    peaks           found uphill that no point came near: higher by more than 1 + dim / 2 nats, where live
                    points of a quadratic top come within dim / 2
    limits          a run that ended at a limit of evaluations, or of what float32 can resolve
    slices          that found no point, more than one in 1,000
    NaN             at any position

What all runs lack shows nowhere: a mode that no live point has found, walks that are too short for all.
"""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtri

from annealz.core.weights import batches
from annealz.diagnostics.findings import Finding, Findings, Kind, Remedy, by_kind
from annealz.diagnostics.status import Found

if TYPE_CHECKING:
    from annealz.methods.nested.result import NestedRun

_LEVEL = 0.99
_MOST_FAILED = 1e-3  # of all slices
_EVENTS = ("births", "deaths")


@dataclasses.dataclass(frozen=True)
class Volumes:
    """log Z, its error, and what each point weighs."""

    log_z: float
    std_err: float
    information: float
    """H = the mean of log L / Z over the posterior, in nats: how far the posterior is from the prior."""
    log_weights: np.ndarray
    """(points,) normalised posterior weights, in the order of the points that were given."""
    log_volumes: np.ndarray  # (points,) expected log X at the death of each


def count_live(births: np.ndarray, deaths: np.ndarray) -> np.ndarray:
    """n_i of deaths in ascending order; births are NaN for draws from the prior."""
    is_first = np.isnan(births)
    later = np.sort(births[~is_first])
    born = is_first.sum() + np.searchsorted(later, deaths, side="left")
    return np.maximum(born - np.arange(deaths.size), 1)


def nested_sum(
    births: np.ndarray, deaths: np.ndarray, *, seed: int = 0, num_simulations: int = 500
) -> Volumes:
    """log Z of the points with these likelihoods at birth and death."""
    order = np.argsort(deaths, kind="stable")
    log_l = deaths[order]
    live = count_live(births, log_l)
    generator = np.random.default_rng(seed)
    sums, weights = [], np.zeros(log_l.size)
    for count in batches(num_simulations, log_l.size):
        shrinks = generator.standard_exponential((count, log_l.size)) / live
        log_w = _log_widths(-np.cumsum(shrinks, axis=1)) + log_l
        peak = log_w.max(axis=1, keepdims=True)
        raw = np.exp(log_w - peak)
        total = raw.sum(axis=1, keepdims=True)
        sums.append((peak + np.log(total))[:, 0])
        weights += (raw / total).sum(axis=0)
    log_z = np.concatenate(sums)
    weights /= num_simulations
    is_held = weights > 0
    mean = float(log_z.mean())
    information = float((weights[is_held] * log_l[is_held]).sum() - mean)
    log_weights, log_volumes = np.full(log_l.size, -np.inf), np.zeros(log_l.size)
    with np.errstate(divide="ignore"):
        log_weights[order] = np.log(weights)
    log_volumes[order] = -np.cumsum(1 / live)
    return Volumes(mean, float(log_z.std(ddof=1)), information, log_weights, log_volumes)


def _log_widths(log_x: np.ndarray) -> np.ndarray:
    """log of (X_{i-1} - X_{i+1}) / 2; X is 1 before the first and 0 after the last."""
    before = np.concatenate([np.zeros((len(log_x), 1)), log_x[:, :-1]], axis=1)
    after = np.concatenate([log_x[:, 1:], np.full((len(log_x), 1), -np.inf)], axis=1)
    return before + np.log(-np.expm1(after - before)) - np.log(2)


@dataclasses.dataclass(frozen=True)
class NestedJudgement(Found):
    """The runs together, each by itself, and what speaks against them."""

    merged: Volumes
    each: tuple[Volumes, ...]
    std_err: float  # of the merged log Z, enlarged where the runs differ beyond their own errors
    findings: Findings


def judge_nested(
    runs: "Sequence[NestedRun]", *, seed: int = 0, num_inner_steps: int, limit: int | None = None
) -> NestedJudgement:
    """log Z of the runs together; `limit` is that of evaluations, which remedies name."""
    each = tuple(nested_sum(one.births, one.deaths, seed=seed) for one in runs)
    births, deaths = (np.concatenate([getattr(one, name) for one in runs]) for name in _EVENTS)
    merged = nested_sum(births, deaths, seed=seed) if len(runs) > 1 else each[0]
    values, errors = np.array([(one.log_z, one.std_err) for one in each]).T
    weights = errors**-2.0
    excess = float((weights * (values - (weights * values).sum() / weights.sum()) ** 2).sum())
    found = []
    if excess > _limit(len(runs), _LEVEL):
        num_live = 2 * sum(one.num_live for one in runs)
        more = Remedy(num_live=num_live, num_inner_steps=2 * num_inner_steps)
        low, high = int(values.argmin()), int(values.argmax())
        spread = float(values[high] - values[low])
        error = float(np.hypot(errors[low], errors[high]))
        between = {"spread": spread, "size": len(runs), "error": error}
        found.append(Finding.of(Kind.RUNS_DISAGREE, more, **between))
    found += _of_endings(runs, merged, limit)
    failed, size = sum(one.num_failed for one in runs), sum(one.num_slices for one in runs)
    if failed > _MOST_FAILED * size:
        found.append(Finding.of(Kind.FAILED_SLICES, failed=failed, size=size))
    if nans := sum(one.num_nan for one in runs):
        found.append(Finding.of(Kind.NAN_LIKELIHOOD, size=nans))
    return NestedJudgement(
        merged=merged,
        each=each,
        std_err=merged.std_err * float(np.sqrt(max(excess / _limit(len(runs), 0.5), 1.0))),
        findings=by_kind(found),
    )


def _limit(num_runs: int, level: float) -> float:
    """The quantile of Q; infinite for one run, which has nothing to differ from."""
    return float(chdtri(num_runs - 1, 1 - level)) if num_runs > 1 else np.inf


def _of_endings(runs: "Sequence[NestedRun]", merged: Volumes, limit: int | None) -> list[Finding]:
    """Runs that did not come to their end."""
    found, endings = [], {one.ending.name for one in runs}
    gaps = [one.top - one.deaths.max() for one in runs if one.ending.name == "DONE"]
    if max(gaps, default=0.0) > 1 + runs[0].x.shape[1] / 2:
        more = Remedy(num_live=2 * sum(one.num_live for one in runs))
        found.append(Finding.of(Kind.UNREACHED_PEAK, more, gap=float(max(gaps))))
    if "OUT_OF_EVALUATIONS" in endings:
        share = max(one.share_left for one in runs)
        found.append(Finding.of(Kind.OUT_OF_EVALUATIONS, limit=limit or 0, share=share))
    if "UNRESOLVED" in endings:
        found.append(Finding.of(Kind.STILL_RISING, shrinkage=-float(merged.log_volumes.min())))
    return found

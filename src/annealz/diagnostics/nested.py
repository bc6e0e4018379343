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
differ between independent runs, so the runs are compared, and the error is enlarged where they differ
beyond it.
"""

import dataclasses

import numpy as np

_BLOCK = 2_000_000  # numbers in memory at once


@dataclasses.dataclass(frozen=True)
class Volumes:
    """log Z, its error, and what each point weighs."""

    log_z: float
    std_err: float
    information: float
    """H = the mean of log L / Z over the posterior, in nats: how far the posterior is from the prior."""
    log_weights: np.ndarray
    """(points,) normalised posterior weights, in the order of the points that were given."""
    log_volumes: np.ndarray
    """(points,) expected log X at the death of each."""


def count_live(births: np.ndarray, deaths: np.ndarray) -> np.ndarray:
    """n_i of deaths in ascending order; births are NaN for draws from the prior.

    Examples
    --------
    >>> import numpy as np
    >>> from annealz.diagnostics.nested import count_live
    >>> count_live(np.array([np.nan, np.nan, 1.0]), np.array([1.0, 2.0, 3.0]))
    array([2, 2, 1])
    """
    is_first = np.isnan(births)
    later = np.sort(births[~is_first])
    born = is_first.sum() + np.searchsorted(later, deaths, side="left")
    return np.maximum(born - np.arange(deaths.size), 1)


def nested_sum(
    births: np.ndarray, deaths: np.ndarray, *, seed: int = 0, num_simulations: int = 500
) -> Volumes:
    """log Z of the points with these likelihoods at birth and death.

    Examples
    --------
    A likelihood of one everywhere:

    >>> import numpy as np
    >>> from annealz.diagnostics.nested import nested_sum
    >>> found = nested_sum(np.full(100, np.nan), np.zeros(100))
    >>> abs(found.log_z) < 0.02, round(found.information, 2)
    (True, 0.0)
    """
    order = np.argsort(deaths, kind="stable")
    log_l = deaths[order]
    live = count_live(births, log_l)
    generator = np.random.default_rng(seed)
    size = max(1, min(num_simulations, _BLOCK // log_l.size))
    sums, weights = [], np.zeros(log_l.size)
    for first in range(0, num_simulations, size):
        count = min(size, num_simulations - first)
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

"""A mixture of products fitted to draws: EM, with the number of components chosen on draws held out.

With draws x_i of weights o_i, component k of weight pi_k and natural parameters lambda_k,

    E    q_ik ∝ pi_k exp(lambda_k.e(x_i) - A(lambda_k))
    M    pi_k ∝ sum_i o_i q_ik + 1
         mean_k = (sum_i o_i q_ik e(x_i) + s mean) / (sum_i o_i q_ik + s),     weights scaled to their ESS

Each mean is drawn towards the common one by s draws' worth: few draws in many dimensions make components
that are too narrow, and a base narrower than the target costs more than one that is too wide. Half of the
draws choose the number of components and s; the smallest number is taken whose likelihood on them is not
clearly below the best. A mixture has one component more, the product of the common means, with a quarter
of the weight: chains from there reach what no draw has shown. (With a tenth, modes of some per cent that
the draws lacked were missed: log Z was 0.02 to 0.1 low, at errors of 0.002 to 0.025.) Whatever is fitted,
an estimate that starts from it is unbiased: a poor fit costs variance only.

A mixture of Gaussians is fitted by EM too, to rows that weigh alike:

    r_nk ∝ pi_k N(x_n; c_k, C_k)
    pi_k = mean r_nk,    c_k = mean of x_n under r,    C_k = covariance under r, shrunk to its diagonal

The covariance of few rows is uncertain: a share s = min(1, 0.02 + dim / (16 n_k)) of it is taken from its
diagonal. One that keeps fewer rows than dim / 2 + 2 is dropped. Either starts at rows far from each other
(k-means++).
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from annealz.bases.mixture import MixtureBase
from annealz.core.arrays import moments, times
from annealz.core.units import AbstractUnits, BernoulliUnits, GaussianUnits

_NUMBERS = (1, 2, 4, 8, 16)
_PULLS = (2.0, 8.0, 32.0)  # s
_RESTARTS = 2
_MOST_ROUNDS = 40
_GAIN = 1e-3  # of the mean log-likelihood, below which EM has converged
_CLEARLY = 0.1  # nats per draw
_COMMON = 0.25  # weight of the product of the common means
_LEAST_PART = 4  # effective draws for a component
_ROUNDS = 40  # of Gaussians
_FLOOR = 1e-6  # of the whole variance, in every direction


class _Fit(NamedTuple):
    score: float
    weights: np.ndarray
    logits: np.ndarray


def fit_mixture(
    units: AbstractUnits,
    draws: np.ndarray,
    draw_weights: np.ndarray,
    *,
    most: int = _NUMBERS[-1],
    seed: int = 0,
    name: str = "mixture",
) -> MixtureBase:
    """The mixture that describes these draws (draws, units) of these weights, summing to one.

    It has at most so many components, and the common one.
    """
    encoded = np.asarray(units.encode(np.asarray(draws, np.float32)))
    weights = np.asarray(draw_weights, np.float64)
    encoded, weights = encoded[weights > 0], weights[weights > 0]  # so that neither half is empty
    weights = weights / weights.sum()
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(encoded))
    train, test = order[::2], order[1::2]
    effective = 1 / (weights**2).sum()
    tried: list[tuple[int, float, np.ndarray]] = []
    share = weights[test] / weights[test].sum()
    best = -np.inf
    for number in _NUMBERS:
        if number > 1 and (number > most or effective / 2 < _LEAST_PART * number):
            break
        before = best
        for pull in _PULLS:
            fit = _em(units, encoded[train], weights[train], number, pull, generator)
            tried.append((number, pull, _log_density(units, encoded[test], fit)))
            best = max(best, float(share @ tried[-1][2]))
        if best <= before:  # more components no longer help
            break
    scores = np.array([share @ values for _, _, values in tried])
    best = tried[int(scores.argmax())][2]
    error = [np.sqrt((share**2 * (values - best) ** 2).sum()) for _, _, values in tried]
    near = scores > scores.max() - np.maximum(_CLEARLY, error)
    number = min(number for (number, _, _), is_near in zip(tried, near, strict=True) if is_near)
    pull = max(
        (score, pull)
        for (count, pull, _), score in zip(tried, scores, strict=True)
        if count == number
    )[1]
    fit = _em(units, encoded, weights, number, pull, generator)
    shares, logits = fit.weights / fit.weights.sum(), fit.logits
    if number > 1:
        common = _natural(units, _common_mean(units, encoded, weights * effective))
        shares = np.concatenate([[_COMMON], (1 - _COMMON) * shares])
        logits = np.concatenate([common[None], logits])
    return MixtureBase.of_units(units, logits, shares, name)


def _em(units, encoded, weights, number: int, pull: float, generator) -> _Fit:
    """The best of some starts."""
    size = 1 / ((weights / weights.sum()) ** 2).sum()
    counts = weights / weights.sum() * size  # as many as are effective
    common = _common_mean(units, encoded, counts)
    fits = []
    for _ in range(1 if number == 1 else _RESTARTS):
        first = int(generator.choice(len(encoded), p=counts / counts.sum()))
        centres = encoded[_spread_out(encoded, counts, number, first, generator)]
        fits.append(_em_from(units, encoded, counts, size, common, centres, pull))
    return max(fits, key=lambda fit: fit.score)


def _em_from(units, encoded, counts, size: float, common, centres, pull: float) -> _Fit:
    """The fit that these centres lead to."""
    number, last, rounds = len(centres), -np.inf, 2 if len(centres) == 1 else _MOST_ROUNDS
    means, shares = 0.5 * centres + 0.5 * common, np.full(number, 1 / number)
    while True:
        fit = _Fit(0.0, shares, _natural(units, means))
        terms = _terms(units, encoded, fit)
        total = np.asarray(logsumexp(terms, axis=1))
        fit, rounds = fit._replace(score=float((counts / size) @ total)), rounds - 1
        if not rounds or fit.score - last < _GAIN:
            return fit
        last = fit.score
        parts = counts[:, None] * np.exp(terms - total[:, None])  # (draws, components)
        held = parts.sum(0)
        shares = (held + 1) / (size + number)
        sums = parts.T.astype(np.float32) @ encoded  # in single precision, twice as fast
        if not units.is_real:
            sums = np.minimum(sums, held[:, None])  # which rounding may exceed
        means = (sums + pull * common) / (held + pull)[:, None]


def _spread_out(rows, counts, number: int, first: int, generator) -> list[int]:
    """Rows far from each other and the first one (k-means++)."""
    chosen, distance = [first], np.full(len(rows), np.inf)
    while len(chosen) < number:
        distance = np.minimum(distance, ((rows - rows[chosen[-1]]) ** 2).sum(1))
        chances = counts * distance
        total = chances.sum()
        chances = chances / total if total > 0 else counts / counts.sum()
        chosen.append(int(generator.choice(len(rows), p=chances)))
    return chosen


def _common_mean(units, encoded, counts) -> np.ndarray:
    """Over all draws, strictly inside the range of the means."""
    total = counts.sum()
    if isinstance(units, GaussianUnits):
        return counts @ encoded / total
    states = 2 if isinstance(units, BernoulliUnits) else units.num_states
    return (counts @ encoded + 1) / (total + states)


def _natural(units, means: np.ndarray) -> np.ndarray:
    if isinstance(units, GaussianUnits):
        return means / np.asarray(units.scale, np.float64) ** 2
    if isinstance(units, BernoulliUnits):
        return np.log(means) - np.log1p(-means)
    return units.natural(means)


def _terms(units, encoded, fit: _Fit) -> np.ndarray:
    free = units.exact_log_z(fit.logits)
    return np.log(fit.weights) + encoded @ fit.logits.T.astype(np.float32) - free


def _log_density(units, encoded, fit: _Fit) -> np.ndarray:
    """Without r(x), which no fit changes."""
    return np.asarray(logsumexp(_terms(units, encoded, fit), axis=1))


class Gaussians(NamedTuple):
    """Weights (components,), means (components, dim), covariances (components, dim, dim)."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray


def fit_gaussians(
    rows: np.ndarray, num_components: int, generator: np.random.Generator
) -> Gaussians:
    """At most so many Gaussians."""
    size, dim = rows.shape
    mean, whole = rows.mean(0), _shrunk(np.atleast_2d(np.cov(rows.T, bias=True)), size)
    floor = _FLOOR * np.diag(np.diag(whole)) + 1e-300 * np.eye(dim)
    if num_components == 1:
        return Gaussians(np.ones(1), mean[None], (whole + floor)[None])
    away = rows - mean
    unit = away / np.sqrt(np.diag(whole) + 1e-300)
    first = int(generator.integers(size))
    chosen = _spread_out(unit, np.ones(size), num_components, first, generator)
    nearest = np.argmin([((unit - centre) ** 2).sum(1) for centre in unit[chosen]], axis=0)
    shares = np.eye(num_components)[nearest]
    fit = _maximised(away, shares, floor)
    for _ in range(_ROUNDS):
        logs = _log_parts(away, fit)
        shares = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        fit = _maximised(away, shares, floor)
    return fit._replace(means=fit.means + mean)


def _maximised(rows: np.ndarray, shares: np.ndarray, floor: np.ndarray) -> Gaussians:
    counts = shares.sum(0)
    kept = counts > rows.shape[1] / 2 + 2
    shares, counts = (
        (shares[:, kept], counts[kept]) if kept.any() else (np.ones((len(rows), 1)), [len(rows)])
    )
    counts = np.asarray(counts, np.float64)
    means = moments(shares, rows) / counts[:, None]
    covariances = []
    for share, mean, count in zip(np.ascontiguousarray(shares.T), means, counts, strict=True):
        away = rows - mean
        covariances.append(_shrunk(moments(away * (share / count)[:, None], away), count) + floor)
    return Gaussians(counts / counts.sum(), means, np.stack(covariances))


def _shrunk(covariance: np.ndarray, count: float) -> np.ndarray:
    share = min(1.0, 0.02 + len(covariance) / (16 * count))
    return (1 - share) * covariance + share * np.diag(np.diag(covariance))


def _log_parts(rows: np.ndarray, fit: Gaussians) -> np.ndarray:
    """log pi_k N(x_n; c_k, C_k), up to a common constant."""
    parts = []
    for weight, mean, covariance in zip(*fit, strict=True):
        root = np.linalg.cholesky(covariance)
        inverse = solve_triangular(root, np.eye(len(root)), lower=True)
        y = times(rows - mean, inverse)
        squares = np.einsum("ni,ni->n", y, y)
        parts.append(np.log(weight) - np.log(np.diag(root)).sum() - 0.5 * squares)
    return np.stack(parts, axis=1)

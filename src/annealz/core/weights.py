"""Estimators: pure functions of log weights.

    log Z - log Z_A ~ log mean w,     ESS = (sum w)^2 / sum w^2 = N / (1 + s^2(N w / sum w))

The mean of w is unbiased; its logarithm is biased low (Jensen). Markov's inequality bounds the
other side whatever the weights: P(log Z^ > log Z + b) <= e^-b.

Delta method: SE(log mean w) = sqrt(1/ESS - 1/N), and a symmetric normal interval.
Studentised bootstrap: with t* = (log mean w* - log mean w) / SE* over resamples of the chains, the
interval is [log mean w - q_high SE, log mean w - q_low SE], q the quantiles of t*. Where a resample
lacks the large weights its SE* is small too, so t* has a long left tail and the interval reaches
up, to where heavy-tailed weights leave the truth.

Predicted sample size: N e^-V, with V the variance of log w under the weights w^(3/4). For log-normal
weights V = Var[log w] and N e^-V is the limit of the ESS. Where the largest weights were not drawn, ESS
and SE look better than they are; V hardly looks at them, and keeps what the bulk of the weights says of
their tail. It is 3/4 and not 1/2 because chains left behind with small weights, which cost nothing but
themselves, count the less the higher the power; and not 1 because there V depends on the luck of the tail
itself.

Systematic resampling: with one uniform u, draw j is the chain that holds the point (u + j) / n of
(w_1 + … + w_i) / sum w, so that chain i is drawn n w_i / sum w times on average, and never further from
that than one.
"""

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtri

from annealz.core.numerics import log_sum

_MAX_NUMBERS = 2_000_000  # in memory at once


def log_mean(log_weights: np.ndarray) -> float:
    """log of the mean weight."""
    return log_sum(log_weights) - float(np.log(np.size(log_weights)))


def effective_sample_size(log_weights: np.ndarray) -> float:
    """(sum w)^2 / sum w^2."""
    return float(np.exp(2 * log_sum(log_weights) - log_sum(2 * np.asarray(log_weights))))


def foretold_sample_size(log_weights: np.ndarray) -> float:
    """N e^-V, V = Var[log w] under the weights w^(3/4)."""
    log_weights = np.asarray(log_weights, np.float64)
    shifted = log_weights - log_weights.max()
    shares = np.exp(0.75 * shifted)
    shares /= shares.sum()
    variance = shares @ (shifted - shares @ shifted) ** 2
    return float(log_weights.size * np.exp(-variance))


def delta_std_err(log_weights: np.ndarray) -> float:
    """Standard error of the log of the mean weight, to first order; infinite for one chain."""
    if np.size(log_weights) < 2:
        return np.inf
    weights = np.exp(log_weights - np.max(log_weights))
    return float(weights.std() / weights.mean() / np.sqrt(weights.size))


def delta_interval(log_weights: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """Normal interval of the log of the mean weight."""
    centre, half = log_mean(log_weights), ndtri((1 + level) / 2) * delta_std_err(log_weights)
    return float(centre - half), float(centre + half)


def bootstrap_interval(
    log_weights: np.ndarray,
    level: float = 0.95,
    num_resamples: int = 999,
    seed: int = 0,
    *,
    upper_std_err: float = 0.0,
) -> tuple[float, float]:
    """Studentised bootstrap interval of the log of the mean weight.

    Its upper side is that of a standard error of at least `upper_std_err`.
    """
    log_weights = np.asarray(log_weights)
    if log_weights.size < 10:  # too few to resample
        return -np.inf, np.inf
    weights = np.exp(log_weights - log_weights.max())
    centre, std_err = np.log(weights.mean()), delta_std_err(log_weights)
    generator = np.random.default_rng(seed)
    ratios = []
    for count in batches(num_resamples, weights.size):
        drawn = weights[generator.integers(weights.size, size=(count, weights.size))]
        means = drawn.mean(-1)
        errors = drawn.std(-1) / means / np.sqrt(weights.size)
        varied = errors > 0  # a resample of one value says nothing about the spread
        ratios.append((np.log(means[varied]) - centre) / errors[varied])
    pooled = np.concatenate(ratios)
    if pooled.size == 0:
        pooled = np.zeros(1)
    low, high = np.quantile(pooled, [(1 - level) / 2, (1 + level) / 2])
    centre += log_weights.max()
    return float(centre - high * std_err), float(centre - low * max(std_err, upper_std_err))


def batches(num_rows: int, length: int) -> Iterator[int]:
    """Yield how many rows of this length to hold in memory at once, until these are all."""
    most = max(1, _MAX_NUMBERS // length)
    for start in range(0, num_rows, most):
        yield min(most, num_rows - start)


def resample(
    log_weights: np.ndarray, generator: np.random.Generator, count: int | None = None
) -> np.ndarray:
    """Which chain each of `count` draws comes from; by default as many draws as chains."""
    weights = np.exp(log_weights - log_weights.max())
    size = weights.size if count is None else count
    edges = np.cumsum(weights) / weights.sum()
    points = (generator.random() + np.arange(size)) / size
    return np.minimum(np.searchsorted(edges, points), weights.size - 1)


def draw_independent(
    weights: np.ndarray, generator: np.random.Generator, num_draws: int
) -> np.ndarray:
    """Numbers of independent draws among states of these weights, which need not add up to 1."""
    sums = np.cumsum(weights)
    levels = generator.random(num_draws) * sums[-1]
    return np.minimum(np.searchsorted(sums, levels, side="right"), sums.size - 1)


def flattened(log_weights: np.ndarray, effective: float) -> np.ndarray:
    """w^c / sum w^c with the largest c up to 1 that leaves this many effective."""
    low, high = 0.0, 1.0
    if effective_sample_size(log_weights) >= effective:
        low = 1.0
    else:
        for _ in range(40):
            middle = (low + high) / 2
            enough = effective_sample_size(middle * log_weights) >= effective
            low, high = (middle, high) if enough else (low, middle)
    weights = np.exp(low * (log_weights - log_weights.max()))
    return weights / weights.sum()

"""Is one sample's mean larger than another's, and by how much: tests on replicates.

p        one-sided, of the Welch t under 100,000 permutations of both samples together. Exact where both
         have one distribution, and right for large samples where only the means are the same
         (Janssen 1997); squared errors are too skewed for the t table with twenty of them
Holm     p of many comparisons such that the chance of any false one stays below the level,
         whatever their dependence
ratio    of two means: exp of the normal interval of log mean x - log mean y, with Welch's
         degrees of freedom
"""

import functools
from typing import NamedTuple

import numpy as np
from scipy import stats

__all__ = ["Ratio", "holm", "larger_p", "mean_ratio", "std_err"]

_NUM_PERMUTATIONS = 100_000
_SEED = 0


def std_err(x: np.ndarray) -> float:
    """Standard error of the mean."""
    return float(x.std(ddof=1) / np.sqrt(x.size))


def larger_p(x: np.ndarray, others: np.ndarray) -> np.ndarray:
    """p that mean x is no larger than the mean of each row of `others` (rows, samples)."""
    z = np.concatenate([np.tile(x, (len(others), 1)), others], axis=1)
    spread = z.std(1, keepdims=True)
    z = (z - z.mean(1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    seen = _welch((np.arange(z.shape[1]) < x.size).astype(float)[None], z, x.size)
    drawn = _permutations(x.size, others.shape[1], _NUM_PERMUTATIONS)
    t = _welch(drawn, z, x.size)
    return (1 + (t >= seen - 1e-9).sum(0)) / (1 + len(t))


@functools.cache
def _permutations(size: int, other: int, count: int) -> np.ndarray:
    """(permutations, samples): 1 where a value goes to the first sample."""
    draws = np.random.default_rng(_SEED).random((count, size + other))
    bound = np.partition(draws, size - 1, axis=1)[:, [size - 1]]
    return (draws <= bound).astype(np.float64)


def _welch(first: np.ndarray, z: np.ndarray, size: int) -> np.ndarray:
    """t of every permutation and row of z: (permutations, rows)."""
    other = z.shape[1] - size
    sums, squares = first @ z.T, first @ (z**2).T
    mean0, mean1 = sums / size, (z.sum(1) - sums) / other
    variance0 = (squares - size * mean0**2) / (size - 1)
    variance1 = ((z**2).sum(1) - squares - other * mean1**2) / (other - 1)
    error = np.sqrt(np.maximum(variance0, 0) / size + np.maximum(variance1, 0) / other)
    return (mean0 - mean1) / np.maximum(error, 1e-12)


def holm(p: np.ndarray) -> np.ndarray:
    """Adjusted p, in the order given."""
    order = np.argsort(p, kind="stable")
    factors = p.size - np.arange(p.size)
    out = np.empty(p.size)
    out[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return out


class Ratio(NamedTuple):
    """Of two means, and its 95 % interval."""

    value: float
    low: float
    high: float


def mean_ratio(x: np.ndarray, y: np.ndarray) -> Ratio:
    """mean x / mean y, both positive."""
    parts = np.array([(std_err(v) / v.mean()) ** 2 for v in (x, y)])
    degrees = parts.sum() ** 2 / (parts**2 / (np.array([x.size, y.size]) - 1)).sum()
    half = stats.t.ppf(0.975, degrees) * np.sqrt(parts.sum())
    value = x.mean() / y.mean()
    return Ratio(*(float(value * np.exp(h)) for h in (0.0, -half, half)))

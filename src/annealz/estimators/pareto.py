"""The tail of importance weights: k-hat of Pareto smoothed importance sampling, of which only k is needed.

The M largest of N weights, M = 3 √N (a fifth of them up to N = 225), less the largest of the others, are
taken as draws x_1 <= ... <= x_M of a generalised Pareto law of shape k and scale s,

    log f(x) = -log s - (1/k + 1) log(1 + k x / s)

Zhang & Stephens (Technometrics 51, 2009) write b = -k / s. Given b, the likelihood is largest at
k(b) = mean log(1 - b x), with L(b) = M (log(-b / k(b)) - k(b) - 1), and b is averaged over m = 30 + √M
quantiles of a prior that the data scale,

    b_j = 1 / x_M + (1 - √(m / (j - 1/2))) / (3 x_{M/4}),   weights e^L(b_j) / sum e^L,   k = k(mean b)

Vehtari et al. (JMLR 25, 2024) draw k towards 1/2 by the weight of ten draws: k-hat = (M k + 5) / (M + 10).

arviz-stats has the same; importing it takes a second of every first result, mostly for what is not needed
here. The tests compare the two.
"""

import numpy as np

__all__ = ["pareto_shape", "tail_size"]

_QUANTILES, _SCALES = 30, 3.0
_PRIOR_DRAWS, _PRIOR_SHAPE = 10, 0.5
_NEGLIGIBLE = 10 * np.finfo(np.float64).eps
_LEAST_TAIL = 5


def tail_size(count: int) -> int:
    """M of so many weights."""
    return int(3 * np.sqrt(count)) if count > 225 else count // 5


def pareto_shape(log_weights: np.ndarray) -> float:
    """k-hat of log weights (chains,); -inf where the largest are all equal, NaN where they are too few."""
    ordered = np.sort(np.asarray(log_weights, np.float64))
    size = tail_size(ordered.size)
    if size < _LEAST_TAIL:
        return np.nan
    if ordered[-1] - ordered[-size] < np.finfo(np.float64).tiny:
        return -np.inf
    weights = np.exp(ordered - ordered[-1])
    with np.errstate(all="ignore"):
        shape = _fitted(weights[-size:] - weights[-size - 1])
    return float((size * shape + _PRIOR_DRAWS * _PRIOR_SHAPE) / (size + _PRIOR_DRAWS))


def _fitted(x: np.ndarray) -> float:
    """k of sorted draws of a generalised Pareto law, by the average over b."""
    count = _QUANTILES + int(np.sqrt(x.size))
    places = np.sqrt(count / (np.arange(count) + 0.5))
    quarter = x[int(x.size / 4 + 0.5) - 1]
    b = 1 / x[-1] + (1 - places) / (_SCALES * quarter)
    shapes = np.log1p(-b[:, None] * x).mean(1)
    level = x.size * (np.log(-b / shapes) - shapes - 1)
    shares = np.exp(level - level.max())
    shares /= shares.sum()
    counted = shares >= _NEGLIGIBLE
    if not counted.any():  # a quarter of the tail is equal: nothing is known beside the prior
        return 0.0
    mean = (b * shares)[counted].sum() / shares[counted].sum()
    return np.log1p(-mean * x).mean()

"""Systematic resampling: with one uniform u, draw j is the chain that holds the point (u + j) / n of

    w_1 + … + w_i  over  sum w

so that chain i is drawn n w_i / sum w times on average, and never further from that than one.
"""

import numpy as np

from annealz.estimators import effective_sample_size

__all__ = ["flattened", "resample"]


def resample(
    log_weights: np.ndarray, generator: np.random.Generator, count: int | None = None
) -> np.ndarray:
    """Which chain each of `count` draws comes from; by default as many draws as chains."""
    weights = np.exp(log_weights - log_weights.max())
    size = weights.size if count is None else count
    edges = np.cumsum(weights) / weights.sum()
    points = (generator.random() + np.arange(size)) / size
    return np.minimum(np.searchsorted(edges, points), weights.size - 1)


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

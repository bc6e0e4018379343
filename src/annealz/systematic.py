"""Systematic resampling: with one uniform u, draw j is the chain that holds the point (u + j) / n of

    w_1 + … + w_i  over  sum w

so that chain i is drawn n w_i / sum w times on average, and never further from that than one.
"""

import numpy as np

__all__ = ["resample"]


def resample(
    log_weights: np.ndarray, generator: np.random.Generator, count: int | None = None
) -> np.ndarray:
    """Which chain each of `count` draws comes from; by default as many draws as chains."""
    weights = np.exp(log_weights - log_weights.max())
    size = weights.size if count is None else count
    edges = np.cumsum(weights) / weights.sum()
    points = (generator.random() + np.arange(size)) / size
    return np.minimum(np.searchsorted(edges, points), weights.size - 1)

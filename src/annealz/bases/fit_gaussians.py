"""A mixture of Gaussians fitted to rows, by expectation maximisation.

    responsibilities   r_nk ∝ pi_k N(x_n; c_k, C_k)
    pi_k = mean r_nk,    c_k = mean of x_n under r,    C_k = covariance under r, shrunk to its diagonal

The covariance of few rows is uncertain: a share s = min(1, 0.02 + dim / (16 n_k)) of it is taken from its
diagonal. Components start at rows far from each other (k-means++). One that keeps fewer rows than
dim / 2 + 2 is dropped.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from annealz.core.row_products import moments, times

_ROUNDS = 40
_FLOOR = 1e-6  # of the whole variance, in every direction


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
    nearest = _far_apart(unit, num_components, generator)
    shares = np.eye(num_components)[nearest]
    fit = _maximised(away, shares, floor)
    for _ in range(_ROUNDS):
        logs = _log_parts(away, fit)
        shares = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        fit = _maximised(away, shares, floor)
    return fit._replace(means=fit.means + mean)


def _far_apart(unit: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    """The nearest of some rows that lie far apart, of every row."""
    centres = [unit[generator.integers(len(unit))]]
    for _ in range(count - 1):
        distance = np.min([((unit - one) ** 2).sum(1) for one in centres], axis=0)
        total = distance.sum()
        chances = distance / total if total > 0 else np.full(len(unit), 1 / len(unit))
        centres.append(unit[generator.choice(len(unit), p=chances)])
    return np.argmin([((unit - one) ** 2).sum(1) for one in centres], axis=0)


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

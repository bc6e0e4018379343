"""log Z along the path, from the trace of one run.

    log Z(beta_k) = log Z_A + log mean w_k,     SE = sqrt(1/ESS_k - 1/N),     d log Z / dbeta = E_beta[U]

at the recorded steps, and exactly log Z_A at beta = 0. Between records: the cubic that has their log Z
and their slopes at its ends (Hermite). At beta = 0 no slope is recorded, so the first piece is a parabola.

`resolution` bounds what the interpolation adds. At each record it is by how much the cubic without that
record misses it; between two records the larger of theirs, at a record nothing. The cubic's error falls
with the fourth power of the spacing, so this is about sixteen times too large where the path is smooth.
"""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.interpolate import CubicHermiteSpline

    from annealz.engine.run import Run


@dataclasses.dataclass(frozen=True)
class Along:
    """log Z at some betas, its standard error, and what interpolation may add to it."""

    betas: np.ndarray
    log_z: np.ndarray
    std_err: np.ndarray
    """NaN for a run that resampled: its chains are not independent."""
    resolution: np.ndarray


def log_z_along(run: "Run", betas=None) -> Along:
    """log Z of p*_beta at any betas; by default at 0 and at the recorded steps.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> path = annealz.GeometricPath(annealz.BernoulliBase.uniform(6), random_rbm(4, 6))
    >>> run = annealz.anneal(path, annealz.BlockGibbs(), annealz.linear(100), num_chains=100)
    >>> along = annealz.log_z_along(run, [0, 0.5, 1])
    >>> (
    ...     along.betas.tolist(),
    ...     round(float(along.log_z[0]), 4),
    ... )  # log Z of the base is exact: 10 log 2
    ([0.0, 0.5, 1.0], 6.9315)
    """
    check_forward(run)
    trace = run.trace
    kept = np.diff(trace.betas, prepend=0) > 0  # some may be equal in float32
    knots = np.concatenate([[0], trace.betas[kept]])
    log_z = np.concatenate([[run.log_z0], trace.log_z[kept]])
    error = np.sqrt(np.maximum(1 / trace.ess[kept] - 1 / run.num_chains, 0))
    if run.num_chains == 1:
        error = np.full_like(error, np.inf)
    if getattr(run, "num_resamplings", 0):
        error = np.full_like(error, np.nan)
    error = np.concatenate([[0], error])
    if betas is None:
        return Along(knots, log_z, error, np.zeros_like(knots))
    betas = check_betas(betas)
    slopes = slopes_of(run)[kept]
    return Along(
        betas=betas,
        log_z=_hermite(knots, log_z, slopes)(betas),
        std_err=np.interp(betas, knots, error),
        resolution=_resolution(betas, knots, log_z, slopes),
    )


def slopes_of(run: "Run") -> np.ndarray:
    """E_beta[U] at the recorded steps."""
    if "slope" not in run.trace.means:
        raise ValueError(
            "the run must have recorded its slope: give anneal the observer slope=Slope()."
        )
    return run.trace.means["slope"]


def check_forward(run: "Run") -> None:
    """Refuse a run from the target down to the base."""
    if getattr(run, "is_reverse", False):
        raise ValueError(
            "run must be a forward run, got a reverse one: give the run from the base."
        )


def _hermite(knots: np.ndarray, log_z: np.ndarray, slopes: np.ndarray) -> "CubicHermiteSpline":
    """The interpolant; `slopes` lacks that of the first knot."""
    from scipy.interpolate import CubicHermiteSpline  # a third of a second

    first = 2 * (log_z[1] - log_z[0]) / (knots[1] - knots[0]) - slopes[0]
    return CubicHermiteSpline(knots, log_z, np.concatenate([[first], slopes]))


def _resolution(betas, knots, log_z, slopes) -> np.ndarray:
    missed = np.full(knots.size, np.inf)  # unknown where there is no record to leave out
    missed[[0, -1]] = 0 if knots.size > 2 else np.inf
    inner = np.arange(1, knots.size - 1)
    for parity in (0, 1):  # every other record, then the others
        left_out = inner[inner % 2 == parity]
        if left_out.size:
            rest = np.setdiff1d(np.arange(knots.size), left_out)
            spline = _hermite(knots[rest], log_z[rest], slopes[rest[1:] - 1])
            missed[left_out] = np.abs(spline(knots[left_out]) - log_z[left_out])
    right = np.clip(np.searchsorted(knots, betas), 1, knots.size - 1)
    return np.where(np.isin(betas, knots), 0, np.maximum(missed[right - 1], missed[right]))


def check_betas(betas) -> np.ndarray:
    """The betas as a vector, if all lie on the path."""
    betas = np.atleast_1d(np.asarray(betas, np.float64))
    if betas.ndim != 1 or not ((betas >= 0) & (betas <= 1)).all():
        raise ValueError(f"betas must be a vector of numbers between 0 and 1, got {betas}.")
    return betas

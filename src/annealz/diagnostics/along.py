"""log Z along the path, from the trace of one run.

    log Z(beta_k) = log Z_A + log mean w_k,     SE = sqrt(1/ESS_k - 1/N),     d log Z / dbeta = E_beta[U]

at the recorded steps, and exactly log Z_A at beta = 0. Between records: the cubic that has their log Z
and their slopes at its ends (Hermite). At beta = 0 no slope is recorded, so the first piece is a parabola.

`resolution` bounds what the interpolation adds. At each record it is by how much the cubic without that
record misses it; between two records the larger of theirs, at a record nothing. The cubic's error falls
with the fourth power of the spacing, so this is about sixteen times too large where the path is smooth.

How log Z settled as chains were added is seen from estimates of the first n of them.

Chains are independent, so the first n are as good as any n. Forward

    log Z_n = log Z_A + log mean_{i <= n} w_i,      SE_n = sqrt(1 / ESS_n - 1 / n)

from cumulative sums of w and w^2; of a resampled run the same over islands, with n - 1 below. From two
sides BAR of the first n of each. While large weights are still to come log Z_n rises in jumps, and no
band covers where it ends; a curve that remains inside its own last band has settled.
"""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from annealz.diagnostics.ancestry import related_std_err
from annealz.diagnostics.bar import bar

if TYPE_CHECKING:
    from scipy.interpolate import CubicHermiteSpline

    from annealz.engine.run import Run

_NUM_POINTS = 40
_FIRST, _FEW = 10, 100  # chains to begin with; of fewer than these, 2


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
    >>> annealz.log_z_along(run, [0, 0.5]).log_z.round(4).tolist()[0]  # of the base: 10 log 2
    6.9315
    """
    if getattr(run, "is_reverse", False):
        raise ValueError(
            "run must be a forward run, got a reverse one: give the run from the base."
        )
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
    if "slope" not in trace.means:
        raise ValueError(
            "the run must have recorded its slope: give anneal the observer slope=Slope()."
        )
    slopes = trace.means["slope"][kept]
    return Along(
        betas=betas,
        log_z=_hermite(knots, log_z, slopes)(betas),
        std_err=np.interp(betas, knots, error),
        resolution=_resolution(betas, knots, log_z, slopes),
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


@dataclasses.dataclass(frozen=True)
class Convergence:
    """log Z from the first chains, and its standard error."""

    num_chains: np.ndarray
    log_z: np.ndarray
    std_err: np.ndarray
    """Infinite if it is unknown, as for one chain."""


def log_z_by_chains(run: "Run", reverse: "Run | None" = None) -> Convergence:
    """log Z from the first few chains up to all, at equal ratios; with a reverse run, of each side."""
    size = run.island_size or 1
    num = run.num_chains // size
    points = np.geomspace(min(_FIRST if num >= _FEW else 2, num), num, _NUM_POINTS)
    counts = np.unique(np.append(np.round(points[:-1]).astype(int), num))
    if reverse is None:
        log_ratio, std_err = _averages(run.island_log_means, counts, is_corrected=size > 1)
    else:
        joined = [bar(run.work[:n], reverse.work[:n]) for n in counts]
        log_ratio = np.array([one.log_ratio for one in joined])
        std_err = np.array([one.std_err for one in joined])
        if reverse.ancestors is not None and std_err[-1] > 0:  # wider, as that of all chains is
            whole = related_std_err(run.work, reverse.work, reverse.ancestors)
            std_err *= max(1.0, whole / std_err[-1])
    return Convergence(counts * size, run.log_z0 + log_ratio, std_err)


def _averages(
    log_weights: np.ndarray, counts: np.ndarray, is_corrected: bool
) -> tuple[np.ndarray, np.ndarray]:
    log_sum, log_squares = (np.logaddexp.accumulate(p * log_weights)[counts - 1] for p in (1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.exp(log_squares - 2 * log_sum) - 1 / counts  # 1 / ESS - 1 / n
        std_err = np.sqrt(np.maximum(spread, 0) * (counts / (counts - 1) if is_corrected else 1))
    std_err = np.where(counts > 1, std_err, np.inf)
    return log_sum - np.log(counts), std_err

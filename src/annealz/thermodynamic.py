"""Thermodynamic integration, a cross-check of log Z.

    log Z_B - log Z_A = ∫ E_beta[U] dbeta,     U = d/dbeta log p*_beta

from the weighted means of the slope in a run's trace, by PCHIP between records; E[U] is continued as a
line to beta = 0, where nothing is recorded. The variance g is not used as dE[U]/dbeta: with units summed
out that is g + E[dU/dbeta].

It is no second opinion on the sampling. The derivative of log mean w along the path *is* the weighted
mean of U, so with many records the integral goes to the run's own log Z: agreement says that increments
and slopes are of one path, a difference beyond `resolution` that they are not. Error: the larger of that
of the weights and that of independent records,

    SE = max( sqrt(1/ESS - 1/N),  sqrt(sum_k h_k^2 g_k / ESS_k) )         h_k the trapezoid's weights

the one is right for chains that remember, the other for fresh draws at few records. `resolution` is the
change of the integral when every other record is left out.
"""

import dataclasses

import numpy as np
from scipy.interpolate import PchipInterpolator

from annealz.along import check_forward, slopes_of
from annealz.run import Run

__all__ = ["Integral", "thermodynamic_log_z"]


@dataclasses.dataclass(frozen=True)
class Integral:
    """log Z_A + ∫ E[U] dbeta, its standard error, and the error of the quadrature."""

    log_z: float
    std_err: float
    """NaN for a run that resampled: its chains are not independent."""
    resolution: float


def thermodynamic_log_z(run: Run) -> Integral:
    """log Z by integrating the mean slope along the path.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> path = annealz.GeometricPath(annealz.BernoulliBase.uniform(6), random_rbm(4, 6))
    >>> run = annealz.anneal(path, annealz.BlockGibbs(), annealz.linear(100), num_chains=100)
    >>> integral = annealz.thermodynamic_log_z(run)
    >>> abs(integral.log_z - 8.5026) < 5 * integral.std_err + integral.resolution
    True
    """
    check_forward(run)
    trace, slopes = run.trace, slopes_of(run)
    kept = np.diff(trace.betas, prepend=0) > 0  # some may be equal in float32
    betas, means = trace.betas[kept], slopes[kept]
    if betas.size < 2:
        raise ValueError(
            f"thermodynamic integration takes at least 2 records, got {betas.size}: take more steps, or "
            "a smaller record_every."
        )
    whole = _integral(betas, means)
    half = _integral(betas[::-2][::-1], means[::-2][::-1]) if betas.size > 3 else np.inf
    widths = np.gradient(np.concatenate([[0], betas]))[1:]
    of_records = np.sqrt((widths**2 * trace.variances["slope"][kept] / trace.ess[kept]).sum())
    of_weights = np.sqrt(max(1 / trace.ess[-1] - 1 / run.num_chains, 0))
    std_err = float(max(of_records, of_weights))
    if getattr(run, "num_resamplings", 0):
        std_err = np.nan
    return Integral(run.log_z0 + whole, std_err, abs(whole - half))


def _integral(betas: np.ndarray, means: np.ndarray) -> float:
    """∫ from 0 to the last beta."""
    line = (means[1] - means[0]) / (betas[1] - betas[0])
    start = means[0] - line * betas[0]
    grid, values = np.concatenate([[0], betas]), np.concatenate([[start], means])
    return float(PchipInterpolator(grid, values).integrate(0, grid[-1]))

"""Gaussian bases that are fitted to a density, wider than what they are fitted to.

laplace   from each start uphill to a mode m_i, with H_i minus the second derivatives there. Of the distinct
          modes whose Laplace evidence f(m_i) + log |2 pi H_i^-1|^{1/2} is within 12 nats of the best one

              mean        average of m_i
              covariance  1.5 times the average of H_i^-1, plus the spread of the m_i

          so that several modes are spanned by one Gaussian. Directions without curvature or with that of a
          valley take its absolute value.
pilot     a population of chains is annealed from the Laplace base, widened to 4 times the covariance, and
          runs on at the target: its mean, and 1.5 times its covariance.

Whatever the base, E[Z-hat] = Z; a base that is too narrow or in the wrong place costs variance, or misses
modes that no chain then reaches. Evaluations are counted; a Hessian is counted as dim of them.
"""

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from annealz.core.arrays import indices, on_device
from annealz.paths.bases.gaussian import GaussianBase

if TYPE_CHECKING:
    from annealz.models.log_density import LogDensity

__all__ = ["fit_laplace", "fit_pilot"]

_INFLATION = 1.5
_WIDE = 4.0
_NUM_STARTS = 8
_START_SCALE = 2.0
_RIVAL = 12.0  # nats
_FLATTEST = 1e-6  # curvature, of the sharpest
_SADDLE = 1e-3  # so much downwards, of the sharpest, is not a mode
_PILOT_SWEEPS = 20_000
_SWEEPS_AT_ONE = 64  # sweeps of every chain at the target


class _Mode(NamedTuple):
    place: np.ndarray
    evidence: float
    covariance: np.ndarray
    sharpness: np.ndarray
    is_top: bool


def fit_laplace(model: "LogDensity", inflation: float = _INFLATION) -> GaussianBase:
    """The Gaussian that spans the modes found uphill from the model's starts."""
    uphill = jax.jit(jax.value_and_grad(lambda x: -model.fn(x)))
    hessian = jax.jit(jax.hessian(lambda x: -model.fn(x)))
    evaluations = 0

    def objective(x):
        nonlocal evaluations
        evaluations += 1
        value, gradient = uphill(on_device(x))
        value, gradient = float(value), np.asarray(gradient, np.float64)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return 1e30, np.zeros_like(x)
        return value, gradient

    modes: list[_Mode] = []
    for start in _starts(model):
        if objective(start)[0] >= 1e30:
            continue
        mode = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
        if any((mode - m.place) @ m.sharpness @ (mode - m.place) < 1 for m in modes):
            continue
        matrix = np.asarray(hessian(on_device(mode)), np.float64)
        evaluations += model.dim
        if not np.isfinite(matrix).all():
            continue
        curvature, axes = np.linalg.eigh((matrix + matrix.T) / 2)
        is_top = bool(curvature.min() > -_SADDLE * curvature.max())
        curvature = np.abs(curvature)
        curvature = np.maximum(curvature, max(_FLATTEST * curvature.max(), 1e-12))
        evidence = -objective(mode)[0] - np.log(curvature).sum() / 2
        inverse, sharp = (axes / curvature) @ axes.T, (axes * curvature) @ axes.T
        modes.append(_Mode(mode, evidence, inverse, sharp, is_top))
    if not modes:
        raise ValueError(
            f"no mode of {model.name} was found: its function is infinite or NaN at every start; give "
            "starts where it is finite, or a GaussianBase."
        )
    modes = [mode for mode in modes if mode.is_top] or modes  # no saddles, if there is a mode
    best = max(mode.evidence for mode in modes)
    near = [mode for mode in modes if mode.evidence > best - _RIVAL]
    centres = np.stack([mode.place for mode in near])
    covariance = inflation * np.mean([mode.covariance for mode in near], axis=0)
    covariance += np.cov(centres.T, bias=True).reshape(model.dim, model.dim) if len(near) > 1 else 0
    return GaussianBase.from_moments(centres.mean(0), covariance, "laplace", evaluations)


def fit_pilot(model: "LogDensity", inflation: float = _INFLATION) -> GaussianBase:
    """The Gaussian of the moments of a population that was annealed to the model."""
    from annealz.core.random import Stream
    from annealz.kernels.adaptation import adapt
    from annealz.kernels.hmc import HMC
    from annealz.paths.tempered import TemperedPath

    first = fit_laplace(model, _WIDE)
    path, kernel = TemperedPath(first, model), HMC()
    pilot = adapt(path, kernel, seed=0, budget=_PILOT_SWEEPS)
    kernel = kernel.with_tuning(pilot.tuning)
    z = _run_at_one(path, kernel, Stream(0, "pilot-moments"), pilot.x)  # (sweeps, chains, dim)
    rows = np.asarray(z, np.float64)[_SWEEPS_AT_ONE // 4 :].reshape(-1, model.dim)
    shrink = min(1.0, 0.02 + model.dim / (4 * pilot.x.shape[0]) / 4)
    spread = np.cov(rows.T).reshape(model.dim, model.dim)
    spread = inflation * ((1 - shrink) * spread + shrink * np.diag(np.diag(spread)))
    scale = np.asarray(first.scale, np.float64)
    mean = np.asarray(first.mean, np.float64) + scale @ rows.mean(0)
    evaluations = (
        first.evaluations + (pilot.sweeps + _SWEEPS_AT_ONE * pilot.x.shape[0]) * kernel.evaluations
    )
    return GaussianBase.from_moments(mean, scale @ spread @ scale.T, "pilot", evaluations)


def _run_at_one(path, kernel, stream, x) -> jax.Array:
    chains = indices(x.shape[0])

    @jax.jit
    def sweeps(x):
        def sweep(x, k):
            x = kernel.step(stream.at(k, chains), x, path, jnp.float32(1))
            return x, x

        return jax.lax.scan(sweep, x, jnp.arange(_SWEEPS_AT_ONE))[1]

    return sweeps(x)


def _starts(model: "LogDensity") -> np.ndarray:
    """The origin and the model's own starts, or draws around the origin."""
    origin = np.zeros((1, model.dim))
    if model.starts is not None:
        return np.concatenate([np.asarray(model.starts, np.float64), origin])
    draws = np.random.default_rng(0).normal(0, _START_SCALE, (_NUM_STARTS - 1, model.dim))
    return np.concatenate([origin, draws])

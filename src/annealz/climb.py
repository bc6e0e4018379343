"""The pilot that tunes a kernel along beta: chains climb the path, and the step is tuned on every rung.

From beta = 0 up, the next rung is where half of the chains would still be effective; they are resampled by
their weights (annealed SMC). On every rung the scales of the coordinates are the standard deviations of the
chains that arrived, and the step follows the acceptance,

    log step += c_k (mean acceptance - target),      c_k = 2 (k + 1)^-0.6,  k the sweep on this rung

whose mean over the last half is kept. Between rungs log step and log scales are linear. The stream is the
pilot's own, so that nothing of it enters an estimate.
"""

import time
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from annealz.estimators import effective_sample_size
from annealz.kernels.tuning import AbstractTunedKernel, Tuning
from annealz.paths.abstract import AbstractPath
from annealz.random import Stream, derive_seed
from annealz.systematic import resample

__all__ = ["Ladder", "climb"]

_MOST_CHAINS, _LEAST_CHAINS = 128, 32
_MOST_SWEEPS, _LEAST_SWEEPS = 24, 8  # a rung
_USUAL_RUNGS = 12
_MOST_RUNGS = 200
_EFFECTIVE = 0.5  # of the chains, on the next rung
_NUM_KNOTS = 33  # of what is frozen, whatever the number of rungs: one compiled program
_PRIOR_CHAINS = 8  # that vote for the scales of the rung below


class Ladder(NamedTuple):
    """What the pilot found, where its chains ended, and what it took."""

    tuning: Tuning
    x: jax.Array
    rungs: int
    sweeps: int
    seconds: float


def climb(path: AbstractPath, kernel: AbstractTunedKernel, *, seed: int, budget: int) -> Ladder:
    """Step and scales along beta, for about `budget` sweeps: more where the path has many rungs."""
    began = time.monotonic()
    a_rung = budget / _USUAL_RUNGS
    count = int(np.clip(np.sqrt(8 * a_rung), _LEAST_CHAINS, _MOST_CHAINS))
    sweeps = int(np.clip(a_rung / count, _LEAST_SWEEPS, _MOST_SWEEPS))
    stream, chains = Stream(seed, "tuning"), jnp.arange(count)
    generator = np.random.default_rng(derive_seed(seed, "tuning", "resampling"))
    x = path.sample(stream.at(0, chains))
    dim = kernel.coordinates(x).shape[-1]
    log_step, log_scales = np.log(dim**-0.25), np.zeros(dim)
    beta, rungs = 0.0, []
    while True:
        x, log_step = _tune(
            path, kernel, stream, chains, x, jnp.float32(beta), jnp.float32(log_step),
            jnp.asarray(log_scales, jnp.float32), jnp.int32(len(rungs) * sweeps), sweeps,
        )  # fmt: skip
        rungs.append((beta, float(log_step), log_scales))
        if beta == 1:
            break
        beta, log_weights = _next(path, x, beta, len(rungs))
        x = x[resample(log_weights, generator)]
        spread = np.asarray(kernel.coordinates(x), np.float64).var(0)
        old = np.exp(2 * log_scales)
        new = (count * spread + _PRIOR_CHAINS * old) / (count + _PRIOR_CHAINS)
        log_scales = np.log(new) / 2
    tuning = _frozen(rungs)
    return Ladder(tuning, x, len(rungs), len(rungs) * sweeps * count, time.monotonic() - began)


@eqx.filter_jit
def _tune(path, kernel, stream, chains, x, beta, log_step, log_scales, done, num_sweeps: int):
    """The states after some sweeps on a rung, and the tuned log step."""

    def sweep(carry, k):
        x, log_step = carry
        bits = stream.at(done + k + 1, chains)
        x, acceptance = kernel.move(bits, x, path, beta, jnp.exp(log_step), jnp.exp(log_scales))
        error = jnp.nan_to_num(acceptance).mean() - kernel.target_acceptance
        log_step = log_step + 2 * (k + 1.0) ** -0.6 * error
        return (x, log_step), log_step

    (x, _), steps = jax.lax.scan(sweep, (x, log_step), jnp.arange(num_sweeps))
    return x, steps[num_sweeps // 2 :].mean()


@eqx.filter_jit
def _log_ratio(path, x, beta0, beta1):
    return path.log_ratio(x, beta0, beta1)


def _next(path: AbstractPath, x, beta: float, rungs: int) -> tuple[float, np.ndarray]:
    """The next rung, and the log weights of the chains there."""

    def weights(other: float) -> np.ndarray:
        ratio = np.asarray(_log_ratio(path, x, jnp.float32(beta), jnp.float32(other)), np.float64)
        if not np.isfinite(ratio).any():
            raise ValueError(
                f"the log density is infinite or NaN on all {len(ratio)} chains of the pilot at beta = "
                f"{beta:.4g}: give a base that lies nearer to the model, or check the function."
            )
        return np.where(np.isfinite(ratio), ratio, -np.inf)

    def is_near(other: float) -> bool:
        return effective_sample_size(weights(other)) >= _EFFECTIVE * x.shape[0]

    if rungs >= _MOST_RUNGS or is_near(1.0):
        return 1.0, weights(1.0)
    low, high = beta, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if is_near(middle) else (low, middle)
    other = float(np.float32(max(low, beta + 1e-7)))
    return other, weights(other)


def _frozen(rungs) -> Tuning:
    """The rungs on a fixed number of knots, equally many between any two."""
    betas = np.array([rung[0] for rung in rungs])
    places = np.linspace(0, len(rungs) - 1, _NUM_KNOTS)
    known = np.arange(len(rungs))
    log_steps = np.interp(places, known, [rung[1] for rung in rungs])
    scales = np.stack([rung[2] for rung in rungs])
    log_scales = np.stack([np.interp(places, known, column) for column in scales.T], axis=1)
    knots = np.interp(places, known, betas)
    return Tuning(*(jnp.asarray(a, jnp.float32) for a in (knots, log_steps, log_scales)))

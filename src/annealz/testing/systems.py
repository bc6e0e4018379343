"""What tests, docs and examples share: a z-test, a seed, and systems whose answers are known.

A Monte Carlo estimate is compared with the truth in units of its standard error, never by a
relative tolerance:

    z = (estimate - truth) / std_err,     refused where P(|Z| > |z|) < alpha

With the default alpha a correct program fails one test in a million.

Paths whose terrain is known in closed form, with transitions that forget the last state:

    GaussianPath, PerfectKernel        from N(0, 1) to a Gaussian of another mean and width
    spins_path, BlockGibbs             independent spins: without weights, a sweep is a fresh draw
"""

import os
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Array, Float
from scipy import stats
from scipy.special import expit

from annealz.bases.bernoulli import BernoulliBase
from annealz.core.random import Bits
from annealz.kernels.abstract import AbstractKernel
from annealz.models.rbm import RBM
from annealz.paths.abstract import AbstractPath
from annealz.paths.geometric import GeometricPath

_SEED = 20150215


def default_seed() -> int:
    """The seed of every statistical test; the variable ANNEALZ_TEST_SEED overrides it."""
    return int(os.environ.get("ANNEALZ_TEST_SEED", _SEED))


def assert_within_mc_error(
    estimate, truth, std_err, alpha: float = 1e-6, *, num_replicates: int | None = None
) -> None:
    """Two-sided z-test of estimate = truth.

    Arrays are tested element by element and share `alpha` (Bonferroni). Where `std_err` is the
    standard error over few replicates, say how many: Student's t then takes the normal's place.
    """
    arrays = (np.asarray(a, np.float64) for a in (estimate, truth, std_err))
    estimate, truth, std_err = np.broadcast_arrays(*arrays)
    seed = f"(seed {default_seed()}, set ANNEALZ_TEST_SEED to change it)"
    if not (np.isfinite(std_err) & (std_err > 0)).all():
        raise AssertionError(f"standard errors must be positive and finite, got {std_err} {seed}.")
    law = stats.norm() if num_replicates is None else stats.t(num_replicates - 1)
    limit = law.isf(alpha / 2 / max(estimate.size, 1))
    z = np.atleast_1d((estimate - truth) / std_err)
    if not (np.abs(z) <= limit).all():  # so that NaN fails
        worst = int(np.argmax(np.where(np.isnan(z), np.inf, np.abs(z))))
        where = f" at element {worst} of {z.size}" if z.size > 1 else ""
        raise AssertionError(
            f"z = {z.flat[worst]:.2f}, beyond {limit:.2f}{where}: "
            f"estimate {estimate.flat[worst]:.10g}, truth {truth.flat[worst]:.10g}, "
            f"std_err {std_err.flat[worst]:.3g} {seed}."
        )


def binary_states(num_units: int) -> np.ndarray:
    """Every state of `num_units` binary units, float64 (2^units, units); unit i is bit i."""
    return (np.arange(2**num_units)[:, None] >> np.arange(num_units) & 1).astype(np.float64)


def log_joint(model: RBM) -> np.ndarray:
    """log p*(h, v) of every joint state, float64 (2^hidden, 2^visible), by brute force."""
    h, v = binary_states(model.num_hidden), binary_states(model.num_visible)
    weights, hidden_bias, visible_bias = (
        np.asarray(a, np.float64) for a in (model.weights, model.hidden_bias, model.visible_bias)
    )
    return h @ weights @ v.T + (h @ hidden_bias)[:, None] + v @ visible_bias


def random_rbm(num_hidden: int, num_visible: int, scale: float = 1.0, seed: int = 0) -> RBM:
    """An RBM without symmetry: scale times weights N(0.1, 1), biases N(-0.4, 1) and N(0.3, 1)."""
    generator = np.random.default_rng(seed)
    return RBM(
        scale * generator.normal(0.1, 1, (num_hidden, num_visible)),
        scale * generator.normal(-0.4, 1, num_hidden),
        scale * generator.normal(0.3, 1, num_visible),
    )


def independent_spins(hidden_bias, visible_bias) -> tuple[RBM, float]:
    """An RBM with zero weights, and its log Z = sum_i softplus(a_i) + sum_j softplus(b_j)."""
    model = RBM(np.zeros((np.size(hidden_bias), np.size(visible_bias))), hidden_bias, visible_bias)
    biases = np.concatenate([model.hidden_bias, model.visible_bias]).astype(np.float64)
    return model, float(np.logaddexp(0, biases).sum())


class GaussianPath(AbstractPath):
    """The geometric path from N(0, 1) to an unnormalised Gaussian, on the line; states are (chains,).

    With f_A = -x^2 / 2 and f_B = -(x - mean)^2 / (2 scale^2), log p*_beta = (1 - beta) f_A + beta f_B
    is Gaussian with

        precision  lambda = 1 - beta + beta / scale^2,     mean  mu = beta mean / (scale^2 lambda)

    and U = f_B - f_A = a x^2 + b x + c is quadratic, so that

        g(beta) = 2 a^2 / lambda^2 + (2 a mu + b)^2 / lambda
    """

    mean: float
    scale: float
    base: Any = None

    @property
    def log_z0(self) -> float:
        return float(np.log(2 * np.pi) / 2)

    @property
    def log_z(self) -> float:
        """log of the normaliser at beta = 1, exact."""
        return float(self.log_z0 + np.log(self.scale))

    def sample(self, bits: Bits) -> Float[Array, " chains"]:
        return self.draw(bits, 0.0)

    def draw(self, bits: Bits, beta) -> Float[Array, " chains"]:
        """Exact draws from p_beta, by inversion."""
        words = bits.words(1, draw=0)[:, 0] >> 9
        uniforms = (words.astype(jnp.float32) + 0.5) * jnp.float32(2.0**-23)  # never 0 or 1
        mean, variance = self._moments(beta)
        return mean + variance**0.5 * ndtri(uniforms)

    def log_density(self, x, beta):
        return -0.5 * x**2 + beta * self.slope(x, beta)

    def log_ratio(self, x, beta0, beta1):
        return (beta1 - beta0) * self.slope(x, beta0)

    def slope(self, x, beta):
        return (x**2 - ((x - self.mean) / self.scale) ** 2) / 2

    def slope_mean(self, beta):
        """E_beta[U], exact."""
        mean, variance = self._moments(beta)
        a, b, c = self._quadratic()
        return a * (mean**2 + variance) + b * mean + c

    def g(self, beta):
        """Var_beta[U], exact."""
        mean, variance = self._moments(beta)
        a, b, _ = self._quadratic()
        return 2 * a**2 * variance**2 + (2 * a * mean + b) ** 2 * variance

    def _moments(self, beta):
        variance = 1 / (1 - beta + beta / self.scale**2)
        return beta * self.mean / self.scale**2 * variance, variance

    def _quadratic(self) -> tuple[float, float, float]:
        precision = 1 / self.scale**2
        return (1 - precision) / 2, self.mean * precision, -(self.mean**2) * precision / 2


class PerfectKernel(AbstractKernel):
    """A fresh exact draw from p_beta, for a path that has `draw(bits, beta)`."""

    def step(self, bits: Bits, x, path, beta):
        return path.draw(bits, beta)

    def reversed(self) -> "PerfectKernel":
        return self  # what comes next does not depend on what was


def spins_path(base_logits, visible_bias, hidden_bias=(0.0,)) -> GeometricPath:
    """The path of independent spins between two sets of logits; BlockGibbs is perfect on it."""
    model, _ = independent_spins(hidden_bias, visible_bias)
    return GeometricPath(BernoulliBase.from_logits(base_logits), model)


def spins_moments(path: GeometricPath, beta) -> tuple[np.ndarray, np.ndarray]:
    """E_beta[U] and g(beta) = sum_j (b - b_A)_j^2 s_j (1 - s_j) of a `spins_path`, exact."""
    start, change, hidden = (
        np.asarray(a, np.float64)
        for a in (path.state_bias, path.state_bias_change, path.latent_bias_change)
    )
    beta = np.asarray(beta, np.float64)[..., None]
    s = expit(start + beta * change)
    mean = (change * s).sum(-1) + (hidden * expit(beta * hidden)).sum(-1)
    return mean, (change**2 * s * (1 - s)).sum(-1)

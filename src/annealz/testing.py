"""What tests, docs and examples share: a z-test, a seed, and systems whose answers are known.

A Monte Carlo estimate is compared with the truth in units of its standard error, never by a
relative tolerance:

    z = (estimate - truth) / std_err,     refused where P(|Z| > |z|) < alpha

With the default alpha a correct program fails one test in a million.
"""

import os

import numpy as np
from scipy import stats

from annealz.models.rbm import RBM

__all__ = [
    "assert_within_mc_error",
    "binary_states",
    "default_seed",
    "independent_spins",
    "log_joint",
    "random_rbm",
]

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

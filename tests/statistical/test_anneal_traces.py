"""What the engine records along the way: weighted means, slopes and log Z against enumeration."""

import numpy as np
import pytest
from scipy.special import logsumexp

from annealz.engine.anneal import anneal
from annealz.engine.observers import Expectation
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.exact import exact_marginals
from annealz.schedules.rules import linear
from annealz.testing import (
    assert_within_mc_error,
    binary_states,
    log_joint,
)
from support.kernels import BiasedGibbs
from support.systems import LOG_RATIO_OF_Z, SMALL, SMALL_BASE, marginals, true_code

# --- observers --------------------------------------------------------------------------------

NUM_REPLICATES = 48


def replicates(kernel: AbstractKernel, marginal: str, seed: int, num_steps: int, **options):
    """Independent runs of 1,024 chains."""
    path, _ = true_code(marginal)
    for i in range(NUM_REPLICATES):
        yield anneal(
            path, kernel, linear(num_steps), num_chains=1024, seed=seed + i, chunk_steps=num_steps,
            **options,
        )  # fmt: skip


def mean_and_error(values: list) -> tuple[np.ndarray, np.ndarray]:
    stacked = np.array(values)
    return stacked.mean(0), stacked.std(0, ddof=1) / np.sqrt(len(stacked))


@marginals
@pytest.mark.parametrize("kernel", [BlockGibbs(), BiasedGibbs()], ids=["true", "biased coin"])
def test_weighted_means_at_the_end_are_the_models(marginal: str, kernel, seed: int):
    """The states' means under the last weights, and after the last move, against enumeration."""
    observers = {"x": Expectation(lambda x: x)}
    recorded, moved = [], []
    for run in replicates(kernel, marginal, seed, 12, observers=observers, record_every=12):
        recorded.append(run.trace.means["x"][-1])
        weights = np.exp(run.log_weights - run.log_weights.max())
        moved.append(weights @ run.states / weights.sum())
    truth = exact_marginals(SMALL)[0 if marginal == "visible" else 1]
    for values in (recorded, moved):
        mean, std_err = mean_and_error(values)
        if isinstance(kernel, BlockGibbs):
            assert_within_mc_error(mean, truth, std_err, num_replicates=NUM_REPLICATES)
        else:
            with pytest.raises(AssertionError, match="z = "):
                assert_within_mc_error(mean, truth, std_err, num_replicates=NUM_REPLICATES)


def exact_curve(beta: float) -> tuple[float, np.ndarray, np.ndarray]:
    """log Z of beta, and the law and the joint densities, by enumeration, float64."""
    base = binary_states(5) @ np.float64(SMALL_BASE.logits)
    joint = (1 - beta) * base + beta * log_joint(SMALL)
    log_z = logsumexp(joint)
    return float(log_z), np.exp(joint - log_z), log_joint(SMALL) - base


def exact_slope(marginal: str, beta: float) -> tuple[float, float]:
    """Mean and variance of U_beta on the annealed layer."""
    _, law, energy = exact_curve(beta)
    axis = 0 if marginal == "visible" else 1
    weights = law.sum(axis)
    slope = (law * energy).sum(axis) / weights  # U is the conditional mean of the energy change
    mean = weights @ slope
    return float(mean), float(weights @ (slope - mean) ** 2)


@marginals
def test_the_slope_integrates_to_log_z(marginal: str, seed: int):
    """Thermodynamic integration; and its mean, its variance and log Z along the whole path."""
    num_steps, integrals, means, variances, ratios = 128, [], [], [], []
    recorded = np.arange(1, num_steps + 1) / num_steps
    some = [15, 63, 127]
    exact_log_zs = np.array([exact_curve(recorded[i])[0] for i in some])
    start = exact_slope(marginal, 0.0)[0]
    for run in replicates(BlockGibbs(), marginal, seed, num_steps, record_every=1):
        slopes = np.concatenate([[start], run.trace.means["slope"]])
        integrals.append(np.trapezoid(slopes, np.concatenate([[0.0], recorded])))
        means.append(run.trace.means["slope"][some])
        variances.append(run.trace.variances["slope"][some])
        ratios.append(np.exp(run.trace.log_z[some] - exact_log_zs))
    truth_means, truth_variances = np.array([exact_slope(marginal, recorded[i]) for i in some]).T
    for values, truth in (
        (integrals, LOG_RATIO_OF_Z),
        (means, truth_means),
        (variances, truth_variances),
        (ratios, 1.0),
    ):
        mean, std_err = mean_and_error(values)
        assert_within_mc_error(mean, truth, std_err, num_replicates=NUM_REPLICATES)
    mean, std_err = mean_and_error(means)
    stale = [exact_slope(marginal, recorded[i] - 0.1)[0] for i in some]
    with pytest.raises(AssertionError, match="z = "):  # mutant: the slope of a stale beta
        assert_within_mc_error(mean, stale, std_err, num_replicates=NUM_REPLICATES)

"""log Z by replica exchange: every kind of path against its exact value, errors and draws too."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import annealz
from annealz.bases.bernoulli import BernoulliBase
from annealz.core.names import MARGINALS
from annealz.diagnostics.findings import Kind
from annealz.kernels.gibbs import BlockGibbs
from annealz.methods.exchange import advance as device
from annealz.methods.exchange.exchange import exchange
from annealz.methods.exchange.result import Exchange
from annealz.methods.exchange.rounds import (
    ABOVE,
    BELOW,
    NUM_SUMS,
    WORK_DOWN,
    WORK_UP,
    log_z_of,
    pseudo_values,
)
from annealz.models.exact import exact_log_z
from annealz.models.trajectory import TrajectoryPath
from annealz.paths.geometric import GeometricPath
from annealz.testing import assert_within_mc_error, random_rbm
from support.exchanges import BASE, MODEL, PATH, SMALL, law, log_density


def check_log_z(path, kernel, truth: float, **options) -> Exchange:
    result = exchange(path, kernel, **SMALL | {"num_sweeps": 256}, **options)
    assert_within_mc_error(result.log_z, truth, result.std_err, num_replicates=11)
    assert result.findings.keys() <= {Kind.ENSEMBLES_REMEMBER}  # by chance in 1 % of runs
    return result


@pytest.mark.parametrize("marginal", MARGINALS)
def test_log_z_of_an_rbm(marginal: str, seed: int):
    result = check_log_z(
        GeometricPath(BASE, MODEL, marginal), BlockGibbs(), exact_log_z(MODEL), seed=seed
    )
    truth = [logsumexp(log_density(beta)) for beta in result.betas]
    np.testing.assert_allclose(result.last.log_ratios, np.diff(truth), atol=0.2)


def test_log_z_of_an_ising_model(seed: int):
    ring = np.roll(np.eye(5), 1, 0) + np.roll(np.eye(5), -1, 0)
    model = annealz.Ising(0.6 * ring, 0.2 * np.arange(5))
    check_log_z(model.path(model.choose_base()), model.kernel(), exact_log_z(model), seed=seed)


def test_log_z_of_a_density_with_momenta(seed: int):
    model = annealz.LogDensity(lambda x: -0.5 * jnp.sum(((x - 2) / 0.5) ** 2), dim=2)
    kernel = annealz.HAIS(step_size=0.6)
    path = kernel.extend(model.path(annealz.GaussianBase.standard(2)))
    result = check_log_z(path, kernel, np.log(2 * np.pi * 0.25), seed=seed, num_draws=60)
    assert result.draws.shape == (60, 2)
    assert_within_mc_error(result.draws.mean(0), 2.0, 0.5 / np.sqrt(60), alpha=1e-4)


def test_log_z_along_a_trajectory(seed: int):
    """Parameters that depend on beta: rows are collected by rung."""
    models = [random_rbm(8, 6, scale, seed=7) for scale in (0.3, 0.6)]
    path = TrajectoryPath(BernoulliBase.uniform(6), models)
    assert device.is_by_rung(path, 16, 8)
    assert not device.is_by_rung(models[1].path(path.base), 16, 8)
    check_log_z(path, BlockGibbs(), exact_log_z(models[1]), seed=seed)


def test_the_error_is_calibrated(seed: int):
    """Student's 0.95 covers in 24 runs as often as it should, and z has about its spread."""
    truth, results = exact_log_z(MODEL), []
    for i in range(24):
        results.append(exchange(PATH, BlockGibbs(), **SMALL, seed=seed + i, chunk_sweeps=128))
    z = np.array([(one.log_z - truth) / one.std_err for one in results])
    covered = sum(one.interval()[0] < truth < one.interval()[1] for one in results)
    assert stats.binomtest(covered, 24, 0.95).pvalue > 1e-4
    assert 0.55 < z.std() / np.sqrt(10 / 8) < 1.6  # Student's with 10 degrees of freedom
    assert abs(z.mean()) < 5 * np.sqrt(10 / 8 / 24)


def test_draws_are_of_the_target(seed: int):
    options = SMALL | {"num_sweeps": 2048, "num_draws": 1000}
    result = exchange(PATH, BlockGibbs(), **options, seed=seed)
    index = (result.draws @ 2 ** np.arange(4)).astype(int)
    assert stats.chisquare(np.bincount(index, minlength=16), 1000 * law(1)).pvalue > 1e-6
    down = annealz.anneal(
        PATH,
        BlockGibbs(),
        annealz.linear(20),
        num_chains=1000,
        start=result.draws,
        reverse=True,
        purpose="reverse",
    )
    weights = np.exp(down.log_weights - (PATH.log_z0 - exact_log_z(MODEL)))  # mean 1
    assert_within_mc_error(weights.mean(), 1.0, weights.std() / np.sqrt(1000))


def test_jackknife_values_have_the_estimate_and_its_error():
    generator = np.random.default_rng(1)
    sums = generator.uniform(1, 2, (20, 3, NUM_SUMS))
    constants = np.array([0.5, -1.0, 2.0])
    values, whole = pseudo_values(sums, constants, 10), log_z_of(sums, constants, 10)
    mean, deviation = sums.mean(0), sums - sums.mean(0)
    influence = (
        deviation[..., ABOVE] / mean[..., ABOVE] - deviation[..., BELOW] / mean[..., BELOW]
    ).sum(-1)
    np.testing.assert_allclose(values - whole, influence, atol=0.1)
    np.testing.assert_allclose(values.mean(), whole, atol=0.01)
    assert pseudo_values(sums[:1], constants, 10).shape == (1,)


def test_pairs_without_overlap_get_the_middle_of_their_works():
    sums = np.zeros((2, 1, NUM_SUMS))
    sums[..., WORK_UP], sums[..., WORK_DOWN] = -2000.0, 1000.0
    assert log_z_of(sums, np.zeros(1), 10) == -50.0

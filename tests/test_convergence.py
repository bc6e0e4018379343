"""log Z from the first chains: the same as the estimators say of them."""

import dataclasses

import numpy as np
import pytest

import annealz
from annealz.bar import bar
from annealz.convergence import log_z_by_chains
from annealz.estimators import delta_std_err, log_mean
from annealz.islands import judge_islands
from annealz.testing import random_rbm

MODEL = random_rbm(4, 6, 1.5, 1)


@pytest.fixture(scope="module")
def both() -> annealz.Estimate:
    return annealz.estimate_log_z(
        MODEL, schedule="linear", num_steps=20, num_chains=300, two_sided=True
    )


def test_every_point_is_the_estimate_of_the_first_chains(both):
    path, weights = log_z_by_chains(both.run), both.log_weights
    assert path.num_chains[0] == 10
    assert path.num_chains[-1] == 300
    assert (np.diff(path.num_chains) > 0).all()
    for n, log_z, std_err in zip(path.num_chains, path.log_z, path.std_err, strict=True):
        assert log_z == pytest.approx(both.run.log_z0 + log_mean(weights[:n]), abs=1e-10)
        assert std_err == pytest.approx(delta_std_err(weights[:n]), rel=1e-8)


def test_two_sides_are_joined_at_every_point(both):
    path = both.convergence()
    for n, log_z, std_err in zip(path.num_chains, path.log_z, path.std_err, strict=True):
        joined = bar(both.run.work[:n], both.reverse.work[:n])
        assert log_z == both.run.log_z0 + joined.log_ratio
        assert std_err == joined.std_err
    assert path.log_z[-1] == both.log_z


def test_islands_are_added_whole():
    run = annealz.estimate_log_z(
        MODEL, schedule="linear", num_steps=20, num_chains=120, resample=0.9
    ).run
    path, means = log_z_by_chains(run), run.island_log_means
    assert (path.num_chains % run.island_size == 0).all()
    for n, log_z, std_err in zip(path.num_chains, path.log_z, path.std_err, strict=True):
        judged = judge_islands(means[: n // run.island_size])
        assert log_z == pytest.approx(run.log_z0 + judged.log_mean, abs=1e-10)
        assert std_err == pytest.approx(judged.std_err, rel=1e-8)


@pytest.mark.parametrize(("num_chains", "first"), [(1, 1), (3, 2), (99, 2), (100, 10)])
def test_few_chains_begin_early(both, num_chains, first):
    few = dataclasses.replace(both.run, log_weights=both.log_weights[:num_chains])
    path = log_z_by_chains(few)
    assert (path.num_chains[0], path.num_chains[-1]) == (first, num_chains)
    assert (path.std_err[0] == np.inf) == (num_chains == 1)


def test_equal_weights_have_no_error(both):
    equal = dataclasses.replace(both.run, log_weights=np.full(50, -1e4))
    path = log_z_by_chains(equal)
    np.testing.assert_allclose(path.log_z, equal.log_z0 - 1e4)
    np.testing.assert_allclose(path.std_err, 0, atol=1e-6)

"""log Z from the first chains: the same as the estimators say of them."""

import numpy as np
import pytest

from annealz.core.weights import delta_std_err, log_mean
from annealz.diagnostics.along import log_z_by_chains
from annealz.diagnostics.bar import bar
from annealz.diagnostics.diagnostics import judge_islands
from annealz.engine.run import Run, Trace
from annealz.schedules.rules import linear

LOG_Z0 = 7.5


def run_of(log_weights: np.ndarray, **changes) -> Run:
    """A run that ended with these weights; nothing else of it matters here."""
    none = np.empty(0)
    trace = Trace(none, none, none, none, {}, {})
    return Run(
        log_weights=log_weights,
        log_z0=LOG_Z0,
        schedule=linear(2),
        seed=0,
        purpose="anneal",
        trace=trace,
        states=none,
        carries={},
        seconds=0.0,
        **changes,
    )


@pytest.fixture
def weights(seed: int) -> np.ndarray:
    """Of forward chains whose work has variance 2, so that log Z = log Z_A."""
    return np.random.default_rng(seed).normal(-1, np.sqrt(2), 300)


def test_every_point_is_the_estimate_of_the_first_chains(weights):
    path = log_z_by_chains(run_of(weights))
    assert path.num_chains[0] == 10
    assert path.num_chains[-1] == 300
    assert (np.diff(path.num_chains) > 0).all()
    for n, log_z, std_err in zip(path.num_chains, path.log_z, path.std_err, strict=True):
        assert log_z == pytest.approx(LOG_Z0 + log_mean(weights[:n]), abs=1e-10)
        assert std_err == pytest.approx(delta_std_err(weights[:n]), rel=1e-8)


def test_two_sides_are_joined_at_every_point(weights, seed):
    reverse = np.random.default_rng([seed, 1]).normal(1, np.sqrt(2), 300)  # Crooks: its work is +1
    path = log_z_by_chains(run_of(weights), run_of(-reverse, is_reverse=True))
    for n, log_z, std_err in zip(path.num_chains, path.log_z, path.std_err, strict=True):
        joined = bar(weights[:n], reverse[:n])
        assert log_z == LOG_Z0 + joined.log_ratio
        assert std_err == joined.std_err


def test_islands_are_added_whole(weights):
    path = log_z_by_chains(run_of(weights, island_size=10, num_resamplings=5))
    assert (path.num_chains % 10 == 0).all()
    assert path.num_chains[-1] == 300
    means = run_of(weights, island_size=10).island_log_means
    for n, log_z, std_err in zip(path.num_chains, path.log_z, path.std_err, strict=True):
        judged = judge_islands(means[: n // 10])
        assert log_z == pytest.approx(LOG_Z0 + judged.log_mean, abs=1e-10)
        assert std_err == pytest.approx(judged.std_err, rel=1e-8)


@pytest.mark.parametrize(("num_chains", "first"), [(1, 1), (3, 2), (99, 2), (100, 10)])
def test_few_chains_begin_early(weights, num_chains, first):
    path = log_z_by_chains(run_of(weights[:num_chains]))
    assert (path.num_chains[0], path.num_chains[-1]) == (first, num_chains)
    assert (path.std_err[0] == np.inf) == (num_chains == 1)


def test_equal_weights_have_no_error():
    path = log_z_by_chains(run_of(np.full(50, -1e4)))
    np.testing.assert_allclose(path.log_z, LOG_Z0 - 1e4)
    np.testing.assert_allclose(path.std_err, 0, atol=1e-6)

"""Approximate draws: near the law, nearer with sweeps, functions of the seed, bounded in memory."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from annealz.engine.anneal import anneal
from annealz.kernels.gibbs import BlockGibbs
from annealz.models import exact
from annealz.models.exact import exact_samples
from annealz.paths.geometric import GeometricPath
from annealz.pilots.draws import approximate_draws, draw_with_ancestors
from annealz.schedules.rules import linear
from annealz.testing import log_joint, random_rbm
from support.enumeration import state_index
from support.systems import TINY, TINY_BASE, marginals

ALPHA = 1e-6
DRAWS = 20_000


def p_value(states: np.ndarray, marginal: str) -> float:
    """Chi-square of states against the enumerated law of their layer."""
    joint = log_joint(TINY)
    law = np.exp(logsumexp(joint, axis=0 if marginal == "visible" else 1) - logsumexp(joint))
    counts = np.bincount(state_index(states), minlength=law.size)
    return float(stats.chisquare(counts, law * len(states)).pvalue)


def draw(marginal: str, seed: int, num_sweeps: int, run_seed: int | None = None) -> np.ndarray:
    """From a run so short that its last states are far from the law."""
    path = GeometricPath(TINY_BASE, TINY, marginal)
    start = seed if run_seed is None else run_seed
    run = anneal(path, BlockGibbs(), linear(3), num_chains=DRAWS, seed=start)
    return approximate_draws(path, BlockGibbs(), run, DRAWS, num_sweeps=num_sweeps, seed=seed)


@marginals
def test_draws_follow_the_law(marginal: str, seed: int):
    assert p_value(draw(marginal, seed, 40), marginal) > ALPHA


@marginals
def test_the_test_refuses_last_states_without_weights(marginal: str, seed: int):
    """Mutant: no resampling and no sweeps."""
    run = anneal(
        GeometricPath(TINY_BASE, TINY, marginal),
        BlockGibbs(),
        linear(3),
        num_chains=DRAWS,
        seed=seed,
    )
    assert p_value(run.states, marginal) < ALPHA


def test_draws_are_a_function_of_run_and_seed():
    first, again, other = (draw("visible", s, 5, run_seed=1) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert set(np.unique(first)) == {0, 1}


def test_ancestors_are_where_draws_come_from():
    path = GeometricPath(TINY_BASE, TINY)
    run = anneal(path, BlockGibbs(), linear(3), num_chains=1000)
    still, moved = (
        draw_with_ancestors(path, BlockGibbs(), run, 1200, sweeps, 2) for sweeps in (0, 5)
    )
    np.testing.assert_array_equal(still[0], run.states[still[1]])
    np.testing.assert_array_equal(still[1], moved[1])
    states = approximate_draws(path, BlockGibbs(), run, 1200, num_sweeps=5, seed=2)
    np.testing.assert_array_equal(moved[0], states)


@pytest.mark.parametrize("options", [{"num_draws": 0}, {"num_draws": 5, "num_sweeps": -1}])
def test_bad_counts(options):
    path = GeometricPath(TINY_BASE, TINY)
    run = anneal(path, BlockGibbs(), linear(3), num_chains=1000)
    with pytest.raises(ValueError, match=r"num_(draws|sweeps) must be at least"):
        approximate_draws(path, BlockGibbs(), run, **options)


def test_exact_samples_are_the_same_in_pieces(monkeypatch: pytest.MonkeyPatch):
    model = random_rbm(3, 9)
    whole = exact_samples(model, 1000, 4)
    monkeypatch.setattr(exact, "_TILE", 64)
    for one, other in zip(whole, exact_samples(model, 1000, 4), strict=True):
        np.testing.assert_array_equal(one, other)

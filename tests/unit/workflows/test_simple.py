"""The simpler way of models with few states, of which nothing else is asked."""

import numpy as np
import pytest

import annealz
from annealz.methods.problem import choose_problem
from annealz.testing import assert_within_mc_error, random_rbm

MODEL = random_rbm(4, 6)


@pytest.fixture(scope="module")
def simple() -> annealz.Estimate:
    return annealz.estimate_log_z(MODEL)


def test_the_exact_value_is_the_second_opinion(simple):
    assert_within_mc_error(simple.log_z, annealz.exact_log_z(MODEL), simple.std_err)
    assert (simple.num_steps, simple.num_chains, simple.base) == (1000, 1000, "uniform")
    assert simple.second_opinion is None
    assert simple.status_in_words == "ok, checked against the exact value"
    assert "64 states" in simple.plan.base_reason
    assert simple.sweeps["pilot"] <= 4000


def test_one_that_contradicts_the_exact_value_is_not_ok():
    result = annealz.estimate_log_z(MODEL, exact_log_z=annealz.exact_log_z(MODEL) + 1)
    assert result.status == "unreliable"


def test_who_asks_for_more_gets_it():
    """Steps, a base, another schedule or no second opinion: all as for a larger model."""
    asked = {"num_steps": 100, "num_chains": 100}
    assert annealz.estimate_log_z(MODEL, **asked).second_opinion is not None


def test_only_models_of_few_states_take_it():
    assert choose_problem(MODEL).enumerated().is_enumerated
    assert choose_problem(random_rbm(12, 10)).enumerated().is_enumerated
    assert not choose_problem(random_rbm(10, 11)).enumerated().is_enumerated
    assert not choose_problem(MODEL, base="fitted").enumerated().is_enumerated
    rows = np.random.default_rng(0).integers(0, 2, (20, 6)).astype(float)
    assert choose_problem(MODEL, data=rows).enumerated().path.base.name == "base-rate"

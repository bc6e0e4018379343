"""The stated error: that of the weights, and what no spread of weights shows."""

import jax
import numpy as np
import pytest
from scipy.stats import norm

import annealz
from annealz.bases.bernoulli import BernoulliBase
from annealz.core.names import FITTED
from annealz.diagnostics.status import ROUNDING, stated_interval, stated_std_err
from annealz.testing import random_rbm


def test_nothing_is_more_certain_than_the_arithmetic():
    assert stated_std_err(0.0) == ROUNDING
    assert stated_std_err(0.03) == pytest.approx(0.03, rel=1e-4)
    assert stated_std_err(np.inf) == np.inf
    low, high = stated_interval(5.0, (5.0, 5.0), 0.95)
    assert (5.0 - low, high - 5.0) == (pytest.approx(norm.ppf(0.975) * ROUNDING),) * 2


def test_unseen_mass_moves_the_upper_end_alone():
    plain, fitted = (stated_interval(5.0, (4.9, 5.1), 0.95, n) for n in (None, 100))
    assert fitted[0] == plain[0]
    assert fitted[1] - 5.0 == pytest.approx(np.hypot(0.1, np.log(40) / 100), rel=1e-4)
    assert stated_std_err(0.0, 1000) == pytest.approx(np.hypot(1e-3, ROUNDING))
    assert stated_interval(5.0, (-np.inf, np.inf), 0.95, 100) == (-np.inf, np.inf)


def test_the_bound_on_unseen_mass_holds_as_often_as_it_says():
    """Of regions of mass m that no chain of N saw, with m over its prior."""
    generator = np.random.default_rng(0)
    masses = generator.uniform(0, 0.2, 400_000)
    unseen = masses[generator.random(masses.size) < (1 - masses) ** 200]
    for level in (0.8, 0.95):
        bound = stated_interval(0.0, (0.0, 0.0), level, 200)[1]
        assert np.mean(unseen > bound) == pytest.approx((1 - level) / 2, abs=0.004)


def test_a_run_states_it_for_the_base_that_it_starts_from():
    model = random_rbm(4, 6)
    options = {"num_steps": 100, "num_chains": 100, "second_opinion": False}
    given = annealz.estimate_log_z(model, base="uniform", **options)
    assert given.std_err == stated_std_err(given.judgement.std_err)
    fitted = annealz.estimate_log_z(model, base="fitted", **options)
    assert fitted.base in FITTED
    assert fitted.std_err == stated_std_err(fitted.judgement.std_err, 100)
    assert fitted.interval()[1] > fitted.run.log_z0 + fitted.judgement.interval()[1]


def test_programs_do_not_depend_on_the_name_of_a_base():
    model = random_rbm(4, 6)
    bases = BernoulliBase.uniform(6), BernoulliBase.from_logits(np.ones(6), name="mine")
    paths = [model.path(base).unnamed() for base in bases]
    assert jax.tree.structure(paths[0]) == jax.tree.structure(paths[1])
    assert paths[1].log_z0 == model.path(bases[1]).log_z0
    assert bases[1].name == "mine"


def test_a_run_from_a_base_of_another_name_is_not_compiled_again():
    model, traces = random_rbm(4, 6), []

    class Counting(annealz.BlockGibbs):
        def step(self, bits, x, path, beta):
            traces.append(beta)
            return super().step(bits, x, path, beta)

    kernel, seen = Counting(), []
    for base in (BernoulliBase.uniform(6), BernoulliBase.from_logits(np.ones(6), name="mine")):
        traces.clear()
        path = model.path(base)
        annealz.anneal(path, kernel, annealz.linear(20), num_chains=10)
        annealz.survey_mixing(path, kernel, budget=20_000)
        seen.append(len(traces))
    assert seen[0] > 0
    assert seen[1] == 0


def test_exact_draws_leave_no_mass_unseen():
    options = {"num_steps": 100, "num_chains": 100, "second_opinion": False, "two_sided": True}
    both = annealz.estimate_log_z(random_rbm(4, 6), base="fitted", **options)
    assert both.plan.draws == "exact"
    assert both.two_sided is not None
    assert both.std_err == stated_std_err(both.two_sided.std_err)

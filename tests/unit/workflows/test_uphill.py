"""Searches for maxima that share their launches."""

import threading

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

import annealz
from annealz.workflows.pilots.densities import uphill as module
from annealz.workflows.pilots.densities.evaluator import Evaluator
from annealz.workflows.pilots.densities.uphill import uphill


def wells(x):
    """Maxima near -1.05 and 0.95, in either coordinate."""
    return -jnp.sum((x**2 - 1) ** 2 + 0.2 * x)


MODEL = annealz.LogDensity(wells, dim=2)
STARTS = np.random.default_rng(0).normal(0, 2, (13, 2))  # fewer than are searched at once


def test_every_search_ends_where_it_would_end_alone():
    evaluator = Evaluator(MODEL)
    ends = uphill(evaluator, STARTS, 1e5)
    assert len(ends) == len(STARTS)

    def objective(x):
        value, gradient = evaluator.value_and_gradient(x)
        return -value, -gradient

    for start, (place, value) in zip(STARTS, ends, strict=True):
        alone = minimize(objective, start, jac=True, method="L-BFGS-B")
        np.testing.assert_allclose(place, alone.x, atol=1e-3)
        assert abs(value + alone.fun) < 1e-5


def test_the_same_searches_give_the_same_bits_and_are_charged_by_launches(monkeypatch):
    widths = []
    whole = Evaluator.values_and_gradients

    def noted(self, rows):
        widths.append(len(rows))
        return whole(self, rows)

    monkeypatch.setattr(Evaluator, "values_and_gradients", noted)
    first, second = Evaluator(MODEL), Evaluator(MODEL)
    ends = [uphill(evaluator, STARTS, 1e5) for evaluator in (first, second)]
    for (place, value), (other, again) in zip(*ends, strict=True):
        assert np.array_equal(place, other)
        assert value == again
    assert first.evaluations == second.evaluations
    assert set(widths) == {module.TOGETHER}  # one program, whatever is left to do
    assert sum(widths) <= 2 * first.evaluations
    launches = len(widths) / 2
    assert launches < first.evaluations / module.TOGETHER + 1


def test_no_density_and_no_bound():
    def fn(x):  # zero below 0, rises for ever above 10
        return jnp.where(x[0] < 0, -jnp.inf, jnp.where(x[0] > 10, x[0], -((x[0] - 2) ** 2)))

    evaluator = Evaluator(annealz.LogDensity(fn, dim=1))
    ends = uphill(evaluator, np.array([[-1.0], [3.0], [20.0]]), 1e3)
    assert ends[0] is None
    assert abs(ends[1][0][0] - 2) < 1e-3
    assert ends[2] is None or ends[2][0][0] > 20


def test_what_a_function_raises_ends_all_searches():
    class Broken(Evaluator):
        def values_and_gradients(self, rows):
            raise ArithmeticError("broken")

    before = threading.active_count()
    with pytest.raises(ArithmeticError, match="broken"):
        uphill(Broken(MODEL), STARTS, 1e5)
    assert threading.active_count() == before


def test_a_search_that_comes_to_what_is_known_ends_there():
    evaluator, whole = Evaluator(MODEL), Evaluator(MODEL)
    uphill(whole, STARTS, 1e5)
    ends = uphill(evaluator, STARTS, 1e5, lambda x, value, gradient: bool(x[0] > 0))
    assert any(end is None for end in ends)
    assert all(end is None or end[0][0] < 0 for end in ends)
    assert evaluator.evaluations < whole.evaluations

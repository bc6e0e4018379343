"""Searches for maxima that share their launches."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize, rosen

import annealz
from annealz.pilots.densities import uphill as module
from annealz.pilots.densities.evaluator import Evaluator
from annealz.pilots.densities.uphill import uphill


def wells(x):
    """Four maxima, near -1.02 and 0.97 in either coordinate."""
    return -jnp.sum((x**2 - 1) ** 2 + 0.2 * x)


MODEL = annealz.LogDensity(wells, dim=2)
STARTS = np.random.default_rng(0).normal(0, 2, (53, 2))  # more than are searched at once


def nowhere(x, value, gradient):
    return False


def ends_of(evaluator, starts, furthest=1e3, is_known=nowhere):
    return list(uphill(evaluator, starts, furthest, is_known))


def test_every_search_ends_at_a_maximum_that_scipy_finds_too():
    evaluator = Evaluator(MODEL)
    ends = ends_of(evaluator, STARTS)
    assert len(ends) == len(STARTS)
    counted = evaluator.evaluations

    def objective(x):
        value, gradient = evaluator.value_and_gradient(x)
        return -value, -gradient

    tops = [minimize(objective, start, jac=True, method="L-BFGS-B").x for start in STARTS]
    tops = np.unique(np.round(tops, 2), axis=0)
    assert len(tops) == 4
    found = {int(np.argmin(np.abs(tops - place).sum(1))) for place, _ in ends}
    assert len(found) == 4
    for place, value in ends:
        assert np.abs(tops - place).max(1).min() < 0.02
        assert value == pytest.approx(float(wells(jnp.asarray(place))), abs=1e-4)
    assert counted < 20 * len(STARTS)


def test_curved_valleys_and_tails_are_followed():
    """Rosenbrock's valley, and a tail in which the density is not concave."""
    valley = Evaluator(annealz.LogDensity(lambda x: -rosen_in_jax(x), dim=3))
    for place, value in ends_of(valley, np.array([[-1.5, 2.0, 1.0], [2.0, 2.0, -1.0]])):
        np.testing.assert_allclose(place, 1, atol=0.05)
        assert value == pytest.approx(-rosen(place), abs=1e-3)
    tail = Evaluator(annealz.LogDensity(lambda x: -2 * jnp.log1p(jnp.sum((x - 3) ** 2)), dim=2))
    for place, _ in ends_of(tail, np.array([[300.0, -400.0], [5.0, 3.0]])):
        np.testing.assert_allclose(place, 3, atol=0.02)
    assert tail.evaluations < 100


def rosen_in_jax(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def test_the_same_searches_give_the_same_bits_and_are_charged_by_launches(monkeypatch):
    widths = []
    whole = Evaluator.values_and_gradients

    def noted(self, rows):
        widths.append(len(rows))
        return whole(self, rows)

    monkeypatch.setattr(Evaluator, "values_and_gradients", noted)
    first, second = Evaluator(MODEL), Evaluator(MODEL)
    ends = [ends_of(evaluator, STARTS) for evaluator in (first, second)]
    for (place, value), (other, again) in zip(*ends, strict=True):
        assert np.array_equal(place, other)
        assert value == again
    assert set(widths) == {module._ROWS}  # one program, whatever is left to do
    alone = first.evaluations - sum(widths) // 2
    assert first.evaluations == second.evaluations
    assert 0 <= alone < module._FEW * module._MOST_STEPS


def test_no_density_and_no_bound():
    def fn(x):  # zero below 0, rises for ever above 10
        return jnp.where(x[0] < 0, -jnp.inf, jnp.where(x[0] > 10, x[0], -((x[0] - 2) ** 2)))

    evaluator = Evaluator(annealz.LogDensity(fn, dim=1))
    ends = ends_of(evaluator, np.array([[-1.0], [3.0], [20.0]]))
    assert [round(float(place[0]), 2) for place, _ in ends] == [2.0]
    assert evaluator.evaluations < 60  # what rises for ever is left soon


def test_a_search_that_comes_to_what_is_known_ends_there():
    evaluator, whole = Evaluator(MODEL), Evaluator(MODEL)
    ends_of(whole, STARTS)
    ends = ends_of(evaluator, STARTS, is_known=lambda x, value, gradient: bool(x[0] > 0))
    assert 0 < len(ends) < len(STARTS)
    assert all(place[0] < 0 for place, _ in ends)
    assert evaluator.evaluations < whole.evaluations


def test_a_mode_is_known_where_the_density_is_its_gaussian():
    """A needle inside a wide mode is another mode, however near."""
    from annealz.pilots.densities.modes import find_modes

    def fn(x):
        wide, needle = -0.5 * jnp.sum(x**2), 6 - 0.5 * jnp.sum((x - 0.5) ** 2) / 1e-4
        return jnp.logaddexp(wide, needle)

    evaluator = Evaluator(annealz.LogDensity(fn, dim=2))
    modes = find_modes(evaluator, np.array([[-1.0, -1.0], [2.0, -1.0]]))
    assert len(modes) == 1
    modes = find_modes(evaluator, np.array([[0.51, 0.49], [1.0, 1.0]]), modes)
    assert len(modes) == 2


def test_a_search_ends_early_only_where_it_is_drawn_to_the_mode():
    """The same value with the gradient of another mode leads elsewhere."""
    from annealz.pilots.densities.modes import find_modes

    evaluator = Evaluator(annealz.LogDensity(lambda x: -0.5 * jnp.sum((x - 3) ** 2), dim=2))
    (mode,) = find_modes(evaluator, np.zeros((1, 2)))
    x = np.array([4.0, 2.5])
    value, gradient = evaluator.value_and_gradient(x)
    assert mode.leads_to(x, value, gradient)
    assert not mode.leads_to(x, value, -gradient)
    assert not mode.leads_to(x, value + 2, gradient)


def test_a_far_mode_of_no_account_does_not_stand_for_a_kinked_top():
    """At the top the second derivative has the wrong sign; the mode far away is 30 nats lower."""
    from annealz.pilots.densities.modes import find_modes

    def fn(x):
        t = jnp.abs(x[0])
        top = jnp.where(t < 1, -2 * t + 0.5 * t**2, -1.5 - 0.5 * (t - 1) ** 2 - (t - 1))
        return jnp.logaddexp(top, -30 - 0.5 * (x[0] - 40) ** 2) - 0.5 * x[1] ** 2

    evaluator = Evaluator(annealz.LogDensity(fn, dim=2))
    modes = find_modes(evaluator, np.array([[0.0, 0.0], [41.0, 0.5]]))
    assert any(np.abs(mode.place).max() < 0.1 for mode in modes)

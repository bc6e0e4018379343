"""Deceleration: the paper's loop, corrected, and the optimum that it approximates."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from annealz.schedules.rules import linear, varopt
from annealz.schedules.schedule import Schedule
from annealz.schedules.steps import decelerate
from annealz.schedules.terrain import Terrain
from annealz.testing import GaussianPath


def algorithm_3(steps: np.ndarray, limit: float, tolerance: float = 1e-10) -> np.ndarray | None:
    """Clip, stop if the sum is 1, else divide by it, and again: Algorithm 3 as corrected."""
    for _ in range(50_000):
        steps = np.minimum(steps, limit)
        norm = steps.sum()
        if abs(norm - 1) < tolerance:
            return steps
        steps = steps / norm
    return None


def schedule_of(steps) -> Schedule:
    reached = np.cumsum(np.asarray(steps, np.float64))
    return Schedule(np.append(0.0, reached / reached[-1]))


@st.composite
def schedules_and_limits(draw) -> tuple[Schedule, float]:
    logs = draw(st.lists(st.floats(-12, 0), min_size=2, max_size=60))
    schedule = schedule_of(np.exp(logs))
    return schedule, draw(st.floats(1.0, 4.0)) / schedule.num_steps


@given(schedules_and_limits())
def test_it_is_the_limit_of_the_loop(case: tuple[Schedule, float]):
    schedule, limit = case
    looped = algorithm_3(np.diff(schedule.betas), limit)
    assume(looped is not None)
    np.testing.assert_allclose(np.diff(decelerate(schedule, limit).betas), looped, atol=1e-6)


def test_the_loop_of_a_real_schedule():
    """Steps of VAROPT over five decades of g, limited to twice the mean step."""
    betas = np.linspace(0, 1, 101)
    terrain = Terrain(betas, 0 * betas, np.exp(-11 * betas), np.full(101, 1e9))
    schedule = varopt(terrain, 500)
    assert np.diff(schedule.betas).max() > 0.006
    looped = algorithm_3(np.diff(schedule.betas), 0.004)
    assert looped is not None
    np.testing.assert_allclose(np.diff(decelerate(schedule, 0.004).betas), looped, atol=1e-8)


@given(schedules_and_limits())
def test_steps_keep_the_limit_and_sum_to_1(case: tuple[Schedule, float]):
    schedule, limit = case
    slow = decelerate(schedule, limit)
    steps = np.diff(slow.betas)
    assert slow.num_steps == schedule.num_steps
    assert (slow.betas[0], slow.betas[-1]) == (0, 1)
    assert (steps > 0).all()
    assert steps.max() <= limit * (1 + 1e-9)
    assert abs(steps.sum() - 1) < 1e-12


@given(schedules_and_limits())
def test_twice_is_once(case: tuple[Schedule, float]):
    schedule, limit = case
    once = decelerate(schedule, limit)
    assert decelerate(once, limit) == once


@given(schedules_and_limits())
def test_steps_keep_their_order_and_the_unclipped_their_ratio(case: tuple[Schedule, float]):
    schedule, limit = case
    before, after = np.diff(schedule.betas), np.diff(decelerate(schedule, limit).betas)
    free = after < limit * (1 - 1e-6)
    if free.any():
        ratios = after[free] / before[free]
        np.testing.assert_allclose(ratios, ratios[0], rtol=1e-3)  # steps of 1e-12 of the whole
        assert ratios[0] >= 1 - 1e-3


@given(schedules_and_limits())
def test_within_the_limit_nothing_changes(case: tuple[Schedule, float]):
    schedule, _ = case
    largest = float(np.diff(schedule.betas).max())
    assert decelerate(schedule, largest) is schedule
    assert decelerate(schedule, 2 * largest) is schedule


def test_the_tightest_limit_is_linear():
    schedule = schedule_of(np.arange(1, 51))
    np.testing.assert_allclose(decelerate(schedule, 0.02).betas, linear(50).betas, atol=1e-12)


def test_extreme_schedules_are_decelerated():
    for betas in ([0, 5e-324, 1], [0, 1e-200, 1e-100, 1], [0, 1 - 1e-16, 1]):
        schedule = Schedule(np.array(betas, np.float64))
        limit = 1.2 / schedule.num_steps
        steps = np.diff(decelerate(schedule, limit).betas)
        assert steps.max() <= limit * (1 + 1e-9)
        assert (steps > 0).all()


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (
            0.009,
            r"max_step = 0.009 is infeasible with 50 steps: .*smallest feasible one is 0\.02\.",
        ),
        (0.019999, "smallest feasible one is 0.02"),
        (0.0, "infeasible"),
        (-1.0, "infeasible"),
        (float("nan"), "infeasible"),
    ],
)
def test_infeasible_limits_are_refused(limit: float, words: str):
    with pytest.raises(ValueError, match=words):
        decelerate(linear(50), limit)


def test_name_and_provenance():
    schedule = Schedule(linear(50).betas ** 3, "mine", {"from": 1})
    slow = decelerate(schedule, 0.03)
    assert slow.name == "mine-0.03"
    assert slow.provenance == {"from": 1, "max_step": 0.03}


# --- the optimum -----------------------------------------------------------------------------


def cost_of(terrain: Terrain, num_steps: int, limit: float, how: str) -> float:
    schedule = varopt(terrain, num_steps, max_step=limit, deceleration=how, width=0)
    assert np.diff(schedule.betas).max() <= limit * (1 + 1e-9)
    return terrain.cost(schedule.betas)


@given(
    st.lists(st.floats(-5, 5), min_size=2, max_size=8),
    st.floats(1.01, 6.0),
    st.sampled_from([1000, 3000]),
)
@settings(max_examples=150)
def test_the_optimum_never_costs_more(logs: list[float], slack: float, num_steps: int):
    """Up to what K steps resolve of a curve."""
    betas = np.linspace(0, 1, 201)
    log_g = np.interp(betas, np.linspace(0, 1, len(logs)), logs)
    terrain = Terrain(betas, 0 * betas, np.exp(log_g), np.full(201, 1e9))
    limit = slack / num_steps
    exact, paper = (cost_of(terrain, num_steps, limit, how) for how in ("exact", "paper"))
    assert exact <= paper * (1 + 1e-3)
    assert exact >= terrain.least_cost * (1 - 1e-6)
    assert exact <= terrain.linear_cost * (1 + 1e-3)


def test_the_optimum_is_strictly_better_where_the_limit_binds():
    """The paper's loop stretches step k whatever beta it has come to lie at: it slips off a hump."""
    betas = np.linspace(0, 1, 1001)
    hump = np.exp(8 * np.exp(-(((betas - 0.7) / 0.1) ** 2)))
    for g, gain in ((GaussianPath(1.0, 0.2).g(betas), 1.04), (hump, 2.0)):
        terrain = Terrain(betas, 0 * betas, g, np.full(1001, 1e9))
        exact, paper = (cost_of(terrain, 2000, 0.0007, how) for how in ("exact", "paper"))
        assert terrain.least_cost < exact < paper / gain < paper < terrain.linear_cost


def test_the_optimum_dwells_as_the_formula_says():
    """m = max(√g / c, 1 / v): free stretches have dbeta/dt ∝ 1 / √g, the others the limit."""
    betas = np.linspace(0, 1, 1001)
    g = np.exp(-6 * betas)
    terrain = Terrain(betas, 0 * betas, g, np.full(1001, 1e9))
    limit, num_steps = 0.0015, 1000
    made = varopt(terrain, num_steps, max_step=limit, deceleration="exact", width=0).betas
    steps, middle = np.diff(made), (made[1:] + made[:-1]) / 2
    free = steps < limit * (1 - 1e-2)
    assert 0.2 < free.mean() < 0.8
    speed = steps * np.exp(-3 * middle)
    np.testing.assert_allclose(speed[free], speed[free].mean(), rtol=1e-2)
    np.testing.assert_allclose(steps[~free], limit, rtol=1.1e-2)


def test_no_limit_that_binds_changes_nothing():
    betas = np.linspace(0, 1, 201)
    terrain = Terrain(betas, 0 * betas, np.exp(2 * betas), np.full(201, 1e9))
    plain = varopt(terrain, 100)
    for how in ("paper", "exact"):
        limited = varopt(terrain, 100, max_step=0.5, deceleration=how)
        np.testing.assert_allclose(limited.betas, plain.betas, atol=1e-5)
        assert limited.name == "varopt-0.5"
        assert limited.provenance["deceleration"] == how

"""Every rule, on any terrain: from 0 to 1, strictly increasing, finite. Where hypothesis looks."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from annealz.schedules.rules import gms13, linear, sm08, varopt
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain

ANY_K = st.integers(1, 300)
SMALL_STEPS = [1e-12, 1.5e-12, 1e-9, 1e-5, 0.01, 0.2]
VARIANCES = st.one_of(
    st.sampled_from([0.0, 5e-324, 1e-300, 1e-12, 1.0, 1e12, 1e100]), st.floats(0, 1e12)
)


@st.composite
def terrains(draw) -> Terrain:
    """One point or many, anywhere, as near to each other as a terrain may have them."""
    if draw(st.booleans()):
        inner = draw(st.lists(st.floats(0, 1), min_size=1, max_size=30))
        betas = np.sort(inner)
    else:
        steps = draw(st.lists(st.sampled_from(SMALL_STEPS), min_size=1, max_size=30))
        betas = np.cumsum(steps)
        betas = betas / max(1.0, betas[-1])
    kept = [betas[0]]
    for beta in betas[1:]:
        if beta - kept[-1] > 1.1e-12:
            kept.append(beta)
    size = len(kept)
    few = {"min_size": size, "max_size": size}
    return Terrain(
        np.array(kept),
        np.array(draw(st.lists(st.floats(-1e12, 1e12), **few))),
        np.array(draw(st.lists(VARIANCES, **few))),
        np.array(draw(st.lists(st.floats(1, 1e6), **few))),
    )


def flat(*variance: float) -> Terrain:
    size = len(variance)
    betas = np.linspace(0, 1, size) if size > 1 else np.array([0.3])
    return Terrain(betas, np.zeros(size), np.array(variance), np.ones(size))


ZEROS = flat(*[0.0] * 20)
SPIKE = flat(*[0.0] * 10, 1e12, *[0.0] * 10)
HOLE = flat(*[1.0] * 10, 0.0, *[1.0] * 10)
ONE_POINT = flat(4.0)
NEAR_0 = Terrain([5e-324, 0.5], [0.0, 1.0], [1.0, 2.0], [9.0, 9.0])
NEAR_1 = Terrain([0.5, 1 - 1e-16], [0.0, 1.0], [1.0, 1e12], [9.0, 9.0])
CLUSTER = Terrain(0.5 + 2e-12 * np.arange(12), np.arange(12.0), [0.0, 1e12] * 6, np.ones(12))


def check(schedule: Schedule, num_steps: int) -> None:
    betas = schedule.betas
    assert betas.size == num_steps + 1
    assert (betas[0], betas[-1]) == (0, 1)
    assert np.isfinite(betas).all()
    assert (np.diff(betas) > 0).all()


def limited(how: str) -> Callable[[Terrain, int], Schedule]:
    def rule(terrain: Terrain, num_steps: int) -> Schedule:
        for slack in (1.0, 1.5, 40.0):
            limit = slack / num_steps
            schedule = varopt(terrain, num_steps, max_step=limit, deceleration=how)
            assert np.diff(schedule.betas).max() <= limit * (1 + 1e-9)
        return schedule

    return rule


RULES: dict[str, Callable[[Terrain, int], Schedule]] = {
    "linear": lambda _, num_steps: linear(num_steps),
    "sm08": lambda _, num_steps: sm08(num_steps),
    "gms13": gms13,
    "varopt": varopt,
    "varopt unsmoothed": lambda terrain, num_steps: varopt(terrain, num_steps, width=0),
    "varopt wide": lambda terrain, num_steps: varopt(terrain, num_steps, width=0.3),
    "varopt paper": limited("paper"),
    "varopt exact": limited("exact"),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
@given(terrains(), ANY_K)
@example(ZEROS, 1)
@example(ZEROS, 300)
@example(SPIKE, 2)
@example(SPIKE, 300)
@example(HOLE, 57)
@example(ONE_POINT, 100)
@example(NEAR_0, 300)
@example(NEAR_1, 300)
@example(CLUSTER, 300)
def test_rules_give_schedules(rule: Callable, terrain: Terrain, num_steps: int):
    check(rule(terrain, num_steps), num_steps)


@given(terrains(), ANY_K)
@example(ZEROS, 300)
@example(SPIKE, 300)
@example(HOLE, 57)
@example(ONE_POINT, 100)
@example(NEAR_0, 300)
@example(NEAR_1, 300)
@example(CLUSTER, 300)
def test_the_iteration_gives_a_schedule_or_says_why_not(terrain: Terrain, num_steps: int):
    try:
        schedule = varopt(terrain, num_steps, method="fixed_point")
    except ValueError as error:
        assert "use method='quadrature'" in str(error)  # noqa: PT017 (it may also succeed)
    else:
        check(schedule, num_steps)


@given(terrains(), ANY_K)
def test_costs_are_ordered_and_finite(terrain: Terrain, num_steps: int):
    report = varopt(terrain, num_steps).provenance
    costs = [report[name] for name in ("least_cost", "cost", "linear_cost", "predicted_gain")]
    assert np.isfinite(costs).all()
    assert min(costs) >= 0
    assert costs[0] <= costs[2] * (1 + 1e-9)  # Cauchy-Schwarz


@given(terrains(), st.sampled_from(["betas", "mean", "variance", "ess"]), st.data())
def test_nan_is_refused(terrain: Terrain, name: str, data: st.DataObject):
    arrays = {n: getattr(terrain, n).copy() for n in ("betas", "mean", "variance", "ess")}
    where = data.draw(st.integers(0, arrays[name].size - 1))
    arrays[name][where] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    with pytest.raises(ValueError, match="must be finite"):
        Terrain(**arrays)

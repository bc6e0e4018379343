"""What would help most: the order of remedies, when more steps are among them, and the command to type."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from annealz.diagnostics.diagnostics import judge, judge_islands
from annealz.diagnostics.findings import Advice, Kind, Remedy, in_options
from annealz.diagnostics.status import Status
from annealz.methods.annealing.advice import advice_of, next_command
from annealz.methods.annealing.estimate import Estimate
from annealz.methods.exchange.estimate import ExchangeEstimate
from annealz.methods.exchange.request import ExchangeRequest
from annealz.methods.exchange.result import Exchange, Round
from annealz.methods.problem import choose_problem
from annealz.schedules.rules import linear
from annealz.schedules.schedule import Schedule
from support.opinions import HIGHER, pieces, weights
from support.settings import plan_of
from support.systems import FERROMAGNET

WIDE = weights(5.0, 60.0)
EVERYTHING = {"can_enumerate": True, "takes_data": True}
OBJECT = object()
"""Stands for something that only Python can give."""


def mixing(num_steps: int, predicted: float) -> Schedule:
    """A schedule whose pilot predicts this variance of log w."""
    provenance = {"predicted_variance": predicted}
    return Schedule(np.linspace(0, 1, num_steps + 1), "mixing", provenance)


def unreliable(num_steps: int = 100, predicted: float = 1e9, **settings: Any) -> Estimate:
    """Of wide weights, with a pilot that predicts them unless told otherwise."""
    found = pieces(WIDE, schedule=mixing(num_steps, predicted), **settings)
    assert found.status is Status.UNRELIABLE
    return found


def names_of(advice: Advice) -> list[str]:
    """The settings that are advised, in their order."""
    return [name for remedy in advice.remedies for name in remedy.settings]


def settings_of(advice: Advice) -> dict[str, Any]:
    """What to try next."""
    return {} if advice.next_try is None else advice.next_try.settings


# --- the order -------------------------------------------------------------------------------


def test_nothing_to_advise_where_all_is_well():
    assert advice_of(pieces(**EVERYTHING)) == Advice()


def test_remedies_come_in_the_order_of_what_they_are_worth():
    """One after the other drops out; the next try is always the first that is ready."""
    order = [
        (unreliable(**EVERYTHING), ["exact", "data", "base"], {"exact": True}),
        (unreliable(takes_data=True), ["data", "base", "method"], {"base": "fitted"}),
        (unreliable(), ["base", "method", "num_steps"], {"base": "fitted"}),
        (unreliable(second=None), ["method", "num_steps"], {"method": "exchange"}),
        (unreliable(base_reason="fitted: …"), ["method", "num_steps"], {"method": "exchange"}),
    ]
    for estimate, names, first in order:
        advice = advice_of(estimate)
        assert names_of(advice) == names  # three at most
        assert settings_of(advice) == first
        assert estimate.notes[-1] == advice


def test_the_advice_in_the_words_of_each_medium():
    estimate = unreliable(**EVERYTHING)
    assert estimate.messages[-1] == (
        "to do better: annealz.exact_log_z, the exact value by enumeration, or data=DATA, the training "
        'data or their means, or base="fitted", a base found by pilots.'
    )
    assert advice_of(estimate).in_words(in_options) == (
        "to do better: --exact, the exact value by enumeration, or --data DATA, the training data or "
        "their means, or --base fitted, a base found by pilots."
    )


def test_what_is_known_or_was_given_is_not_advised_again():
    exact = weights(5.0, 60.0)
    known = pieces(exact, schedule=mixing(100, 1e9), **EVERYTHING, exact_log_z=7.0)
    assert "exact" not in names_of(advice_of(known))
    for settings in ({"base": "base-rate"}, {"asked": {"data": OBJECT}}):
        advice = advice_of(unreliable(**{**EVERYTHING, **settings}))
        assert "data" not in names_of(advice)


def test_a_path_of_ones_own_can_only_be_annealed_longer():
    advice = advice_of(unreliable(asked={"path": OBJECT}, **EVERYTHING))
    assert names_of(advice) == [*settings_of(advice)] == ["num_steps"]


def test_a_second_opinion_that_contradicts_is_answered_by_a_better_base():
    advice = advice_of(pieces(told=HIGHER))
    assert settings_of(advice) == {"base": "fitted"}


def test_where_the_exact_value_is_known_it_is_all_that_is_wanted():
    found = pieces(exact_log_z=9.0, **EVERYTHING)
    assert [*found.findings] == [Kind.CONTRADICTS_EXACT]
    assert advice_of(found) == Advice()
    assert found.messages[-1].endswith("use the exact value.")


def test_too_few_to_diagnose_is_cured_by_more():
    few = pieces(weights(5.0, 0.04, 10))
    assert Kind.TOO_FEW_CHAINS in few.findings
    assert advice_of(few) == Advice(next_try=Remedy(num_chains=100))
    islands = dataclasses.replace(pieces(), judgement=judge_islands(np.zeros(2)))
    assert Kind.TOO_FEW_ISLANDS in islands.findings
    assert advice_of(islands) == Advice()


# --- more steps ------------------------------------------------------------------------------


def steps_of(estimate: Estimate) -> int | None:
    """The number of steps that is advised, wherever it comes."""
    request = dataclasses.replace(estimate.plan.request, path=OBJECT, objects=["path"])
    alone = dataclasses.replace(estimate, plan=dataclasses.replace(estimate.plan, request=request))
    return settings_of(advice_of(alone)).get("num_steps")


def test_steps_are_advised_where_the_pilot_predicts_an_effect():
    seen = judge(WIDE).variance
    assert steps_of(unreliable(100, 0.3 * seen)) is not None
    assert steps_of(unreliable(100, 0.2 * seen)) is None  # the chains are trapped
    assert "num_steps" not in names_of(advice_of(unreliable(100, 0.2 * seen, second=None)))


def test_as_many_steps_as_should_bring_the_variance_to_one():
    seen = judge(WIDE).variance
    steps = steps_of(unreliable(100, seen))
    assert steps is not None
    assert 100 * seen <= steps <= 1.1 * 100 * seen
    assert steps % 100 == 0  # two digits


def test_never_more_than_a_hundred_times_as_many():
    wider = pieces(weights(5.0, 4000.0), schedule=mixing(100, 4000.0))
    assert steps_of(wider) == 10_000


def test_weights_that_are_narrow_enough_need_no_steps():
    narrow = pieces(weights(5.0, 0.5), HIGHER, schedule=mixing(100, 0.5))
    assert narrow.status is Status.UNRELIABLE
    assert steps_of(narrow) is None


@pytest.mark.parametrize("cost", [3000.0, 20_000.0])
def test_steps_are_advised_once(cost: float, seed: int):
    """Var[log w] = cost / K, as the pilot says: the run with the advised steps is not sent on."""
    num_steps, advised = 200, []
    generator = np.random.default_rng(seed)
    while True:
        variance = cost / num_steps
        log_weights = generator.normal(0, np.sqrt(variance), 100)
        found = pieces(log_weights, HIGHER, schedule=mixing(num_steps, variance))
        steps = steps_of(found)
        if steps is None:
            break
        assert steps > num_steps
        num_steps = steps
        advised.append(steps)
    assert len(advised) == 1


def test_trapped_chains_are_not_sent_on_for_ever():
    """The weights stay as wide as they are, whatever the steps: the pilot's prediction falls."""
    num_steps, advised = 100, 0
    while (steps := steps_of(unreliable(num_steps, 6000 / num_steps))) is not None:
        num_steps, advised = steps, advised + 1
    assert advised == 1


def test_schedules_without_a_pilot_are_lengthened_up_to_the_usual_number():
    def advised(num_steps: int) -> int | None:
        return steps_of(pieces(WIDE, schedule=linear(num_steps)))

    assert (advised(100), advised(10_000), advised(10_001)) == (400, 40_000, None)


# --- replica exchange ------------------------------------------------------------------------


def exchange(num_sweeps: int, exact: float | None = None) -> ExchangeEstimate:
    """Without a single round trip, so that it is unreliable."""
    values = 7 + 0.01 * np.arange(16)
    one = Round(
        num_sweeps=num_sweeps,
        betas=np.array([0.0, 1.0]),
        rejections=np.array([0.5]),
        log_ratios=np.array([7.0]),
        log_z0=0.0,
        values=values,
        half_values=np.stack([values, values]),
        round_trips=np.zeros(16, int),
    )
    fields = {field.name for field in dataclasses.fields(Exchange)}
    given: dict[str, Any] = {"rounds": (one,), "seed": 0, "purpose": "exchange", "seconds": 0.0}
    found = Exchange(**{name: given.get(name, 16) for name in fields})
    request = ExchangeRequest(model="m.npz", num_steps=num_sweeps, seed=3)
    return ExchangeEstimate(plan_of(request, exact_log_z=exact), found)


def test_replicas_that_made_no_round_trip_are_given_more_sweeps():
    estimate = exchange(1000)
    assert estimate.status is Status.UNRELIABLE
    assert advice_of(estimate) == Advice(next_try=Remedy(num_steps=4000))
    again = "annealz estimate m.npz --method exchange --seed 3 --steps 4000"
    assert next_command(estimate) == again
    assert advice_of(exchange(20_000)) == Advice()
    assert advice_of(exchange(1000, exact=99.0)) == Advice()


# --- the command to type ---------------------------------------------------------------------

TYPED = "annealz estimate m.npz"


def test_the_exact_value():
    again = next_command(unreliable(asked={"num_steps": 100, "seed": 3}, **EVERYTHING))
    assert again == f"{TYPED} --base visible-bias --seed 3 --steps 100 --exact"


def test_a_fitted_base_takes_the_place_of_the_one_given():
    assert next_command(unreliable(asked={"seed": 3})) == f"{TYPED} --base fitted --seed 3"


def test_a_fitted_base_takes_no_data():
    """They would build another base, and are refused with this one."""
    again = next_command(unreliable(base="base-rate", asked={"data": OBJECT, "seed": 3}))
    assert again == f"{TYPED} --base fitted --seed 3"
    with pytest.raises(
        ValueError, match="data serve the base-rate base only, and the base is fitted"
    ):
        choose_problem(FERROMAGNET, base="fitted", data=np.full(12, 0.5))


def test_replica_exchange_takes_no_schedule():
    words = {"schedule": "linear", "num_chains": 50, "two_sided": True, "second_opinion": False}
    again = next_command(unreliable(second=None, asked={**words, "seed": 3}))
    assert again == f"{TYPED} --method exchange --seed 3"


def test_nobody_types_an_object():
    assert next_command(unreliable(asked={"path": OBJECT})) is None
    assert next_command(unreliable(asked={"model": OBJECT})) is None


@pytest.mark.parametrize("wish", [{"target_std_err": 0.1}, {"max_seconds": 9.0}])
def test_a_wish_decides_about_the_chains(wish: dict[str, float]):
    few = weights(5.0, 0.04, 10)
    assert next_command(pieces(few)) == f"{TYPED} --base visible-bias --seed 0 --chains 100"
    assert next_command(pieces(few, asked=wish)) is None
    assert next_command(unreliable(asked=wish)) is not None  # another base is no matter of chains


def test_a_file_decides_about_the_steps(tmp_path):
    linear(10).save(tmp_path / "s.json")
    asked = {"schedule": str(tmp_path / "s.json")}
    assert next_command(pieces(weights(5.0, 0.04, 10), asked=asked)) is None


def test_nothing_to_type_where_all_is_well():
    assert next_command(pieces()) is None

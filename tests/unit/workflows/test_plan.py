"""Schedules by name: each is made, charged and unbiased; a schedule made before is not charged."""

import json
from pathlib import Path

import numpy as np
import pytest

from annealz.api import estimate_log_z
from annealz.bases.bernoulli import BernoulliBase
from annealz.io.schedules import SCHEDULES, has_pilot
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.exact import exact_log_z
from annealz.paths.geometric import GeometricPath
from annealz.pilots.plan import pilot_sweeps, plan_schedule
from annealz.pilots.survey_mixing import LEAST_BUDGET
from annealz.schedules.rules import linear, sm08
from annealz.schedules.schedule import Schedule
from annealz.testing import assert_within_mc_error, random_rbm
from support.kernels import BiasedGibbs

MODEL = random_rbm(4, 6, 0.6, 11)
BASE = BernoulliBase.uniform(6)
PATH = GeometricPath(BASE, MODEL)
EXACT = exact_log_z(MODEL)
STEPS = 400  # so that 0.003 is feasible
CHAINS = 300

TOTAL = STEPS * CHAINS * 20 // 19  # pilot of mixing and run

names = pytest.mark.parametrize("name", SCHEDULES.names())


@pytest.fixture(autouse=True)
def _small_knots(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gms13 pilot at the paper's size takes a minute; 60 sweeps a knot will do here."""
    monkeypatch.setattr("annealz.pilots.plan._num_updates", lambda pilot_scale: 60)


def test_the_names_are_mixing_and_those_of_the_paper():
    assert SCHEDULES.names() == (
        "mixing", "linear", "sm08", "gms13", "varopt", "varopt-0.009", "varopt-0.006", "varopt-0.003",
        "varopt-fixed-point",
    )  # fmt: skip


def check_spent(spent: int, name: str) -> None:
    """What a pilot cost is what it was said to; mixing stops where it knows enough."""
    allowed = pilot_sweeps(name, TOTAL)
    assert (allowed > 0) == (has_pilot(name))
    assert (0 < spent <= allowed) if name == "mixing" else (spent == allowed)


@names
def test_every_name_gives_a_schedule(name: str, seed: int):
    schedule = plan_schedule(
        name, PATH, BlockGibbs(), num_steps=STEPS, num_chains=CHAINS, seed=seed
    )
    assert schedule.name == name
    assert schedule.num_steps == STEPS
    check_spent(schedule.provenance.get("pilot_sweeps", 0), name)
    json.dumps(schedule.provenance, allow_nan=False)
    if name.startswith("varopt-0"):
        assert np.diff(schedule.betas).max() <= float(name[7:]) * (1 + 1e-9)
    if name.startswith("varopt"):
        assert schedule.provenance["predicted_gain"] > 0.9


@names
def test_every_name_estimates_log_z(name: str, seed: int):
    result = estimate_log_z(
        MODEL,
        schedule=name,
        num_steps=STEPS,
        num_chains=CHAINS,
        base=BASE,
        seed=seed,
        second_opinion=False,
    )
    assert_within_mc_error(result.log_z, EXACT, result.std_err)
    assert result.schedule.name == name
    assert result.sweeps["main"] == STEPS * CHAINS
    check_spent(result.sweeps["pilot"], name)


def test_the_pilot_of_the_paper_is_charged():
    """As the names are documented: 100,000 sweeps, and 60,000,000 at knots."""
    from annealz.pilots import plan

    assert pilot_sweeps("varopt", TOTAL) == 1000 * 100
    assert plan._KNOTS == {"num_knots": 10, "num_chains": 1000}
    assert pilot_sweeps("linear", TOTAL) == pilot_sweeps("sm08", TOTAL) == 0


def test_the_pilot_of_mixing_is_a_twentieth():
    assert pilot_sweeps("mixing", 10_000_000) == 500_000
    assert pilot_sweeps("mixing", 1000) == LEAST_BUDGET
    made = plan_schedule("mixing", PATH, BlockGibbs(), num_steps=1900, num_chains=1000)
    assert made.provenance["budget"] == 100_000  # pilot and run are 2,000,000 sweeps
    few = plan_schedule("mixing", PATH, BlockGibbs(), num_steps=190, num_chains=1000)
    assert few.provenance["budget"] == 10_000


def test_the_gms13_pilot_scales(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.undo()
    assert pilot_sweeps("gms13", TOTAL) == 10 * 1000 * 6000
    assert pilot_sweeps("gms13", TOTAL, 0.01) == 10 * 1000 * 60
    made = plan_schedule("gms13", PATH, BlockGibbs(), num_steps=50, pilot_scale=0.01)
    assert made.provenance["pilot_sweeps"] == 10 * 1000 * 60
    assert made.provenance["num_burn_in"] == 10


@pytest.mark.parametrize(
    "name", ["nope", "varopt-", "varopt-fast", "varopt-inf", "varopt_0.1", "GMS13", ""]
)
def test_unknown_names_list_all(name: str, monkeypatch: pytest.MonkeyPatch):
    for pilot in ("survey", "survey_knots", "survey_mixing"):  # none is run first
        monkeypatch.setattr(f"annealz.pilots.plan.{pilot}", None)
    with pytest.raises(ValueError, match="unknown schedule") as caught:
        plan_schedule(name, PATH, BlockGibbs(), num_steps=50)
    for known in SCHEDULES.names():
        assert known in str(caught.value)


def test_infeasible_limits_are_refused_before_the_pilot(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("annealz.pilots.plan.survey", None)
    for call in (
        lambda: plan_schedule("varopt-0.009", PATH, BlockGibbs(), num_steps=50),
        lambda: estimate_log_z(MODEL, schedule="varopt-0.009", num_steps=50),
    ):
        with pytest.raises(
            ValueError, match=r"0\.009 is infeasible .*smallest feasible one is 0\.02"
        ):
            call()


@pytest.mark.parametrize("name", ["mixing", "varopt", "gms13", "linear"])
def test_no_steps_are_refused(name: str):
    with pytest.raises(ValueError, match="num_steps must be from 1"):
        plan_schedule(name, PATH, BlockGibbs(), num_steps=0)


def test_any_limit_is_a_name():
    made = plan_schedule("varopt-0.04", PATH, BlockGibbs(), num_steps=50)
    assert made.name == "varopt-0.04"
    assert np.diff(made.betas).max() <= 0.04 * (1 + 1e-9)


def test_other_schedules_pass_through(tmp_path: Path):
    assert plan_schedule("sm08", PATH, BlockGibbs(), num_steps=77) == sm08(77)
    mine = Schedule(np.linspace(0, 1, 9) ** 2)
    assert plan_schedule(mine, PATH, BlockGibbs()) is mine
    assert plan_schedule(mine.betas, PATH, BlockGibbs()) == mine
    mine.save(tmp_path / "varopt-mine")  # a file is a file, whatever its name
    assert plan_schedule(str(tmp_path / "varopt-mine"), PATH, BlockGibbs()) == mine


def test_a_file_called_varopt_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    mine = linear(5)
    mine.save("varopt-mine")
    assert plan_schedule("varopt-mine", PATH, BlockGibbs()) == mine


def test_a_schedule_made_before_is_not_charged_again(tmp_path: Path, seed: int):
    made = plan_schedule("varopt", PATH, BlockGibbs(), num_steps=50, seed=seed)
    assert made.provenance["pilot_sweeps"] == 100_000
    made.save(tmp_path / "made.json")
    settings = {"num_chains": CHAINS, "base": BASE, "seed": seed, "second_opinion": False}
    for given in (made, tmp_path / "made.json", str(tmp_path / "made.json"), made.betas):
        result = estimate_log_z(MODEL, schedule=given, **settings)
        assert result.sweeps == {"pilot": 0, "main": 50 * CHAINS}
        assert result.schedule == made
    named = estimate_log_z(MODEL, schedule="varopt", num_steps=50, **settings)
    assert named.sweeps == {"pilot": 100_000, "main": 50 * CHAINS}
    np.testing.assert_array_equal(
        named.log_weights, result.log_weights
    )  # the pilot is in no weight


def test_equal_seeds_give_equal_schedules(seed: int):
    for name in ("mixing", "varopt", "gms13"):
        one, same, other = (
            plan_schedule(name, PATH, BlockGibbs(), num_steps=50, seed=s)
            for s in (seed, seed, seed + 1)
        )
        assert one == same
        assert one != other


# --- unbiased --------------------------------------------------------------------------------


def relative_z(seed: int, num_seeds: int, num_steps: int, name: str) -> tuple[float, float]:
    """Mean over seeds of Z estimated / Z, pilot and schedule anew each, and its standard error."""
    ratios = np.array(
        [
            np.exp(
                estimate_log_z(
                    MODEL, schedule=name, num_steps=num_steps, num_chains=CHAINS, base=BASE,
                    seed=seed + i, record_every=num_steps, second_opinion=False,
                ).log_z
                - EXACT
            )
            for i in range(num_seeds)
        ]
    )  # fmt: skip
    return ratios.mean(), ratios.std(ddof=1) / np.sqrt(num_seeds)


@pytest.fixture
def _small_pilot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("annealz.pilots.plan._PILOT", {"num_steps": 100, "num_chains": 100})


@pytest.mark.usefixtures("_small_pilot")
@pytest.mark.parametrize(("name", "num_seeds"), [("varopt", 40), ("mixing", 100)])
def test_adapted_schedules_are_unbiased(name: str, num_seeds: int, seed: int):
    mean, std_err = relative_z(seed, num_seeds, 20, name)
    assert_within_mc_error(mean, 1.0, std_err, num_replicates=num_seeds)


@pytest.mark.usefixtures("_small_pilot")
@pytest.mark.parametrize("name", ["varopt", "mixing"])
def test_a_biased_coin_is_seen(name: str, seed: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("annealz.RBM.kernel", lambda model: BiasedGibbs())
    mean, std_err = relative_z(seed, 40, 20, name)
    with pytest.raises(AssertionError, match="z = "):
        assert_within_mc_error(mean, 1.0, std_err, num_replicates=40)

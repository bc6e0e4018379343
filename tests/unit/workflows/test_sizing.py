"""What a wanted standard error takes: foretold, refused where out of reach, and kept."""

import dataclasses
import re

import numpy as np
import pytest

import annealz
from annealz.bases.bernoulli import BernoulliBase
from annealz.core.cost import Cost
from annealz.core.weights import delta_std_err
from annealz.engine import blocks
from annealz.engine.anneal import anneal
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.geometric import GeometricPath
from annealz.pilots import sizing
from annealz.pilots.sizing import Forecast, forecast, more_chains
from annealz.pilots.survey_mixing import survey_mixing
from annealz.schedules.rules import linear, mixing
from annealz.testing import random_rbm

MODEL = random_rbm(6, 9, 0.8, seed=4)
HARD = random_rbm(6, 9, 3.0, seed=4)
SETTINGS = {
    "schedule": "linear",
    "num_steps": 20,
    "base": "visible-bias",
    "second_opinion": False,
}


def path_of(model: annealz.RBM) -> GeometricPath:
    return GeometricPath(BernoulliBase.from_logits(np.zeros(9)), model)


def sizing_run(model: annealz.RBM, schedule, seed: int) -> annealz.Run:
    return anneal(
        path_of(model), BlockGibbs(), schedule, num_chains=200, seed=seed, purpose="sizing"
    )


@pytest.fixture
def untimed(monkeypatch) -> None:
    """Nothing is compiled to be timed."""
    timing = sizing.Timing(pace=1e-6)
    monkeypatch.setattr(sizing, "time_steps", lambda *arguments: timing)


# --- steps ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length_squared", "steps"),
    [(1e-9, 500), (501, 510), (600, 600), (2345.6, 2400), (12_001, 13_000), (1e9, 50_000)],
)
def test_the_first_guess_is_of_variance_one_to_two_digits(length_squared, steps):
    assert sizing._first_steps(length_squared) == steps


@pytest.mark.usefixtures("untimed")
def test_the_first_guess_is_that_of_the_survey(monkeypatch, seed: int):
    monkeypatch.setattr(sizing, "_LEAST_STEPS", 3)
    path, kernel = path_of(MODEL), BlockGibbs()
    ahead = forecast(path, kernel, "mixing", 0.05, seed=seed)
    terrain = survey_mixing(path, kernel, budget=200_000, seed=seed)
    length_squared = mixing(terrain, 1).provenance["predicted_variance"]
    assert length_squared <= ahead.num_steps <= 1.11 * length_squared
    assert ahead.schedule.name == "mixing"


@pytest.mark.usefixtures("untimed")
def test_hard_models_get_longer_chains_and_easy_ones_do_not(monkeypatch, seed: int):
    for name in ("_LEAST_STEPS", "_MOST_STEPS"):
        monkeypatch.setattr(sizing, name, 4)
    easy = forecast(path_of(MODEL), BlockGibbs(), "mixing", 0.005, seed=seed)
    hard = forecast(path_of(HARD), BlockGibbs(), "mixing", 0.01, seed=seed)
    assert easy.num_steps == 4
    assert hard.num_steps in (16, 64)


@pytest.mark.usefixtures("untimed")
def test_longer_chains_are_tried_only_where_that_costs_little(monkeypatch, seed: int):
    """The sweeps of 200 chains of 4, 16 and perhaps 64 steps; for a large error of 4 alone."""
    monkeypatch.setattr(sizing, "_FIRST_STEPS", 4)
    hard = forecast(path_of(HARD), BlockGibbs(), "linear", 0.01, seed=seed)
    assert hard.cost.sweeps in (200 * (4 + 16), 200 * (4 + 16 + 64))
    rough = forecast(path_of(HARD), BlockGibbs(), "linear", 0.5, seed=seed)
    assert (rough.num_steps, rough.cost.sweeps) == (4, 200 * 4)


@pytest.mark.usefixtures("untimed")
def test_an_error_that_too_few_chains_tell_does_not_win(monkeypatch):
    """One chain carries a sizing run: its apparent error says nothing, whatever it seems to cost."""
    monkeypatch.setattr(sizing, "_FIRST_STEPS", 4)
    spread = {4: 30.0, 16: 1.0}
    real = sizing.anneal

    def run_of(*arguments, **options):
        run = real(*arguments, **options)
        log_weights = np.random.default_rng(0).normal(0, spread.get(run.num_steps, 1.0), 200)
        return dataclasses.replace(run, log_weights=log_weights)

    monkeypatch.setattr(sizing, "anneal", run_of)
    monkeypatch.setattr(sizing, "delta_std_err", lambda weights: 0.1)
    ahead = forecast(path_of(HARD), BlockGibbs(), "linear", 0.01)
    assert ahead.num_steps == 16


@pytest.mark.usefixtures("untimed")
def test_given_steps_are_kept(seed: int):
    betas = np.linspace(0, 1, 21) ** 2
    ahead = forecast(path_of(HARD), BlockGibbs(), betas, 0.05, seed=seed)
    assert np.array_equal(ahead.schedule.betas, betas)
    assert forecast(path_of(HARD), BlockGibbs(), "sm08", 0.05, num_steps=30).num_steps == 30


@pytest.mark.usefixtures("untimed")
def test_under_a_time_limit_nothing_longer_is_tried_once_its_share_is_spent(monkeypatch):
    monkeypatch.setattr(sizing, "_FIRST_STEPS", 4)
    ahead = forecast(path_of(HARD), BlockGibbs(), "linear", 0.01, max_seconds=1e-6)
    assert ahead.num_steps == 4


# --- chains -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("untimed")
def test_chains_are_those_of_the_sizing_run(seed: int):
    ahead = forecast(path_of(MODEL), BlockGibbs(), "linear", 0.01, num_steps=20, seed=seed)
    error = delta_std_err(sizing_run(MODEL, linear(20), seed).log_weights)
    assert ahead.num_chains == np.ceil(1.3 * 200 * (error / 0.01) ** 2)
    assert forecast(path_of(MODEL), BlockGibbs(), "linear", 9.0, num_steps=20).num_chains == 100


def test_more_chains_by_hand(seed: int):
    """1.1 N (s / target)^2 in all, at least 100 and at most 4 N more."""
    log_weights = np.random.default_rng(seed).normal(0, 1, 1000)
    error = delta_std_err(log_weights)
    assert more_chains(log_weights, error) == 0
    assert more_chains(log_weights, error / 1.001) == pytest.approx(102, abs=2)
    assert more_chains(log_weights, error / np.sqrt(2)) == pytest.approx(1200, abs=1)
    assert more_chains(log_weights, error / 10) == 4000
    assert more_chains(np.full(50, 3.0), 1e-9) == 0


@pytest.mark.usefixtures("untimed")
def test_out_of_reach_is_refused_with_what_can_be_reached(monkeypatch, seed: int):
    monkeypatch.setattr(sizing, "_MAX_CHAINS", 5000)
    with pytest.raises(ValueError, match="out of reach with 20 steps") as refusal:
        forecast(path_of(MODEL), BlockGibbs(), "linear", 1e-4, num_steps=20, seed=seed)
    reachable = float(re.search(r"million (\S+) can be reached", str(refusal.value))[1])
    error = delta_std_err(sizing_run(MODEL, linear(20), seed).log_weights)
    assert reachable == pytest.approx(error * np.sqrt(1.3 * 200 / 5000), rel=0.05)
    ahead = forecast(
        path_of(MODEL), BlockGibbs(), "linear", 1.05 * reachable, num_steps=20, seed=seed
    )
    assert ahead.num_chains <= 5000


# --- cost -------------------------------------------------------------------------------------


def test_the_forecast_is_what_is_run(seed: int):
    """And every sweep before it is charged: sizing, and the timing of 1 and 48 steps."""
    seen = []
    result = annealz.estimate_log_z(
        MODEL, target_std_err=0.01, seed=seed, on_forecast=seen.append, **SETTINGS
    )
    (ahead,) = seen
    assert (ahead.num_steps, ahead.num_chains) == (20, result.num_chains)
    assert ahead.sweeps == result.sweeps["main"]
    timing = 49 * sizing.block_size(ahead.num_chains)
    assert ahead.cost.sweeps == result.sweeps["pilot"] == 20 * 200 + timing
    assert ahead.seconds > 0
    assert result.seconds == pytest.approx(ahead.cost.seconds + result.run.seconds)
    again = annealz.estimate_log_z(MODEL, num_chains=result.num_chains, seed=seed, **SETTINGS)
    assert np.array_equal(again.log_weights, result.log_weights)  # the sizing run left no trace


@pytest.mark.usefixtures("untimed")
def test_surveys_are_charged_beside_the_sizing_runs(monkeypatch, seed: int):
    """That of the first guess, and that of the schedule of every rung."""
    for name in ("_LEAST_STEPS", "_MOST_STEPS"):
        monkeypatch.setattr(sizing, name, 4)
    surveys, rungs = [], []
    real_plan, real_survey = sizing.plan_schedule, sizing.survey_mixing

    def survey(*arguments, **options):
        surveys.append(real_survey(*arguments, **options))
        return surveys[-1]

    def plan(*arguments, **options):
        rungs.append(real_plan(*arguments, **options))
        return rungs[-1]

    monkeypatch.setattr(sizing, "survey_mixing", survey)
    monkeypatch.setattr(sizing, "plan_schedule", plan)
    ahead = forecast(path_of(HARD), BlockGibbs(), "mixing", 0.01, seed=seed)
    assert len(rungs) > 1
    spent = sum(200 * rung.num_steps + rung.provenance["pilot_sweeps"] for rung in rungs)
    assert ahead.cost.sweeps == surveys[0].sweeps + spent


def test_the_forecast_in_words():
    ahead = Forecast(linear(20), 4000, 0.01, 50.0, Cost(10, 0, 5.0))
    words = (
        "4,000 chains of 20 steps should reach a standard error of 0.01: 80,000 sweeps, about 50.0 s "
        "after 5.0 s of pilots"
    )
    assert str(ahead) == words
    assert str(ahead._replace(max_seconds=60.0)) == words
    short = str(ahead._replace(max_seconds=17.5))
    assert short == (
        f"{words}; the 12 s that are left allow about 1,000 of them, for an error of 0.02"
    )
    assert "the 0 s that are left allow about 1 of them" in str(ahead._replace(max_seconds=1.0))


# --- kept -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("untimed")
def test_the_wanted_error_is_met_over_many_seeds(monkeypatch):
    """Errors against the exact value have the wanted size, and a target twice as small costs four times."""
    monkeypatch.setitem(blocks._MAX_BLOCK, "cpu", 64)  # few shapes to compile
    exact = annealz.exact_log_z(MODEL)
    runs = [
        annealz.estimate_log_z(MODEL, target_std_err=0.03, seed=seed, **SETTINGS)
        for seed in range(16)
    ]
    error = np.sqrt(np.mean([(run.log_z - exact) ** 2 for run in runs]))
    assert error < 0.03 * 1.5  # 16 seeds tell it to 18 %
    assert all(run.std_err <= 1.05 * 0.03 for run in runs)
    assert np.mean([run.std_err <= 0.03 for run in runs]) > 0.9
    wide, narrow = (
        forecast(path_of(MODEL), BlockGibbs(), "linear", error, num_steps=20).num_chains
        for error in (0.03, 0.015)
    )
    assert narrow / wide == pytest.approx(4, rel=0.02)

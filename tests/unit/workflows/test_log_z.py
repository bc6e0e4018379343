"""The front door's ways to run: in parts, to a wanted error, in limited time, from two sides, resampled."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import annealz
from annealz.core.cost import Cost
from annealz.core.weights import effective_sample_size, log_mean
from annealz.diagnostics.findings import Kind, Remedy
from annealz.io.store import Store
from annealz.methods.annealing import diagnose, plan, size
from annealz.methods.annealing import method as run
from annealz.methods.annealing.advice import advice_of
from annealz.models.exact import exact_samples
from annealz.pilots import sizing
from annealz.pilots.base_search import BaseSearch
from annealz.pilots.sizing import Timing, more_chains
from annealz.schedules import choose
from annealz.testing import assert_within_mc_error, random_rbm

MODEL = random_rbm(5, 8, 0.7, seed=11)
HARD = random_rbm(5, 8, 2.0, seed=11)
LARGE = random_rbm(26, 27, 0.1, seed=3)  # no layer can be enumerated
PLAIN = {"base": "visible-bias", "second_opinion": False}  # one base, no search
STEPS = {"schedule": "linear", "num_steps": 40, **PLAIN}
MEANS = {"mean": lambda v: v}  # one object: every run that observes it shares its programs


def words_of(kind: Kind) -> str:
    """How a message begins."""
    return kind.words.split("{")[0]


def stop_after(name: str, folder: Path):
    """An on_progress that interrupts the run in the middle, once this file is there."""

    def stop(progress):
        if (folder / name).exists() and progress.step >= 20:
            raise KeyboardInterrupt

    return stop


def interrupted(folder: Path, name: str, model=MODEL, **settings) -> annealz.Estimate:
    """A run that was stopped in the middle of what comes after this file, and resumed."""
    with pytest.raises(KeyboardInterrupt):
        annealz.estimate_log_z(
            model, out=folder, chunk_steps=10, on_progress=stop_after(name, folder), **settings
        )
    assert Store(folder).has_progress
    assert not Store(folder).is_done
    return annealz.resume(folder, observe=settings.get("observe"))


def without_seconds(result: annealz.Estimate) -> dict:
    return {name: value for name, value in result.to_dict().items() if name != "seconds"}


def check_equal(one: annealz.Estimate, two: annealz.Estimate) -> None:
    """To the last bit, but for the seconds and the sweeps of pilots that a patched clock hides."""
    assert without_seconds(one) == without_seconds(two)
    assert np.array_equal(one.log_weights, two.log_weights)
    for name, mean in one.trace.means.items():
        assert np.array_equal(mean, two.trace.means[name])
    assert (one.reverse is None) == (two.reverse is None)
    if one.reverse is not None and two.reverse is not None:
        assert np.array_equal(one.reverse.log_weights, two.reverse.log_weights)


# --- a wanted error ---------------------------------------------------------------------------

WANTED = {"target_std_err": 0.02, "seed": 7, "observe": MEANS, **STEPS}


@pytest.fixture
def missed(monkeypatch) -> None:
    """Sizing is too hopeful by a factor of four; nothing is timed."""
    monkeypatch.setattr(sizing, "_RESERVE", 0.25)
    monkeypatch.setattr(sizing, "time_steps", lambda *arguments: Timing(1e-9))


@pytest.mark.usefixtures("missed")
def test_a_run_that_missed_its_target_goes_on_once(tmp_path: Path):
    seen = []
    result = annealz.estimate_log_z(HARD, out=tmp_path / "r", on_forecast=seen.append, **WANTED)
    first = seen[0].num_chains
    alone = annealz.estimate_log_z(HARD, num_chains=first, seed=7, observe=MEANS, **STEPS)
    assert alone.std_err > 0.02
    assert np.array_equal(result.log_weights[:first], alone.log_weights)
    more = more_chains(alone.log_weights, 0.02)
    assert result.num_chains == first + more
    path = annealz.GeometricPath(HARD.choose_base("visible-bias"), HARD)
    second = annealz.anneal(
        path, annealz.BlockGibbs(), annealz.linear(40), num_chains=more, seed=7, purpose="anneal 2",
        observers=run.observers_of(MEANS),
    )  # fmt: skip
    assert np.array_equal(result.log_weights[first:], second.log_weights)
    assert result.log_z == pytest.approx(result.run.log_z0 + log_mean(result.log_weights))
    assert result.trace.ess[-1] == pytest.approx(effective_sample_size(result.log_weights), 1e-4)
    assert result.trace.means["mean"].shape == (40, 8)
    assert result.sweeps["main"] == 40 * result.num_chains
    assert_within_mc_error(result.log_z, result.exact_log_z, result.std_err)
    check_equal(annealz.resume(tmp_path / "r"), result)
    assert {p.name for p in (tmp_path / "r").iterdir()} == {
        "run.json", "inputs.npz", "part-forward-1.npz", "part-forward-2.npz", "result.json",
    }  # fmt: skip


@pytest.mark.usefixtures("missed")
def test_the_second_part_is_resumed_to_the_same_bits(tmp_path: Path):
    resumed = interrupted(tmp_path / "r", "part-forward-1.npz", HARD, **WANTED)
    whole = annealz.estimate_log_z(HARD, **WANTED)
    assert resumed.num_chains > resumed.plan.num_chains
    check_equal(resumed, whole)


def test_a_target_that_is_missed_again_is_said(monkeypatch):
    """And the run goes on no further."""
    monkeypatch.setattr(sizing, "_RESERVE", 0.02)
    monkeypatch.setattr(sizing, "_MOST_MORE", 1)
    result = annealz.estimate_log_z(HARD, **WANTED)
    assert result.num_chains == 2 * result.plan.num_chains
    assert result.std_err > 0.02
    (message,) = [m for m in result.messages if m.startswith(words_of(Kind.MISSED_TARGET))]
    assert message.endswith("try target_std_err=0.03, or more steps.")


def test_a_full_disk_between_parts_stops_nothing(tmp_path: Path, missed, monkeypatch):
    def full(path, *rest):
        raise OSError(28, "No space left on device")

    whole = annealz.estimate_log_z(HARD, **WANTED)
    create = Store.create

    def create_then_fill(self, *arguments):
        create(self, *arguments)
        monkeypatch.setattr("annealz.io.store.save_archive", full)

    monkeypatch.setattr(Store, "create", create_then_fill)
    result = annealz.estimate_log_z(HARD, out=tmp_path / "r", **WANTED)
    assert np.array_equal(result.log_weights, whole.log_weights)
    assert any("could not save the result" in message for message in result.messages)


# --- limited time -----------------------------------------------------------------------------

HOUR = 3600.0


def in_time(
    monkeypatch, *, pace: float, seconds: float, spent: float = 0.0, **settings
) -> annealz.Estimate:
    """A run on a machine of this speed, each part of which takes so many seconds."""
    real = run.anneal

    def run_of(*arguments, **options):
        return dataclasses.replace(real(*arguments, **options), seconds=seconds)

    for module in (plan, size, sizing):
        monkeypatch.setattr(
            module, "time_steps", lambda *arguments: Timing(pace, Cost(123, 0, spent))
        )
    monkeypatch.setattr(run, "anneal", run_of)
    return annealz.estimate_log_z(MODEL, seed=3, **settings)


def out_of_time(result: annealz.Estimate) -> list[str]:
    return [m for m in result.messages if m.startswith("time limit of ")]


def test_what_fits_is_run_in_parts_to_the_end(monkeypatch):
    result = in_time(monkeypatch, pace=1e-9, seconds=1.0, num_chains=250, max_seconds=HOUR, **STEPS)
    assert (result.num_chains, result.num_steps) == (250, 40)
    assert out_of_time(result) == []
    assert result.sweeps == {"pilot": 123, "main": 40 * 250}
    assert np.unique(result.log_weights).size > 235  # every part has bits of its own
    assert_within_mc_error(result.log_z, result.exact_log_z, result.std_err)


@pytest.mark.parametrize(("seconds", "parts"), [(10.0, 2), (100.0, 1)])
def test_where_time_runs_out_the_chains_that_are_done_count(monkeypatch, seconds, parts):
    """Of 4 parts: 2 of 10 s each leave 5 of 25 s; one of 100 s is run all the same."""
    result = in_time(
        monkeypatch, pace=1e-9, seconds=seconds, num_chains=200, max_seconds=25.0, **STEPS
    )
    assert result.num_chains == 50 * parts
    assert out_of_time(result) == [
        f"time limit of 25 s reached after {50 * parts} of 200 chains; try max_seconds=38, for all of them."
    ]
    whole = annealz.estimate_log_z(MODEL, seed=3, num_chains=50, **STEPS)
    assert np.array_equal(result.log_weights[:50], whole.log_weights)


def test_fewer_chains_first_then_shorter_ones(monkeypatch):
    """0.8 of the time for 1,000 steps of 1,000 chains that would take four times or a hundred as long."""
    for module in (size, choose, diagnose):
        monkeypatch.setattr(module, "DEFAULT_NUM_STEPS", 1000)
    options = {"seconds": 0.0, "schedule": "linear", "max_seconds": 10.0, **PLAIN}
    fewer = in_time(monkeypatch, pace=10.0 * 0.8 / 452_000, **options)
    assert (fewer.num_steps, fewer.num_chains) == (1000, 400)  # two parts of 200
    assert "reached after 400 of 1000 chains" in out_of_time(fewer)[0]
    shorter = in_time(monkeypatch, pace=10.0 * 0.8 / 5150, **options)
    assert (shorter.num_steps, shorter.num_chains) == (25, 200)
    assert "the time limit of 10 s left 25 of 1000 steps." in shorter.messages
    assert (
        "try max_seconds=2000, for all of them" in out_of_time(shorter)[0]
    )  # 1,553 s, a quarter more
    fixed = in_time(monkeypatch, pace=10.0 * 0.8 / 5150, num_steps=40, **options)
    assert (fixed.num_steps, fixed.num_chains) == (40, 200)
    assert fixed.plan.part_chains == 50  # to stop between them
    own = options | {"schedule": np.linspace(0, 1, 31)}
    assert in_time(monkeypatch, pace=10.0 * 0.8 / 5150, **own).num_steps == 30


def test_one_width_serves_timing_parts_and_second_opinion(monkeypatch):
    """So that one compiled program does."""
    widths = []
    real = run.anneal

    def seen(*arguments, **options):
        widths.append(options["num_chains"])
        return real(*arguments, **options)

    def timed(path, kernel, num_chains, seed):
        widths.append(num_chains)
        return Timing(1e-9)

    for module in (plan, size):
        monkeypatch.setattr(module, "time_steps", timed)
    monkeypatch.setattr(run, "anneal", seen)
    result = annealz.estimate_log_z(
        MODEL, base="uniform", schedule="linear", num_steps=20, num_chains=400, max_seconds=HOUR
    )
    assert result.second_opinion is not None
    assert widths == [200] * 5 + [
        100
    ]  # timed twice, two parts, second opinion, and half of its ends
    assert (size.part_width(1000), size.part_width(256), size.part_width(200)) == (
        200,
        64,
        50,
    )


SHORT = {"base": "uniform", "schedule": "linear", "num_steps": 40, "num_chains": 400}


def test_what_no_second_opinion_confirms_is_not_ok(monkeypatch):
    """Time ran out after the first runs, or before a second base was tried; an exact value serves too."""
    options = {"pace": 1e-9, "seconds": 30.0, "max_seconds": 10.0, **SHORT}
    known = in_time(monkeypatch, **options)
    assert known.second_opinion is None
    assert known.exact_log_z is not None
    assert Kind.UNCONFIRMED not in known.findings
    monkeypatch.setattr(type(MODEL), "exact_log_z_if_cheap", lambda self: None)
    late = in_time(monkeypatch, **options)
    assert late.second_opinion is None
    assert late.status == "unreliable"
    assert late.findings[Kind.UNCONFIRMED].numbers == {"limit": 10.0}
    monkeypatch.setattr(plan, "_SEARCH_TIME", -1e9)
    early = in_time(monkeypatch, **(options | {"seconds": 0.0, "max_seconds": HOUR}))
    assert early.plan.second is None
    assert early.num_chains == 400
    assert early.status == "unreliable"
    assert any("nothing shows that chains found all of the mass" in m for m in early.messages)
    assert advice_of(early).next_try == Remedy(max_seconds=7200)
    refused = in_time(
        monkeypatch, **(options | {"seconds": 0.0, "max_seconds": HOUR}), second_opinion=False
    )
    assert refused.status == "ok"


def test_the_way_back_is_left_out_where_second_chains_say_enough(monkeypatch):
    """9 s of 25 each: the third would end after 27."""
    options = {"pace": 1e-9, "seconds": 9.0, "max_seconds": 25.0, **SHORT, "num_chains": 200}
    monkeypatch.setattr(size, "part_width", lambda num_chains: num_chains)
    monkeypatch.setattr(type(MODEL), "exact_log_z_if_cheap", lambda self: None)
    result = in_time(monkeypatch, **options)
    assert result.second_opinion is not None
    assert result.runs.probe is None
    assert result.status == "ok"
    poor = result.runs._replace(second=dataclasses.replace(result.runs.second, log_weights=
        np.r_[50.0, result.runs.second.log_weights[1:]]))  # fmt: skip
    assert Kind.UNPROBED in diagnose.diagnose(result.plan, poor).findings
    assert in_time(monkeypatch, **(options | {"max_seconds": 28.0})).runs.probe is not None


def test_what_pilots_took_leaves_a_quarter_to_the_run(monkeypatch):
    """50 s of compilation, of 10 that are allowed: a run of 2.5 s follows, and the 50 s are reported."""
    result = in_time(
        monkeypatch, pace=1e-9, seconds=0.5, spent=50.0, num_chains=200, max_seconds=10.0, **STEPS
    )
    assert result.num_chains == 200  # in 4 parts, of 2 s together
    assert any(m.startswith("pilots and compilation took 50.0 s, more") for m in result.messages)


def test_a_density_takes_a_time_limit():
    """Its kernel cannot step before a pilot has tuned it: nothing may be timed before."""
    model = annealz.LogDensity(lambda x: -(x**2).sum() / 2, 2)
    result = annealz.estimate_log_z(model, num_steps=60, num_chains=60, max_seconds=HOUR)
    assert_within_mc_error(result.log_z, np.log(2 * np.pi), result.std_err)


def test_a_limit_takes_no_more_steps_of_a_density_than_it_needs():
    """The survey chooses them, as without a limit; and what is left out is counted from there."""
    model = annealz.LogDensity(lambda x: -(x**2).sum() / 2, 2)
    options = {"base": "standard", "second_opinion": False}
    free = annealz.estimate_log_z(model, **options)
    ample = annealz.estimate_log_z(model, max_seconds=HOUR, **options)
    assert ample.num_steps == free.num_steps < 1000
    assert ample.num_chains == free.num_chains
    assert not ample.findings
    short = annealz.estimate_log_z(model, max_seconds=1e-3, **options)
    assert short.num_chains < free.num_chains
    assert short.findings[Kind.SHORTENED].numbers["wanted"] == free.num_steps


def test_no_time_at_all_still_gives_an_estimate_that_can_be_judged(monkeypatch):
    seen = []
    result = in_time(
        monkeypatch, pace=1.0, seconds=1.0, max_seconds=1e-3, target_std_err=0.02,
        on_forecast=seen.append, **STEPS,
    )  # fmt: skip
    assert result.num_chains == 25
    assert f"reached after 25 of {seen[0].num_chains} chains" in out_of_time(result)[0]
    assert any(m.startswith(words_of(Kind.MISSED_TARGET)) for m in result.messages)
    assert "the 0 s that are left" in str(seen[0])


def test_pilots_for_bases_keep_the_limit_too(monkeypatch):
    """0.8 of 10 s at 1 ms a sweep are 8 steps of 1,000 chains."""
    seen = []

    def search(self, **options):
        seen.append(self.num_steps)
        raise KeyboardInterrupt

    monkeypatch.setattr(BaseSearch, "both", search)
    monkeypatch.setattr("annealz.methods.problem._MAX_ENUMERATED_UNITS", 0)  # no simpler way
    monkeypatch.setattr(plan, "time_steps", lambda *arguments: Timing(1e-3, Cost(5)))
    for limit in ({"max_seconds": 10.0}, {}, {"schedule": np.linspace(0, 1, 31)}):
        with pytest.raises(KeyboardInterrupt):
            annealz.estimate_log_z(MODEL, **limit)
    assert seen == [8, 10_000, 30]


def test_a_run_in_parts_is_resumed_to_the_same_bits(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(plan, "time_steps", lambda *arguments: Timing(1e-9))
    settings = {"num_chains": 200, "max_seconds": HOUR, "seed": 3, **STEPS}
    resumed = interrupted(tmp_path / "r", "part-forward-3.npz", **settings)
    check_equal(resumed, annealz.estimate_log_z(MODEL, **settings))


# --- two sides --------------------------------------------------------------------------------

BOTH = {"num_chains": 200, "two_sided": True, "seed": 3, **STEPS}


@pytest.fixture(scope="module")
def both() -> annealz.Estimate:
    return annealz.estimate_log_z(HARD, **BOTH)


def test_two_sides_enclose_the_exact_value(both):
    exact = annealz.exact_log_z(HARD)
    assert_within_mc_error(both.log_z, exact, both.std_err)
    low, high = both.interval(1 - 1e-6)
    assert low < exact < high
    sides = both.to_dict()["two_sided"]
    assert sides["lower"] < exact < sides["upper"]
    forward = annealz.estimate_log_z(HARD, **(BOTH | {"two_sided": False}))
    assert np.array_equal(both.log_weights, forward.log_weights)
    alone = forward.judgement.std_err
    assert (sides["forward_log_z"], sides["forward_std_err"]) == (forward.log_z, alone)
    assert both.std_err < forward.std_err
    assert both.ess == forward.ess
    assert both.sweeps == {"pilot": 0, "main": (40 + 41) * 200}


def test_two_sided_json_and_rows(both):
    result = json.loads(json.dumps(both.to_dict(), allow_nan=False))
    keys = (
        "forward_log_z forward_std_err forward_status lower lower_std_err upper upper_std_err gap"
    )
    keys += " gap_std_err overlap draws"
    assert {*result["two_sided"]} == {*keys.split()}
    assert result["two_sided"]["draws"] == "exact"
    assert 0 < result["two_sided"]["overlap"] <= 1
    rows = dict(both.rows())
    assert rows["forward estimate"].startswith(f"{result['two_sided']['forward_log_z']:.4f} ± ")
    assert "exact draws" in rows["bounds"]


def test_one_chain_a_side_is_shown_and_not_trusted():
    result = annealz.estimate_log_z(HARD, **(BOTH | {"num_chains": 1}))
    assert result.status is annealz.Status.UNRELIABLE
    json.dumps(result.to_dict(), allow_nan=False)
    assert "unknown" in dict(result.rows())["forward estimate"]


@pytest.mark.parametrize("marginal", ["visible", "hidden"])
def test_an_interrupted_reverse_run_is_resumed_to_the_same_bits(tmp_path: Path, marginal):
    settings = BOTH | {"marginal": marginal}
    resumed = interrupted(tmp_path / "r", "part-forward-1.npz", HARD, **settings)
    check_equal(resumed, annealz.estimate_log_z(HARD, **settings))
    assert (tmp_path / "r" / "part-reverse.npz").exists()
    check_equal(annealz.resume(tmp_path / "r"), resumed)


def test_given_draws_are_kept_and_used_on_resume(tmp_path: Path):
    draws = exact_samples(HARD, 200, 99)[0]
    settings = BOTH | {"draws": draws}
    resumed = interrupted(tmp_path / "r", "part-forward-1.npz", HARD, **settings)
    whole = annealz.estimate_log_z(HARD, **settings)
    check_equal(resumed, whole)
    assert np.array_equal(Store(tmp_path / "r").inputs()[0]["start"], draws)
    assert whole.reverse is not None
    assert resumed.to_dict()["two_sided"]["draws"] == "given"
    assert any(m.startswith(words_of(Kind.INEXACT_DRAWS)) for m in resumed.messages)
    other = annealz.estimate_log_z(HARD, **BOTH)
    assert not np.array_equal(whole.reverse.log_weights, other.reverse.log_weights)


def test_draws_of_a_large_model_are_approximate_and_say_so(tmp_path: Path):
    settings = BOTH | {"num_chains": 50}
    resumed = interrupted(tmp_path / "r", "part-forward-1.npz", LARGE, **settings)
    whole = annealz.estimate_log_z(LARGE, **settings)
    check_equal(resumed, whole)
    assert whole.exact_log_z is None
    assert whole.to_dict()["two_sided"]["draws"] == "approximate"
    assert list(whole.findings) == [Kind.INEXACT_DRAWS]
    assert whole.status is annealz.Status.OK
    assert whole.sweeps["main"] == (40 + 100 + 41) * 50  # 100 sweeps a draw
    again = annealz.estimate_log_z(LARGE, **(settings | {"seed": 4}))
    error = np.hypot(whole.std_err, again.std_err)
    assert_within_mc_error(whole.log_z, again.log_z, error)


# --- islands ----------------------------------------------------------------------------------

ISLANDS = {"num_chains": 200, "resample": 0.9, "seed": 3, **STEPS}


@pytest.fixture(scope="module")
def islands() -> annealz.Estimate:
    return annealz.estimate_log_z(HARD, **ISLANDS)


def test_resampled_islands_are_right_and_shown(islands):
    assert_within_mc_error(islands.log_z, annealz.exact_log_z(HARD), islands.std_err)
    result = json.loads(json.dumps(islands.to_dict(), allow_nan=False))
    assert result["islands"] == {
        "size": 10, "count": 20, "num_resamplings": islands.run.num_resamplings,
    }  # fmt: skip
    assert islands.run.num_resamplings > 5
    assert dict(islands.rows())["resampled"] == f"{islands.run.num_resamplings} times in 20 islands"


def test_ess_is_that_of_chains_with_the_same_error(islands):
    """Not that of weights that resampling has made equal."""
    assert np.sqrt(1 / islands.ess - 1 / 200) == pytest.approx(islands.judgement.std_err)
    assert islands.ess < 0.98 * effective_sample_size(islands.log_weights)


def test_a_resampled_run_is_resumed_to_the_same_bits(islands, tmp_path: Path):
    resumed = interrupted(
        tmp_path / "r", "checkpoint-forward-1.npz", HARD, **(ISLANDS | {"checkpoint_seconds": 0})
    )
    check_equal(resumed, islands)
    check_equal(annealz.resume(tmp_path / "r"), islands)


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_chains": 100, "target_std_err": 0.1}, "num_chains and target_std_err cannot both"),
        ({"resample": 0.5, "target_std_err": 0.1}, "target_std_err and resample cannot both"),
        ({"two_sided": True, "target_std_err": 0.1}, "target_std_err and two_sided cannot both"),
        ({"resample": 0.5, "max_seconds": 1}, "max_seconds and resample cannot both"),
        ({"two_sided": True, "max_seconds": 1}, "max_seconds and two_sided cannot both"),
        ({"resample": 0.5, "two_sided": True}, "resampled chains have no reverse"),
        ({"draws": np.zeros((1000, 8))}, "give two_sided with them"),
        ({"draws": np.zeros((1000, 7)), "two_sided": True}, r"draws must hold .*\(1000, 8\)"),
        ({"draws": np.full((1000, 8), 0.5), "two_sided": True}, "draws must hold zeros and ones"),
        ({"schedule": "nope"}, "unknown schedule 'nope'"),
        ({"schedule": "varopt-0.009", "num_steps": 50}, "0.009 is infeasible"),
        ({"num_steps": 0}, "num_steps must be from 1"),
        ({"num_chains": 10**12}, "GiB"),
        ({"max_seconds": 0}, "max_seconds must be a positive number, got 0"),
        ({"max_seconds": np.nan}, "max_seconds must be a positive number"),
        ({"target_std_err": -0.1}, "target_std_err must be a positive number"),
        ({"resample": 1.5}, "resample must lie above 0 and at most at 1"),
        ({"resample": 0.5, "num_chains": 1001}, "multiple of 20, and of 50"),
    ],
)
def test_what_contradicts_itself_is_refused_before_any_work(
    tmp_path: Path, monkeypatch, options, words
):
    def never(*arguments, **options):
        raise AssertionError("work was begun")

    monkeypatch.setattr(run, "anneal", never)
    for name in ("plan_schedule", "forecast"):
        monkeypatch.setattr(size, name, never)
    for name in ("both", "second"):
        monkeypatch.setattr(BaseSearch, name, never)
    with pytest.raises(ValueError, match=words) as refusal:
        annealz.estimate_log_z(MODEL, out=tmp_path / "r", **options)
    text = str(refusal.value)
    assert text.endswith(".")
    assert ". " not in text  # one sentence
    assert not (tmp_path / "r" / "run.json").exists()


def test_chains_that_memory_cannot_hold_are_refused_before_the_folder_is_written(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(sizing, "_MIN_CHAINS", 10**9)
    monkeypatch.setattr(sizing, "_MAX_CHAINS", 10**10)
    monkeypatch.setattr(sizing, "time_steps", lambda *arguments: Timing(1e-9))
    with pytest.raises(ValueError, match="GiB"):
        annealz.estimate_log_z(MODEL, out=tmp_path / "r", target_std_err=0.1, **STEPS)
    assert not (tmp_path / "r" / "run.json").exists()


# --- what every kind of estimate can do -------------------------------------------------------


@pytest.mark.parametrize("kind", ["both", "islands"])
def test_likelihoods_take_estimates_of_every_kind(kind, request):
    estimate = request.getfixturevalue(kind)
    rows = exact_samples(HARD, 300, 1)[0]
    found = annealz.log_likelihood(HARD, rows, estimate=estimate)
    exact = annealz.exact_log_z(HARD)
    assert found.log_likelihood - found.exact_log_likelihood == pytest.approx(
        exact - estimate.log_z
    )
    low, high = found.interval_log_z()
    assert high - low == pytest.approx(np.diff(estimate.interval())[0])
    assert found.status is estimate.status
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["estimate"].keys() >= {
        "two_sided" if kind == "both" else "islands"
    }


def test_only_a_low_log_z_makes_the_likelihood_an_upper_bound():
    rows = exact_samples(HARD, 30, 1)[0]
    options = {"schedule": "linear", "num_steps": 1, "num_chains": 1, "base": "uniform"}
    options["second_opinion"] = False
    for two_sided in (False, True):
        estimate = annealz.estimate_log_z(HARD, two_sided=two_sided, **options)
        assert estimate.status is annealz.Status.UNRELIABLE
        found = annealz.log_likelihood(HARD, rows, estimate=estimate)
        assert ("upper bound" in found.messages[0]) is not two_sided
        assert ("upper bound" in dict(found.rows())["log-likelihood"]) is not two_sided


def test_log_z_along_the_path(both, islands):
    for estimate in (annealz.estimate_log_z(MODEL, num_chains=200, seed=3, **STEPS), both):
        along = estimate.along()
        assert along.log_z[0] == estimate.run.log_z0
        assert along.log_z[-1] == pytest.approx(
            estimate.run.log_z0 + estimate.judgement.log_mean, abs=1e-5
        )
        assert along.std_err[-1] == pytest.approx(estimate.judgement.std_err, rel=1e-3)
        assert estimate.along([0.5]).log_z.shape == (1,)
    assert np.isnan(islands.along().std_err[1:]).all()


def test_log_z_is_told_at_the_betas_asked_for(tmp_path):
    model = random_rbm(5, 8, 0.7, seed=1)
    options = {"schedule": "linear", "num_steps": 60, "num_chains": 50, "seed": 3, **PLAIN}
    result = annealz.estimate_log_z(model, along=[0.5, 1.0], out=tmp_path / "run", **options)
    told = result.to_dict()["along"]
    assert told["betas"] == [0.5, 1.0]
    assert told["log_z"][1] == pytest.approx(result.log_z)
    assert told["std_err"][1] == pytest.approx(result.std_err, rel=0.02)  # its ESS is float32
    assert any(label == "log Z at 0.5" for label, _ in result.rows())
    assert annealz.resume(tmp_path / "run").to_dict() == result.to_dict()
    assert "along" not in annealz.estimate_log_z(model, **options).to_dict()
    with pytest.raises(ValueError, match="between 0 and 1"):
        annealz.estimate_log_z(model, along=[1.5], **options)

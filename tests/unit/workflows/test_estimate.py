"""The front door: calibration, files, resume, what it reports."""

import json
import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import annealz
from annealz.core.names import DEFAULT_MODEL, packaged_models
from annealz.models.exact import exact_marginals
from annealz.pilots.survey_mixing import LEAST_BUDGET
from annealz.testing import assert_within_mc_error, random_rbm

PLAIN = {"base": "visible-bias", "second_opinion": False}  # one base, no search
FAST = {"num_steps": 60, "num_chains": 200, **PLAIN}
LINEAR = {"schedule": "linear", **FAST}  # no pilot


@pytest.fixture(scope="module")
def model() -> annealz.RBM:
    return random_rbm(4, 6, 0.7, 11)


@pytest.fixture(scope="module")
def estimate(model: annealz.RBM) -> annealz.Estimate:
    return annealz.estimate_log_z(model, seed=3, **FAST)


def test_estimate_is_right_and_complete(model, estimate):
    exact = annealz.exact_log_z(model)
    assert estimate.exact_log_z == pytest.approx(exact, abs=1e-9)
    assert_within_mc_error(estimate.log_z, exact, estimate.std_err)
    low, high = estimate.interval()
    assert low < estimate.log_z < high
    assert estimate.log_weights.shape == (200,)
    assert estimate.log_weights.dtype == np.float64
    assert estimate.schedule.name == "mixing"
    assert estimate.sweeps.keys() == {"pilot", "main"}
    assert estimate.sweeps["main"] == 60 * 200
    assert 0 < estimate.sweeps["pilot"] <= LEAST_BUDGET
    assert estimate.seconds > 0
    assert estimate.provenance["model_digest"] == model.digest
    assert estimate.provenance["versions"]["annealz"] == annealz.__version__


def test_json_has_the_documented_keys_in_order(estimate):
    keys = "model method log_z std_err interval ess num_steps num_chains schedule base seed"
    keys += " exact_log_z sweeps seconds status messages"
    result = json.loads(json.dumps(estimate.to_dict(), allow_nan=False))
    assert list(result) == keys.split()
    assert result["status"] == "ok"


def test_repr_names_the_number_and_its_error(estimate):
    assert f"{estimate.log_z:.4f} ± {estimate.std_err:.4f}" in repr(estimate)
    assert f"{estimate.log_z:.4f}" in estimate._repr_html_()


def test_intervals_cover_over_seeds(model):
    """95 % intervals over 60 seeds: fewer than 48 hits have p < 1e-5 if the coverage holds."""
    exact = annealz.exact_log_z(model)
    hits = 0
    for seed in range(60):
        low, high = annealz.estimate_log_z(model, seed=seed, **FAST).interval()
        hits += low < exact < high
    assert hits >= 48


@pytest.mark.parametrize("marginal", ["visible", "hidden"])
@pytest.mark.parametrize("base", ["uniform", "visible-bias", "base-rate"])
@pytest.mark.parametrize("schedule", ["linear", "sm08", "mixing"])
def test_every_base_marginal_and_schedule_agrees(model, base, marginal, schedule):
    data = np.random.default_rng(0).random((50, 6)) < 0.3 if base == "base-rate" else None
    options = FAST | {"base": base, "marginal": marginal, "schedule": schedule}
    result = annealz.estimate_log_z(model, data=data, seed=1, **options)
    assert result.base == base
    assert_within_mc_error(result.log_z, result.exact_log_z, result.std_err)


def test_own_betas(model):
    betas = np.linspace(0, 1, 31) ** 2
    result = annealz.estimate_log_z(model, schedule=betas, num_chains=200, **PLAIN)
    assert np.array_equal(result.schedule.betas, betas)
    with pytest.raises(ValueError, match="num_steps is 7"):
        annealz.estimate_log_z(model, schedule=betas, num_steps=7)


def test_user_functions_are_averaged_on_the_fly(model):
    options = LINEAR | {"num_steps": 200, "num_chains": 4000}
    result = annealz.estimate_log_z(model, observe={"mean": lambda v: v}, seed=2, **options)
    exact, _ = exact_marginals(model)
    means = result.trace.means["mean"][-1]
    errors = np.sqrt(result.trace.variances["mean"][-1] / result.trace.ess[-1])
    for found, truth, error in zip(means, exact, errors, strict=True):
        assert_within_mc_error(float(found), float(truth), float(error))


def test_equal_seeds_give_equal_bits_and_others_do_not(model, estimate):
    again = annealz.estimate_log_z(model, seed=3, **FAST)
    assert np.array_equal(again.log_weights, estimate.log_weights)
    other = annealz.estimate_log_z(model, seed=4, **FAST)
    assert not np.array_equal(other.log_weights, estimate.log_weights)


def test_folder_holds_the_run_and_is_not_overwritten(model, estimate, tmp_path: Path):
    saved = annealz.estimate_log_z(model, seed=3, out=tmp_path / "run", **FAST)
    assert {p.name for p in (tmp_path / "run").iterdir()} == {
        "run.json", "inputs.npz", "part-forward-1.npz", "result.json",
    }  # fmt: skip
    assert np.array_equal(saved.log_weights, estimate.log_weights)
    before = (tmp_path / "run" / "part-forward-1.npz").read_bytes()
    with pytest.raises(ValueError, match="already holds a finished run"):
        annealz.estimate_log_z(model, seed=9, out=tmp_path / "run", **FAST)
    assert (tmp_path / "run" / "part-forward-1.npz").read_bytes() == before
    read = annealz.resume(tmp_path / "run")
    assert read.to_dict() == saved.to_dict()
    assert np.array_equal(read.trace.ess, saved.trace.ess)
    forced = annealz.estimate_log_z(model, seed=9, out=tmp_path / "run", force=True, **FAST)
    assert annealz.resume(tmp_path / "run").log_z == forced.log_z


@pytest.mark.parametrize("schedule", ["linear", "mixing"])
def test_interrupted_run_goes_on_to_the_same_bits(model, schedule, tmp_path: Path):
    """Interrupted after the pilot, where there is one: 60 steps are those of the run."""

    def stop(progress):
        if progress.num_steps == 60 and progress.step >= 20:
            raise KeyboardInterrupt

    settings = {"schedule": schedule, "seed": 3, **FAST}
    with pytest.raises(KeyboardInterrupt):
        annealz.estimate_log_z(
            model, out=tmp_path / "r", chunk_steps=10, on_progress=stop, **settings
        )
    resumed, whole = annealz.resume(tmp_path / "r"), annealz.estimate_log_z(model, **settings)
    assert np.array_equal(resumed.log_weights, whole.log_weights)
    assert np.array_equal(resumed.trace.means["slope"], whole.trace.means["slope"])
    assert resumed.sweeps == whole.sweeps


def test_interrupted_pilot_leaves_nothing_behind(model, tmp_path: Path):
    def stop(progress):
        if progress.stage == "pilot" and progress.step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        annealz.estimate_log_z(model, out=tmp_path / "r", on_progress=stop, **FAST)
    with pytest.raises(ValueError, match="holds no run"):
        annealz.resume(tmp_path / "r")
    again = annealz.estimate_log_z(model, out=tmp_path / "r", **FAST)
    assert annealz.resume(tmp_path / "r").log_z == again.log_z


@pytest.mark.parametrize("name", ["inputs.npz", "checkpoint-forward-1.npz", "run.json"])
def test_damaged_folders_are_recognised(model, tmp_path: Path, name: str):
    def stop(progress):
        if progress.step:  # a stage that only begins has nothing to keep
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        annealz.estimate_log_z(model, out=tmp_path / "r", on_progress=stop, **LINEAR)
    path = tmp_path / "r" / name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=name):
        annealz.resume(tmp_path / "r")


def test_full_disk_loses_nothing(model, estimate, tmp_path: Path, monkeypatch):
    """The disk fills up after the start: the result comes back and says what was not saved."""
    real = annealz.io.store.save_archive

    def full(path, *rest):
        if Path(path).name == "inputs.npz":
            return real(path, *rest)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("annealz.io.store.save_archive", full)
    monkeypatch.setattr("annealz.engine.checkpoint.save_archive", full)
    result = annealz.estimate_log_z(model, seed=3, out=tmp_path / "r", **FAST)
    assert np.array_equal(result.log_weights, estimate.log_weights)
    assert any("could not save the result" in message for message in result.messages)
    assert any("could not write the checkpoint" in message for message in result.messages)


def test_target_std_err_takes_the_chains_it_needs(model, tmp_path: Path):
    settings = {"schedule": "linear", "num_steps": 20, "seed": 5, **PLAIN}
    result = annealz.estimate_log_z(model, out=tmp_path / "r", target_std_err=0.01, **settings)
    assert result.std_err <= 0.01
    assert result.num_chains > 100
    assert_within_mc_error(result.log_z, result.exact_log_z, result.std_err)
    assert annealz.resume(tmp_path / "r").to_dict() == result.to_dict()


def test_target_std_err_out_of_reach_is_refused(model, tmp_path: Path):
    with pytest.raises(ValueError, match="out of reach with 5 steps") as refusal:
        annealz.estimate_log_z(model, num_steps=5, target_std_err=3e-4, out=tmp_path / "r", **PLAIN)
    reachable = float(re.search(r"with a million (\S+) can be", str(refusal.value))[1])
    assert 3e-4 < reachable < 0.01
    assert not (tmp_path / "r" / "run.json").exists()


def test_an_error_below_that_of_the_arithmetic_is_refused(model):
    with pytest.raises(ValueError, match="must be above 0.0002, the error of float32, got 0.0001"):
        annealz.estimate_log_z(model, target_std_err=1e-4, **PLAIN)


def test_numpy_integers_are_integers(model, tmp_path: Path):
    result = annealz.estimate_log_z(
        model,
        seed=np.int64(3),
        **(FAST | {"num_chains": np.int64(200), "num_steps": np.int64(60)}),
        out=tmp_path / "r",
    )
    assert result.log_z == annealz.estimate_log_z(model, seed=3, **FAST).log_z


def test_tied_weights_are_judged():
    """One unit each: few distinct weights, so that the largest ones are equal."""
    tiny = annealz.RBM(np.ones((1, 1)), np.zeros(1), np.zeros(1))
    result = annealz.estimate_log_z(
        tiny, num_steps=1, num_chains=100, base="uniform", second_opinion=False
    )
    assert_within_mc_error(result.log_z, result.exact_log_z, result.std_err)


def test_pilot_is_charged_in_sweeps_and_seconds(model):
    result = annealz.estimate_log_z(model, schedule="varopt", **FAST)
    assert result.sweeps["pilot"] == 100_000
    assert result.seconds > result.run.seconds
    assert result.provenance["schedule_provenance"]["seed"] == 0


def _plain_log_z(model: annealz.RBM) -> float:
    """Another float64 enumeration: state by state over hidden units, in plain logarithms."""
    weights, hidden_bias, visible_bias = (
        np.asarray(a, np.float64) for a in (model.weights, model.hidden_bias, model.visible_bias)
    )
    total = -np.inf
    for start in range(0, 2**model.num_hidden, 1024):
        h = (np.arange(start, start + 1024)[:, None] >> np.arange(model.num_hidden) & 1) * 1.0
        terms = h @ hidden_bias + np.log1p(np.exp(h @ weights + visible_bias)).sum(-1)
        total = np.logaddexp(total, np.logaddexp.reduce(terms))
    return float(total)


@pytest.mark.parametrize(
    "name",
    [
        n if n == DEFAULT_MODEL else pytest.param(n, marks=pytest.mark.slow)
        for n in packaged_models()
        if n.endswith("-20")
    ],
)
def test_packaged_models_record_their_exact_log_z(name: str):
    model, meta = annealz.load_model(name), annealz.model_record(name)
    assert annealz.exact_log_z(model) == pytest.approx(meta["exact_log_z"], rel=1e-12)
    assert _plain_log_z(model) == pytest.approx(meta["exact_log_z"], rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"num_steps": 0}, "num_steps must be from 1"),
        ({"num_chains": 0}, "num_chains must be at least 1, got 0"),
        ({"num_chains": 10**12, "num_steps": 1, "schedule": "linear"}, "GiB"),
        ({"base": "nope"}, "auto, base-rate, uniform, visible-bias"),
        ({"base": "base-rate"}, "needs the training data"),
        ({"data": np.array([0.0, *[0.5] * 4, 1.1])}, "strictly between 0 and 1"),
        ({"schedule": "nope"}, "linear, sm08"),
        ({"schedule": [0, 0.5, 0.5, 1]}, "increase strictly"),
        ({"marginal": "nope"}, "visible, hidden"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"target_std_err": 0}, "target_std_err"),
        ({"record_every": 0}, "record_every"),
        ({"observe": {"slope": lambda v: v}}, "slope"),
    ],
)
def test_bad_arguments_are_refused_in_words(model, arguments, words):
    with pytest.raises(ValueError, match=words):
        annealz.estimate_log_z(model, **arguments)


def test_bad_models_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        annealz.estimate_log_z(annealz.RBM(np.full((2, 3), np.nan), np.zeros(2), np.zeros(3)))
    with pytest.raises(ValueError, match="mnist-pcd-20"):
        annealz.estimate_log_z("nope")


@pytest.mark.parametrize("schedule", ["linear", "mixing"])
def test_fields_beyond_float32_end_in_words_not_in_a_number(schedule):
    model = annealz.RBM(jnp.full((2, 30), 1e38), np.zeros(2), np.zeros(30))
    with pytest.raises(ValueError, match="infinite or NaN"):
        annealz.estimate_log_z(model, schedule=schedule, num_steps=2, num_chains=50)


def test_global_precision_flag_is_left_alone(estimate):
    assert jnp.zeros(1).dtype == jnp.float32
    assert estimate.log_weights.dtype == np.float64

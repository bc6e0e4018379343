"""Comparison at equal total cost, the commands `compare` and `schedule`, and what they write."""

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from annealz.io.schedules import SCHEDULES
from annealz.models.exact import exact_log_z
from annealz.models.formats.npz import save_rbm
from annealz.pilots.plan import pilot_sweeps
from annealz.results.compare import CompareRequest, Comparison, Contender, compare_schedules
from annealz.schedules.schedule import Schedule
from annealz.testing import assert_within_mc_error, random_rbm
from support.command import PLAIN, refused, run

MODEL = random_rbm(4, 6, 0.6, 11)
SMALL = {"num_steps": 300, "num_chains": 400, "num_replicates": 3}
PNG = b"\x89PNG"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("annealz.cli.run._SCRATCH", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare_schedules(MODEL, base="uniform", **SMALL)


# --- the comparison --------------------------------------------------------------------------


def test_every_schedule_has_the_same_total_cost(comparison: Comparison):
    assert comparison.budget == 300 * 400
    for contender in comparison.contenders:
        spent = sum(contender.sweeps.values())
        assert comparison.budget - comparison.num_chains < spent <= comparison.budget
        assert contender.sweeps["pilot"] == pilot_sweeps(contender.name, comparison.budget)
        assert contender.sweeps["main"] == contender.num_steps * 400
        assert contender.log_weights.shape == (3, 400)
    steps = {contender.name: contender.num_steps for contender in comparison.contenders}
    assert steps["linear"] == steps["sm08"] == 300
    assert steps["varopt"] == 50
    assert steps["mixing"] == 285  # a twentieth goes to its pilot


def test_what_cannot_be_run_is_left_out_with_a_reason(comparison: Comparison):
    """Of 50 steps none can keep 0.009; the gms13 pilot takes at least 120,000 sweeps."""
    ran = {contender.name for contender in comparison.contenders}
    reasons = {message.split(" is left out: ")[0]: message for message in comparison.messages}
    assert ran | reasons.keys() == set(SCHEDULES.names())
    assert not ran & reasons.keys()
    assert "pilot of 120,000 sweeps is all of the budget" in reasons["gms13"]
    for limit in ("0.009", "0.006", "0.003"):
        assert "smallest feasible one is 0.02" in reasons[f"varopt-{limit}"]


def test_every_schedule_agrees_with_the_exact_value(comparison: Comparison):
    exact = exact_log_z(MODEL)
    for contender in comparison.contenders:
        assert_within_mc_error(contender.log_z, exact, contender.std_err)
        one = contender.log_z0 + np.log(np.exp(contender.log_weights).mean())
        assert contender.log_z == pytest.approx(one, abs=1e-9)


def test_replicates_and_schedules_share_no_weights(comparison: Comparison):
    rows = np.concatenate([contender.log_weights for contender in comparison.contenders])
    assert np.unique(rows[:, :50]).size > 0.99 * rows[:, :50].size


def test_seeds_give_the_same_again(comparison: Comparison):
    again = compare_schedules(MODEL, base="uniform", schedules=["varopt", "linear"], **SMALL)
    assert [contender.name for contender in again.contenders] == ["varopt", "linear"]
    for contender in again.contenders:
        before = next(c for c in comparison.contenders if c.name == contender.name)
        np.testing.assert_array_equal(contender.log_weights, before.log_weights)


def test_result_is_json(comparison: Comparison):
    result = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert result["budget"] == 120_000
    assert [row["schedule"] for row in result["schedules"]] == [
        contender.name for contender in comparison.contenders
    ]
    for row in result["schedules"]:
        assert len(row["ess"]) == len(row["variance"]) == 3
        low, high = row["variance_interval"]
        assert low < np.mean(row["variance"]) < high
    assert result["verdict"] == comparison.verdict
    assert result["messages"] == list(comparison.messages)


def test_plot_is_a_figure(comparison: Comparison):
    assert isinstance(comparison.plot(), Figure)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_replicates": 1}, "num_replicates must be at least 2"),
        ({"num_chains": 0}, "num_chains must be at least 1"),
        ({"num_steps": 0}, "num_steps must be"),
        ({"seed": -1}, "seed must be an integer"),
        ({"schedules": ["nope"]}, "unknown schedule 'nope'"),
        ({"schedules": ["varopt-0.001"]}, "infeasible"),
        (
            {"schedules": ["varopt"], "num_steps": 10},
            "no schedule could be run: varopt is left out",
        ),
    ],
)
def test_comparing_refuses(options: dict, words: str):
    with pytest.raises(ValueError, match=words):
        compare_schedules(MODEL, base="uniform", **{**SMALL, **options})


# --- the verdict -----------------------------------------------------------------------------


def contender(name: str, spread: float, num_chains: int = 2000, num_replicates: int = 4):
    """Gaussian log weights of this standard deviation: ESS is about N exp(-spread^2)."""
    seed = [ord(letter) for letter in name]
    weights = np.random.default_rng(seed).normal(0, spread, (num_replicates, num_chains))
    betas = np.linspace(0, 1, 11)
    return Contender(name, 10, 1.0, weights, {"pilot": 0, "main": 10 * num_chains}, betas)


def compared(*contenders: Contender) -> Comparison:
    request = CompareRequest(num_steps=10, num_chains=2000)
    return Comparison(request, "m", "uniform", None, list(contenders))


def test_a_clear_lead_is_larger_than_the_noise():
    verdict = compared(contender("linear", 1.0), contender("varopt", 0.5)).verdict
    assert verdict.startswith("varopt won with a mean ESS of 1")
    assert "over linear" in verdict
    assert "is larger than the noise" in verdict


def test_no_lead_is_within_the_noise():
    verdict = compared(contender("one", 0.7), contender("other", 0.7)).verdict
    assert "is within the noise" in verdict


def test_linear_is_always_named():
    verdict = compared(
        contender("linear", 1.0), contender("sm08", 0.6), contender("varopt", 0.5)
    ).verdict
    assert "over sm08" in verdict
    assert "over linear" in verdict
    assert verdict.endswith(".")


def test_a_verdict_on_one():
    assert compared(contender("linear", 1.0)).verdict.startswith("linear won with a mean ESS of")


def test_variance_of_log_weights():
    one = contender("linear", 0.5)
    np.testing.assert_allclose(one.variance, 0.25, rtol=0.2)
    low, high = one.variance_interval(0.9999)
    assert 0 < low < 0.25 < high


def test_an_interval_of_a_variance_is_above_zero():
    """Two replicates that differ: Student's plain interval would reach far below."""
    weights = np.array([[0.0, 0.2, 0.4], [0.0, 3.0, 6.0]])
    one = Contender("linear", 10, 1.0, weights, {"pilot": 0, "main": 30}, np.linspace(0, 1, 11))
    low, high = one.variance_interval()
    assert 0 < low < one.variance.mean() < high


# --- the command line ------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save_rbm(tmp_path / "small.npz", MODEL)
    return tmp_path / "small.npz"


FAST = ["--steps", 300, "--chains", 400, "--replicates", 2, "--schedules", "linear, varopt,gms13"]
FAST += PLAIN[:2]


def test_compare_prints_a_table(capsys, model: Path, tmp_path: Path):
    status, out, _ = run(capsys, "compare", model, *FAST, "--plot", tmp_path / "c.png")
    assert status == 0
    for words in ("linear", "varopt", "log Z", "ESS", "Var log w", "100,000", "120,000 sweeps"):
        assert words in out
    assert "won with a mean ESS of" in out
    assert "! gms13 is left out" in out
    assert (tmp_path / "c.png").read_bytes().startswith(PNG)


def test_compare_draws_its_figure_unasked(capsys, model: Path, tmp_path: Path):
    status, out, _ = run(capsys, "compare", model, *FAST, "--quiet")
    assert status == 0
    assert "figure: compare-small.png" in out
    assert (tmp_path / "compare-small.png").read_bytes().startswith(PNG)


def test_compare_prints_json(capsys, model: Path):
    status, out, err = run(capsys, "compare", model, *FAST, "--json", "--quiet")
    assert (status, err) == (0, "")
    result = json.loads(out)
    assert result["model"] == "small"
    assert [row["schedule"] for row in result["schedules"]] == ["linear", "varopt"]
    assert "won with" in result["verdict"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--replicates", 1], "--replicates must be"),
        (["--chains", 0], "--chains must be"),
        (["--steps", 0], "--steps must be"),
        (["--seed", -1], "seed"),
        (["--schedules", "nope"], "unknown schedule 'nope'"),
        (["--base", "nope"], "auto, base-rate, uniform, visible-bias"),
        (["--plot", "nowhere/x.png"], "does not exist"),
    ],
)
def test_compare_refuses(capsys, model: Path, arguments: list, words: str):
    assert words in refused(capsys, "compare", model, "--quiet", *arguments)


def test_schedule_writes_a_file_and_a_picture(capsys, model: Path, tmp_path: Path):
    out = tmp_path / "made.json"
    first = [
        "schedule",
        model,
        *PLAIN[:2],
        "--schedule",
        "varopt",
        "--steps",
        60,
        "-o",
        out,
        "--quiet",
    ]
    status, text, err = run(capsys, *first)
    assert (status, err) == (0, "")
    made = Schedule.load(out)
    assert (made.name, made.num_steps) == ("varopt", 60)
    assert made.provenance["pilot_sweeps"] == 100_000
    assert "pilot: 100,000 sweeps" in text
    assert "variance of log w falls by" in text
    assert (tmp_path / "made.png").read_bytes().startswith(PNG)

    before = out.read_bytes()
    assert "made.json exists" in refused(capsys, *first, "--seed", 1)
    assert out.read_bytes() == before
    assert run(capsys, *first, "--seed", 1, "--force")[0] == 0
    assert Schedule.load(out) != made

    (tmp_path / "other.png").write_text("mine")
    other = ["schedule", model, *PLAIN[:2], "--steps", 60, "-o", tmp_path / "other.json", "--quiet"]
    assert "other.png exists" in refused(capsys, *other)
    assert not (tmp_path / "other.json").exists()
    assert (tmp_path / "other.png").read_text() == "mine"


def test_schedule_is_mixing_where_none_is_named(capsys, model: Path, tmp_path: Path):
    """Its pilot is sized by the run to come."""
    out = tmp_path / "made.json"
    status, text, _ = run(
        capsys, "schedule", model, *PLAIN[:2], "--steps", 950, "--chains", 100, "-o", out, "--quiet"
    )
    assert status == 0
    made = Schedule.load(out)
    assert (made.name, made.num_steps, made.provenance["budget"]) == ("mixing", 950, 5000)
    assert 0 < made.provenance["pilot_sweeps"] <= 5000
    assert f"pilot: {made.provenance['pilot_sweeps']:,} sweeps" in text
    assert "predicted variance of log w" in text


def test_estimate_uses_the_file(capsys, model: Path, tmp_path: Path):
    out = tmp_path / "made.json"
    assert run(capsys, "schedule", model, *PLAIN[:2], "--steps", 60, "-o", out, "--quiet")[0] == 0
    status, text, _ = run(
        capsys, "estimate", model, *PLAIN, "--schedule", out, "--chains", 400, "--json", "--quiet"
    )
    result = json.loads(text)
    assert status == 0
    assert (result["schedule"], result["num_steps"]) == ("mixing", 60)
    assert result["sweeps"] == {"pilot": 0, "main": 60 * 400}
    assert_within_mc_error(result["log_z"], result["exact_log_z"], result["std_err"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--schedule", "nope"], "choose one of mixing, linear, sm08, gms13, varopt"),
        (["--schedule", "varopt-0.009", "--steps", 50], "smallest feasible one is 0.02"),
        (["--steps", 0], "--steps must be"),
        (["--seed", -1], "seed"),
        (["-o", "nowhere/made.json"], "does not exist"),
        (["--plot", "x.nope"], "png"),
        (["--marginal", "nope"], "visible, hidden"),
    ],
)
def test_schedule_refuses(capsys, model: Path, tmp_path: Path, arguments: list, words: str):
    assert words in refused(capsys, "schedule", model, *PLAIN[:2], "--quiet", *arguments)
    assert not (tmp_path / "schedule.json").exists()

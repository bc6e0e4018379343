"""The page of a result: all that it must hold, nothing from outside, and what cannot be reported."""

import dataclasses
import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

import annealz
from annealz.diagnostics.findings import Remedy
from annealz.diagnostics.sheet import Result
from annealz.engine.run import Runs
from annealz.methods.annealing.plan import SecondBase
from annealz.methods.annealing.request import AnnealingRequest
from annealz.models.formats.npz import save_rbm
from annealz.testing import random_rbm
from annealz.views import report as report_module
from annealz.views.plots import style
from annealz.views.report import render_report
from support.command import refused, run
from support.html import Page
from support.views import HOSTILE, MODEL, PLAIN

QUICK = ["estimate", "m.npz", "--schedule", "linear", "--steps", "5", "--chains", "100", "--quiet"]
QUICK += ["--base", "visible-bias", "--no-second-opinion"]
PATH = ["schedule", "dwell", "variance"]
FIGURES = {  # of every page, in their order
    "estimate": [*PATH, "tau", "ess", "weights", "convergence"],
    "both": [*PATH, "ess", "weights", "work", "convergence"],
    "exchange": ["ladder", "rounds"],
    "nested": ["evidence", "runs"],
    "comparison": ["ess", "log-z", "schedules"],
    "likelihood": [],
    "models": [],
}
ESTIMATES = ("estimate", "both", "exchange", "nested")


@pytest.fixture(scope="module", autouse=True)
def today():
    """One day: equal results have equal pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_module, "_today", lambda: "2026-01-02")
        yield


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("annealz.cli.run._SCRATCH", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def texts(results) -> dict[str, str]:
    """The pages of results."""
    return {name: render_report(results[name]) for name in FIGURES}


# --- what a page holds -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATES)
def test_number_error_and_status_come_first(results, texts, name):
    result, page = results[name], Page(texts[name])
    assert page.all("h1") == [f"log Z of {result.model}"]
    assert page.all("p")[0] == f"{result.log_z:.4f} ± {result.std_err:.4f}"
    low, high = result.interval()
    assert page.all("p")[1] == f"95 % interval {low:.4f} … {high:.4f}"
    mark = "✓" if result.ok else "✗"
    assert f"{mark} {result.status_in_words}" in page.all("strong")
    heads = page.all("h2")
    assert (heads[0], heads[-3:]) == ("Result", ["Cost", "Reproduce", "Provenance"])
    assert "2026-01-02" in texts[name]


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_there_and_says_in_words_what_it_shows(results, texts, name):
    page = Page(texts[name])
    assert page.figures() == FIGURES[name]
    assert all(len(words) > 40 for words in page.all("title")[1:])
    assert len(page.all("figcaption")) == len(FIGURES[name])
    svgs = [values for tag, values in page.tags if tag == "svg"]
    assert all(values["role"] == "img" for values in svgs)
    assert {values["aria-labelledby"] for values in svgs} <= set(page.names())
    for label, value in results[name].sheet().details:
        assert label in page.all("th"), label
        assert value in page.all("td"), label


def test_captions_tell_the_numbers(results, texts):
    captions = {name: " ".join(Page(texts[name]).all("figcaption")) for name in ESTIMATES}
    k = results["estimate"].judgement.pareto_k
    sides = results["both"].to_dict()["two_sided"]
    assert f"k̂ = {k:.2f}, a " in captions["estimate"]
    assert "g is what the run itself saw" in captions["both"]
    assert f"{sides['lower']:.4f} and {sides['upper']:.4f}" in captions["both"]
    assert f"{results['exchange'].exchange.barrier:.2f} in all" in captions["exchange"]
    assert f"{results['nested'].information:.1f} nats" in captions["nested"]


def test_cost_and_provenance(results, texts):
    both, cells = results["both"], {}
    for name, rest in re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', texts["both"]):
        cells[name] = re.findall(r"<td>(.*?)</td>", rest)
    assert cells["forward run"][0] == f"{both.run.sweeps:,}"
    assert cells["reverse run and its draws"][0] == f"{both.reverse.sweeps:,}"
    assert cells["all"] == [f"{sum(both.sweeps.values()):,}", f"{both.seconds:.1f}"]
    estimate, text = results["estimate"], texts["estimate"]
    plan = estimate.plan
    for part in (plan.model_digest, estimate.schedule.digest, plan.base_digest):
        assert part in text
    for name, version in plan.versions.items():
        assert version in text, name


def test_observed_functions_are_shown(results, texts):
    both = results["both"]
    assert f"{both.trace.means['share'][-1]:.6g}" in texts["both"]
    assert ", ".join(f"{one:.6g}" for one in both.trace.means["units"][-1]) in texts["both"]
    grid = annealz.estimate_log_z(
        MODEL,
        schedule="linear",
        num_steps=5,
        num_chains=100,
        observe={"grid": lambda v: v[:, :, None] * v[:, None]},
        **PLAIN,
    )
    assert "6 × 6 numbers from" in render_report(grid)


def test_evaluations_and_second_opinion_of_a_density(results, rediagnosed):
    normal = results["normal"]
    page = Page(render_report(normal))
    assert {"evaluations", "2,100", "8"} <= {*page.all("th"), *page.all("td")}
    assert page.command().startswith("annealz.estimate_log_z(")
    second = dataclasses.replace(normal.run, purpose="second")
    plan = dataclasses.replace(normal.plan, second=SecondBase(base="wide"))
    both = rediagnosed(plan, Runs(normal.run, second=second))
    page = Page(render_report(both))
    assert page.all("td").count("2,100") == 2
    assert "The second opinion" in page.all("h2")
    assert f"The second opinion is {both.second_opinion.in_words}." in page.all("p")


def test_a_bad_status_says_why_and_what_to_do(tmp_path):
    save_rbm(tmp_path / "m.npz", random_rbm(27, 28, 2.0, 1))  # no layer can be enumerated
    options = {"schedule": "linear", "num_steps": 4, "num_chains": 100}
    bad = annealz.estimate_log_z(tmp_path / "m.npz", **options, **PLAIN)
    assert bad.status is annealz.Status.UNRELIABLE
    page = Page(render_report(bad))
    assert "✗ unreliable, without a second opinion" in page.all("strong")
    assert any(words.startswith("Do not use this number") for words in page.all("p"))
    assert any("to do better: --data DATA," in words for words in page.all("strong"))
    assert shlex.split(page.codes[0])[:3] == ["annealz", "estimate", str(tmp_path / "m.npz")]
    assert "--method exchange" in page.codes[0]


def test_tiny_runs_have_a_page(rediagnosed):
    model = annealz.RBM(np.ones((1, 1)), np.zeros(1), np.zeros(1))
    ten = annealz.estimate_log_z(model, schedule="linear", num_steps=2, num_chains=10, **PLAIN)
    for count in (1, 10):
        run = dataclasses.replace(ten.run, log_weights=ten.log_weights[:count])
        text = render_report(rediagnosed(ten.plan, Runs(run)))
        assert ("unknown" in Page(text).all("p")[0]) == (count < 10)
        assert "chains are too few" in text


def test_a_resampled_run_has_a_page():
    result = annealz.estimate_log_z(
        MODEL, schedule="linear", num_steps=20, num_chains=100, resample=1.0, **PLAIN
    )
    assert "forward chains: resampled, without k̂." in render_report(result)


def test_a_comparison_has_a_page(results, texts):
    comparison, page = results["comparison"], Page(texts["comparison"])
    assert page.all("h1") == [f"Schedules compared on {comparison.model}"]
    assert page.all("p")[0] == comparison.verdict
    assert "compare_schedules(" in page.command()
    for contender in comparison.contenders:
        assert f"{contender.log_z:.4f} ± {contender.std_err:.4f}" in page.all("td")


# --- nothing from outside, nothing that runs -------------------------------------------------


def test_pages_hold_all_they_show(texts):
    for text in texts.values():
        page = Page(text)
        assert not page.kinds & {"script", "link", "img", "iframe", "object", "image"}
        for tag, values in page.tags:
            assert "src" not in values, tag
            assert not any(name.startswith("on") for name in values), tag
            assert (values.get("href") or "#").startswith("#"), tag
        assert "@import" not in text
        assert set(re.findall(r"url\((.)", text)) <= {"#"}
        policy = next(v for _, v in page.tags if v.get("http-equiv"))["content"]
        assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_names_are_escaped_everywhere(results):
    estimate = results["estimate"]
    for result in (estimate, dataclasses.replace(results["comparison"], model=HOSTILE)):
        text = render_report(result)
        assert "<script" not in text
        assert "<img" not in text
        assert "&lt;script&gt;" in text
    renamed = dataclasses.replace(estimate.schedule, name="<b>$\\frac$ & $</b>")
    run = dataclasses.replace(estimate.run, schedule=renamed)
    text = render_report(dataclasses.replace(estimate, runs=Runs(run)))
    assert "<b>" not in text
    assert "schedule: <b>$\\frac$ & $</b>, 40 steps" in Page(text).all("text")


def test_figures_share_no_names_and_have_the_colours_of_the_page(texts):
    palette = (style.BLUE, style.RED, style.GREEN, style.PURPLE, style.GREY, style.INK)
    for text in texts.values():
        names = Page(text).names()
        assert len(set(names)) == len(names)
        used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", text))
        assert used <= set(names)
        body = text[text.index("<body>") :]
        assert not any(colour in body for colour in palette)
        assert not re.search(r'style="[^"]*#[0-9a-f]{6}', body)
        variables = set(re.findall(r"var\((--[a-z-]+)\)", text))
        declared = re.findall(r"(--[a-z-]+): #", text)
        assert all(declared.count(name) == 2 for name in variables)  # light and dark


def test_equal_results_have_equal_pages(folder, texts):
    assert render_report(annealz.resume(folder)) == texts["estimate"]


def test_any_result_has_a_page(results, tmp_path):
    for name, result in results.items():
        if isinstance(result, Result):
            result.report(tmp_path / "page.html")
            words = (tmp_path / "page.html").read_text()
            assert result.sheet().headline[1] in Page(words).text, name


# --- the command that makes it again ---------------------------------------------------------


def test_the_command_gives_the_same_number(capsys, results, texts):
    command = Page(texts["estimate"]).command()
    assert shlex.split(command)[:2] == ["annealz", "estimate"]
    status, out, _ = run(capsys, *shlex.split(command)[1:], "--quiet", "--json")
    assert status == 0
    assert json.loads(out)["log_z"] == results["estimate"].log_z


@pytest.mark.parametrize("name", ["both", "exchange"])
def test_the_call_gives_the_same_number(results, texts, name):
    names = {"annealz": annealz, "model": MODEL, "observe": results["both"].plan.request.observe}
    again = eval(Page(texts[name]).command(), names)
    assert again.log_z == results[name].log_z


def test_a_comparison_can_be_made_again(capsys, tmp_path):
    save_rbm(tmp_path / "m.npz", MODEL)
    words = "compare m.npz --base visible-bias --schedules linear,sm08 --steps 20 --chains 100 "
    words += "--replicates 2 --json --quiet"
    status, out, _ = run(capsys, *words.split(), "--report", "first.html")
    assert status == 0
    command = Page((tmp_path / "first.html").read_text()).command()
    status, again, _ = run(capsys, *shlex.split(command)[1:], "--json", "--quiet")
    assert status == 0
    assert json.loads(again) == json.loads(out)


KERNEL = annealz.BlockGibbs()
REPRODUCED = [
    ({}, "annealz estimate 'a b.npz' --seed 0", ""),
    (
        {"two_sided": True, "marginal": "hidden", "second_opinion": False, "along": [0.25, 0.5]},
        "--marginal hidden --two-sided --no-second-opinion --along 0.25,0.5 --seed 0",
        "",
    ),
    ({"data": np.zeros((2, 6))}, "--data DATA", "DATA"),
    ({"target_std_err": 0.1}, "--target-std-err 0.1", ""),
    ({"max_seconds": 9.0}, "--max-seconds 9.0", "depends on the machine"),
    ({"schedule": "my betas.txt"}, "--schedule 'my betas.txt'", ""),
    ({"kernel": KERNEL}, "    kernel=kernel,\n", "kernel: the objects"),
    ({"schedule": annealz.linear(3)}, "    schedule=schedule,\n", "schedule"),
    ({"observe": {"mean": np.mean}}, "    observe=observe,\n", "observe"),
]


@pytest.mark.parametrize(("given", "words", "note"), REPRODUCED)
def test_what_was_asked_for_is_in_the_command(given, words, note):
    again = AnnealingRequest(model="a b.npz", **given).reproduction()
    assert words in again.text
    assert note in " ".join(again.notes)
    assert again.is_exact == ("max_seconds" not in given)
    assert again.is_command == again.text.startswith("annealz estimate")


@pytest.mark.parametrize(
    ("remedy", "added", "dropped"),
    [
        (Remedy(num_steps=400), "--steps 400", "--steps 40 "),
        (Remedy(num_chains=200), "--chains 200", "--chains 100"),
        (Remedy(exact=True), "--exact", None),
        (Remedy(base="fitted"), "--base fitted", "--data"),
        (Remedy(method="exchange"), "--method exchange", "--steps"),
    ],
)
def test_the_command_with_a_remedy(remedy, added, dropped):
    rows = np.zeros((2, 6))
    request = AnnealingRequest(model="m.npz", num_steps=40, num_chains=100, data=rows)
    own, text = request.reproduction().text, request.reproduction(remedy.settings).text
    assert added in text
    assert added not in own
    assert dropped is None or (dropped in own and dropped not in text)
    assert "--seed 0" in text


# --- the terrain is kept ---------------------------------------------------------------------


def test_the_folder_keeps_what_the_pilot_saw(results):
    kept = results["estimate"].schedule.terrain
    assert kept is not None
    fresh = annealz.estimate_log_z(MODEL, num_steps=40, num_chains=100, **PLAIN).schedule.terrain
    assert fresh is not None
    for name in ("betas", "mean", "variance", "ess", "tau", "tau_is_bound"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(fresh, name))
    assert kept.provenance == fresh.provenance


def test_a_damaged_terrain_is_named(results, tmp_path):
    record = results["estimate"].schedule.to_record()
    for broken, words in (({"betas": [0, 1]}, "terrain is damaged"), ("tau", "must be a vector")):
        seen = broken if isinstance(broken, dict) else record["terrain"] | {broken: [1.0]}
        (tmp_path / "s.json").write_text(json.dumps(record | {"terrain": seen}))
        with pytest.raises(ValueError, match=f"schedule file .*s.json: .*{words}"):
            annealz.Schedule.load(tmp_path / "s.json")


# --- the command line ------------------------------------------------------------------------


def test_report_goes_into_the_folder_or_where_it_is_wanted(capsys, folder, tmp_path, texts):
    assert run(capsys, "report", folder) == (0, f"report: {folder / 'report.html'}\n", "")
    assert (folder / "report.html").read_text() == texts["estimate"]
    status, out, _ = run(capsys, "report", folder, "-o", "page.html")
    assert (status, out) == (0, "report: page.html\n")
    assert (tmp_path / "page.html").read_text() == texts["estimate"]
    assert run(capsys, "resume", folder, "--report", "again.html", "--quiet")[0] == 0
    assert (tmp_path / "again.html").read_text() == texts["estimate"]


def test_a_new_run_drops_the_old_page(tmp_path):
    options = {"schedule": "linear", "num_steps": 5, "num_chains": 10, "out": tmp_path / "run"}
    options |= PLAIN
    annealz.estimate_log_z(MODEL, **options).report(tmp_path / "run" / "report.html")
    annealz.estimate_log_z(MODEL, **options, force=True)
    assert not (tmp_path / "run" / "report.html").exists()


def test_what_is_no_finished_run_is_refused(capsys, folder, tmp_path):
    assert "nowhere" in refused(capsys, "report", "nowhere")
    (tmp_path / "empty").mkdir()
    assert "empty" in refused(capsys, "report", "empty")
    shutil.copytree(folder, tmp_path / "half")
    (tmp_path / "half" / "result.json").unlink()
    assert "annealz resume half" in refused(capsys, "report", "half")


BAD_PLACES = {
    "page.txt": "must end in .html",
    "missing/page.html": "folder that does not exist",
    "folder.html": "is a folder",
}


@pytest.mark.parametrize(("place", "words"), BAD_PLACES.items())
def test_bad_places_are_refused_before_the_run(capsys, folder, tmp_path, place, words):
    (tmp_path / "folder.html").mkdir()
    save_rbm(tmp_path / "m.npz", MODEL)
    assert words in refused(capsys, "report", folder, "-o", place)
    assert words in refused(capsys, *QUICK, "--report", place, "--out", "run")
    assert words in refused(capsys, "compare", "m.npz", "--report", place)
    assert words in refused(capsys, "resume", folder, "--report", place)
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that refuses files")
def test_what_cannot_be_written_loses_nothing(capsys, tmp_path):
    save_rbm(tmp_path / "m.npz", MODEL)
    words = [*QUICK, "--json"]
    status, out, err = run(capsys, *words, "--report", "/proc/self/page.html")
    assert status == 2
    number = json.loads(out)["log_z"]
    assert err.startswith("annealz: cannot write the report /proc/self/page.html: ")
    kept = re.search(r"The run is kept: 'annealz report (\S+) -o FILE'\.\n$", err)
    assert kept is not None
    assert run(capsys, "report", kept[1], "-o", "page.html")[0] == 0
    assert f"{number:.4f}" in (tmp_path / "page.html").read_text()
    status, out, err = run(
        capsys, *words, "--report", "page.html", "--plot", "/proc/self/picture.png"
    )
    assert status == 2
    assert json.loads(out)["log_z"] == number
    assert (tmp_path / "page.html").exists()


def test_json_stays_one_object_and_the_table_names_the_page(capsys, tmp_path):
    save_rbm(tmp_path / "m.npz", MODEL)
    status, out, err = run(capsys, *QUICK, "--json", "--report", "a.html")
    assert (status, err) == (0, "")
    assert json.loads(out)["num_steps"] == 5
    status, out, err = run(capsys, *QUICK, "--report", "b.html")
    assert (status, err) == (0, "")
    assert out.endswith("report: b.html\n")
    assert not list((tmp_path / "cache").glob("*"))
    assert Page((tmp_path / "a.html").read_text()).all("h1") == ["log Z of m"]

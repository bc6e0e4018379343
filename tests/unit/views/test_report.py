"""The page of a result: all that it must hold, nothing from outside, and what cannot be reported."""

import dataclasses
import json
import re
import shlex
import shutil
from html.parser import HTMLParser
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from annealz.methods.annealing.runner import estimate_of, read_estimate
from annealz.methods.folder import RunFolder
from annealz.methods.settings import SecondBase

import annealz
from annealz.cli.main import _status
from annealz.diagnostics.findings import Remedy
from annealz.engine.run import Runs
from annealz.io.records import save_record
from annealz.models.formats import save_rbm
from annealz.results.compare import compare_schedules
from annealz.testing import random_rbm
from annealz.views.plots import style
from annealz.views.report import estimate as report_of_estimate
from annealz.views.report import render_report
from annealz.views.report.again import estimate_again
from support.command import refused, run

MODEL = random_rbm(4, 6, 0.5, 1)
HOSTILE = "<script>alert('$x^$')</script>&\"<img src=http://x.invalid/y onerror=alert(1)>"
PLAIN = {"base": "visible-bias", "second_opinion": False}  # one base, no search
QUICK = ["estimate", "m.npz", "--schedule", "linear", "--steps", "5", "--chains", "100", "--quiet"]
QUICK += ["--base", "visible-bias", "--no-second-opinion"]
SECTIONS = [
    "Result",
    "The path and its schedule",
    "The weights",
    "Cost",
    "Reproduce",
    "Provenance",
]
VOID = {"meta", "br", "img", "link"}


@pytest.fixture(scope="module", autouse=True)
def today():
    """One day: equal results have equal pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_of_estimate, "_today", lambda: "2026-01-02")
        yield


class Page(HTMLParser):
    """The elements of a page, which must close what they open, and its text by element."""

    def __init__(self, page: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.codes: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.codes += [""] if tag == "code" else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.append((self.open[-1], data))
        if "code" in self.open:
            self.codes[-1] += data

    def all(self, tag: str) -> list[str]:
        """The text directly in elements of this kind."""
        return [text for name, text in self.texts if name == tag]

    def names(self) -> list[str]:
        return [values["id"] for _, values in self.tags if values.get("id")]  # type: ignore

    def figures(self) -> list[str]:
        return [name.removesuffix("-words") for name in self.names() if name.endswith("-words")]

    def command(self) -> str:
        return self.codes[-1]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("annealz.cli.estimate._SCRATCH", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A finished run of a model with a hostile name."""
    home = tmp_path_factory.mktemp("run")
    save_rbm(home / "model.npz", MODEL, {"name": HOSTILE})
    annealz.estimate_log_z(
        home / "model.npz", num_steps=40, num_chains=100, out=home / "run", **PLAIN
    )
    return home / "run"


@pytest.fixture(scope="module")
def estimate(folder) -> annealz.Estimate:
    return read_estimate(RunFolder(folder))


@pytest.fixture(scope="module")
def both() -> annealz.Estimate:
    return annealz.estimate_log_z(
        MODEL, schedule="linear", num_steps=40, num_chains=100, two_sided=True, **PLAIN
    )


@pytest.fixture(scope="module")
def comparison():
    return compare_schedules(
        MODEL,
        schedules=["linear", "sm08"],
        num_steps=40,
        num_chains=100,
        num_replicates=2,
        base="visible-bias",
    )


@pytest.fixture(scope="module")
def texts(estimate, both, comparison) -> dict[str, str]:
    """Their pages."""
    results = {"estimate": estimate, "both": both, "comparison": comparison}
    return {name: render_report(result) for name, result in results.items()}


# --- what a page holds -----------------------------------------------------------------------


def test_the_number_its_error_and_its_status_come_first(estimate, texts):
    page = Page(texts["estimate"])
    assert page.all("h1") == [f"log Z of {HOSTILE}"]
    assert page.all("p")[0] == f"{estimate.log_z:.4f} ± {estimate.std_err:.4f}"
    low, high = estimate.interval()
    assert page.all("p")[1] == f"95 % interval {low:.4f} … {high:.4f}"
    assert "✓ ok, without a second opinion" in page.all("strong")
    assert page.all("h2") == SECTIONS
    shown = dict(zip(page.all("th"), page.all("td"), strict=False))
    assert shown["status"] == "ok, without a second opinion"


def test_every_picture_is_there_and_says_in_words_what_it_shows(estimate, both, texts):
    path = ["schedule", "dwell", "variance"]
    one = Page(texts["estimate"])
    assert one.figures() == [*path, "tau", "ess", "weights", "convergence"]
    two = Page(texts["both"])
    assert two.figures() == [*path, "ess", "weights", "work", "convergence"]
    for page in (one, two):
        assert all(len(words) > 40 for words in page.all("title")[1:])
        assert len(page.all("figcaption")) == len(page.figures())
        svgs = [values for tag, values in page.tags if tag == "svg"]
        assert all(values["role"] == "img" for values in svgs)
        assert {values["aria-labelledby"] for values in svgs} <= set(page.names())
    k = estimate.judgement.pareto_k
    assert any(f"k̂ = {k:.2f}, a " in words for words in one.all("figcaption"))
    assert any("g is what the run itself saw" in words for words in two.all("figcaption"))
    sides = both.to_dict()["two_sided"]
    assert any(
        f"{sides['lower']:.4f} and {sides['upper']:.4f}" in words for words in two.all("figcaption")
    )


def test_cost_and_provenance(estimate, both, texts):
    page, cells = Page(texts["both"]), {}
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', texts["both"])
    for name, rest in rows:
        cells[name] = re.findall(r"<td>(.*?)</td>", rest)
    assert cells["forward run"][0] == f"{both.run.sweeps:,}"
    assert cells["reverse run and its draws"][0] == f"{both.reverse.sweeps:,}"
    assert cells["all"] == [f"{sum(both.sweeps.values()):,}", f"{both.seconds:.1f}"]
    assert {"part", "sweeps", "seconds"} < set(page.all("th"))
    text = texts["estimate"]
    settings = estimate.settings
    for part in (settings.model_digest, estimate.schedule.digest, settings.base_digest):
        assert part in text
    for name, version in settings.versions.items():
        assert version in text, name


def test_a_page_has_its_day(texts):
    for text in texts.values():
        assert re.search(r"page written</th><td[^>]*>2026-01-02<", text)


def test_what_was_observed_is_shown():
    estimate = annealz.estimate_log_z(
        MODEL,
        schedule="linear",
        num_steps=5,
        num_chains=100,
        observe={
            "ones": lambda v: v.sum(-1),
            "means": lambda v: v,
            "grid": lambda v: v[:, :, None] * v[:, None],
        },
        **PLAIN,
    )
    text = render_report(estimate)
    assert f"{estimate.trace.means['ones'][-1]:.6g}" in text
    assert ", ".join(f"{one:.6g}" for one in estimate.trace.means["means"][-1]) in text
    assert "6 × 6 numbers from" in text


def test_evaluations_of_a_density_are_told():
    model = annealz.LogDensity(lambda x: -0.5 * jnp.sum(x**2), 2)
    result = annealz.estimate_log_z(
        model,
        schedule="linear",
        num_steps=20,
        num_chains=100,
        base=annealz.GaussianBase.standard(2),
        kernel=annealz.RandomWalk(0.5),
    )
    assert "Evaluations of the density: 8 in pilots, 2,100 in runs.<" in render_report(result)
    second = dataclasses.replace(result.run, purpose="second")
    settings = dataclasses.replace(result.settings, second=SecondBase(base="wide"))
    both = estimate_of(settings, Runs(result.run, second=second))
    assert "2,100 in runs, 2,100 in the second opinion.<" in render_report(both)
    assert "estimate_log_z(" in Page(render_report(result)).command()


def test_a_bad_status_says_why_and_what_to_do(tmp_path):
    save_rbm(tmp_path / "m.npz", random_rbm(27, 28, 2.0, 1))  # no layer can be enumerated
    options = {"schedule": "linear", "num_steps": 4, "num_chains": 100}
    bad = annealz.estimate_log_z(tmp_path / "m.npz", **options, **PLAIN)
    assert bad.status is annealz.Status.UNRELIABLE
    page = Page(render_report(bad))
    assert "✗ unreliable, without a second opinion" in page.all("strong")
    assert any(words.startswith("Do not use this number") for words in page.all("p"))
    assert any("to do better: --data DATA," in words for words in page.all("strong"))
    advice = page.codes[0]
    assert shlex.split(advice)[:3] == ["annealz", "estimate", str(tmp_path / "m.npz")]
    assert "--method exchange" in advice


def test_tiny_runs_have_a_page():
    model = annealz.RBM(np.ones((1, 1)), np.zeros(1), np.zeros(1))
    ten = annealz.estimate_log_z(model, schedule="linear", num_steps=2, num_chains=10, **PLAIN)
    for count in (1, 10):
        run = dataclasses.replace(ten.run, log_weights=ten.log_weights[:count])
        text = render_report(estimate_of(ten.settings, Runs(run)))
        assert ("unknown" in Page(text).all("p")[0]) == (count < 10)
        assert "chains are too few" in text


def test_a_resampled_run_has_a_page():
    result = annealz.estimate_log_z(
        MODEL, schedule="linear", num_steps=20, num_chains=100, resample=1.0, **PLAIN
    )
    assert "forward chains: resampled, without k̂." in render_report(result)


def test_a_comparison_has_a_page(comparison):
    page = Page(render_report(dataclasses.replace(comparison, model=HOSTILE)))
    assert page.all("h1") == [f"Schedules compared on {HOSTILE}"]
    assert page.all("p")[0].lower() == comparison.verdict.lower()
    assert page.figures() == ["ess", "log-z", "schedules"]
    assert "compare_schedules(" in page.command()
    for contender in comparison.contenders:
        assert f"{contender.log_z:.4f} ± {contender.std_err:.4f}" in page.all("td")


# --- nothing from outside, nothing that runs -------------------------------------------------


def test_pages_hold_all_they_show(texts):
    for text in texts.values():
        page = Page(text)
        kinds = {tag for tag, _ in page.tags}
        assert not kinds & {"script", "link", "img", "iframe", "object", "image", "foreignobject"}
        for tag, values in page.tags:
            assert "src" not in values, tag
            assert not any(name.startswith("on") for name in values), tag
            assert (values.get("href") or "#").startswith("#"), tag
        assert "@import" not in text
        assert set(re.findall(r"url\((.)", text)) == {"#"}
        policy = next(v for _, v in page.tags if v.get("http-equiv"))["content"]
        assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_names_are_escaped_everywhere(estimate, comparison):
    for result in (estimate, dataclasses.replace(comparison, model=HOSTILE)):
        text = render_report(result)
        assert "<script" not in text
        assert "<img" not in text
        assert "&lt;script&gt;" in text
    renamed = dataclasses.replace(estimate.schedule, name="<b>$\\frac$ & $</b>")
    run = dataclasses.replace(estimate.run, schedule=renamed)
    text = render_report(dataclasses.replace(estimate, runs=Runs(run)))
    assert "<b>" not in text
    assert "schedule: <b>$\\frac$ & $</b>, 40 steps" in Page(text).all("text")


def test_pictures_share_no_names_and_have_the_pages_colours(texts):
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
    assert render_report(read_estimate(RunFolder(folder))) == texts["estimate"]


# --- the command that makes it again ---------------------------------------------------------


def test_the_command_gives_the_same_number(capsys, folder, estimate, texts):
    command = Page(texts["estimate"]).command()
    assert shlex.split(command)[:2] == ["annealz", "estimate"]
    status, out, _ = run(capsys, *shlex.split(command)[1:], "--quiet", "--json")
    assert status == 0
    assert json.loads(out)["log_z"] == estimate.log_z


def test_the_call_gives_the_same_number(both, texts):
    call = Page(texts["both"]).command()
    again = eval(call, {"annealz": annealz, "model": MODEL})
    assert again.log_z == both.log_z


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


def again_of(estimate: annealz.Estimate, **changes):
    settings = dataclasses.replace(estimate.settings, **changes)
    return estimate_again(settings, estimate.schedule.name, estimate.num_steps)


def test_options_and_what_cannot_be_recorded(estimate):
    asked = estimate.settings.asked
    every = again_of(
        estimate,
        two_sided=True,
        resample=0.5,
        along=[0.25, 0.5],
        asked=dataclasses.replace(asked, marginal="hidden", base="uniform", data=True),
    )
    assert every.text.endswith(
        "--schedule mixing --steps 40 --chains 100 --seed 0 --base uniform --marginal hidden "
        "--data DATA --resample 0.5 --two-sided --no-second-opinion --along 0.25,0.5"
    )
    assert any("DATA" in note for note in every.notes)
    wanted = again_of(
        estimate, target_std_err=0.1, asked=dataclasses.replace(asked, num_steps=None)
    )
    assert "--target-std-err 0.1" in wanted.text
    assert "--chains" not in wanted.text
    assert "--steps" not in wanted.text
    limited = again_of(estimate, max_seconds=9.0, asked=dataclasses.replace(asked, num_chains=None))
    assert "--max-seconds 9.0" in limited.text
    assert "--chains" not in limited.text
    assert any("depends on the machine" in note for note in limited.notes)
    assert every.is_exact
    assert not limited.is_exact
    named = again_of(estimate, asked=dataclasses.replace(asked, schedule="my betas.txt"))
    assert "--schedule 'my betas.txt'" in named.text
    assert "--steps" not in named.text
    own = again_of(estimate, given=dataclasses.replace(estimate.settings.given, kernel=True))
    assert own.text.startswith("annealz.estimate_log_z(\n")
    assert "    kernel=kernel,\n" in own.text
    array = again_of(estimate, asked=dataclasses.replace(asked, schedule=None))
    assert "    schedule=schedule,\n" in array.text
    seen = again_of(estimate, asked=dataclasses.replace(asked, observe=["mean"]))
    assert "    observe=observe,\n" in seen.text


@pytest.mark.parametrize(
    ("remedy", "added", "dropped"),
    [
        (Remedy(num_steps=400), "--steps 400", "--steps 40 "),
        (Remedy(num_chains=200), "--chains 200", "--chains 100"),
        (Remedy(exact=True), "--exact", None),
        (Remedy(base="fitted"), "--base fitted", "--base visible-bias"),
        (Remedy(base="fitted"), "--base fitted", "--data"),
    ],
)
def test_the_command_with_a_remedy(estimate, remedy, added, dropped):
    asked = dataclasses.replace(estimate.settings.asked, data=True)
    settings = dataclasses.replace(estimate.settings, asked=asked)
    own = estimate_again(settings, estimate.schedule.name, 40).text
    text = estimate_again(settings, estimate.schedule.name, 40, remedy.settings).text
    assert added in text
    assert added not in own
    assert dropped is None or (dropped in own and dropped not in text)
    assert "--seed 0" in text


def test_replica_exchange_keeps_only_the_model(estimate):
    asked = dataclasses.replace(estimate.settings.asked, model="a b.npz")
    settings = dataclasses.replace(estimate.settings, asked=asked)
    again = estimate_again(settings, estimate.schedule.name, 40, Remedy(method="exchange").settings)
    assert again.text == "annealz estimate 'a b.npz' --method exchange"


# --- the terrain is kept ---------------------------------------------------------------------


def test_the_folder_keeps_what_the_pilot_saw(folder, estimate):
    kept = estimate.schedule.terrain
    assert kept is not None
    fresh = annealz.estimate_log_z(MODEL, num_steps=40, num_chains=100, **PLAIN).schedule.terrain
    assert fresh is not None
    for name in ("betas", "mean", "variance", "ess", "tau", "tau_is_bound"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(fresh, name))
    assert kept.provenance == fresh.provenance


def test_a_damaged_terrain_is_named(folder, tmp_path):
    record = json.loads((folder / "schedule.json").read_text())
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


def test_a_new_run_drops_the_old_page(tmp_path):
    options = {"schedule": "linear", "num_steps": 5, "num_chains": 10, "out": tmp_path / "run"}
    options |= PLAIN
    annealz.estimate_log_z(MODEL, **options).report(tmp_path / "run" / "report.html")
    annealz.estimate_log_z(MODEL, **options, force=True)
    assert not (tmp_path / "run" / "report.html").exists()


def test_what_is_no_finished_run_is_refused(capsys, folder, tmp_path):
    assert "is not the folder of a run" in refused(capsys, "report", "nowhere")
    (tmp_path / "empty").mkdir()
    assert "empty holds no run" in refused(capsys, "report", "empty")
    shutil.copytree(folder, tmp_path / "half")
    (tmp_path / "half" / "run.npz").unlink()
    assert "finish it first with 'annealz resume half'" in refused(capsys, "report", "half")
    shutil.copytree(folder, tmp_path / "bad")
    (tmp_path / "bad" / "run.npz").write_bytes(b"PK\x03\x04")
    assert "truncated or damaged" in refused(capsys, "report", "bad")
    (tmp_path / "training").mkdir()
    save_record(tmp_path / "training" / "training.json", {})
    assert "holds a training" in refused(capsys, "report", "training")


BAD_PLACES = {
    "page.txt": "must end in .html",
    "missing/page.html": "folder that does not exist",
    "folder.html": "is a folder",
}


@pytest.mark.parametrize(("place", "words"), BAD_PLACES.items())
def test_bad_places_are_refused_before_the_run(capsys, folder, tmp_path, place, words):
    (tmp_path / "folder.html").mkdir()
    assert words in refused(capsys, "report", folder, "-o", place)
    assert words in refused(capsys, "estimate", "--report", place, "--out", "run")
    assert words in refused(capsys, "compare", "--report", place)
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


def test_json_stays_one_object_and_the_table_tells_the_page(capsys, tmp_path):
    save_rbm(tmp_path / "m.npz", MODEL)
    words = QUICK
    status, out, err = run(capsys, *words, "--json", "--report", "a.html")
    assert (status, err) == (0, "")
    assert json.loads(out)["num_steps"] == 5
    status, out, err = run(capsys, *words, "--report", "b.html")
    assert (status, err) == (0, "")
    assert out.endswith("report: b.html\n")
    assert list((tmp_path / "cache").iterdir()) == []
    assert Page((tmp_path / "a.html").read_text()).all("h1") == ["log Z of m"]


def test_a_resumed_run_can_be_reported(capsys, folder, tmp_path, texts):
    assert _status(["resume", str(folder), "--report", "page.html", "--quiet"]) == 0
    assert (tmp_path / "page.html").read_text() == texts["estimate"]

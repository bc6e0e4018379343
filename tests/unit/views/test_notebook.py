"""In a notebook: HTML of every result, bars that update themselves, pandas tables, trees for ArviZ."""

import builtins
import dataclasses
import html.parser
import math
import subprocess
import sys

import arviz_base
import arviz_stats
import nbformat
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import annealz
from annealz.core.weights import effective_sample_size
from annealz.testing import random_rbm
from annealz.views.show.board import Board, report_to
from annealz.views.show.html import status_html
from annealz.views.show.live import in_notebook, live_board
from annealz.views.show.notebook import board_html
from support.places import ROOT

MODEL = random_rbm(4, 6, scale=1.0, seed=1)
EXECUTE = ROOT / "docs" / "tutorials" / "execute.py"
PLAIN = {"base": "visible-bias", "second_opinion": False}  # one base, no search
OPTIONS = {"num_steps": 30, "num_chains": 100, "schedule": "linear", **PLAIN}


@pytest.fixture(scope="module")
def both() -> annealz.Estimate:
    observe = {"share": lambda x: x.mean(-1), "units": lambda x: x}
    return annealz.estimate_log_z(MODEL, two_sided=True, observe=observe, **OPTIONS)


@pytest.fixture(scope="module")
def poor() -> annealz.Estimate:
    """Of a model that cannot be enumerated."""
    model = random_rbm(27, 28, scale=2.0, seed=3)
    return annealz.estimate_log_z(model, schedule="linear", num_steps=3, num_chains=100, **PLAIN)


@pytest.fixture(scope="module")
def comparison():
    return annealz.compare_schedules(
        MODEL,
        schedules=["linear", "sm08"],
        num_steps=20,
        num_chains=100,
        num_replicates=2,
        base="visible-bias",
    )


@pytest.fixture(scope="module")
def terrain() -> annealz.Terrain:
    path = MODEL.path(MODEL.choose_base("auto", None), "visible")
    return annealz.survey_mixing(path, MODEL.kernel(), budget=20_000)


@pytest.fixture(scope="module")
def likelihood(both) -> annealz.Likelihood:
    rows = np.random.default_rng(0).integers(0, 2, (20, 6))
    return annealz.log_likelihood(MODEL, rows, estimate=both)


class Page(html.parser.HTMLParser):
    """Text and tags of a page; complains of tags that do not match."""

    def __init__(self, page: str):
        super().__init__()
        self.text, self.tags, self._open = "", [], []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in ("br", "polyline"):
            self._open.append(tag)

    def handle_endtag(self, tag):
        if tag != "polyline":
            assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += f"{data}\n"


@pytest.mark.parametrize("name", ["both", "poor", "likelihood"])
def test_number_error_and_status_come_first(name, request):
    result = request.getfixturevalue(name)
    number = result.log_likelihood if name == "likelihood" else result.log_z
    first = Page(result._repr_html_()).text.split("\n")
    assert first[1].startswith(f"{number:.4f} ± {result.std_err:.4f}")
    assert result.status.value in first[2:4]


def test_of_two_sides_and_runs_too(both):
    sides = Page(both.two_sided._repr_html_()).text
    assert f"{both.two_sided.log_ratio:.4f} ± {both.two_sided.std_err:.4f}" in sides
    up, down = (Page(run._repr_html_()).text for run in (both.run, both.reverse))
    assert f"{both.run.log_z0 + both.judgement.log_mean:.4f} ± {both.judgement.std_err:.4f}" in up
    log_mean = np.log(np.exp(both.reverse.log_weights).mean())
    assert f"{both.run.log_z0 - log_mean:.4f} ±" in down
    assert "from the target down" in down


def test_every_result_is_small_and_complete_and_loads_nothing(
    both, poor, comparison, terrain, likelihood
):
    results = [
        both, poor, both.run, both.reverse, both.two_sided, both.schedule, comparison, terrain, likelihood,
        both.status, poor.status,
    ]  # fmt: skip
    for result in results:
        page = result._repr_html_()
        assert len(page) < 20_000
        assert not {"script", "link", "img", "style"} & set(Page(page).tags)
        assert "http" not in page
        assert "color:#000" not in page  # black letters do not show on black
        assert "color:black" not in page


def test_comparison_shows_the_verdict_and_every_schedule(comparison):
    text = Page(comparison._repr_html_()).text
    assert comparison.verdict in text
    for one in comparison.contenders:
        assert f"{one.log_z:.4f} ± {one.std_err:.4f}" in text


def test_text_is_escaped(both):
    settings = dataclasses.replace(both.settings, model="<script>x</script>")
    odd = annealz.Estimate(settings, both.runs, both.judgement, ("a < b & c",))
    page = odd._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;x&lt;/script&gt;" in page
    assert "a &lt; b &amp; c" in page


def test_remedies_are_arguments_in_a_notebook(poor):
    assert "num_steps=12" in "".join(poor.messages)
    assert "--steps 12" in "".join(poor.to_dict()["messages"])
    page = poor._repr_html_()
    assert "num_steps=12." in page
    assert "annealz.exchange_log_z" in page
    assert "--" not in page


def test_badges_differ_in_more_than_colour():
    assert ">ok<" in status_html(annealz.Status.OK)
    assert ">unreliable<" in status_html(annealz.Status.UNRELIABLE)


def test_an_error_that_is_unknown_is_called_so():
    one = annealz.estimate_log_z(MODEL, schedule="linear", num_steps=3, num_chains=1, **PLAIN)
    assert "± unknown" in one._repr_html_()


# --- tables ------------------------------------------------------------------------------------


def test_table_of_estimates(both, poor):
    table = pd.concat([both.to_pandas(), poor.to_pandas()], ignore_index=True)
    assert table["log_z"].tolist() == [both.log_z, poor.log_z]
    assert table["status"].tolist() == ["ok", "unreliable"]
    assert (table["low"] < table["log_z"]).all()


def test_tables_hold_what_the_results_hold(both, comparison, terrain, likelihood):
    chains = both.run.to_pandas()
    assert chains["weight"].sum() == pytest.approx(1)
    assert 1 / (chains["weight"] ** 2).sum() == pytest.approx(
        effective_sample_size(both.log_weights)
    )
    trace = both.trace.to_pandas()
    assert trace["beta"].iloc[-1] == 1
    np.testing.assert_array_equal(trace["share_mean"], both.trace.means["share"])
    assert "units_mean" not in trace  # eight numbers a step
    np.testing.assert_array_equal(both.schedule.to_pandas()["beta"], both.schedule.betas)
    np.testing.assert_array_equal(terrain.to_pandas()["tau"], terrain.tau)
    assert comparison.to_pandas()["schedule"].tolist() == ["linear", "sm08"]
    rows = likelihood.to_pandas()
    assert rows["log_likelihood"].mean() == pytest.approx(likelihood.log_likelihood)


def test_tree_has_named_dimensions_and_units(both):
    tree = both.to_xarray()
    assert isinstance(tree, xr.DataTree)
    assert tree["sample_stats/log_weight"].dims == ("chain", "draw")
    assert tree["annealing/units_mean"].dims == ("record", "units_dim_0")
    np.testing.assert_array_equal(tree["sample_stats/log_weight"][0], both.log_weights)
    np.testing.assert_array_equal(
        tree["reverse_sample_stats/log_weight"][0], both.reverse.log_weights
    )
    np.testing.assert_array_equal(tree["schedule/beta"], both.schedule.betas)
    found = tree["diagnostics"]
    assert found["log_z"] == both.log_z
    assert tuple(found["interval"].values) == both.interval()
    assert found["lower_bound"] == both.run.log_z0 + both.two_sided.lower
    for group in ("sample_stats", "annealing", "schedule", "diagnostics"):
        for name, variable in tree[group].data_vars.items():
            assert name.startswith(("share", "units")) or variable.attrs["units"], (group, name)
    assert tree.attrs["status"] == "ok"
    assert all(isinstance(value, str | int | float) for value in tree.attrs.values())


def test_islands_and_what_was_observed_are_told_in_the_tree():
    run = annealz.estimate_log_z(
        MODEL,
        schedule="linear",
        num_steps=20,
        num_chains=100,
        resample=0.9,
        observe={"on/off": lambda v: v},
        **PLAIN,
    )
    tree = run.to_xarray()
    assert tree["annealing/on_off_mean"].shape == run.trace.means["on/off"].shape
    assert tree["sample_stats/island"].max() + 1 == 100 // run.run.island_size
    assert "pareto_k" not in tree["diagnostics"]


def test_arviz_reads_the_tree(both):
    tree = both.to_xarray()
    assert arviz_base.convert_to_datatree(tree) is tree
    samples = arviz_base.extract(tree, group="sample_stats")
    assert samples.sizes == {"sample": both.num_chains}
    summary = arviz_stats.summary(
        tree, group="sample_stats", var_names=["log_weight"], round_to="none"
    )
    assert float(summary.loc["log_weight", "mean"]) == pytest.approx(both.log_weights.mean())


@pytest.mark.parametrize(("method", "package"), [("to_pandas", "pandas"), ("to_xarray", "xarray")])
def test_what_is_missing_is_told_in_one_sentence(both, monkeypatch, method, package):
    real = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.delitem(sys.modules, package)
    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr("importlib.import_module", without)
    with pytest.raises(ValueError, match=r"pip install 'annealz\[notebook\]'\.$") as error:
        getattr(both, method)()
    assert str(error.value).count(". ") == 0


# --- bars --------------------------------------------------------------------------------------


def test_board_as_html():
    board = Board(lambda: 0.0)
    report = report_to(board)
    report(annealz.Progress(0, 1, math.nan, math.nan, "pilot"))
    report(annealz.Progress(100, 1000, 1.0, 900.0, num_chains=1000))
    report(annealz.Progress(500, 1000, 201.5, 250.0, num_chains=1000))
    page = Page(board_html(board))
    assert "annealing" in page.text
    assert "log Z 201.500" in page.text
    assert "250 of 1,000" in page.text
    assert "progress" in page.tags
    assert "svg" in page.tags


def test_no_bar_where_nobody_looks(capsys):
    assert not in_notebook()
    with live_board() as board:
        assert board is None
    seen = []
    annealz.estimate_log_z(MODEL, progress=True, on_progress=seen.append, **OPTIONS)
    assert seen[-1].step == seen[-1].num_steps == 30
    assert capsys.readouterr() == ("", "")


KERNEL_CELLS = [
    """
import annealz
from annealz.testing import random_rbm
model = random_rbm(4, 6, scale=1.0, seed=1)
options = dict(schedule="linear", num_steps=30, num_chains=100)
options |= dict(base="visible-bias", second_opinion=False)
estimate = annealz.estimate_log_z(model, progress=True, **options)
estimate
""",
    "estimate.plot()",
    "estimate.schedule.plot().figure",
    "estimate.status",
    """
def stop(now):
    if now.stage == "run" and now.step > 15:
        raise KeyboardInterrupt

try:
    annealz.estimate_log_z(model, progress=True, on_progress=stop, chunk_steps=5, out="run", **options)
except KeyboardInterrupt:
    print("stopped")
""",
    "annealz.resume('run', progress=True).log_z == estimate.log_z",
    """
try:
    annealz.estimate_log_z(model, progress=True, base="nope")
except ValueError as error:
    print(error)
""",
    """
options = dict(num_steps=9, num_chains=40, num_replicates=2)
annealz.compare_schedules(model, schedules=["linear"], progress=True, **options)
""",
    "import sys; 'matplotlib.pyplot' in sys.modules, 'ipywidgets' in sys.modules",
]


@pytest.fixture(scope="module")
def cells(tmp_path_factory) -> list[list]:
    """What every cell shows, in a kernel."""
    folder = tmp_path_factory.mktemp("kernel")
    sources = [nbformat.v4.new_code_cell(source.strip()) for source in KERNEL_CELLS]
    nbformat.write(nbformat.v4.new_notebook(cells=sources), folder / "cells.ipynb")
    done = subprocess.run(
        [sys.executable, str(EXECUTE), str(folder / "cells.ipynb")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return [cell.outputs for cell in nbformat.read(folder / "cells.ipynb", as_version=4).cells]


def test_a_bar_becomes_a_line_and_the_result_html(cells):
    bar, result = cells[0]
    assert "annealing" in Page(bar.data["text/html"]).text
    assert "progress" not in Page(bar.data["text/html"]).tags
    assert "log Z" in Page(result.data["text/html"]).text


def test_plots_are_pictures_without_pyplot(cells):
    for cell in cells[1:3]:
        assert "image/png" in cell[-1].data
    assert cells[-1][-1].data["text/plain"] == "(False, False)"


def test_a_status_is_a_badge(cells):
    assert ">ok<" in cells[3][0].data["text/html"]


def test_an_interrupted_cell_says_where_and_goes_on(cells):
    shown = cells[4]
    assert "interrupted in annealing, 67 %" in Page(shown[0].data["text/html"]).text
    assert shown[1].text == "stopped\n"
    assert cells[5][-1].data["text/plain"] == "True"


def test_an_error_is_told_after_the_bar(cells):
    assert "failed in" in Page(cells[6][0].data["text/html"]).text
    assert "unknown base" in cells[6][1].text


def test_a_comparison_has_a_bar_too(cells):
    bar, result = cells[7]
    assert "linear 2/2" in Page(bar.data["text/html"]).text
    assert "status" in Page(result.data["text/html"]).text


def test_nothing_is_said_on_stderr(cells):
    assert not [output for cell in cells for output in cell if output.get("name") == "stderr"]

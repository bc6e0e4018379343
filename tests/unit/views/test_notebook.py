"""In a notebook: results as HTML, bars that update themselves, figures without pyplot."""

import math
import subprocess
import sys

import nbformat
import pytest
from rich.console import Console

import annealz
from annealz.views.progress import Board, in_notebook, live_board, notebook_html, report_to
from support.html import Page
from support.places import ROOT
from support.views import MODEL, PLAIN

EXECUTE = ROOT / "docs" / "tutorials" / "execute.py"


def test_board_as_html():
    board = Board(Console(), get_time=lambda: 0.0)
    report = report_to(board)
    report(annealz.Progress(0, 1, math.nan, math.nan, "pilot"))
    report(annealz.Progress(100, 1000, 1.0, 900.0, num_chains=1000))
    report(annealz.Progress(500, 1000, 201.5, 250.0, num_chains=1000))
    page = Page(notebook_html(board))
    for words in ("pilot 0.0 s", "annealing", "50 %", "log Z 201.500", "ESS 250 of 1,000"):
        assert words in page.text
    assert "progress" in page.kinds
    board.show("<b>", 0, 9, "<i>")
    assert not {"i"} & Page(notebook_html(board)).kinds


def test_no_bar_where_nobody_looks(capsys):
    assert not in_notebook()
    with live_board() as board:
        assert board is None
    seen, options = [], {"schedule": "linear", "num_steps": 30, "num_chains": 100, **PLAIN}
    annealz.estimate_log_z(MODEL, progress=True, on_progress=seen.append, **options)
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
    assert "progress" not in Page(bar.data["text/html"]).kinds
    assert "log Z" in Page(result.data["text/html"]).text
    assert ">ok<" in cells[3][0].data["text/html"]


def test_plots_are_pictures_without_pyplot(cells):
    for cell in cells[1:3]:
        assert "image/png" in cell[-1].data
    assert cells[-1][-1].data["text/plain"] == "(False, False)"


def test_an_interrupted_cell_says_where_and_goes_on(cells):
    shown = cells[4]
    assert "interrupted in annealing, 67 %" in Page(shown[0].data["text/html"]).text
    assert shown[1].text == "stopped\n"
    assert cells[5][-1].data["text/plain"] == "True"


def test_an_error_is_told_after_the_bar(cells):
    assert "failed in" in Page(cells[6][0].data["text/html"]).text
    assert "base must be one of" in cells[6][1].text


def test_a_comparison_has_a_bar_too(cells):
    bar, result = cells[7]
    assert "linear 2/2" in Page(bar.data["text/html"]).text
    assert "status" in Page(result.data["text/html"]).text


def test_nothing_is_said_on_stderr(cells):
    assert not [output for cell in cells for output in cell if output.get("name") == "stderr"]

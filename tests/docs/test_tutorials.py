"""The tutorials run from top to bottom, in kernels of their own, and what they print is committed."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import nbformat
import pytest

from support.places import ROOT

FOLDER = ROOT / "docs" / "tutorials"
NAMES = ("evidence", "own_model", "rbm")
LARGEST = 400_000  # bytes of a notebook


@pytest.fixture(scope="module")
def executed(tmp_path_factory) -> dict[str, nbformat.NotebookNode]:
    """All of them, two at a time."""
    out = tmp_path_factory.mktemp("executed")

    def run(name: str) -> nbformat.NotebookNode:
        path = FOLDER / f"{name}.ipynb"
        command = [sys.executable, str(FOLDER / "execute.py"), str(path), "--to", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return nbformat.read(out / path.name, as_version=4)

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(NAMES, pool.map(run, NAMES), strict=True))


def committed(name: str) -> nbformat.NotebookNode:
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def outputs(notebook: nbformat.NotebookNode) -> list:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def test_all_are_here():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_without_a_word_on_stderr(executed, name):
    found = outputs(executed[name])
    assert not [output for output in found if output.get("name") == "stderr"]
    assert not [output for output in found if output.output_type == "error"]


@pytest.mark.parametrize("name", NAMES)
def test_results_and_bars_are_html_and_plots_are_pictures(executed, name):
    kinds = [set(output.get("data", {})) for output in outputs(executed[name])]
    html = "".join(
        output.data["text/html"]
        for output in outputs(executed[name])
        if "text/html" in output.get("data", {})
    )
    assert "log Z <b>" in html
    assert re.search(r"(annealing|base|pilot) \d+\.\d s", html)  # what is left of a bar
    assert ("image/png" in set().union(*kinds)) == (name != "evidence")
    assert "<Figure" not in html


@pytest.mark.parametrize("name", NAMES)
def test_what_is_committed_was_executed_and_is_small(name):
    notebook = committed(name)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert (FOLDER / f"{name}.ipynb").stat().st_size < LARGEST


@pytest.mark.parametrize("name", NAMES)
def test_what_is_committed_tells_nothing_of_the_machine(name):
    text = (FOLDER / f"{name}.ipynb").read_text()
    assert not re.search(r"/home/|/root/|/tmp/|/usr/|/work/|site-packages|0x[0-9a-f]{6,}", text)
    notebook = committed(name)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert all(cell.metadata == {} for cell in notebook.cells)


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name):
    text = "".join(cell.source for cell in committed(name).cells if cell.cell_type == "markdown")
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (FOLDER / link).exists(), link


def test_the_rbm_comes_out_as_its_page_says(executed):
    """The first run is ok, the hasty one is not, and the two sides are."""
    badges = [
        re.search(r"font-weight:bold[\"']>(ok|unreliable)</span>", output.data["text/html"])
        for output in outputs(executed["rbm"])
        if re.match(
            r"<div><div style=.font-size:115%.>log Z", output.get("data", {}).get("text/html", "")
        )
    ]
    assert [badge[1] for badge in badges if badge] == ["ok", "unreliable", "ok"]


def test_evidence_comes_out_as_its_page_says(executed):
    """The parabola wins, and what is known exactly is met."""
    text = "\n".join(
        output.get("data", {}).get("text/plain", "") for output in outputs(executed["evidence"])
    )
    (factor,) = re.findall(r"log Bayes factor +(\S+) ±", text)
    assert float(factor) > 3
    assert re.search(r"best model +parabola", text)
    checks = re.findall(r"^\d +(?:line|degree \d) +\S+ +\S+ +ok +\S+ +(\S+)$", text, re.M)
    assert len(checks) == 3
    assert max(abs(float(off)) for off in checks) < 4


def test_the_broken_kernel_is_found_out(executed):
    text = "".join(output.get("text", "") for output in outputs(executed["own_model"]))
    assert re.search(r"Reckless at beta = \S+ does not leave p_beta invariant", text)

"""The site is built strictly, and needs no network. Skipped where MkDocs is not installed: `make docs`."""

import os
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from support.pages import ROOT

pytest.importorskip("mkdocs")
pytest.importorskip("mkdocs_jupyter")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(folder),
    ]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr
    assert (folder / "search" / "search_index.js").is_file()  # for pages opened from a disk
    return {
        path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.html")
    }


def test_nothing_is_fetched(site):
    for page, text in site.items():
        tags = re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", text)
        assert not [tag for tag in tags if re.search(r"""(src|href)=["']?(https?:)?//""", tag)], (
            page
        )


def test_search_works_from_a_disk(site):
    """Its index is a script, and a frame of ours stands in for the worker: nothing comes from a network."""
    assert 'src="iframe-worker.js"' in site["index.html"]
    assert 'src="../../iframe-worker.js"' in site["studies/ising/index.html"]


def test_no_title_is_doubled(site):
    """As in "The report the report", where a link has the title of its page."""
    for page, text in site.items():
        plain = re.sub(r"<[^>]+>", "", text.partition("<article")[2])
        assert not re.search(r"\b(The [a-z]+(?: of data)?) \1\b", plain, re.IGNORECASE), page


def test_pages_from_elsewhere_are_there_with_their_links(site):
    assert 'href="studies/coverage/index.html"' in site["index.html"]
    assert 'href="choose.html"' in site["index.html"]
    assert 'href="../../schedules.html"' in site["papers/kiwaki2015/index.html"]
    assert "class Phi" in re.sub(r"<[^>]+>", "", site["examples/phi_four/__init__.py.html"])
    for page in site:
        assert "README.md" not in re.findall(r'href="([^"]+)"', site[page])


def test_formulas_are_formulas(site):
    formulas = re.findall(r"<math.*?</math>", site["theory.html"])
    assert len(formulas) > 40
    for formula in formulas:
        for element in ElementTree.fromstring(formula).iter():
            if element.tag.endswith(("msub", "msup", "mfrac")):
                assert len(element) == 2, formula
    for page, text in site.items():
        assert 'class="arithmatex"' not in text, page


def test_parameters_have_words(site):
    plain = re.sub(r"<[^>]+>", "", site["api/survey.html"])
    assert re.search(
        r"sweeps\s*\(\s*int,\s*default:\s*0\s*\)\s*–\s*kernel applications spent", plain
    )


def test_measured_tables_are_there(site):
    assert site["benchmarks.html"].count("<table") >= 7
    assert "measured:" not in site["benchmarks.html"]

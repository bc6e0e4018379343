"""Reports in a real browser: Debian's chromium, headless; skipped where it is not installed.

`make test-browser` installs it. Every page is opened light and dark, on a desktop, on a phone and on paper.
"""

import dataclasses
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import annealz
from annealz.cli.main import run
from annealz.results.compare import compare_schedules
from annealz.testing import random_rbm
from annealz.views.progress import Board, notebook_html
from annealz.views.report import render_report

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None
        or "snap" in Path(CHROMIUM).resolve().parts,  # a snap sees no files of ours
        reason="chromium is not installed",
    ),
]

PAGES = ("two-sided", "unreliable", "compare")
HOSTILE = "<script>document.title = 'taken'</script>"
SIZES = {"desktop": (1100, 800), "phone": (390, 844)}

# Contrast of every text and every line of a picture with what lies behind it, as WCAG counts it.
CONTRASTS = """
() => {
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const found = numbers(getComputedStyle(e).backgroundColor);
      if (found.length == 3 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const ratio = (one, other) => {
    const [high, low] = [light(one), light(other)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const found = [];
  for (const e of document.querySelectorAll("main *")) {
    const style = getComputedStyle(e), name = e.tagName.toLowerCase();
    const says = [...e.childNodes].some(n => n.nodeType == 3 && n.textContent.trim());
    if (name == "title") continue;
    if (says) {
      const colour = name == "text" ? style.fill : style.color;
      found.push(["text", e.textContent.slice(0, 40), ratio(numbers(colour), behind(e))]);
    } else if (e.closest("svg") && style.stroke.startsWith("rgb") && name == "path") {
      found.push(["line", style.stroke, ratio(numbers(style.stroke), behind(e))]);
    }
  }
  return found;
}
"""

# Labels of a picture that are cut off, or that lie on each other.
LABELS = """
() => {
  const wrong = [];
  for (const svg of document.querySelectorAll("figure svg")) {
    const box = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map(e => [e.textContent, e.getBoundingClientRect()]);
    for (const [words, r] of texts)
      if (r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1
          || r.bottom > box.bottom + 1) wrong.push("cut off: " + words);
    texts.forEach(([one, a], i) => texts.slice(i + 1).forEach(([other, b]) => {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 4) wrong.push("overlap: " + one + " / " + other);
    }));
  }
  return wrong;
}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator:
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A report of each kind."""
    home, model = tmp_path_factory.mktemp("pages"), random_rbm(6, 10, 2.0, 1)
    both = annealz.estimate_log_z(model, num_steps=60, num_chains=200, two_sided=True)
    plan = dataclasses.replace(both.plan, model=HOSTILE)
    dataclasses.replace(both, plan=plan).report(home / "two-sided.html")
    wild = random_rbm(8, 12, 3.0, 1)
    bad = annealz.estimate_log_z(
        wild, schedule="linear", base="uniform", num_steps=4, num_chains=200
    )
    assert bad.status is annealz.Status.UNRELIABLE
    bad.report(home / "unreliable.html")
    names = ["linear", "sm08", "mixing"]
    options = {"num_steps": 60, "num_chains": 200, "num_replicates": 2}
    compare_schedules(model, schedules=names, **options).report(home / "compare.html")
    return home


@pytest.fixture
def visit(browser, folder) -> Iterator:
    """Open a page; it may not complain, and may ask for nothing but itself."""
    opened, wrong = [], []

    def go(name: str, size: str = "desktop", scheme: str = "light"):
        width, height = SIZES[size]
        page = browser.new_page(
            viewport={"width": width, "height": height}, color_scheme=scheme, offline=True
        )
        address = (folder / f"{name}.html").as_uri()
        page.on("console", lambda said: wrong.append(f"console: {said.text}"))
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
        page.on("request", lambda sent: sent.url == address or wrong.append(f"asks: {sent.url}"))
        page.goto(address)
        opened.append(page)
        return page

    yield go
    for page in opened:
        page.close()
    assert wrong == []


@pytest.mark.parametrize("name", PAGES)
def test_every_picture_is_seen_and_nothing_overflows(visit, name):
    for size, (width, _) in SIZES.items():
        page = visit(name, size)
        boxes = page.evaluate(
            "[...document.querySelectorAll('figure svg')].map(e => e.getBoundingClientRect().toJSON())"
        )
        assert len(boxes) == page.locator("figure").count() >= 3
        for box in boxes:
            assert box["width"] > 250
            assert box["height"] > 120
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        drawn = "e => [...e.querySelectorAll('path')].some(p => p.getBBox().width > 50)"
        assert all(svg.evaluate(drawn) for svg in page.locator("figure svg").all())


@pytest.mark.parametrize("name", PAGES)
def test_labels_are_whole_and_apart(visit, name):
    assert visit(name).evaluate(LABELS) == []
    page = visit(name, "phone")
    assert page.evaluate(LABELS) == []
    sizes = page.evaluate(
        "[...document.querySelectorAll('svg text')].map(e => [getComputedStyle(e), e.getScreenCTM()])"
        ".map(([style, map]) => parseFloat(style.fontSize) * Math.hypot(map.c, map.d))"
    )
    assert min(sizes) > 7.5


@pytest.mark.parametrize("name", PAGES)
def test_light_and_dark_can_be_read(visit, name):
    papers = []
    for scheme in ("light", "dark"):
        page = visit(name, scheme=scheme)
        found = page.evaluate(CONTRASTS)
        assert sum(kind == "text" for kind, _, _ in found) > 50
        assert sum(kind == "line" for kind, _, _ in found) > 10
        for kind, what, ratio in found:
            assert ratio >= {"text": 4.5, "line": 3}[kind], (scheme, kind, what, ratio)
        papers.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert papers == ["rgb(255, 255, 255)", "rgb(21, 24, 27)"]


def test_no_script_of_a_name_runs(visit):
    page = visit("two-sided")
    assert page.title() == f"log Z of {HOSTILE}"
    assert page.locator("h1").inner_text() == f"log Z of {HOSTILE}"
    assert page.evaluate("document.scripts.length") == 0


# --- names that would run, if any of them came onto a page as it is --------------------------


IMAGE = "\"'><img src=x onerror=window.taken=1>"
POLICY = re.compile(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>")
REPORTS = ("estimate", "estimate by command", "exchange", "exchange by command", "compare")
SILENT = ("two sides", "terrain", "rounds of exchange")  # which tell no names
CELLS = (
    "estimate", "exchange", "compare", "likelihood", "run", "schedule", "progress", "table", "tree", *SILENT
)  # fmt: skip
BRIEF = {"num_steps": 20, "num_chains": 60}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> dict[str, dict[str, Any]]:
    """Results whose names are markup: of model, schedule, observer, data and their files."""
    home = tmp_path_factory.mktemp("names") / IMAGE
    home.mkdir()
    model, file, betas = random_rbm(6, 10, 2.0, 1), home / f"{IMAGE}.npz", home / f"{IMAGE}.json"
    annealz.save_rbm(file, model, {"name": IMAGE})
    dataclasses.replace(annealz.linear(20), name=IMAGE).save(betas)
    estimate = annealz.estimate_log_z(
        file, schedule=betas, num_chains=60, two_sided=True, observe={IMAGE: lambda v: v.sum(-1)}
    )
    estimate = estimate.with_message(f"{IMAGE}; {IMAGE}")
    exchange = annealz.estimate_log_z(
        file, method="exchange", num_rungs=5, num_ensembles=5, num_steps=64
    )
    compared = compare_schedules(file, schedules=["linear", "sm08"], num_replicates=2, **BRIEF)
    first, *others = compared.contenders
    contenders = (dataclasses.replace(first, name=IMAGE), *others)
    compared = dataclasses.replace(compared, contenders=contenders, extra_messages=(IMAGE,))
    board = Board(Console())
    board.show(IMAGE, 1, 9, IMAGE)
    reports: dict[str, Any] = {"estimate": estimate, "exchange": exchange, "compare": compared}
    for name, options in {
        "estimate": ["--schedule", str(betas), "--chains", "60"],
        "exchange": ["--method", "exchange", "--rungs", "5", "--ensembles", "5", "--steps", "64"],
    }.items():
        out = home / f"{name} {IMAGE}"
        for command in (["estimate", str(file), "--quiet", *options, "--out"], ["report"]):
            assert run([*command, str(out)]) == 0
        reports[f"{name} by command"] = out / "report.html"
    cells = {
        **{name: reports[name] for name in ("estimate", "exchange", "compare")},
        "likelihood": annealz.log_likelihood(
            model, np.eye(6, 10), estimate=estimate, data_name=IMAGE
        ),
        "run": estimate.run,
        "schedule": estimate.schedule,
        "table": estimate.trace.to_pandas(),
        "tree": estimate.to_xarray(),
        "two sides": estimate.two_sided,
        "terrain": estimate.terrain,
        "rounds of exchange": exchange.exchange,
        "progress": board,
    }
    return {"reports": reports, "cells": cells}


def report_of(result: Any) -> str:
    return result.read_text() if isinstance(result, Path) else render_report(result)


def cell_of(result: Any) -> str:
    """What a notebook makes of it: a page without a policy."""
    shown = notebook_html(result) if isinstance(result, Board) else result._repr_html_()
    return f"<!DOCTYPE html><title>notebook</title><main>{shown}</main>"


@pytest.fixture
def runs(browser, tmp_path) -> Iterator:
    """What a name did to a page: ran, made elements, asked for something."""
    page, asked = browser.new_page(offline=True), []
    page.on("request", lambda sent: asked.append(sent.url))

    def look(text: str) -> set[str]:
        (tmp_path / "page.html").write_text(text)
        asked.clear()
        page.goto((tmp_path / "page.html").as_uri(), wait_until="networkidle")
        elements = page.evaluate(
            "[...document.querySelectorAll('*')].filter(e => e.matches('img, script, iframe')"
            " || [...e.attributes].some(a => a.name.startsWith('on'))).length"
        )
        done = {"ran": page.evaluate("window.taken === 1"), "elements": elements > 0}
        done["asked"] = len(asked) > 1
        return {name for name, is_so in done.items() if is_so}

    yield look
    page.close()


@pytest.mark.parametrize("name", REPORTS)
def test_no_name_runs_on_a_report(hostile, runs, name):
    """Escaped, so that it would not without the page's policy either."""
    text = report_of(hostile["reports"][name])
    assert text.count("&lt;img src=x onerror=window.taken=1&gt;") > 3
    without, count = POLICY.subn("", text)
    assert count == 1
    assert runs(text) == set()
    assert runs(without) == set()


@pytest.mark.parametrize("name", CELLS)
def test_no_name_runs_in_a_notebook(hostile, runs, name):
    text = cell_of(hostile["cells"][name])
    assert ("&lt;img src=x onerror=window.taken=1&gt;" in text) == (name not in SILENT)
    assert runs(text) == set()


@pytest.mark.parametrize("name", REPORTS)
def test_a_name_that_is_not_escaped_is_seen_and_stopped_by_the_policy(
    hostile, runs, name, monkeypatch
):
    result = hostile["reports"][name]
    if isinstance(result, Path):
        result = annealz.resume(result.parent)
    monkeypatch.setattr("annealz.views.report.escape", str)
    text = render_report(result)
    assert {"ran", "elements"} <= runs(POLICY.sub("", text))
    assert "ran" not in runs(text)


@pytest.mark.parametrize("name", [name for name in CELLS if name not in (*SILENT, "table", "tree")])
def test_a_name_that_is_not_escaped_runs_in_a_notebook(hostile, runs, name, monkeypatch):
    where = "progress" if name == "progress" else "html"
    monkeypatch.setattr(f"annealz.views.{where}.escape", str)
    assert {"ran", "elements"} <= runs(cell_of(hostile["cells"][name]))


def test_it_prints_on_white(visit):
    page = visit("two-sided", scheme="dark")
    printed = page.pdf(format="A4")
    assert printed.startswith(b"%PDF-")
    assert len(printed) > 20_000
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(22, 25, 28)"


def test_it_can_be_read_aloud(visit):
    """Pictures have names, headings are in order, cells have headings."""
    page = visit("two-sided")
    assert page.get_by_role("img").count() == page.locator("figure svg").count() == 8
    names = page.get_by_role("img").evaluate_all(
        "all => all.map(e => document.getElementById(e.getAttribute('aria-labelledby')).textContent)"
    )
    assert all(len(name) > 40 for name in names)
    assert page.get_by_role("heading", level=1).count() == 1
    assert page.get_by_role("heading", level=2).count() == 7
    assert page.get_by_role("rowheader", name="95 % interval").count() == 1
    assert page.get_by_role("columnheader", name="sweeps").count() == 1

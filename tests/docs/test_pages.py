"""What pages show exists: commands, options, make targets, names, links; and the site holds all of them."""

import importlib
import json
import re

import pytest

import annealz
from support.pages import PAGES, ROOT, blocks, check_command, commands, options

CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
CONSOLES = [page for page in PAGES if any(b.language in ("console", "bash") for b in blocks(page))]
CONFIG = (ROOT / "mkdocs.yml").read_text()
API = {page: text for page, text in PAGES.items() if page.startswith("docs/api/")}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(b.language == "python" for b in blocks(page))]
)
def test_a_page_with_code_is_run(page: str):
    tests = "".join(path.read_text() for path in ROOT.glob("tests/docs/test_pages_*.py"))
    assert f'run_page("{page}")' in tests


def test_few_blocks_are_not_run():
    marks = [(page, b.mark) for page in PAGES for b in blocks(page) if b.mark.startswith("not run")]
    assert all(len(mark) > len("not run: ") for _, mark in marks)
    assert len(marks) <= 4, marks


@pytest.mark.parametrize("page", CONSOLES)
def test_commands_of_blocks_are_those_of_the_command_line(page: str):
    for block in blocks(page):
        for words in commands(block.code) if block.language in ("console", "bash") else ():
            check_command(words)


@pytest.mark.parametrize("page", list(PAGES))
def test_commands_and_options_in_the_text_exist(page: str):
    for text in CODE.findall(PAGES[page]):
        shown = re.match(r"annealz ([a-z]+)\b", text)
        known = options(shown[1] if shown else "")
        for word in (
            re.findall(r"(?:^|\s)(--[a-z0-9-]+)(?![=a-z0-9-])", text)
            if shown or text[0] == "-"
            else ()
        ):
            assert word in known, f"{text}: no {word}"


@pytest.mark.parametrize(
    "words",
    [["estimate", "--step", "9"], ["estimate", "--steps", "few"], ["guess"], ["models", "a"]],
)
def test_a_wrong_command_is_seen(words: list[str]):
    with pytest.raises(Exception, match="No such option|valid integer|no command|unexpected"):
        check_command(words)


@pytest.mark.parametrize("page", CONSOLES)
def test_make_targets_exist(page: str):
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:^\$ |`)make ([a-z-]+)", PAGES[page], re.MULTILINE):
        assert f"\n{target}:" in makefile, target


@pytest.mark.parametrize("page", [page for page in PAGES if page not in API])
def test_names_are_public(page: str):
    shown = re.sub(r'entry-points\."[^"]+"', "", PAGES[page])  # groups, which are no modules
    for text in re.findall(r"\bannealz((?:\.[A-Za-z_]\w*)+)", shown):
        found = annealz
        for name in text.strip(".").split("."):
            found = getattr(found, name)


@pytest.mark.parametrize("page", list(PAGES))
def test_links_lead_somewhere(page: str):
    text = re.sub(r"^```.*?^```", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        assert ":" in link or (ROOT / page).parent.joinpath(link).exists(), link


def test_a_page_is_in_the_navigation():
    nav = set(
        re.findall(r"^ +- (?:.+: )?(\S+\.(?:md|ipynb))$", CONFIG.split("\nnav:")[1], re.MULTILINE)
    )
    inside = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*")]
    wanted = {path.as_posix() for path in inside if path.suffix in (".md", ".ipynb")}
    wanted |= {
        re.sub(r"README\.md$", "index.md", page) for page in PAGES if not page.startswith("docs/")
    }
    assert nav == wanted


def test_the_api_lists_what_is_public_and_nothing_twice():
    listed = []
    for path in re.findall(r"^::: annealz\.(\S+)$", "".join(API.values()), re.MULTILINE):
        module, _, name = path.rpartition(".")
        found = importlib.import_module(f"annealz.{module or name}")
        assert not module or getattr(annealz, name) is getattr(found, name)
        listed.append(name)
    assert sorted(listed) == sorted(set(annealz.__all__) - {"__version__"})


def test_the_first_page_of_the_api_names_all_of_it():
    text = API["docs/api/index.md"]
    for name in set(annealz.__all__) - {"__version__"}:
        assert re.search(rf"[`\[]{name}\b", text), name


def test_the_page_of_benchmarks_has_the_measured_numbers(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "hooks"))
    measured = importlib.import_module("measured")
    page = measured.fill(PAGES["docs/benchmarks.md"])
    assert "<!-- measured" not in page
    results = json.loads((ROOT / "benchmarks" / "results.json").read_text())
    for race in results["race"].values():
        assert f"{race['annealz']['ms_per_step']:.3g} (" in page

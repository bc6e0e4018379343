"""What the README shows runs, and what is public is documented."""

import inspect
import re
from pathlib import Path

import pytest

import annealz
from annealz.cli.main import _status
from annealz.testing import assert_within_mc_error

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
TRUST = (ROOT / "docs" / "trust.md").read_text()


def test_python_blocks_run(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    assert (tmp_path / "estimate.png").stat().st_size > 10_000


def test_python_blocks_of_the_page_on_trust_run(tmp_path: Path, monkeypatch):
    """One after the other, as on the page."""
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", TRUST, re.DOTALL):
        exec(compile(block, "docs/trust.md", "exec"), names)
    assert (tmp_path / "two-sided.png").stat().st_size > 10_000
    exact = names["estimate"].exact_log_z
    for name in ("estimate", "both", "islands", "wanted", "limited"):
        assert_within_mc_error(names[name].log_z, exact, names[name].std_err)
    assert names["wanted"].std_err <= 0.05


@pytest.mark.parametrize("page", ["densities", "extending"])
def test_python_blocks_of_the_pages_on_models_run(page: str):
    """One after the other, as on the page."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, f"docs/{page}.md", "exec"), names)
    assert names["estimate"].status.value == "ok"


def test_options_of_the_page_on_choosing_exist(capsys):
    _status(["estimate", "--help"])
    text = capsys.readouterr().out
    for option in set(re.findall(r"`(--[a-z-]+)", (ROOT / "docs" / "choose.md").read_text())):
        assert option in text, f"annealz estimate has no {option}"


def test_commands_are_those_of_the_command_line(capsys):
    """Every option that the README shows is one that the command has."""
    for line in re.findall(r"^\$ annealz (.*?)(?:#.*)?$", README, re.MULTILINE):
        command, *words = line.split()
        _status([command, "--help"])
        text = capsys.readouterr().out
        for option in (word for word in words if word.startswith("-")):
            assert option in text, f"annealz {command} has no {option}"


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^\$ make ([a-z-]+)", README, re.MULTILINE):
        assert f"\n{target}:" in makefile


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_links_lead_somewhere(link: str):
    assert (ROOT / link).exists()


@pytest.mark.parametrize("name", [name for name in dir(annealz) if name[0] != "_"])
def test_public_objects_have_a_docstring(name: str):
    assert inspect.getdoc(getattr(annealz, name))

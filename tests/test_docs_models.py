"""What the pages on models and paths show runs, and comes out right."""

import re
from pathlib import Path

import pytest

import annealz
from annealz.testing import assert_within_mc_error

DOCS = Path(__file__).parents[1] / "docs"


def run_page(name: str) -> dict:
    """All blocks of a page, one after the other."""
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(), re.DOTALL):
        exec(compile(block, name, "exec"), names)
    return names


@pytest.mark.slow
def test_the_page_on_models_runs(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_page("models.md")
    estimate = names["estimate"]
    exact = annealz.exact_log_z(annealz.RBM.from_sklearn(names["trained"]))
    assert_within_mc_error(estimate.log_z, exact, estimate.std_err)
    loaded, _ = annealz.load_model(tmp_path / "digits.npz")
    assert loaded.digest == annealz.RBM.from_sklearn(names["trained"]).digest
    assert annealz.estimate_log_z(names["machine"], num_steps=50, num_chains=50).exact_log_z


@pytest.mark.slow
def test_the_page_on_paths_runs(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_page("paths.md")
    exact = annealz.exact_log_z(names["model"])
    for result in (names["through"], names["averaged"], names["mixed"]):
        assert_within_mc_error(result.log_z, exact, result.std_err)


@pytest.mark.parametrize("name", ["models.md", "paths.md"])
def test_what_the_pages_name_is_public(name: str):
    text = (DOCS / name).read_text()
    for word in set(re.findall(r"annealz\.([A-Za-z_]+)", text)) - {"data", "testing"}:
        assert hasattr(annealz, word), word

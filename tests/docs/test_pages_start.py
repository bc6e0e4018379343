"""README and the pages that everybody reads run from top to bottom, and come out right."""

from pathlib import Path

import pytest

from annealz.testing import assert_within_mc_error
from support.pages import run_page


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_readme():
    names = run_page("README.md")
    assert Path("estimate.png").stat().st_size > 10_000
    assert names["estimate"].status.value == "ok"


def test_start():
    names = run_page("docs/start.md")
    for name in ("estimate", "wanted"):
        assert_within_mc_error(names[name].log_z, names[name].exact_log_z, names[name].std_err)
    assert names["wanted"].std_err <= 0.02
    gaussian = names["gaussian"]
    assert_within_mc_error(
        gaussian.log_z, 1.5 * names["np"].log(2 * names["np"].pi), gaussian.std_err
    )


def test_trust():
    names = run_page("docs/trust.md")
    assert Path("two-sided.png").stat().st_size > 10_000
    exact = names["estimate"].exact_log_z
    for name in ("estimate", "both", "islands", "wanted", "limited"):
        assert_within_mc_error(names[name].log_z, exact, names[name].std_err)
    assert names["wanted"].std_err <= 0.05


def test_schedules():
    names = run_page("docs/schedules.md")
    assert names["estimate"].schedule == names["schedule"]
    assert names["terrain"].sweeps <= 100_000


def test_training():
    names = run_page("docs/training.md")
    assert names["updates"] == 500


def test_extending():
    names = run_page("docs/extending.md")
    assert names["estimate"].status.value == "ok"
    assert names["QUADRATIC"].rule(4).betas.tolist() == [0, 1 / 16, 1 / 4, 9 / 16, 1]
    terrain = names["annealz"].Terrain([0, 1], [0, 1], [1, 1], [9, 9], tau=[1, 1])
    assert names["HALFWAY"].rule(terrain, 4).num_steps == 4
    Path("model.rbmtxt").write_text("rbm 1 2  0.5  1 2  3 4")
    model, _ = names["RBMTXT"].read(Path("model.rbmtxt"))
    assert model.weights.tolist() == [[3, 4]]


def test_scale():
    run_page("docs/scale.md")  # its Python wants several processes, and is only compiled


def test_report():
    run_page("docs/report.md")
    assert Path("page.html").stat().st_size > 10_000


def test_notebook():
    names = run_page("docs/notebook.md")
    assert names["estimate"].status.value == "ok"

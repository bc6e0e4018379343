"""A package beside annealz adds schedules and a file format: help, compare, estimates and reports."""

import json
import os
import re
import sys
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import annealz
from annealz.testing import assert_within_mc_error, default_seed, random_rbm
from support.command import PLAIN, refused, run
from support.imports import HEAVY, annealz_in_a_process, imported
from support.packages import PLUGIN, write_package

DESCRIPTION, PACKAGE = "β = t²: small steps first", "annealz-plugin 0.1"
SMALL = ["--steps", 200, "--chains", 200, "--seed", default_seed(), "--quiet"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("annealz.cli.run._SCRATCH", tmp_path / "cache")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def model() -> annealz.RBM:
    """In a text file of a format that annealz does not know."""
    made = random_rbm(4, 6, 0.6, 11)
    arrays = (made.hidden_bias, made.visible_bias, made.weights)
    numbers = (" ".join(map(repr, np.asarray(array, float).ravel().tolist())) for array in arrays)
    Path("model.rbmtxt").write_text("rbm 4 6\n" + "\n".join(numbers))
    return made


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The package is on the path until `remove_plugin`."""
    monkeypatch.syspath_prepend(PLUGIN)
    return monkeypatch


def remove_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [place for place in sys.path if place != str(PLUGIN)])
    for name in [name for name in sys.modules if name.startswith("annealz_plugin")]:
        monkeypatch.delitem(sys.modules, name)


def shown(capsys, *words: object) -> str:
    status, out, _ = run(capsys, *words)
    assert status == 0
    return " ".join(out.replace("│", " ").split())


def test_help_lists_it_and_imports_nothing_heavy():
    path = os.pathsep.join([str(PLUGIN), os.environ.get("PYTHONPATH", "")])
    done = annealz_in_a_process("schedule", "--help", PYTHONPATH=path, COLUMNS="200")
    assert done.returncode == 0
    text = " ".join(done.stdout.replace("│", " ").split())
    assert "varopt-fixed-point, halfway, quadratic, or a file of betas." in text
    assert f"quadratic: {DESCRIPTION}" in text
    assert ".safetensors, .dat, .uai, .rbmtxt" in text
    modules = imported(done.stderr)
    assert not HEAVY & modules


def test_help_lists_it_where_it_is_there_only(capsys, plugin):
    for command in ("estimate", "likelihood", "schedule"):
        text = shown(capsys, command, "--help")
        assert "halfway, quadratic" in text
        assert ".rbmtxt" in text
    assert "varopt-fixed-point, quadratic)" in shown(capsys, "compare", "--help")
    remove_plugin(plugin)
    for command in ("estimate", "likelihood", "schedule", "compare"):
        text = shown(capsys, command, "--help")
        assert "varopt-fixed-point" in text
        assert "quadratic" not in text
        assert ".rbmtxt" not in text


def test_without_it_its_names_and_files_are_unknown(capsys, model):
    words = refused(capsys, "estimate", "mnist-pcd-20", "--schedule", "quadratic")
    assert "unknown schedule 'quadratic': choose one of mixing, linear" in words
    assert "quadratic," not in words
    words = refused(capsys, "estimate", "model.rbmtxt")
    assert "model.rbmtxt is in an unknown format: give npz (.npz), MATLAB (.mat)" in words


def test_an_estimate_its_folder_and_its_report(capsys, model, plugin):
    words = ["estimate", "model.rbmtxt", "--schedule", "quadratic", *SMALL, *PLAIN]
    out = run(capsys, *words, "--out", "run", "--report", "page.html", "--json")[1]
    result = json.loads(out)
    assert result["schedule"] == "quadratic"
    assert result["sweeps"] == {"pilot": 0, "main": 200 * 200}
    assert_within_mc_error(result["log_z"], annealz.exact_log_z(model), result["std_err"])
    in_python = annealz.estimate_log_z(
        "model.rbmtxt", schedule="quadratic", num_steps=200, num_chains=200, seed=default_seed(),
        base="visible-bias", second_opinion=False,
    )  # fmt: skip
    assert in_python.log_z == result["log_z"]
    np.testing.assert_array_equal(in_python.schedule.betas, np.linspace(0, 1, 201) ** 2)
    page = Path("page.html").read_text()
    assert f"quadratic, 200 steps ({DESCRIPTION}; {PACKAGE})" in page
    command = (
        f"annealz estimate model.rbmtxt --base visible-bias --seed {default_seed()} --schedule"
    )
    shown = " ".join(in_page(page).split())
    assert f"{command} quadratic --steps 200 --chains 200 --no-second-opinion" in shown
    remove_plugin(plugin)  # the folder holds all that is needed
    assert annealz.resume("run").log_z == result["log_z"]
    assert run(capsys, "report", "run", "-o", "later.html")[0] == 0
    assert Path("later.html").read_text() == page


def in_page(page: str) -> str:
    """The text of a page."""
    return unescape(re.sub(r"<[^>]+>", "", page))


def test_a_run_with_it_is_resumed_without_it(model, plugin):
    settings = {"schedule": "halfway", "num_steps": 200, "num_chains": 200, "second_opinion": False}
    whole = annealz.estimate_log_z(model, base="uniform", **settings)
    terrain = whole.schedule.terrain
    assert terrain is not None
    assert whole.sweeps["pilot"] == terrain.sweeps > 0
    assert whole.schedule.provenance["share"] == 0.5
    mixed = annealz.mixing(terrain, 200).betas
    np.testing.assert_array_equal(whole.schedule.betas, (mixed + annealz.linear(200).betas) / 2)

    def stop(progress: annealz.Progress) -> None:
        if progress.stage == "run" and progress.step >= 100:
            raise KeyboardInterrupt

    options = settings | {"chunk_steps": 50, "checkpoint_seconds": 0, "out": "run"}
    with pytest.raises(KeyboardInterrupt):
        annealz.estimate_log_z(model, base="uniform", on_progress=stop, **options)
    remove_plugin(plugin)
    again = annealz.resume("run")
    assert again.log_z == whole.log_z
    assert again.schedule.name == "halfway"


def test_compare_takes_it(capsys, model, plugin):
    """By default and by name; the pilots of the others are more than this budget."""
    tiny = ["--steps", 20, "--chains", 100, "--replicates", 2, "--base", "uniform", "--quiet"]
    out = run(capsys, "compare", "model.rbmtxt", *tiny, "--report", "page.html", "--json")[1]
    assert [row["schedule"] for row in json.loads(out)["schedules"]] == [
        "linear",
        "sm08",
        "quadratic",
    ]
    page = in_page(Path("page.html").read_text())
    assert DESCRIPTION in page
    assert "varopt-fixed-point,quadratic" in page  # to reproduce it
    for contender in json.loads(out)["schedules"]:
        exact = annealz.exact_log_z(model)
        assert_within_mc_error(contender["log_z"], exact, contender["std_err"])
    named = annealz.compare_schedules(
        "model.rbmtxt", schedules=["halfway-0.25", "quadratic"], num_steps=80, num_chains=100,
        num_replicates=2, base="uniform",
    )  # fmt: skip
    assert [one.name for one in named.contenders] == ["halfway-0.25", "quadratic"]
    assert named.contenders[0].sweeps["pilot"] > 0


def test_a_wanted_error_takes_it(model, plugin):
    result = annealz.estimate_log_z(
        model, schedule="quadratic", target_std_err=0.05, base="uniform", second_opinion=False
    )
    assert result.schedule.name == "quadratic"
    assert result.std_err <= 0.05


def test_its_files_are_read_as_safely_as_others(capsys, model, plugin, monkeypatch):
    renamed = Path("model.rbmtxt").rename("model.unknown")  # recognised by its first bytes
    assert annealz.load_model(renamed).digest == model.digest
    renamed.rename("model.rbmtxt")
    os.mkfifo("pipe.rbmtxt")
    assert "it is a pipe, and only regular files are read" in refused(
        capsys, "estimate", "pipe.rbmtxt"
    )
    Path("cut.rbmtxt").write_text("rbm 4 6\n0.5 0.5")
    assert "must hold 4 x 6 weights" in refused(capsys, "estimate", "cut.rbmtxt")
    Path("odd.rbmtxt").write_text("rbm")
    words = refused(capsys, "estimate", "odd.rbmtxt")
    assert f"the file format 'rbmtxt' of {PACKAGE} failed: IndexError" in words
    monkeypatch.setattr("annealz.io.reading.available_memory", lambda: 12800)
    assert "100 bytes are all that the free memory allows" in refused(
        capsys, "estimate", "model.rbmtxt"
    )


def test_a_package_that_is_broken_stops_nothing_else(capsys, tmp_path, monkeypatch):
    write_package(
        tmp_path, "broken", "import no_such_module",
        schedules="wild = broken:RULE\nlinear = broken:RULE", formats="wild = broken:FORMAT",
    )  # fmt: skip
    monkeypatch.syspath_prepend(tmp_path)
    for name, reason in (
        ("wild", "does not load: ModuleNotFoundError"),
        ("linear", "has the name of"),
    ):
        words = refused(capsys, "estimate", "mnist-pcd-20", "--schedule", name)
        assert f"the schedule '{name}' of broken 0.1 {reason}" in words
        assert name in shown(capsys, "estimate", "--help")
        assert refused(capsys, "compare", "mnist-pcd-20", "--schedules", f"sm08,{name}") == words
    small = ["--steps", 20, "--chains", 100, "--quiet", *PLAIN]
    assert run(capsys, "estimate", "mnist-pcd-20", "--schedule", "sm08", *small)[0] == 0
    annealz.save_rbm("model.npz", random_rbm(4, 6, 0.6, 11))
    tiny = ["--steps", 20, "--chains", 100, "--replicates", 2, "--base", "uniform", "--quiet"]
    result = json.loads(run(capsys, "compare", "model.npz", *tiny, "--json")[1])
    assert [row["schedule"] for row in result["schedules"]] == ["sm08"]
    assert sum("of broken 0.1" in message for message in result["messages"]) == 2

"""Models by import path, in Python and on the command line."""

import json
import sys

import numpy as np
import pytest

import annealz
from annealz.cli.main import main
from annealz.models.formats.load import read_model

SOURCE = """
from phi_four import PhiFour
model = PhiFour(4, 0.3)
number = 3
def make():
    return PhiFour(4, 0.5, "made")
"""


@pytest.fixture(autouse=True)
def _module(tmp_path, monkeypatch):
    (tmp_path / "own_model.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("annealz.cli.run._SCRATCH", tmp_path / "cache")
    yield
    sys.modules.pop("own_model", None)


SHORT = {"schedule": "linear", "num_steps": 60, "num_chains": 50}


def stopped(out) -> None:
    """A run that is cut off after its first chunk."""

    def stop(progress):
        if progress.step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        annealz.estimate_log_z(
            "own_model:model", out=out, chunk_steps=20, on_progress=stop, **SHORT
        )


def test_a_model_by_import_path_runs_and_resumes(tmp_path):
    whole = annealz.estimate_log_z("own_model:model", **SHORT)
    stopped(tmp_path / "r")
    again = annealz.load_model("own_model:model")
    resumed = annealz.resume(tmp_path / "r", model=again)
    assert np.array_equal(resumed.log_weights, whole.log_weights)


def test_a_density_has_the_name_that_was_given(tmp_path):
    """Not that of a function inside; a model of one's own class has its own."""
    (tmp_path / "density_by_name.py").write_text(
        "import annealz\n"
        "def log_likelihood(theta):\n"
        "    return -(theta**2).sum()\n"
        "line = annealz.from_prior(log_likelihood, lambda u: u, 2)\n"
    )
    assert annealz.load_model("density_by_name:line").name == "log_likelihood"
    assert read_model("density_by_name:line")[1]["name"] == "line"
    assert read_model("own_model:make")[1]["name"] == "made"


@pytest.mark.parametrize("name", ["own_model", "own_model.py"])
def test_a_module_without_a_name_lists_its_own(name, capsys):
    """Nothing is imported for that."""
    (sys.modules.pop("own_model", None), sys.modules.pop("annealz_file_own_model", None))
    with pytest.raises(SystemExit, match="2"):
        main(["estimate", name])
    said = capsys.readouterr().err
    assert said == (
        f"annealz: {name} is a Python module: give the model in it as well, {name}:NAME; it defines "
        "make, model, number.\n"
    )
    assert "own_model" not in sys.modules


def test_a_module_that_does_not_parse_is_a_module_all_the_same(tmp_path):
    (tmp_path / "broken.py").write_text("def (")
    with pytest.raises(ValueError, match="broken is a Python module: give .* broken:NAME.$"):
        annealz.load_model("broken")


def test_a_folder_never_has_code_imported(tmp_path, capsys):
    """Whatever its record names: it may come from a stranger."""
    stopped(tmp_path / "r")
    del sys.modules["own_model"]
    with pytest.raises(ValueError, match="give own_model:model again by model"):
        annealz.resume(tmp_path / "r")
    assert "own_model" not in sys.modules
    with pytest.raises(SystemExit) as end:
        main(["resume", str(tmp_path / "r"), "--quiet"])
    assert end.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert "own_model" not in sys.modules
    with pytest.raises(SystemExit) as end:
        main(["resume", str(tmp_path / "r"), "--model", "own_model:model", "--quiet"])
    assert end.value.code in (0, None)
    with pytest.raises(SystemExit) as end:
        main(["resume", str(tmp_path / "r"), "--model", "own_model:make", "--quiet"])
    assert end.value.code == 2  # done, and of another model


def test_the_command_line_takes_it(capsys):
    arguments = ["own_model:make", "--steps", "50", "--chains", "60", "--schedule", "linear"]
    with pytest.raises(SystemExit) as end:
        main(["estimate", *arguments, "--json", "--quiet"])
    assert end.value.code in (0, None)
    assert json.loads(capsys.readouterr().out)["model"] == "made"


def test_a_file_is_a_module_wherever_it_lies(tmp_path):
    folder = tmp_path / "analysis"
    folder.mkdir()
    (folder / "beside.py").write_text("NAME = 'of a file'")
    text = SOURCE + "from beside import NAME\nother = PhiFour(4, 0.5, NAME)\n"
    (folder / "random.py").write_text(text)  # hides no module of Python
    model, record = read_model("analysis/random.py:other")
    assert (model.name, record["source"]) == ("of a file", "analysis/random.py:other")
    assert annealz.load_model(f"{folder}/random.py:make").name == "made"
    assert str(folder) not in sys.path
    assert "analysis" not in (sys.modules["random"].__file__ or "")
    for name in ("beside", "annealz_file_random"):
        sys.modules.pop(name)


@pytest.mark.filterwarnings("ignore")  # of PyMC and PyTensor
def test_a_model_of_pymc_is_taken_as_it_is(tmp_path):
    (tmp_path / "coin_model.py").write_text(
        "import pymc\n"
        "with pymc.Model() as coin:\n"
        "    bias = pymc.Beta('bias', 1.0, 1.0)\n"
        "    pymc.Binomial('heads', 4, bias, observed=3)\n"
        "def make():\n"
        "    return coin\n"
    )
    for name in ("coin", "make"):
        model, record = read_model(f"coin_model.py:{name}")
        assert (model.parameters.names, record["name"]) == (("bias",), name)
    sys.modules.pop("annealz_file_coin_model")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("analysis/none.py:model", "there is no file analysis/none.py"),
        ("no_such_module:model", "cannot import"),
        ("own_model:nothing", "own_model has no nothing"),
        ("own_model:number", "must be an annealz model"),
        ("no_such_model", "module:name of a Python object"),
    ],
)
def test_what_is_no_model_is_refused(name, words):
    with pytest.raises(ValueError, match=words):
        annealz.load_model(name)


@pytest.mark.parametrize(
    ("source", "name", "words"),
    [
        ("def f(:", "broken", "cannot import the module of 'broken_model:broken': SyntaxError"),
        ("raise RuntimeError('no data')", "x", "of 'broken_model:x': RuntimeError: no data"),
        ("def f(size): pass", "f", "cannot make a model of 'broken_model:f': TypeError"),
    ],
)
def test_whatever_a_module_raises_is_one_line(source, name, words, tmp_path, capsys):
    (tmp_path / "broken_model.py").write_text(source)
    with pytest.raises(SystemExit) as end:
        main(["estimate", f"broken_model:{name}"])
    sys.modules.pop("broken_model", None)
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert words in error.replace("\n", " ")
    assert "Traceback" not in error

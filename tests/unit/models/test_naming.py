"""What the arrays of a file are called: said by --map, guessed, or in doubt."""

import json
import re
import shlex
from pathlib import Path

import h5py
import numpy as np
import pytest

import annealz
from annealz.models.exact import exact_log_z
from annealz.models.formats.load import read_model
from annealz.models.formats.naming import MappedFile, map_text, parse_map
from annealz.testing import random_rbm
from support.command import PLAIN, refused, run
from support.containers import CONTAINERS, arrays, parts

RBM = random_rbm(4, 6, seed=3)
SQUARE = random_rbm(5, 5, seed=3)
LOG_Z = exact_log_z(RBM)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("is_turned", [False, True])
def test_a_map_reads_any_names_in_any_container(tmp_path: Path, container: str, is_turned: bool):
    path = tmp_path / f"mine.{container}"
    CONTAINERS[container](path, arrays(RBM, "M p q", is_turned))
    names = {"weights": "M.T" if is_turned else "M", "hidden_bias": "p", "visible_bias": "q"}
    assert annealz.load_model(path, map=names).digest == RBM.digest
    assert annealz.load_model(path, map=map_text(names)).digest == RBM.digest


@pytest.mark.parametrize("names", ["W bh bv", "kernel b_hid b_vis", "rbm.W rbm.h_bias rbm.v_bias"])
@pytest.mark.parametrize("is_turned", [False, True])
def test_names_and_shapes_without_a_doubt_are_read(tmp_path: Path, names: str, is_turned: bool):
    np.savez(tmp_path / "mine.npz", **arrays(RBM, names, is_turned), loss=np.zeros(3))
    assert annealz.load_model(tmp_path / "mine.npz").digest == RBM.digest


def test_other_vectors_are_not_taken_for_biases(tmp_path: Path):
    """Means, and what an optimiser keeps beside the parameters."""
    held = arrays(RBM, "W bh bv")
    extra = {"v_mean": np.full(6, 0.5), "momentum_v": np.zeros(6), "grad_h": np.zeros(4)}
    np.savez(tmp_path / "mine.npz", **held, **extra)
    assert annealz.load_model(tmp_path / "mine.npz").digest == RBM.digest
    del held["bv"]
    np.savez(tmp_path / "mine.npz", **held, **extra)
    with pytest.raises(ValueError, match="lacks weights, hidden_bias, visible_bias"):
        annealz.load_model(tmp_path / "mine.npz")


def commands(error: pytest.ExceptionInfo) -> list[list[str]]:
    """The commands that an error shows."""
    words = str(error.value).split("'")
    return [shlex.split(word) for word in words if word.startswith("annealz estimate")]


def test_a_square_matrix_of_foreign_names_is_asked_about(tmp_path: Path):
    """And each command that is shown reads it the way that it says."""
    np.savez(tmp_path / "mine.npz", **arrays(SQUARE, "W bh bv"))
    with pytest.raises(ValueError, match="square matrix W.*nothing says which is which") as caught:
        annealz.load_model(tmp_path / "mine.npz")
    rows_hidden, rows_visible = commands(caught)
    turned = annealz.RBM(np.array(SQUARE.weights).T, SQUARE.hidden_bias, SQUARE.visible_bias)
    for words, wanted in ((rows_hidden, SQUARE), (rows_visible, turned)):
        assert words[:3] == ["annealz", "estimate", str(tmp_path / "mine.npz")]
        assert words[3] == "--map"
        assert annealz.load_model(words[2], map=words[4]).digest == wanted.digest
    assert exact_log_z(turned) != pytest.approx(exact_log_z(SQUARE), abs=1e-3)


def test_a_square_matrix_under_annealz_s_own_names_is_read_as_documented(tmp_path: Path):
    np.savez(tmp_path / "own.npz", **arrays(SQUARE, "weights hidden_bias visible_bias"))
    assert annealz.load_model(tmp_path / "own.npz").digest == SQUARE.digest


@pytest.mark.parametrize("model", [RBM, SQUARE], ids=["oblong", "square"])
def test_biases_that_say_nothing_are_asked_about(tmp_path: Path, model):
    np.savez(tmp_path / "mine.npz", **arrays(model, "W c b"))
    with pytest.raises(ValueError, match="nothing says which") as caught:
        annealz.load_model(tmp_path / "mine.npz")
    read = [annealz.load_model(words[2], map=words[4]) for words in commands(caught)]
    assert model.digest in {one.digest for one in read}


@pytest.mark.parametrize(
    "names", ["weights hidden_bias visible_bias", "weight_matrix hbias vbias", "M h v"]
)
def test_biases_that_fit_the_other_way_show_the_command(tmp_path: Path, names: str):
    is_own = names.startswith("weights")
    np.savez(tmp_path / "mine.npz", **arrays(RBM, names, is_turned=is_own))
    given = None
    if names.startswith("M"):
        given = "weights=M.T,hidden_bias=h,visible_bias=v"
    with pytest.raises(ValueError, match="fit the other way round: type") as caught:
        annealz.load_model(tmp_path / "mine.npz", map=given)
    ((*_, file, _, names),) = commands(caught)
    assert annealz.load_model(file, map=names).digest == RBM.digest


def test_a_part_of_the_names_is_enough(tmp_path: Path):
    np.savez(tmp_path / "mine.npz", **arrays(RBM, "W hbias vbias"), m=np.full(6, 0.25))
    model = annealz.load_model(tmp_path / "mine.npz", map="weights=W,visible_means=m")
    assert model.digest == RBM.digest
    assert isinstance(model, annealz.RBM)
    np.testing.assert_array_equal(np.asarray(model.visible_means), 0.25)


def test_arrays_in_groups_of_hdf5(tmp_path: Path):
    with h5py.File(tmp_path / "mine.h5", "w") as file:
        for name, array in arrays(RBM, "net/W net/c net/b", is_turned=True).items():
            file[name] = array
    names = "weights=net/W.T,hidden_bias=net/c,visible_bias=net/b"
    assert annealz.load_model(tmp_path / "mine.h5", map=names).digest == RBM.digest
    with pytest.raises(ValueError, match="holds no net/x, which map gives as weights"):
        annealz.load_model(tmp_path / "mine.h5", map="weights=net/x")


def test_layers_and_couplings_by_a_map(tmp_path: Path):
    generator = np.random.default_rng(0)
    upper = np.triu(generator.normal(0, 0.5, (5, 5)), 1)
    couplings, fields = upper + upper.T, generator.normal(0, 1, 5)
    np.savez(tmp_path / "J.npz", J=couplings, h=fields)
    ising = annealz.load_model(tmp_path / "J.npz", map="couplings=J,fields=h")
    assert ising.digest == annealz.Ising(couplings, fields).digest
    np.savez(tmp_path / "W.npz", **arrays(RBM, "W bh bv"))
    spins = annealz.load_model(tmp_path / "W.npz", map="visible=spin,hidden=relu")
    assert spins.digest == annealz.LayeredRBM(*parts(RBM), "spin", "relu").digest
    scaled = {**arrays(RBM, "W bh bv"), "s": np.full(6, 0.5)}
    np.savez(tmp_path / "s.npz", **scaled)
    names = "weights=W,hidden_bias=bh,visible_bias=bv,scale=s"
    gaussian = annealz.load_model(tmp_path / "s.npz", map=names)
    assert gaussian.digest == annealz.GaussianRBM(*parts(RBM), 0.5).digest


def test_couplings_and_fields_are_an_ising_or_potts_model(tmp_path: Path):
    couplings = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.5], [0.0, 0.5, 0.0]])
    np.savez(tmp_path / "i.npz", couplings=couplings, fields=[1.0, 0.0, -1.0])
    np.savez(tmp_path / "j.npz", couplings=couplings)
    np.savez(tmp_path / "p.npz", couplings=couplings, fields=np.ones((3, 4)))
    loaded = [annealz.load_model(tmp_path / f"{name}.npz") for name in "ijp"]
    wanted = [
        annealz.Ising(couplings, [1.0, 0.0, -1.0]),
        annealz.Ising(couplings),
        annealz.Potts(couplings, 4, np.ones((3, 4))),
    ]
    assert [one.digest for one in loaded] == [one.digest for one in wanted]


COUPLED = {
    "turned": ({"couplings": np.triu(np.ones((3, 3)), 1)}, "couplings must be symmetric"),
    "sizes": (
        {"couplings": np.zeros((3, 3)), "fields": np.zeros(4)},
        r"fields must be a vector of 3 numbers, got shape \(4,\)",
    ),
    "nan": ({"couplings": np.full((3, 3), np.nan)}, "couplings must be finite"),
    "names": ({"J": np.zeros((3, 3)), "h": np.zeros(3)}, "an Ising or Potts model.*couplings=J"),
    "fields": ({"fields": np.zeros(3)}, "lacks couplings"),
}


@pytest.mark.parametrize("case", COUPLED)
def test_a_file_of_couplings_is_not_answered_with_rbms(case: str, tmp_path: Path):
    held, words = COUPLED[case]
    np.savez(tmp_path / "bad.npz", **held)
    with pytest.raises(ValueError, match=words) as caught:
        annealz.load_model(tmp_path / "bad.npz")
    assert "RBM" not in str(caught.value)


MAPS = {
    "weights": "must be like weights=W,visible_bias=bv, got 'weights'",
    "": "must be like weights=W",
    "wieghts=W": "gives wieghts, which is not a name of annealz's: map one of weights",
    "weights=W,weights=V": "gives a name twice",
    "weights=X": "holds no X, which map gives as weights: it holds W, b",
    "weights=W,hidden_bias=b,visible_bias=b,visible=real": "visible must be one of binary, spin",
}


@pytest.mark.parametrize("names", MAPS)
def test_a_map_that_says_nothing_is_refused(names: str, tmp_path: Path):
    np.savez(tmp_path / "a.npz", W=np.ones((3, 3)), b=np.ones(3))
    with pytest.raises(ValueError, match=MAPS[names]):
        annealz.load_model(tmp_path / "a.npz", map=names)


def test_only_files_have_arrays_to_map():
    with pytest.raises(ValueError, match="mnist-pcd-20 is not one"):
        annealz.load_model("mnist-pcd-20", map="weights=W")


def test_a_mapped_file_is_its_name():
    file = MappedFile.of("a.npz", {"weights": "W"})
    assert file == "a.npz"
    assert isinstance(file, MappedFile)
    assert parse_map(file.map) == {"weights": "W"}
    assert not isinstance(MappedFile.of("a.npz", None), MappedFile)


def test_the_command_line_takes_it_and_the_report_repeats_it(tmp_path: Path, capsys):
    file, out = tmp_path / "mine.npz", tmp_path / "run"
    np.savez(file, **arrays(RBM, "W c b"))
    names = "weights=W,hidden_bias=c,visible_bias=b"
    options = ["--schedule", "linear", "--steps", "100", "--chains", "100", *PLAIN]
    options += ["--json", "--quiet"]
    page = tmp_path / "page.html"
    command = ["estimate", str(file), "--map", names, "--out", str(out), "--report", str(page)]
    status, printed, _ = run(capsys, *command, *options)
    assert status == 0
    found = json.loads(printed)
    assert found["exact_log_z"] == pytest.approx(LOG_Z, abs=1e-9)
    again = " ".join(re.sub("<.*?>", " ", page.read_text()).split())
    assert f"--map {names}" in again
    file.unlink()  # the run holds its model
    status, printed, _ = run(capsys, "resume", out, "--json", "--quiet")
    assert (status, json.loads(printed)["log_z"]) == (0, found["log_z"])


def test_the_command_line_asks_with_2(tmp_path: Path, capsys):
    np.savez(tmp_path / "mine.npz", **arrays(SQUARE, "W bh bv"))
    said = refused(capsys, "estimate", tmp_path / "mine.npz", "--quiet")
    assert "--map weights=W.T,hidden_bias=bh,visible_bias=bv" in " ".join(said.split())


def test_names_that_were_guessed_are_reported(tmp_path: Path):
    np.savez(tmp_path / "m.npz", **arrays(RBM, "W bh bv"))
    record = read_model(tmp_path / "m.npz")[1]
    assert record["guessed_names"] == "weights=W,hidden_bias=bh,visible_bias=bv"
    options = {"schedule": "linear", "num_steps": 100, "num_chains": 100, "second_opinion": False}
    estimate = annealz.estimate_log_z(tmp_path / "m.npz", base="visible-bias", **options)
    said = [one for one in estimate.messages if "guessed" in one]
    assert len(said) == 1
    assert 'map="weights=W,hidden_bias=bh,visible_bias=bv"' in said[0]
    assert estimate.ok
    said_in_part = MappedFile.of(str(tmp_path / "m.npz"), "weights=W")
    assert read_model(said_in_part)[1]["guessed_names"] == record["guessed_names"]
    whole = MappedFile.of(str(tmp_path / "m.npz"), record["guessed_names"])
    assert "guessed_names" not in read_model(whole)[1]
    np.savez(tmp_path / "own.npz", **arrays(RBM, "weights hidden_bias visible_bias"))
    assert "guessed_names" not in read_model(tmp_path / "own.npz")[1]


def test_a_file_says_nothing_of_guesses_itself(tmp_path: Path):
    annealz.save_rbm(
        tmp_path / "m.npz", RBM, {"guessed_names": "x", "unused_means": "y", "note": 1}
    )
    assert read_model(tmp_path / "m.npz")[1] == {"name": "m", "note": 1}


@pytest.mark.parametrize("values", [np.linspace(0, 1, 6), np.full(6, 0.3)])
def test_an_array_like_means_is_mentioned(values: np.ndarray, tmp_path: Path):
    held = arrays(RBM, "weights hidden_bias visible_bias")
    np.savez(tmp_path / "m.npz", **held, pixel_rates=values)
    assert read_model(tmp_path / "m.npz")[1]["unused_means"] == "pixel_rates"
    options = {"schedule": "linear", "num_steps": 100, "num_chains": 100, "second_opinion": False}
    estimate = annealz.estimate_log_z(tmp_path / "m.npz", base="visible-bias", **options)
    said = [one for one in estimate.messages if "pixel_rates" in one]
    assert len(said) == 1
    assert 'map="visible_means=pixel_rates"' in said[0]
    assert estimate.ok


@pytest.mark.parametrize("values", [np.zeros(6), np.full(6, 2.0), np.full(5, 0.5), np.arange(6)])
def test_other_arrays_are_not(values: np.ndarray, tmp_path: Path):
    held = arrays(RBM, "weights hidden_bias visible_bias")
    np.savez(tmp_path / "m.npz", **held, other=values)
    assert "unused_means" not in read_model(tmp_path / "m.npz")[1]

"""Files of other programs: each layout in each container, the command line on them, and refusals."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from safetensors.numpy import save_file
from scipy.io import savemat
from sklearn.datasets import load_digits
from sklearn.neural_network import BernoulliRBM

from annealz.models.exact import exact_log_z
from annealz.models.formats.load import read_model
from annealz.models.formats.npz import save_rbm
from annealz.models.rbm import RBM
from annealz.testing import assert_within_mc_error, default_seed, random_rbm
from support.command import PLAIN, run
from support.containers import CONTAINERS, arrays
from support.places import FIXTURES

BY_RBMS = json.loads((FIXTURES / "rbms-log-z.json").read_text())["rbms-binary.h5"]


@pytest.fixture
def model() -> RBM:
    """Not square, so that a matrix that lies the wrong way is refused."""
    return random_rbm(3, 5, seed=4)


LAYOUTS = {
    "annealz": ("weights hidden_bias visible_bias", False),
    "salakhutdinov": ("vishid hidbiases visbiases", True),
    "rbms": ("weight_matrix hbias vbias", True),
    "sklearn": ("components_ intercept_hidden_ intercept_visible_", False),
}


def save_matlab73(path: Path, arrays) -> None:
    """As MATLAB writes it: a block of text first, the axes in the opposite order, vectors as rows."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in arrays.items():
            file[name] = np.atleast_2d(array).T
    with open(path, "r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(116))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("is_named", [True, False])
def test_every_layout_in_every_container(
    tmp_path: Path, model: RBM, layout: str, container: str, is_named: bool
):
    """By its content: the same file is read under a name that tells nothing."""
    path = tmp_path / f"trained.{container}"
    CONTAINERS[container](path, arrays(model, *LAYOUTS[layout]))
    if not is_named:
        path = path.rename(tmp_path / "trained")
    loaded, meta = read_model(path)
    assert loaded.digest == model.digest
    assert meta["name"] == "trained"


@pytest.mark.parametrize("version", ["4", "5", "7.3"])
def test_every_version_of_matlab(tmp_path: Path, model: RBM, version: str):
    path, held = tmp_path / "rbm.mat", arrays(model, *LAYOUTS["salakhutdinov"])
    if version == "7.3":
        save_matlab73(path, held)
    else:
        savemat(path, {**held, "epoch": 50}, format=version)
    assert read_model(path)[0].digest == model.digest


def test_the_last_update_of_a_training_is_the_model():
    """Against log Z that the package rbms computed of its own models."""
    file = FIXTURES / "rbms-binary.h5"
    for update, log_z in BY_RBMS.items():
        assert exact_log_z(read_model(file / update)[0]) == pytest.approx(log_z, abs=1e-9)
    last, meta = read_model(file)
    assert exact_log_z(last) == pytest.approx(BY_RBMS["update_1000"], abs=1e-9)
    assert meta["name"] == "rbms-binary/update_1000"


def test_scikit_learn_agrees_on_free_energies(model: RBM, seed: int):
    generator = np.random.default_rng(seed)
    rows = (generator.random((40, 5)) < 0.5).astype(np.float64)
    estimator = BernoulliRBM(n_components=3, n_iter=2, random_state=0).fit(rows)
    loaded = RBM.from_sklearn(estimator)
    energies = estimator._free_energy(rows)
    np.testing.assert_allclose(np.asarray(loaded.log_density(rows)), -energies, atol=1e-5)


def test_an_estimator_that_was_not_fitted_is_refused():
    with pytest.raises(ValueError, match="fitted BernoulliRBM.* without components_"):
        RBM.from_sklearn(BernoulliRBM())


def test_the_command_line_estimates_them_all(tmp_path: Path, capsys):
    """scikit-learn's RBM of its digits, one of rbms, and one in Salakhutdinov's layout."""
    digits = (load_digits().data > 7).astype(np.float64)
    estimator = BernoulliRBM(n_components=8, learning_rate=0.05, n_iter=3, random_state=0)
    ours = RBM.from_sklearn(estimator.fit(digits))
    np.savez(
        tmp_path / "digits.npz",
        components_=estimator.components_,
        intercept_hidden_=estimator.intercept_hidden_,
        intercept_visible_=estimator.intercept_visible_,
    )
    save_rbm(tmp_path / "digits-ours.npz", ours)
    savemat(tmp_path / "rbm.mat", arrays(random_rbm(4, 6, 0.5, seed=2), *LAYOUTS["salakhutdinov"]))
    files = {
        tmp_path / "digits.npz": exact_log_z(ours),
        tmp_path / "digits-ours.npz": exact_log_z(ours),
        FIXTURES / "rbms-binary.h5": BY_RBMS["update_1000"],
        tmp_path / "rbm.mat": exact_log_z(random_rbm(4, 6, 0.5, seed=2)),
    }
    for file, exact in files.items():
        options = ["--schedule", "linear", "--steps", 500, "--chains", 400, *PLAIN]
        options += ["--seed", default_seed(), "--json", "--quiet"]
        status, out, _ = run(capsys, "estimate", file, *options)
        assert status == 0
        result = json.loads(out)
        assert result["exact_log_z"] == pytest.approx(exact, abs=1e-9)
        assert result["status"] == "ok", file
        assert_within_mc_error(result["log_z"], exact, result["std_err"])


def break_potts(path: Path):
    path.write_bytes((FIXTURES / "rbms-potts.h5").read_bytes())
    with h5py.File(path, "a") as file:
        del file["model_type"]
        file["model_type"] = "GGRBM"


REFUSED = {
    "foreign.mat": (
        lambda p: savemat(p, {"W": np.ones((2, 3)), "b": np.ones(3)}),
        "foreign.mat lacks weights, hidden_bias, visible_bias: it holds W, b, and an RBM file holds "
        ".*vishid.*visible, hidden.*weight_matrix.*components_",
    ),
    "half.mat": (
        lambda p: savemat(p, {"vishid": np.ones((2, 3)), "visbiases": np.ones(2)}),
        "half.mat lacks hidbiases: an RBM file holds vishid .visible, hidden., hidbiases and "
        "visbiases .Salakhutdinov's code., this one holds visbiases, vishid",
    ),
    "turned.mat": (
        lambda p: savemat(
            p, {"vishid": np.ones((3, 2)), "hidbiases": np.ones(3), "visbiases": np.ones(2)}
        ),
        "turned.mat: weights of shape .2, 3. .hidden, visible. need hidden_bias of shape .2,., got",
    ),
    "empty.safetensors": (
        lambda p: save_file({}, p),
        "empty.safetensors lacks weights.*it holds nothing",
    ),
    "text.mat": (
        lambda p: p.write_text("no matrix"),
        "text.mat is truncated, damaged or not a MATLAB",
    ),
    "cut.h5": (
        lambda p: p.write_bytes((FIXTURES / "rbms-binary.h5").read_bytes()[:5000]),
        "cut.h5 is truncated, damaged or not an HDF5 file",
    ),
    "spins.h5": (break_potts, "spins.h5 holds a model of type GGRBM"),
    "weights.npy": (
        lambda p: np.save(p, np.ones((2, 3))),
        r"weights.npy is in an unknown format: give npz \(.npz\), MATLAB",
    ),
    "model.pkl": (lambda p: p.write_bytes(b"\x80\x04K\x01."), "a pickle, which is never loaded"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_in_a_sentence(tmp_path: Path, name: str):
    write, words = REFUSED[name]
    write(tmp_path / name)
    with pytest.raises(ValueError, match=words):
        read_model(tmp_path / name)


def test_a_damaged_safetensors_file_is_named(tmp_path: Path, model: RBM):
    path = tmp_path / "a.safetensors"
    save_file(arrays(model, *LAYOUTS["annealz"]), path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ValueError, match=r"a\.safetensors is truncated, damaged"):
        read_model(path)


def test_an_update_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(ValueError, match="holds no update_7: choose one of 3 from update_1 to"):
        read_model(FIXTURES / "rbms-binary.h5" / "update_7")
    np.savez(tmp_path / "a.npz", a=1)
    with pytest.raises(
        ValueError, match=r"a\.npz is not an HDF5 or UAI file, so that it holds no update_7"
    ):
        read_model(tmp_path / "a.npz" / "update_7")


def test_without_its_package_a_format_tells_what_to_install(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(ValueError, match=r"HDF5 files are read with h5py.*annealz\[formats\]"):
        read_model(FIXTURES / "rbms-binary.h5")

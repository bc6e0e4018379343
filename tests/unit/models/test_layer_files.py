"""Files of RBMs with other units, of rbms and RestrictedBoltzmannMachines.jl, and models of dimod.

`tests/fixtures/write_layers.py` wrote them.
"""

import json
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

import annealz
from annealz.models.exact import exact_log_z
from annealz.models.formats.load import load_trajectory, read_model
from support.command import refused
from support.places import FIXTURES

FILES = json.loads((FIXTURES / "layers.json").read_text())
BY_DIMOD = json.loads((FIXTURES / "dimod.json").read_text())


@pytest.mark.parametrize("name", FILES)
def test_log_probabilities_are_those_of_the_other_package(name: str):
    model, record = read_model(FIXTURES / name)
    states = np.array(FILES[name]["states"])
    assert isinstance(model, annealz.LayeredRBM | annealz.RBM)
    got = np.asarray(model.log_density(states.astype(np.float32)))
    np.testing.assert_allclose(got, FILES[name]["log_p"], atol=1e-5)
    assert record["name"] == name.removesuffix(".h5") + ("/update_7" if "rbms" in name else "")


def test_the_kinds_are_those_of_the_file():
    names = {name: read_model(FIXTURES / name)[0].name for name in FILES}
    assert names == {
        "rbms-BGRBM.h5": "binary-gaussian-rbm-3x4",
        "rbms-IGRBM.h5": "spin-gaussian-rbm-3x4",
        "rbms-IIRBM.h5": "spin-spin-rbm-3x4",
        "julia-binary.h5": "rbm-3x4",
        "julia-spin-centred.h5": "spin-spin-rbm-3x4",
        "julia-gaussian-standardised.h5": "binary-gaussian-rbm-3x4",
        "julia-relu.h5": "spin-relu-rbm-3x4",
        "julia-drelu-potts.h5": "softmax-drelu-rbm-3x4x3",
        "julia-xrelu-standardised.h5": "softmax-drelu-rbm-3x4x3",
    }


def test_a_trajectory_of_spins_is_not_read_as_one_of_zeros_and_ones():
    with pytest.raises(ValueError, match="must be an RBM of binary units here, got a LayeredRBM"):
        load_trajectory(FIXTURES / "rbms-IIRBM.h5")


def changed(**changes):
    """A file of RestrictedBoltzmannMachines.jl with some of its contents replaced, or left out by None."""

    def write(path: Path) -> None:
        path.write_bytes((FIXTURES / "julia-xrelu-standardised.h5").read_bytes())
        with h5py.File(path, "a") as file:
            for name, value in changes.items():
                del file[name]
                if value is not None:
                    file[name] = value

    return write


WITH_NAN = np.full((3, 4), np.nan)
REFUSED = {
    "version": (
        changed(rbm_hdf5_file_format_version="2.0.0"),
        "in format 2.0.0: format 1.0.0 is read",
    ),
    "type": (changed(rbm_type="ConvolutionalRBM"), "rbm_type must be one of RBM, CenteredRBM"),
    "visible": (changed(visible_type="xReLU"), "visible_type must be one of Binary.*got xReLU"),
    "hidden": (changed(hidden_type="Potts"), "hidden_type must be one of Binary.*got Potts"),
    "no weights": (changed(weights=None), "lacks weights: it holds hidden_par"),
    "sizes": (
        changed(weights=np.ones((2, 4, 3))),
        r"by the parameters of the layers .*got \(2, 4, 3\)",
    ),
    "parameters": (
        changed(hidden_par=np.ones((3, 2))),
        "xReLU units must have 4 parameters for each",
    ),
    "nan": (changed(hidden_par=WITH_NAN), "hidden_par must be finite in float32"),
    "offset": (changed(offset_h=np.ones(2)), r"offset_h must have shape \(3,\) by"),
    "scale": (changed(scale_h=np.zeros(3)), "scale_h must not hold zeros"),
    "gamma": (changed(hidden_par=np.zeros((3, 4))), "gamma of a layer must not be zero"),
    "text": (changed(hidden_par="xReLU"), "lacks hidden_par"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_damaged_files_are_refused_in_a_sentence(case: str, tmp_path: Path):
    write, words = REFUSED[case]
    write(tmp_path / "bad.h5")
    with pytest.raises(ValueError, match=f"bad.h5.*{words}") as caught:
        read_model(tmp_path / "bad.h5")
    assert str(caught.value).count(". ") == 0


def test_every_cut_of_a_file_is_refused(tmp_path: Path):
    whole = (FIXTURES / "julia-relu.h5").read_bytes()
    for size in range(8, len(whole), len(whole) // 12):
        (tmp_path / "cut.h5").write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"cut\.h5"):
            read_model(tmp_path / "cut.h5")


def test_the_command_line_refuses_with_2(tmp_path: Path, capsys):
    REFUSED["nan"][0](tmp_path / "bad.h5")
    said = refused(capsys, "estimate", tmp_path / "bad.h5", "--quiet")
    assert "hidden_par must be finite" in said


def model_like(record: dict) -> SimpleNamespace:
    """What dimod's model has, of its own terms."""
    return SimpleNamespace(
        vartype=SimpleNamespace(name=record["vartype"]),
        linear=record["linear"],
        quadratic={(first, second): value for first, second, value in record["quadratic"]},
        offset=record["offset"],
    )


@pytest.mark.parametrize("record", BY_DIMOD, ids=lambda record: record["vartype"])
def test_energies_are_those_of_dimod(record: dict):
    model = annealz.from_dimod(model_like(record), beta=1.3)
    states = np.array(record["states"], np.float32)
    x = (states + 1) / 2 if record["vartype"] == "SPIN" else states
    path = model.path(model.flat_base())
    got = np.asarray(path.log_density(x, 1.0))
    np.testing.assert_allclose(got, -1.3 * np.array(record["energies"]), atol=1e-5)
    values = np.array([-1, 1] if record["vartype"] == "SPIN" else [0, 1])
    grid = np.stack(np.meshgrid(*[values] * 6, indexing="ij"), -1).reshape(-1, 6)
    names = list(record["linear"])
    energies = record["offset"] + grid @ list(record["linear"].values())
    for first, second, value in record["quadratic"]:
        energies = energies + value * grid[:, names.index(first)] * grid[:, names.index(second)]
    wanted = float(np.log(np.exp(-1.3 * energies).sum()))
    assert exact_log_z(model) == pytest.approx(wanted, abs=1e-5)


def test_a_model_of_dimod_is_written_read_and_estimated(tmp_path: Path):
    model = annealz.from_dimod(model_like(BY_DIMOD[0]))
    annealz.save_model(tmp_path / "m.npz", model)
    loaded = annealz.load_model(tmp_path / "m.npz")
    assert loaded.digest == model.digest
    assert exact_log_z(loaded) == exact_log_z(model)


NOT_MODELS = {
    "shape": (3.0, "must be a binary quadratic model of dimod, got a float without vartype"),
    "vartype": (
        SimpleNamespace(vartype="INTEGER", linear={0: 1.0}, quadratic={}, offset=0.0),
        "must be SPIN or BINARY, got 'INTEGER'",
    ),
    "empty": (
        SimpleNamespace(vartype="SPIN", linear={}, quadratic={}, offset=0.0),
        "at least one variable",
    ),
    "pair": (
        SimpleNamespace(vartype="SPIN", linear={0: 1.0}, quadratic={(0, 1): 1.0}, offset=0.0),
        r"of two of its variables, got \(0, 1\)",
    ),
    "nan": (
        SimpleNamespace(vartype="SPIN", linear={0: np.nan}, quadratic={}, offset=0.0),
        "must be finite, got NaN",
    ),
}


@pytest.mark.parametrize("case", NOT_MODELS)
def test_what_is_not_a_quadratic_model_is_refused(case: str):
    given, words = NOT_MODELS[case]
    with pytest.raises(ValueError, match=words):
        annealz.from_dimod(given)

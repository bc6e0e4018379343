"""Units coupled in pairs by the names of their arrays, in npz, HDF5, MATLAB and safetensors files."""

from pathlib import Path

import numpy as np
import pytest

import annealz
from annealz.models.formats.load import read_model
from support.containers import CONTAINERS
from support.hostile import refused

GENERATOR = np.random.default_rng(3)
HALF = np.triu(np.ones((4, 4)), 1)[:, None, :, None] * GENERATOR.normal(0, 1, (4, 3, 4, 3))
FULL = (HALF + HALF.transpose(2, 3, 0, 1)).astype(np.float32)
PAIRS = FULL[:, 0, :, 0] + FULL[:, 0, :, 0].T
FIELDS = GENERATOR.normal(0, 1, (4, 3)).astype(np.float32)
ROWS = GENERATOR.integers(0, 3, (40, 4))


@pytest.mark.parametrize("container", CONTAINERS)
def test_full_couplings_in_every_container(tmp_path: Path, container: str):
    path = tmp_path / f"model.{container}"
    if container == "mat":  # SciPy's reader of four axes is not ours: pairs only
        CONTAINERS[container](path, {"couplings": PAIRS, "fields": FIELDS})
        assert read_model(path)[0].digest == annealz.Potts(PAIRS, 3, FIELDS).digest
        return
    CONTAINERS[container](path, {"couplings": FULL, "fields": FIELDS})
    assert read_model(path)[0].digest == annealz.Potts(FULL, fields=FIELDS).digest


SPINS = annealz.Ising(PAIRS, FIELDS[:, 0])
CASES = {
    "adabmDCA's names": (
        {"coupling_matrix": FULL, "bias": FIELDS},
        annealz.Potts(FULL, fields=FIELDS),
    ),
    "one number a pair": (
        {"couplings": PAIRS, "fields": FIELDS},
        annealz.Potts(PAIRS, 3, FIELDS),
    ),
    "no fields": ({"couplings": PAIRS, "num_states": 5}, annealz.Potts(PAIRS, 5)),
    "spins": ({"couplings": PAIRS, "fields": FIELDS[:, 0]}, SPINS),
    "spins in a column": ({"couplings": PAIRS, "fields": FIELDS[:, :1]}, SPINS),
    "spins without fields": ({"couplings": PAIRS}, annealz.Ising(PAIRS)),
}


@pytest.mark.parametrize("case", CASES)
def test_layouts(tmp_path: Path, case: str):
    arrays, model = CASES[case]
    np.savez(tmp_path / "m.npz", **arrays)
    loaded, record = read_model(tmp_path / "m.npz")
    assert loaded.digest == model.digest
    assert record == {"name": "m"}


def test_data_in_the_file(tmp_path: Path):
    counts = (ROWS[..., None] == np.arange(3)).sum(0)
    np.savez(tmp_path / "a.npz", couplings=FULL, fields=FIELDS, alignment=ROWS)
    np.savez(tmp_path / "b.npz", couplings=FULL, fields=FIELDS, frequencies=counts / 40)
    for name, wanted in (("a", (counts + 1) / 43), ("b", counts / 40)):
        model = read_model(tmp_path / f"{name}.npz")[0]
        assert isinstance(model, annealz.Potts)
        base = model.choose_base()
        assert base.name == "base-rate"
        np.testing.assert_allclose(np.exp(base.logits), wanted, atol=1e-6)


REFUSED = {
    "asymmetric": ({"couplings": HALF}, "couplings must be symmetric"),
    "nan": ({"couplings": FULL * np.nan, "fields": FIELDS}, "couplings must be finite"),
    "fields": ({"couplings": FULL, "fields": FIELDS[:3]}, "(units, states) = (4, 3), got shape"),
    "vector": ({"couplings": np.ones(3)}, "(units, units) or (units, states, units, states)"),
    "alignment": ({"couplings": FULL, "alignment": ROWS[:, 1:]}, "alignment must be (rows, 4)"),
    "states": ({"couplings": FULL, "alignment": ROWS + 2}, "states 0 to 2"),
    "frequencies": ({"couplings": FULL, "frequencies": FIELDS}, "sum to one for every unit"),
    "num_states": ({"couplings": PAIRS, "num_states": 2.5}, "one whole number, got 2.5"),
    "too many states": (
        {"couplings": PAIRS, "num_states": 10**9},
        "at most 1,000, got 1,000,000,000",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(tmp_path: Path, case: str):
    arrays, words = REFUSED[case]
    np.savez(tmp_path / "m.npz", **arrays)
    text = refused(read_model, tmp_path / "m.npz")
    assert text.startswith(f"{tmp_path / 'm.npz'}: ")
    assert words in text

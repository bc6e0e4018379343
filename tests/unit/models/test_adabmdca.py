"""Files of adabmDCA: those that it wrote itself, damaged ones, and the command line on both."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import annealz
from annealz.models.formats.adabmdca import ALPHABETS, is_adabmdca
from annealz.models.formats.load import read_model
from annealz.testing import assert_within_mc_error
from support.command import refused as refused_by_command
from support.command import run
from support.hostile import refused
from support.places import FIXTURES

WRITTEN = json.loads((FIXTURES / "adabmdca-energies.json").read_text())
SMALL = """# two sites
J 0 1 A A 0.5
J 0 1 A B -0.25
h 0 A 0.1
h 0 B 0.2
h 1 A -0.3
h 1 B 0.4
"""


@pytest.mark.parametrize("name", WRITTEN)
def test_energies_are_those_of_the_program(name: str):
    model, record = read_model(FIXTURES / f"adabmdca-{name}.dat")
    assert isinstance(model, annealz.Potts)
    rows, energies = (np.array(WRITTEN[name][key]) for key in ("rows", "energies"))
    np.testing.assert_allclose(model.log_density(rows), -energies, atol=1e-5)
    assert record.get("alphabet") == ALPHABETS.get(name)


def test_by_its_content_and_by_its_ending(tmp_path: Path):
    raw = (FIXTURES / "adabmdca-rna.dat").read_bytes()
    (tmp_path / "parameters").write_bytes(raw)
    model, _ = read_model(tmp_path / "parameters")
    assert model.digest == read_model(FIXTURES / "adabmdca-rna.dat")[0].digest
    assert is_adabmdca(b"h 0 - 0.5\n")
    assert not is_adabmdca(b"hello 0 1\n")


def test_other_letters_keep_the_order_of_the_file(tmp_path: Path):
    model, record = read_small(tmp_path, SMALL.replace("A", "Z"))
    assert isinstance(model, annealz.Potts)
    assert record["alphabet"] == "ZB"
    tables = dict(model.factors()[1])
    np.testing.assert_allclose(tables[0, 1], [[0.5, -0.25], [0, 0]])
    np.testing.assert_allclose(tables[1,], [-0.3, 0.4], atol=1e-7)


def test_the_lower_triangle_and_ends_of_lines(tmp_path: Path):
    wanted = read_small(tmp_path, SMALL)[0].digest
    turned = SMALL.replace("J 0 1 A B", "J 1 0 B A")
    for text in (turned, SMALL.rstrip("\n"), SMALL.replace("\n", "\r\n"), "\n\n" + SMALL + "\n"):
        assert read_small(tmp_path, text)[0].digest == wanted


def read_small(folder: Path, text: str):
    path = folder / "small.dat"
    path.write_text(text, newline="")
    return read_model(path)


DAMAGED = {
    "nan": (("0.5", "nan"), "line 2: a coupling is written J i j a b value .* finite value"),
    "infinite": (("0.4", "inf"), "line 7: .* a field h i a value, sites .* finite value"),
    "underscore": (("0.4", "1_0"), "line 7: .* got 'h 1 B 1_0'"),
    "too large": (("0.5", "1e60"), "finite in float32"),
    "no number": (("0.5", "half"), "line 2: .* got 'J 0 1 A A half'"),
    "site": (("h 1 A", "h one A"), "line 6: .* sites as whole numbers from 0"),
    "negative site": (("h 1 A", "h -1 A"), "line 6: .* sites as whole numbers from 0"),
    "fewer words": (("J 0 1 A A", "J 0 1 A"), "line 2: a coupling is written J i j a b value"),
    "more words": (("h 1 A", "h 1 A A"), "line 6: .* a field h i a value"),
    "another line": (
        ("# two sites", "sites 2"),
        "line 1: a coupling is written .* and a field h i a value",
    ),
    "unknown letter": (("J 0 1 A B", "J 0 1 A X"), "in the states X, which have no field: .* AB"),
    "letter of a field": (("h 1 B", "h 1 X"), "no field of site 0 in state X: .* 3 states, ABX"),
    "words for states": (("A", "Ala"), "single letters, or all of them numbers, got Ala"),
    "missing field": (("h 1 B 0.4\n", ""), "no field of site 1 in state B"),
    "field twice": (("h 1 B", "h 1 A"), "2 fields of site 1 in state A"),
    "many sites": (
        ("h 1 A", "h 999999999 A"),
        "1000000000 sites and 2 states, .* some are missing",
    ),
    "large site": (("J 0 1 A A", "J 0 7 A A"), "J 0 7, with a site that has no field, of 2 sites"),
    "itself": (("J 0 1 A A", "J 1 1 A A"), "J 1 1, with a site with itself"),
    "twice": (("J 0 1 A B", "J 1 0 A A"), "the coupling J 0 1 A A twice: give each pair once"),
    "no fields": (("h", "#"), "holds no fields"),
    "long word": (("J 0 1 A A", f"J 0 1 A {'A' * 99}"), "line 2: a coupling is written"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_files(tmp_path: Path, case: str):
    (old, new), words = DAMAGED[case]
    assert old in SMALL
    text = refused(read_small, tmp_path, SMALL.replace(old, new))
    assert "small.dat" in text
    assert re.search(words, text), text


def test_numbers_must_be_consecutive(tmp_path: Path):
    text = SMALL.replace("A", "0").replace("B", "2")
    assert "the numbers from 0 to 1, got 2 among 2" in refused(read_small, tmp_path, text)


def test_what_does_not_fit_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("annealz.io.reading.available_memory", lambda: 2000)
    text = refused(read_small, tmp_path, SMALL * 20)
    assert "half of the free memory is 1,000 bytes" in text


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int):
    file = FIXTURES / "adabmdca-numbers.dat"
    options = ["--schedule", "linear", "--steps", 100, "--chains", 100, "--seed", seed]
    options += ["--base", "fields", "--no-second-opinion", "--json", "--quiet"]
    status, out, _ = run(capsys, "estimate", file, *options)
    assert status == 0
    result = json.loads(out)
    exact = annealz.exact_log_z(read_model(file)[0])
    assert result["exact_log_z"] == pytest.approx(exact, abs=1e-9)
    assert_within_mc_error(result["log_z"], exact, result["std_err"])
    (tmp_path / "small.dat").write_text(SMALL.replace("0.5", "nan"))
    assert "line 2" in refused_by_command(capsys, "estimate", tmp_path / "small.dat")

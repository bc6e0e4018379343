"""Networks of the UAI format: tables and evidence, files of pgmpy, refusals, the command line."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp

import annealz
from annealz.cli.estimate import Options, _with_evidence
from annealz.cli.show import with_log10
from annealz.diagnostics.sheet import Sheet
from annealz.models.formats.load import read_model
from annealz.models.formats.uai import is_uai, read_evidence
from support.command import refused as refused_by_command
from support.families import grid
from support.hostile import refused
from support.places import FIXTURES

TABLES = "2\n 0.436 0.564\n\n4\n 0.128 0.872\n 0.920 0.080\n\n6\n 0.210 0.333 0.457\n 0.811 0.000 0.189\n"
TEXT = f"MARKOV\n3\n2 2 3\n3\n1 0\n2 0 1\n2 1 2\n\n{TABLES}"
UAI = Path(os.environ.get("ANNEALZ_UAI", "/nowhere"))


@pytest.fixture
def network(tmp_path: Path) -> Path:
    path = tmp_path / "toy.uai"
    path.write_text(TEXT)
    return path


def probability(x) -> np.ndarray:
    first = np.array([0.436, 0.564])[x[:, 0]]
    second = np.array([[0.128, 0.872], [0.920, 0.080]])[x[:, 0], x[:, 1]]
    return first * second * np.array([[0.210, 0.333, 0.457], [0.811, 0.0, 0.189]])[x[:, 1], x[:, 2]]


def given(network: str, evidence: Path | None, quiet: bool = True) -> str:
    return _with_evidence(network, Options(evidence=evidence, quiet=quiet))


def test_tables_of_a_network(network):
    model, record = read_model(network)
    states = grid(2, 2, 3)
    np.testing.assert_allclose(np.exp(model.log_density(states)), probability(states), atol=1e-12)
    assert record["name"] == "toy"
    assert abs(annealz.exact_log_z(model)) < 1e-9  # these tables are a Bayesian network's


def test_a_bayesian_network_is_read_alike(network):
    text = network.read_text().replace("MARKOV", "BAYES")
    network.with_name("b.uai").write_text(text)
    assert read_model(network.with_name("b.uai"))[0].digest == read_model(network)[0].digest


def test_a_file_is_known_by_its_first_word(network):
    other = network.with_suffix(".txt")
    other.write_text("\n markov" + TEXT[6:])
    assert read_model(other)[0].digest == read_model(network)[0].digest
    assert is_uai(b" BAYES 3")
    assert not is_uai(b"")
    assert not is_uai(b"MARKOVIAN")


def test_evidence_after_the_name(network):
    model, record = read_model(f"{network}/1=0,0=1")
    assert record["name"] == "toy given 1=0,0=1"
    assert np.exp(annealz.exact_log_z(model)) == pytest.approx(0.564 * 0.920)


@pytest.mark.parametrize("text", ["2 1 0 0 1", "1\n2 1 0 0 1\n"], ids=["2014", "with samples"])
def test_both_forms_of_evidence(tmp_path, text):
    path = tmp_path / "a.evid"
    path.write_text(text)
    assert read_evidence(path) == {1: 0, 0: 1}


@pytest.mark.parametrize("text", ["0", "1 0"])
def test_nothing_observed(tmp_path, network, text):
    path = tmp_path / "a.evid"
    path.write_text(text)
    assert read_evidence(path) == {}
    assert given(str(network), path) == str(network)


def test_what_pgmpy_writes():
    """Three factors over a, c, b, d of 2, 2, 3, 4 states, written by pgmpy 1.1.2."""
    model = read_model(FIXTURES / "uai" / "pgmpy-markov.uai")[0]
    generator = np.random.default_rng(0)
    table = (
        generator.random(12).round(6).reshape(2, 3, 2),
        generator.random(8).round(6).reshape(2, 4),
    )
    x = grid(2, 2, 3, 4)
    a, c, b, d = x.T
    wanted = np.log(table[0][a, b, c] * table[1][c, d] * np.array([0.2, 0.5, 1.3])[b])
    found = model.log_density(x)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    np.testing.assert_allclose(
        found - annealz.exact_log_z(model), wanted - logsumexp(wanted), atol=1e-5
    )


def test_conditional_tables_in_another_order_are_refused():
    """pgmpy 1.1.2 writes the states of the variable itself as the slowest."""
    text = refused(read_model, FIXTURES / "uai" / "pgmpy-bayes.uai")
    assert (
        "factor 1 of a Bayesian network must sum to 1 over its last variable, got 0.884956" in text
    )


WRONG = {
    "truncated scope": (
        "MARKOV 2 2 2 1 2 0",
        "the length of the scope of factor 0 is 2 and 1 words follow",
    ),
    "truncated": (TEXT[:-20], "ends where factor 2 should be: it is cut off"),
    "no tables": (TEXT[: TEXT.index("2\n 0.436")], "ends where the size of factor 0 should be"),
    "only a word": ("MARKOV", "ends where the number of variables should be"),
    "other kind": ("CREDAL" + TEXT[6:], "must begin with MARKOV or BAYES, got 'CREDAL'"),
    "no number": (TEXT.replace("0.333", "x.333"), "factor 2 must be a number, got 'x.333'"),
    "underscore": (TEXT.replace("0.333", "1_0"), "factor 2 must be a number, got '1_0'"),
    "negative": (
        TEXT.replace("0.333", "-0.333"),
        "factor 2 must hold finite numbers, at least 0, got -0.333",
    ),
    "nan": (TEXT.replace("0.333", "nan"), "factor 2 must hold finite numbers, at least 0, got nan"),
    "infinite": (
        TEXT.replace("0.333", "1e999"),
        "factor 2 must hold finite numbers, at least 0, got inf",
    ),
    "zero": (TEXT.replace("0.436 0.564", "0 0"), "factor 0 is zero everywhere, so that Z = 0"),
    "wrong size": (TEXT.replace("\n6\n", "\n5\n"), "must have 6 entries, got 5"),
    "unknown variable": (
        TEXT.replace("2 1 2", "2 1 7"),
        "scope of factor 2 must be of variables 0 to 2, got [1, 7]",
    ),
    "twice": (TEXT.replace("2 0 1", "2 1 1"), "must have every variable once, got [1, 1]"),
    "no states": (
        TEXT.replace("2 2 3\n3", "2 0 3\n3"),
        "must have variables of at least one state",
    ),
    "negative count": (TEXT.replace("MARKOV\n3", "MARKOV\n-3"), "must be a whole number, got '-3'"),
    "huge count": (TEXT.replace("MARKOV\n3", "MARKOV\n999999999"), "is 999,999,999 and"),
    "longer": (TEXT + " 0.5 0.5", "holds 2 words after its last factor"),
}


@pytest.mark.parametrize("name", WRONG)
def test_damaged_networks(tmp_path, name):
    path = tmp_path / "a.uai"
    path.write_text(WRONG[name][0])
    text = refused(read_model, path)
    assert "a.uai" in text
    assert WRONG[name][1] in text


WRONG_EVIDENCE = {
    "": "got nothing",
    "2 1 0": "got 2 and 2 numbers",
    "3\n1 0 1\n1 0 0\n1 0 0": "must hold evidence of one sample, got 3",
    "2 1 0 1 1": "must name every observed variable once",
    "1 0 x": "must be a whole number, got 'x'",
    "1 0 -1": "must be a whole number, got '-1'",
}


@pytest.mark.parametrize("text", WRONG_EVIDENCE)
def test_damaged_evidence(tmp_path, text):
    path = tmp_path / "a.evid"
    path.write_text(text)
    assert WRONG_EVIDENCE[text] in refused(read_evidence, path)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("1=5", "evidence of variable 1 must be a state from 0 to 1, got 5"),
        ("9=0", "evidence must be of variables 0 to 2, got variable 9"),
        ("1=0,1=1", "evidence names variable 1 twice"),
        ("update_3", "must name observed variables and their states, like"),
        ("1=1,2=1", "so that Z = 0"),
    ],
)
def test_evidence_that_does_not_fit(network, part, words):
    assert words in refused(read_model, f"{network}/{part}")


def test_the_command_line_refuses_in_one_line(network, tmp_path, capsys):
    evidence = tmp_path / "a.evid"
    evidence.write_text("1 1 4")
    assert "must be a state from 0 to 1" in refused_by_command(
        capsys, "estimate", network, "--evidence", evidence
    )
    network.write_text(TEXT.replace("0.333", "-1"))
    assert "at least 0, got -1" in refused_by_command(capsys, "estimate", network)
    assert "is for networks of the UAI format" in refused_by_command(
        capsys, "estimate", "mnist-pcd-20", "--evidence", evidence
    )


def test_evidence_beside_a_network_is_mentioned(network, capsys):
    beside = network.with_name("toy.uai.evid")
    beside.write_text("1 1 0")
    assert given(str(network), None, False) == str(network)
    assert "is not used: give --evidence" in capsys.readouterr().err
    assert given(str(network), beside) == f"{network}/1=0"
    with pytest.raises(ValueError, match="has evidence already"):
        given(f"{network}/1=0", beside)


def test_log10():
    record = {"log_z": np.log(10), "std_err": 0.023, "exact_log_z": None, "messages": []}
    rows = (("model", "a"), ("log Z", "2.3026 ± 0.0230"), ("status", "ok"))
    shown = with_log10(Sheet(name="Estimate", headline=rows[1], rows=rows, record=record))
    assert shown.rows[2] == ("log10 Z", "1.00000 ± 0.00999")
    assert shown.record["log10_z"] == pytest.approx(1.0)
    assert shown.record["log10_std_err"] == pytest.approx(0.023 / np.log(10))
    assert shown.record["exact_log10_z"] is None
    json.dumps(shown.record)


def test_many_free_variables_take_no_square_of_memory(tmp_path):
    """100,000 variables without a factor: 10 GB as a matrix of which are coupled."""
    (tmp_path / "free.uai").write_text(f"MARKOV\n100000\n{'2 ' * 100000}\n0\n")
    model = read_model(tmp_path / "free.uai")[0]
    assert model.exact_log_z_if_cheap() == pytest.approx(100_000 * np.log(2))
    path, kernel = model.path(model.flat_base()), model.kernel()
    assert max(kernel.blocks.shape) < 10_000
    with pytest.raises(ValueError, match=r"num_chains = 100,000 needs about .* GiB of memory and"):
        annealz.anneal(path, kernel, annealz.linear(2), num_chains=100_000)


@pytest.mark.skipif(not UAI.is_dir(), reason="needs the networks of UAI 2014 (ANNEALZ_UAI)")
@pytest.mark.parametrize(
    "name", ["Grids_11", "Grids_13", "Grids_15", "Grids_16", "CSP_12", "Segmentation_12"]
)
def test_references_of_the_competition(name):
    path = UAI / f"{name}.uai"
    wanted = float(path.with_name(f"{name}.uai.PR").read_text().split()[-1])
    found = annealz.exact_log_z(annealz.load_model(path)) / np.log(10)
    assert found == pytest.approx(wanted, abs=1e-3)

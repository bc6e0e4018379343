"""Is ok to be believed: the problems of the study, their exact values, and its page."""

import itertools
import shutil

import numpy as np
import pytest
from scipy.special import logsumexp

import problems
import trust_page
from annealz.models.dbm import DBM
from annealz.models.exact import exact_log_z
from annealz.models.ising import Ising
from annealz.models.potts import Potts
from annealz.models.rbm import RBM
from annealz.testing import log_joint, random_rbm
from problems import PROBLEMS, SETS, TESTING, TUNING, ferromagnet, potts_strip, set_of
from trust_exact import equal_log_terms, equal_log_z, ising_strip_log_z, potts_strip_log_z
from trust_page import write_page
from trust_uai import read_reference, read_uai

# --- problems ---


def test_sets_are_apart_and_large_enough():
    assert not {p.name for p in TUNING} & {p.name for p in TESTING}
    assert len(PROBLEMS) == sum(map(len, SETS.values()))
    assert len(TUNING) >= 14
    assert len([p for p in TESTING if p.is_discrete]) >= 24
    assert {set_of(p.name) for p in TUNING} == {"tuning"}
    assert {set_of(p.name) for p in TESTING} == {"testing"}


def test_problems_build(monkeypatch):
    monkeypatch.setattr(problems, "exact_log_z", lambda _: 0.0)  # enumerations take a while
    for problem in PROBLEMS.values():
        if problem.file is None:
            model, exact = problem.build()
            model.check()
            assert np.isfinite(exact), problem.name


@pytest.mark.parametrize(
    "name", ["ferro-10x12-tilted", "ferro-12x80-against", "threshold-8x30", "ising-8-cold"]
)
def test_closed_forms_agree_with_the_library(name):
    model, exact = PROBLEMS[name].build()
    assert model.exact_log_z_if_cheap() == pytest.approx(exact, abs=1e-6)


def test_a_problem_is_built_alike_each_time():
    first, second = (PROBLEMS["glass-14x80"].build()[0] for _ in range(2))
    assert first.digest == second.digest


def test_stripped_models_have_no_means():
    stripped, exact = PROBLEMS["pcd-20-stripped"].build()
    packaged, same = PROBLEMS["pcd-20-means"].build()
    assert isinstance(stripped, RBM)
    assert isinstance(packaged, RBM)
    assert stripped.visible_means is None
    assert packaged.visible_means is not None
    assert (stripped.digest, exact) == (packaged.digest, same)


def test_a_problem_of_a_file_needs_its_folder(tmp_path):
    problem = PROBLEMS["dbn-11"]
    assert not problem.is_at_hand()
    assert not problem.is_at_hand(tmp_path)
    with pytest.raises(ValueError, match="dbn-11 needs DBN_11.uai: give its folder by --uai"):
        problem.build()


# --- exact values ---


def test_equal_weights_against_enumeration():
    model, exact = ferromagnet(4, 6, 0.9, tilt=1.3)
    assert isinstance(model, RBM)
    assert exact == pytest.approx(logsumexp(log_joint(model)), abs=1e-9)
    with pytest.raises(ValueError, match="equal weights"):
        equal_log_z(random_rbm(3, 4))


@pytest.mark.parametrize(
    ("name", "half", "share"),
    [
        ("ferro-20x25-even", 13, 0.5),
        ("ferro-30x40-tilted", 20, 0.93),
        ("ferro-10x12-tilted", 6, 0.7),
        ("ferro-12x80-against", 40, 0.05),
        ("threshold-10x20", 10, 0.6),
        ("threshold-8x30", 20, 0.7),
    ],
)
def test_phases_have_the_mass_that_is_said(name, half, share):
    model = PROBLEMS[name].build()[0]
    assert isinstance(model, RBM)
    terms = equal_log_terms(model)
    assert np.exp(logsumexp(terms[half:]) - logsumexp(terms)) == pytest.approx(share, abs=0.02)


def test_the_transfer_matrix_against_enumeration():
    model, exact = potts_strip(3, 3, 3, 0.8)
    assert exact == pytest.approx(exact_log_z(model), abs=1e-6)
    generator = np.random.default_rng(0)
    along, down = generator.normal(size=(4, 2)), generator.normal(size=(3, 3))
    fields = generator.normal(size=(4, 3, 2))
    sites, couplings = np.arange(12).reshape(4, 3), np.zeros((12, 12))
    couplings[sites[:, :-1], sites[:, 1:]] = along
    couplings[sites[:-1], sites[1:]] = down
    free = Potts(couplings + couplings.T, 2, fields.reshape(12, 2))
    assert potts_strip_log_z(along, down, fields) == pytest.approx(exact_log_z(free), abs=1e-6)
    spins = Ising(couplings + couplings.T, fields[..., 0].ravel())
    log_z = ising_strip_log_z(along, down, fields[..., 0])
    assert log_z == pytest.approx(exact_log_z(spins), abs=1e-6)


def test_the_transfer_matrix_against_kaufman():
    sites = 0.45 * np.ones((6, 4))
    log_z = ising_strip_log_z(sites, sites, np.zeros((6, 4)))
    assert log_z == pytest.approx(exact_log_z(Ising.square((6, 4), 0.45)), abs=1e-6)


def test_a_dbm_by_brute_force():
    generator = np.random.default_rng(1)
    weights = [generator.normal(size=shape) for shape in ((3, 4), (2, 3))]
    biases = [generator.normal(size=size) for size in (4, 3, 2)]
    model = DBM(weights, biases)
    energies = []
    for state in itertools.product((0.0, 1.0), repeat=9):
        x, y, z = np.split(np.array(state), (4, 7))
        pairs = y @ weights[0] @ x + z @ weights[1] @ y
        energies.append(x @ biases[0] + y @ biases[1] + z @ biases[2] + pairs)
    assert exact_log_z(model) == pytest.approx(logsumexp(energies), abs=1e-5)


def test_a_network_is_read_as_an_rbm(tmp_path):
    generator = np.random.default_rng(2)
    scopes = [(0,), (3,), (0, 1), (1, 2), (2, 3), (3, 0)]  # a ring: two colours
    tables = [generator.uniform(0.2, 3, 2 ** len(scope)) for scope in scopes]
    file = tmp_path / "ring.uai"
    lines = ["MARKOV", "4", "2 2 2 2", str(len(scopes))]
    lines += [" ".join(map(str, (len(scope), *scope))) for scope in scopes]
    lines += [f"{table.size}\n{' '.join(map(repr, table.tolist()))}" for table in tables]
    file.write_text("\n".join(lines))
    total = sum(
        np.prod([
            table[int("".join(str(state[unit]) for unit in scope), 2)]
            for scope, table in zip(scopes, tables, strict=True)
        ])
        for state in itertools.product((0, 1), repeat=4)
    )  # fmt: skip
    (tmp_path / "ring.uai.PR").write_text(f"PR\n{np.log10(total)}")
    model, constant = read_uai(file)
    assert (model.num_hidden, model.num_visible) == (2, 2)
    assert exact_log_z(model) + constant == pytest.approx(np.log(total), abs=1e-5)
    assert read_reference(file) == pytest.approx(np.log(total))


# --- the page ---


def test_the_committed_page_is_that_of_the_committed_results(tmp_path):
    folder = trust_page._PAGE.parent
    for name in ("results", "results-two-sided"):
        shutil.copytree(folder / name, tmp_path / name)
    write_page(tmp_path)
    assert (tmp_path / "README.md").read_text() == trust_page._PAGE.read_text()

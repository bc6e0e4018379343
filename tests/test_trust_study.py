"""Is ok to be believed: the problems of the study, their exact values, and how runs are counted."""

import dataclasses
import enum
import itertools
import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binomtest

import problems
import trust
import trust_page
from annealz.models.dbm import DBM
from annealz.models.exact import exact_log_z
from annealz.models.ising import Ising
from annealz.models.potts import Potts
from annealz.models.rbm import RBM
from annealz.status import Status
from annealz.testing import log_joint, random_rbm
from problems import PROBLEMS, SETS, TESTING, TUNING, ferromagnet, potts_strip, set_of
from trust_exact import equal_log_terms, equal_log_z, ising_strip_log_z, potts_strip_log_z
from trust_page import Counts, Share, count, is_wrong, write_page
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


# --- status without the exact value ---


class Kind(enum.Enum):
    CONTRADICTS_EXACT = True
    HEAVY_TAIL = "fatal"
    WIDE_WEIGHTS = ""

    @property
    def is_fatal(self) -> bool:
        return bool(self.value)


@pytest.mark.parametrize(
    ("kinds", "status"),
    [
        ([], "ok"),
        ([Kind.CONTRADICTS_EXACT], "ok"),
        ([Kind.WIDE_WEIGHTS, Kind.CONTRADICTS_EXACT], "ok"),
        ([Kind.HEAVY_TAIL, Kind.CONTRADICTS_EXACT], "unreliable"),
    ],
)
def test_the_status_is_blind_to_the_exact_value(kinds, status):
    estimate = SimpleNamespace(findings=dict.fromkeys(kinds, "words"), status=Status.UNRELIABLE)
    assert trust.blind_status(estimate) == status
    assert Kind.CONTRADICTS_EXACT not in trust.blind_findings(estimate)


def test_an_estimate_without_findings_has_its_own_status():
    estimate = SimpleNamespace(
        two_sided=None, judgement=SimpleNamespace(findings={}), status=Status.UNRELIABLE
    )
    assert trust.blind_status(estimate) == "unreliable"
    assert trust.blind_findings(estimate) == {}


# --- runs ---


def test_runs_are_kept_and_gone_on_with(tmp_path):
    model = random_rbm(3, 4)
    problem = dataclasses.replace(TUNING[0], make=lambda: (model, exact_log_z(model)))
    file, options = (
        tmp_path / "runs.jsonl",
        {"schedule": "linear", "num_steps": 50, "num_chains": 30},
    )
    assert trust.run_problem(problem, file, 2, options, end=0) == 2
    assert trust.run_problem(problem, file, 1, options) == 0
    first = file.read_text()
    file.write_text(first + '{"cut')
    assert trust.run_problem(problem, file, 2, options) == 0
    rows = trust.read_rows(file)
    assert file.read_text().startswith(first)
    assert [row["index"] for row in rows] == [0, 1]
    assert rows[0]["estimate"]["seed"] != rows[1]["estimate"]["seed"]
    assert rows[0]["error"] == rows[0]["estimate"]["log_z"] - exact_log_z(model)
    assert count(rows).num_runs == 2
    with pytest.raises(ValueError, match="other options"):
        trust.run_problem(problem, file, 3, {})


def test_a_problem_that_fails_stops_no_other(tmp_path, capsys):
    def fail():
        raise ValueError("no model")

    assert trust.study(tmp_path, [PROBLEMS["dbn-11"]], 1, {}) == 1
    assert "dbn-11 is left out: DBN_11.uai is not at hand" in capsys.readouterr().err
    assert trust._run(fail, "dbn-12")
    assert "dbn-12: ValueError: no model" in capsys.readouterr().err


# --- the page ---


def made_up(error, std_err=0.01, status="ok", half=0.02, **more) -> dict:
    interval = [5 + error - half, 5 + error + half]
    return {
        "index": 0,
        "options": {},
        "exact": 5.0,
        "error": error,
        "status": status,
        "findings": [],
        "seconds": 1.0,
        "estimate": {"std_err": std_err, "interval": interval, "base": "uniform",
                     "num_steps": 100, "num_chains": 50},
        "versions": {"annealz": "0", "jax": "0", "device": "cpu"},
        **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("error", "std_err", "wrong"),
    [
        (0.0, 0.01, False),
        (0.06, 0.01, True),
        (-0.06, 0.01, True),
        (0.06, 0.016, False),  # within 4 errors
        (0.04, 0.001, False),  # within 0.05 nats
        (-3.0, None, False),  # its error is said to be unknown
        (float("nan"), 0.01, True),
    ],
)
def test_wrong_is_by_four_errors_and_a_twentieth(error, std_err, wrong):
    assert is_wrong(made_up(error, std_err)) is wrong


def test_runs_are_counted():
    rows = [made_up(0.0), made_up(0.03), made_up(0.1), made_up(0.0, status="unreliable"),
            made_up(0.1, status="unreliable"), made_up(0.2, status="unreliable")]  # fmt: skip
    counts = count(rows)
    assert counts == Counts(2, 1, 1, 2, ok_covered=1)
    assert counts + counts == Counts(4, 2, 2, 4, 2)
    assert (counts.silent, counts.silent_of_ok) == (Share(1, 6), Share(1, 3))
    assert (counts.silent_of_wrong, counts.alarm) == (Share(1, 3), Share(1, 3))


@pytest.mark.parametrize(("hits", "size"), [(0, 10), (3, 40), (40, 40)])
def test_shares_have_clopper_and_pearsons_interval(hits, size):
    known = binomtest(hits, size).proportion_ci(0.95, "exact")
    assert Share(hits, size).interval() == pytest.approx((known.low, known.high))


def test_the_page_is_written_from_results(tmp_path):
    (tmp_path / "results").mkdir()
    write_page(tmp_path)
    assert "The testing set was not run yet." in (tmp_path / "README.md").read_text()
    for name, errors in (("dbn-12", (0.0, 0.3)), ("sk-20", (0.0, 0.01))):
        rows = [made_up(error, index=index) for index, error in enumerate(errors)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "results" / f"{name}.jsonl").write_text(text)
    write_page(tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert "**1 of 2, 50.0 % (1.3–98.7)** of all runs" in text
    assert "On dbn-12 (1 of 2)." in text
    assert "covers in 93–97 %*, testing: **does not hold**" in text
    assert "| tuning | 1 | 2 | 2 | 0 | 0 | 0 |" in text
    assert "| testing | 1 | 2 | 1 | 1 | 0 | 0 |" in text
    assert "| dbn-12 | 1 | **1** | 0 | 0 | 1 of 2 | 0.0100 | 0.2121 | uniform 2 | 1.0 | – |" in text
    assert "defaults; K = 100, N = 50; annealz 0, jax 0, device cpu." in text
    write_page(tmp_path)
    assert (tmp_path / "README.md").read_text() == text


def test_the_committed_page_is_that_of_the_committed_results(tmp_path):
    folder = trust_page._PAGE.parent
    for name in ("results", "results-two-sided"):
        shutil.copytree(folder / name, tmp_path / name)
    write_page(tmp_path)
    assert (tmp_path / "README.md").read_text() == trust_page._PAGE.read_text()

"""Factor graphs against brute force: densities, conditioning, zeros, paths, sweeps, runs, files."""

from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

import annealz
from annealz.bases.fit_mixture import fit_mixture
from annealz.core.arrays import indices
from annealz.core.random import Stream
from annealz.diagnostics.findings import Kind
from annealz.methods.annealing.diagnose import diagnose
from annealz.models.factor_graph import FactorGraph
from annealz.paths.factors import FactorPath
from annealz.paths.tempered import ZERO_DENSITY
from annealz.testing import assert_within_mc_error, check_kernel, check_path
from support.families import grid
from support.values import log_density, sample, step

EQUAL = [[1.0, 0.0], [0.0, 1.0]]


def make(zeros: float = 0.0, seed: int = 0) -> FactorGraph:
    """Six variables of two or three states, factors of one to four of them."""
    generator = np.random.default_rng(seed)
    num_states = [2, 3, 2, 3, 2, 2]
    factors = []
    for arity, count in ((1, 6), (2, 5), (3, 3), (4, 1)):
        for _ in range(count):
            scope = generator.choice(6, arity, replace=False)
            table = np.exp(generator.normal(0, 1, [num_states[v] for v in scope]))
            if arity > 1:
                table[generator.random(table.shape) < zeros] = 0
            factors.append((scope.tolist(), table))
    return FactorGraph(num_states, factors)


PLAIN, HOLED = make(), make(0.15, seed=3)
PAIRS = FactorGraph(
    [2] * 4,
    [((i, (i + 1) % 4), np.exp(np.random.default_rng(i).normal(0, 1, (2, 2)))) for i in range(4)]
    + [((0,), [0.3, 0.9])],
)


def states_and_energies(model: FactorGraph) -> tuple[np.ndarray, np.ndarray]:
    states = grid(*np.asarray(model.num_states).tolist())
    return states, model.log_density(states)


def test_density_is_the_product_of_its_factors():
    model = FactorGraph([2, 3], [((1, 0), [[1, 2], [3, 4], [5, 0]]), ((1,), [0.5, 1, 2])])
    with np.errstate(divide="ignore"):
        wanted = np.log([[0.5, 3.0, 10.0], [1.0, 4.0, 0.0]])
    np.testing.assert_allclose(model.log_density(grid(2, 3)).reshape(2, 3), wanted, atol=1e-12)
    same = FactorGraph(
        [2, 3],
        [((1, 0), np.log([1, 2, 3, 4, 5, 1e-300])), ((1,), np.log([0.5, 1, 2]))],
        is_log=True,
    )
    assert same.log_density([[0, 2]]) == pytest.approx(np.log(10))


def test_tables_keep_the_digits_of_float64():
    value = 0.1234567890123456
    assert FactorGraph([1], [((0,), [value])]).log_density([[0]])[0] == pytest.approx(
        np.log(value), abs=1e-14
    )


@pytest.mark.parametrize("model", [PLAIN, HOLED, PAIRS], ids=["plain", "holed", "pairs"])
def test_exact_log_z(model):
    _, energies = states_and_energies(model)
    assert annealz.exact_log_z(model) == pytest.approx(logsumexp(energies), rel=1e-9)
    assert model.exact_log_z_if_cheap() == annealz.exact_log_z(model)


def test_given_evidence():
    states, energies = states_and_energies(HOLED)
    evidence = {1: 2, 4: 0}
    fits = (states[:, 1] == 2) & (states[:, 4] == 0)
    part = HOLED.given(evidence)
    assert part.num_units == 4
    left, found = states_and_energies(part)
    np.testing.assert_array_equal(left, states[fits][:, [0, 2, 3, 5]])
    np.testing.assert_allclose(found, energies[fits])


def test_states_that_no_state_of_the_others_allows_are_taken_out():
    """0 = 1 and 1 = 2, and 2 must be 0: all must be, and no chain starts anywhere else."""
    model = FactorGraph(
        [2] * 4, [((0, 1), EQUAL), ((1, 2), EQUAL), ((2,), [1, 0]), ((2, 3), np.ones((2, 2)))]
    )
    path: Any = model.path(model.flat_base())
    x = sample(path, Stream(0, "a").at(0, indices(64)))
    np.testing.assert_array_equal(np.asarray(x)[:, :3], 0)
    assert not model.has_zeros or path.tables.zeros is None
    assert path.log_z0 == pytest.approx(np.log(2))


@pytest.mark.parametrize("model", [PLAIN, HOLED], ids=["plain", "holed"])
def test_path_ends_in_the_model(model):
    path = model.path(model.flat_base())
    assert isinstance(path, FactorPath)
    check_path(path)
    states, energies = states_and_energies(model)
    is_inside = np.asarray(path.start)[np.arange(6), states].min(1) > -1
    x = np.float32(states[is_inside])
    found = log_density(path, x, 1.0)
    is_zero = energies[is_inside] == -np.inf
    np.testing.assert_allclose(found[~is_zero], energies[is_inside][~is_zero], atol=2e-5)
    assert (found[is_zero] <= ZERO_DENSITY / 2).all()
    assert np.isfinite(log_density(path, x, 0.5)).all()
    assert (energies[~is_inside] == -np.inf).all()  # nothing that counts was taken out
    assert logsumexp(log_density(path, x, 0.0)) == pytest.approx(path.log_z0, abs=1e-4)


@pytest.mark.parametrize("model", [PLAIN, HOLED], ids=["plain", "holed"])
def test_sweeps_leave_the_path_invariant(model):
    """From exact draws at beta = 1 and from weighted ones below."""
    states, energies = states_and_energies(model)
    generator = np.random.default_rng(0)
    draws = states[generator.choice(len(states), 4096, p=np.exp(energies - logsumexp(energies)))]
    path = model.path(model.choose_base("fields"))
    done = check_kernel(
        model.kernel(), path, draws=draws.astype(np.float32), betas=(0.0, 0.2, 1.0), num_chains=4096
    )
    assert 1.0 in done


def test_a_sweep_leaves_states_of_zero_weight_and_never_enters_them():
    path: Any = HOLED.path(HOLED.flat_base())
    kernel = HOLED.kernel()
    x = sample(path, Stream(0, "a").at(0, indices(4096)))
    for k in range(3):
        x = step(kernel, Stream(1, "b").at(k, indices(4096)), x, path, np.float32(1.0))
    assert np.isfinite(np.asarray(x)).all()
    after = HOLED.log_density(np.asarray(x, int))
    alive = np.asarray(x)[after > -np.inf]
    bits = Stream(2, "c").at(0, indices(len(alive)))
    again = step(kernel, bits, alive, path, np.float32(1.0))
    assert (HOLED.log_density(np.asarray(again, int)) > -np.inf).all()
    assert len(alive) > 1000


def test_a_fitted_mixture_has_no_states_that_are_not_there():
    flat: Any = HOLED.path(HOLED.flat_base())
    generator = np.random.default_rng(0)
    states, energies = states_and_energies(HOLED)
    draws = states[generator.choice(len(states), 200, p=np.exp(energies - logsumexp(energies)))]
    base = fit_mixture(flat.units, draws, np.full(200, 1 / 200), most=2)
    path = HOLED.path(base)
    check_path(path)
    x = np.asarray(sample(path, Stream(0, "a").at(0, indices(4096))), int)
    assert np.asarray(flat.start)[np.arange(6), x].min() > -1
    is_inside = np.asarray(flat.start)[np.arange(6), states].min(1) > -1
    total = logsumexp(log_density(path, np.float32(states[is_inside]), 0.0))
    assert total == pytest.approx(path.log_z0, abs=1e-4)


@pytest.mark.parametrize("model", [PLAIN, HOLED, PAIRS], ids=["plain", "holed", "pairs"])
def test_log_z_by_annealing(model):
    """Unbiased with zeros as well: the mean over chains is Z within its error."""
    path = model.path(model.flat_base())
    run = annealz.anneal(path, model.kernel(), annealz.linear(60), num_chains=2000, seed=5)
    weights = np.exp(run.log_weights + run.log_z0 - annealz.exact_log_z(model))
    assert_within_mc_error(weights.mean(), 1.0, weights.std() / np.sqrt(weights.size))


def test_a_graph_of_two_colours_is_an_rbm():
    """One colour is summed out, and the energies are those of the graph."""
    path = PAIRS.path(PAIRS.flat_base())
    assert not isinstance(path, FactorPath)
    states, energies = states_and_energies(PAIRS)
    found = log_density(path, np.float32(grid(2, 2)), 1.0)
    visible = [0, 2] if len({*states[:, 0]}) else []
    wanted = [logsumexp(energies[(states[:, visible] == row).all(1)]) for row in grid(2, 2)]
    np.testing.assert_allclose(np.sort(found), np.sort(wanted), atol=1e-5)


def test_blocked_moves_are_reported():
    """Two variables that must be equal cannot move one at a time; a third can."""
    model = FactorGraph([2, 2, 2], [((0, 1), EQUAL), ((1, 2), np.ones((2, 2)))])
    [finding] = model.findings(np.array([[0, 0, 1], [1, 1, 0]], np.float32))
    assert finding.kind is Kind.BLOCKED_MOVES
    assert finding.numbers["share"] == pytest.approx(200 / 3)
    assert "67 % of the variables" in finding.what
    assert PLAIN.findings(np.zeros((3, 6))) == ()
    assert not Kind.BLOCKED_MOVES.is_fatal


def odd_ring() -> FactorGraph:
    """Three variables of two states that must all differ: no state has weight, which no pair shows."""
    unequal = [[0.0, 1.0], [1.0, 0.0]]
    return FactorGraph([2] * 3, [((0, 1), unequal), ((1, 2), unequal), ((2, 0), unequal)])


def test_a_run_without_weight_is_never_ok():
    model = odd_ring()
    estimate = annealz.estimate_log_z(
        model, base="uniform", schedule="linear", num_steps=10, num_chains=100, second_opinion=False
    )
    assert estimate.status.value == "unreliable"
    assert Kind.ZERO_WEIGHT in estimate.findings
    assert annealz.exact_log_z(model) == -np.inf
    assert Kind.ZERO_WEIGHT in diagnose(estimate.plan, estimate.runs).findings


@pytest.mark.slow
@pytest.mark.parametrize("model", [PLAIN, HOLED, PAIRS], ids=["plain", "holed", "pairs"])
def test_estimate_with_second_opinion(model, tmp_path):
    estimate = annealz.estimate_log_z(model, num_steps=300, num_chains=300, out=tmp_path / "run")
    assert estimate.second_opinion is not None
    assert abs(estimate.log_z - annealz.exact_log_z(model)) < 5 * estimate.std_err
    assert estimate.status.value == "ok"
    assert annealz.resume(tmp_path / "run").log_z == estimate.log_z


@pytest.mark.parametrize("model", [PLAIN, HOLED], ids=["plain", "holed"])
def test_files(model, tmp_path):
    annealz.save_model(tmp_path / "a.npz", model)
    again = annealz.load_model(tmp_path / "a.npz")
    assert isinstance(again, FactorGraph)
    assert again.digest == model.digest
    assert annealz.exact_log_z(again) == annealz.exact_log_z(model)


ONE = [((0,), [1.0, 1.0])]
WRONG = [
    ([2], [((0,), [1.0, -0.5])], {}, "factor 0 must hold finite numbers, at least 0, got -0.5"),
    ([2], [((0,), [1.0, np.nan])], {}, "factor 0 must hold finite numbers, at least 0, got nan"),
    ([2], [((0,), [1.0, np.inf])], {"is_log": True}, "logarithms below infinity, got inf"),
    ([2], [*ONE, ((0,), [0.0, 0.0])], {}, "factor 1 is zero everywhere, so that Z = 0"),
    ([2, 2], [((0, 1), [1.0, 1.0])], {}, r"over variables \[0, 1\] must have 4 entries, got 2"),
    ([2], [((1,), [1.0, 1.0])], {}, r"scope of factor 0 must be of variables 0 to 0, got \[1\]"),
    ([2, 2], [((0, 0), np.ones(4))], {}, "must have every variable once"),
    ([], [], {}, "num_states must be from 1"),
    ([2, 0], [], {}, "num_states must be from 1"),
    ([2.5], [], {}, "num_states must be a sequence of whole numbers"),
    ([2], [((0,), ["a", "b"])], {}, "factor 0 must hold real numbers"),
    ([2, 2], [((0, 1), EQUAL), ((0,), [1, 0]), ((1,), [0, 1])], {}, "leave variable 0 without a state"),
]  # fmt: skip


@pytest.mark.parametrize(("num_states", "factors", "options", "words"), WRONG)
def test_refusals(num_states, factors, options, words):
    with pytest.raises(ValueError, match=words):
        FactorGraph(num_states, factors, **options)


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        ({9: 0}, "must be of variables 0 to 5, got variable 9"),
        ({1: 3}, "must be a state from 0 to 2, got 3"),
        (dict.fromkeys(range(6), 0), "must leave at least one variable open"),
    ],
)
def test_wrong_evidence(evidence, words):
    with pytest.raises(ValueError, match=words):
        PLAIN.given(evidence)


def test_impossible_evidence():
    model = FactorGraph([2, 2, 2], [((0, 1), EQUAL), ((1, 2), np.ones((2, 2)))])
    with pytest.raises(ValueError, match="Z = 0: the evidence is impossible|zero everywhere"):
        model.given({0: 0, 1: 1})


def test_bases_that_do_not_fit():
    with pytest.raises(ValueError, match="must have logits of shape"):
        PLAIN.path(annealz.CategoricalBase.uniform(6, 2))
    with pytest.raises(ValueError, match="base must be one of auto, uniform, fields"):
        PLAIN.choose_base("base-rate")
    means = np.full((2, 6, 3), 1 / 3)
    with pytest.raises(ValueError, match="mixture base of factors-6x15 must be over the 6 units"):
        PLAIN.path(annealz.MixtureBase.from_means(means))

"""Potts models with a table for every pair, against sums that are written down here."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

import annealz
from annealz.models.formats.npz import save_model
from annealz.paths.pairs import PairTablePath
from annealz.testing import assert_within_mc_error
from support.families import grid

GENERATOR = np.random.default_rng(17)


def full(num_units: int, num_states: int, pairs=None) -> tuple[np.ndarray, np.ndarray]:
    """Couplings of these pairs, all of them by default, and fields."""
    couplings = np.zeros((num_units, num_states, num_units, num_states))
    for i, j in pairs or np.argwhere(np.triu(np.ones((num_units, num_units)), 1)):
        couplings[i, :, j] = GENERATOR.normal(0.1, 0.7, (num_states, num_states))
        couplings[j, :, i] = couplings[i, :, j].T
    return couplings, GENERATOR.normal(0, 0.6, (num_units, num_states))


COUPLINGS, FIELDS = full(5, 3)
DENSE = annealz.Potts(COUPLINGS, fields=FIELDS)
COUPLINGS_OF_CHAIN, FIELDS_OF_CHAIN = full(5, 3, [(0, 1), (1, 2), (2, 3), (3, 4)])
CHAIN = annealz.Potts(COUPLINGS_OF_CHAIN, fields=FIELDS_OF_CHAIN)
STATES = grid(*[3] * 5)


def energies(couplings: np.ndarray, fields: np.ndarray, states: np.ndarray) -> np.ndarray:
    """log p* pair by pair, in float64."""
    total = sum(fields[i, states[:, i]] for i in range(len(fields)))
    for i in range(len(fields)):
        for j in range(i + 1, len(fields)):
            total = total + couplings[i, states[:, i], j, states[:, j]]
    return np.asarray(total)


def rounded(model: annealz.Potts) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(model.couplings, np.float64), np.asarray(model.fields, np.float64)


@pytest.mark.parametrize("model", [DENSE, CHAIN], ids=["dense", "chain"])
def test_enumeration(model: annealz.Potts):
    brute = energies(*rounded(model), STATES)
    assert annealz.exact_log_z(model) == pytest.approx(logsumexp(brute), abs=1e-9)
    np.testing.assert_allclose(model.log_density(STATES), brute, atol=1e-5)
    assert model.log_density(STATES[0]).shape == ()


def test_float32_parameters_change_little():
    assert annealz.exact_log_z(DENSE) == pytest.approx(
        logsumexp(energies(COUPLINGS, FIELDS, STATES)), abs=1e-6
    )


@pytest.mark.parametrize("model", [DENSE, CHAIN], ids=["dense", "chain"])
def test_logits_are_those_of_the_conditionals(model: annealz.Potts):
    """Of every unit at some beta, where all pairs are held and where neighbours are."""
    base = model.choose_base("fields")
    path, beta = model.path(base), 0.4
    assert isinstance(path, PairTablePath)
    assert (path.neighbours is None) == (model is DENSE)
    couplings, fields = rounded(model)
    start = np.asarray(base.logits, np.float64)
    x = GENERATOR.integers(0, 3, (6, 5))
    logits = np.asarray(path.site_logits(jnp.asarray(x, jnp.float32), jnp.arange(5), beta))
    for unit in range(5):
        turned = np.repeat(x, 3, 0)
        turned[:, unit] = np.tile(np.arange(3), 6)
        law = beta * energies(couplings, fields, turned)
        law += (1 - beta) * start[np.arange(5), turned].sum(1)
        law = law.reshape(6, 3)
        law -= law.mean(1, keepdims=True)
        got = logits[:, unit] - logits[:, unit].mean(1, keepdims=True)
        np.testing.assert_allclose(got, law, atol=1e-5)


def test_few_neighbours_are_those_of_all_couplings():
    """A ring with chords, two to four neighbours among 64 units: sums are over these alone."""
    rng, size = np.random.default_rng(0), 64
    couplings = np.zeros((size, size))
    for i, j in [*((i, (i + 1) % size) for i in range(size)), (0, 9), (0, 20), (5, 30)]:
        couplings[i, j] = couplings[j, i] = rng.normal()
    model = annealz.Potts(couplings, 3, rng.normal(0, 0.5, (size, 3)))
    path = model.path(model.flat_base())
    assert path.couplings.shape == (size, 4)
    assert path.neighbours is not None
    states = rng.integers(0, 3, (20, size))
    same = states[:, :, None] == states[:, None]
    fields = np.asarray(model.fields, np.float64)[np.arange(size), states].sum(1)
    energies = (same * np.float32(couplings)).sum((1, 2)) / 2 + fields
    x = jnp.asarray(states, jnp.float32)
    assert path.exact_energies(states) == pytest.approx(energies, abs=1e-6)
    assert np.asarray(path.slope(x, 0.5)) == pytest.approx(energies, abs=1e-4)
    sites = np.array([0, 7, 63])
    hot = states[:, :, None] == np.arange(3)
    logits = np.einsum("cjk,js->csk", hot, couplings[:, sites]) + np.asarray(model.fields)[sites]
    found = np.asarray(path.site_logits(x, sites, jnp.float32(1)))
    assert found == pytest.approx(logits, abs=1e-5)


def test_one_number_a_pair_is_a_case_of_a_table():
    pairs = np.float32(np.triu(GENERATOR.normal(0, 0.8, (4, 4)), 1))
    pairs = pairs + pairs.T
    fields = GENERATOR.normal(0, 0.5, (4, 3))
    plain = annealz.Potts(pairs, 3, fields)
    tables = annealz.Potts(np.einsum("ij,ab->iajb", pairs, np.eye(3)), fields=fields)
    assert isinstance(tables.path(tables.flat_base()), PairTablePath)
    assert annealz.exact_log_z(tables) == pytest.approx(annealz.exact_log_z(plain), abs=1e-6)
    states = grid(3, 3, 3, 3)
    np.testing.assert_allclose(tables.log_density(states), plain.log_density(states), atol=1e-5)
    np.testing.assert_array_equal(tables.kernel().blocks, plain.kernel().blocks)


@pytest.mark.parametrize(
    "model",
    [DENSE, CHAIN, annealz.Potts.square((2, 3), 3, 0.7)],
    ids=["dense", "chain", "one number a pair"],
)
def test_factors_sum_to_the_log_density(model: annealz.Potts):
    numbers, factors = model.factors()
    assert numbers == (3,) * model.num_units
    states = GENERATOR.integers(0, 3, (50, model.num_units))
    total = np.zeros(50)
    for scope, table in factors:
        assert table.dtype == np.float64
        assert table.shape == tuple(numbers[unit] for unit in scope)
        total += table[tuple(states[:, unit] for unit in scope)]
    np.testing.assert_allclose(total, model.log_density(states), atol=1e-5)
    assert len(factors) == model.num_units + np.triu(model.is_coupled).sum()


def test_units_that_are_not_coupled_are_drawn_together():
    assert CHAIN.kernel().blocks.shape == (2, 3)
    assert DENSE.kernel().blocks.shape == (5, 1)


def test_rounding_of_another_program_is_no_asymmetry():
    uneven = COUPLINGS.astype(np.float32)
    uneven[0, 1, 2, 2] += np.float32(1e-6)
    model = annealz.Potts(uneven)
    model.check()
    held = np.asarray(model.couplings)
    np.testing.assert_array_equal(held, held.transpose(2, 3, 0, 1))


# --- the base rate -------------------------------------------------------------------------------


ROWS = GENERATOR.integers(0, 3, (200, 5))
SHARES = (ROWS[..., None] == np.arange(3)).mean(0)


def test_base_rate_from_rows_and_from_frequencies():
    from_rows = DENSE.choose_base("base-rate", ROWS)
    np.testing.assert_allclose(np.exp(from_rows.logits), (200 * SHARES + 1) / 203, atol=1e-6)
    given = DENSE.choose_base("auto", SHARES)
    np.testing.assert_allclose(np.exp(given.logits), SHARES, atol=1e-6)
    held = annealz.Potts(COUPLINGS, fields=FIELDS, frequencies=SHARES)
    assert held.choose_base().name == "base-rate"
    np.testing.assert_allclose(np.exp(held.choose_base().logits), SHARES, atol=1e-6)
    assert held.choose_base("uniform").name == "uniform"
    assert DENSE.choose_base().name == "uniform"
    assert held.digest == DENSE.digest  # they are not part of the distribution


def test_frequencies_of_zero_are_smoothed():
    shares = np.tile([0.5, 0.5, 0.0], (5, 1))
    logits = np.asarray(DENSE.choose_base("auto", shares).logits)
    assert np.isfinite(logits).all()
    np.testing.assert_allclose(np.exp(logits).sum(-1), 1, atol=1e-5)
    square = annealz.Potts(np.zeros((3, 3, 3, 3)))
    np.testing.assert_allclose(  # whole numbers are states where both shapes are the same
        np.exp(square.choose_base("auto", np.eye(3, dtype=int)).logits)[0], [3 / 6, 2 / 6, 1 / 6]
    )


def test_an_estimate_from_the_base_rate_with_a_folder(tmp_path: Path, seed: int):
    held = annealz.Potts(COUPLINGS, fields=FIELDS, frequencies=SHARES)
    save_model(tmp_path / "m.npz", held)
    result = annealz.estimate_log_z(
        tmp_path / "m.npz", schedule="linear", num_steps=100, num_chains=100, seed=seed,
        second_opinion=False, out=tmp_path / "run",
    )  # fmt: skip
    assert result.base == "base-rate"
    assert_within_mc_error(result.log_z, annealz.exact_log_z(held), result.std_err)
    assert annealz.resume(tmp_path / "run").log_z == result.log_z


# --- refusals ------------------------------------------------------------------------------------


def changed(place, value) -> np.ndarray:
    couplings = COUPLINGS.copy()
    couplings[place] = value
    return couplings


REFUSED = {
    "asymmetric": (
        lambda: annealz.Potts(np.triu(np.ones((5, 5)), 1)[:, None, :, None] * COUPLINGS),
        r"symmetric, J\[i, a, j, b\] = J\[j, b, i, a\], got .* where each pair is given once",
    ),
    "diagonal": (lambda: annealz.Potts(changed((1, 2, 1, 2), 0.5)), "zero where i = j"),
    "nan": (lambda: annealz.Potts(changed((1, 2, 0, 2), np.nan)), "finite in float32, got 1 NaN"),
    "other axes": (
        lambda: annealz.Potts(COUPLINGS.transpose(0, 2, 1, 3)),
        r"got shape \(5, 5, 3, 3\): transpose them by \(0, 2, 1, 3\)",
    ),
    "sizes": (lambda: annealz.Potts(COUPLINGS[:, :, :2]), r"got shape \(5, 3, 2, 3\)\.$"),
    "axes": (lambda: annealz.Potts(COUPLINGS[0]), r"\(units, units\) or .* got shape \(3, 5, 3\)"),
    "fields": (
        lambda: annealz.Potts(COUPLINGS, fields=FIELDS.T),
        r"= \(5, 3\), got shape \(3, 5\)",
    ),
    "states": (lambda: annealz.Potts(COUPLINGS, 4), "that of the couplings, 3, got 4"),
    "unknown states": (lambda: annealz.Potts(np.zeros((3, 3))), "num_states must be given"),
    "frequencies": (
        lambda: annealz.Potts(COUPLINGS, frequencies=2 * SHARES),
        "sum to one for every unit, got the sum 2",
    ),
    "frequencies shape": (
        lambda: annealz.Potts(COUPLINGS, frequencies=SHARES.T),
        r"frequencies must be \(units, states\) = \(5, 3\), got shape \(3, 5\)",
    ),
    "rows": (lambda: DENSE.choose_base("auto", ROWS + 1), "states 0 to 2, .* from 0 to 3"),
    "data shape": (
        lambda: DENSE.choose_base("auto", ROWS[:, :3]),
        r"rows of states \(rows, 5\) or frequencies \(5, 3\), got shape \(200, 3\)",
    ),
    "bytes": (lambda: DENSE.choose_base("auto", ROWS / 255), "write states as int32"),
    "words": (lambda: DENSE.choose_base("auto", [["A"] * 5]), "data must be numbers"),
    "data for another base": (
        lambda: DENSE.choose_base("uniform", ROWS),
        "base-rate base only, and the base is uniform",
    ),
    "no data": (
        lambda: DENSE.choose_base("base-rate"),
        "needs the training data, or their means or frequencies",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str):
    build, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        build()

"""RBMs with units of other kinds against sums over visible states, with the hidden units integrated out."""

import functools
import itertools
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import logsumexp

import annealz
from annealz.core.random import Stream
from annealz.models.exact import exact_log_z
from annealz.testing import assert_within_mc_error, default_seed
from support.families import chi_square

RNG = np.random.default_rng(3)
HIDDEN, VISIBLE, STATES, NUM_SEEDS = 3, 4, 3, 12
WEIGHTS, TABLE = (
    RNG.normal(0, 0.7, (HIDDEN, VISIBLE)),
    RNG.normal(0, 0.7, (HIDDEN, VISIBLE, STATES)),
)
A, B, FIELDS = RNG.normal(0, 0.5, 3), RNG.normal(0, 0.5, 4), RNG.normal(0, 0.5, (VISIBLE, STATES))
SCALE = RNG.uniform(0.6, 1.3, HIDDEN)
SIDES = [np.array([0.5, -1.0, 1.0]), np.array([-0.5, 1.0, 0.3]), SCALE, SCALE[::-1].copy()]
OFFSET = 0.3

HIDDEN_UNITS = {
    "binary": "binary",
    "spin": "spin",
    "gaussian": annealz.GaussianUnits(SCALE),
    "relu": annealz.ReLUUnits(SCALE),
    "drelu": annealz.DReLUUnits(*SIDES),
}
VALUES = {"binary": (0, 1), "spin": (-1, 1), "softmax": range(STATES)}
CASES = list(itertools.product(VALUES, HIDDEN_UNITS))


@functools.cache
def model_of(visible: str, hidden: str) -> annealz.LayeredRBM:
    weights, bias = (TABLE, FIELDS) if visible == "softmax" else (WEIGHTS, B)
    return annealz.LayeredRBM(weights, A, bias, visible, HIDDEN_UNITS[hidden], OFFSET)


def hidden_term(hidden: str, unit: int, z: float) -> float:
    """log of the sum or integral over a hidden unit, from the header of the module."""
    if hidden == "binary":
        return np.logaddexp(0, z)
    if hidden == "spin":
        return np.logaddexp(z, -z)

    def r(h):
        if hidden == "drelu":
            b, s = (SIDES[0], SIDES[2]) if h >= 0 else (SIDES[1], SIDES[3])
            return b[unit] * h - h * h / (2 * s[unit] ** 2)
        return -h * h / (2 * SCALE[unit] ** 2)

    sides = [(0, 30)] if hidden == "relu" else [(-30, 0), (0, 30)]
    return np.log(sum(quad(lambda h: np.exp(z * h + r(h)), *side)[0] for side in sides))


@functools.cache
def law(visible: str, hidden: str) -> tuple[np.ndarray, np.ndarray]:
    """All visible states as the units have them, and log p* of each."""
    states = np.array(list(itertools.product(VALUES[visible], repeat=VISIBLE)))
    found = []
    for v in states:
        if visible == "softmax":
            each = np.arange(VISIBLE)
            fields, own = A + TABLE[:, each, v].sum(1), FIELDS[each, v].sum()
        else:
            fields, own = A + WEIGHTS @ v, B @ v
        rest = sum(hidden_term(hidden, unit, z) for unit, z in enumerate(fields))
        found.append(own + rest + OFFSET)
    return states, np.array(found)


def annealed(visible: str, states: np.ndarray) -> np.ndarray:
    """The states of the path: spins as zeros and ones."""
    return (states + 1) // 2 if visible == "spin" else states


@pytest.mark.parametrize(("visible", "hidden"), CASES)
def test_log_z_and_densities_are_those_of_the_sums(visible: str, hidden: str):
    model = model_of(visible, hidden)
    states, log_p = law(visible, hidden)
    assert exact_log_z(model) == pytest.approx(logsumexp(log_p), abs=1e-6)
    assert model.exact_log_z_if_cheap() == pytest.approx(logsumexp(log_p), abs=1e-6)
    np.testing.assert_allclose(np.asarray(model.log_density(states)), log_p, atol=1e-5)


@pytest.mark.parametrize(("visible", "hidden"), CASES)
def test_exact_draws_have_the_law(visible: str, hidden: str, seed: int):
    states, log_p = law(visible, hidden)
    drawn = model_of(visible, hidden).exact_draws(20_000, seed)
    chances = np.exp(log_p - logsumexp(log_p))
    assert chi_square(annealed(visible, states), drawn, chances) > 1e-6


@pytest.mark.parametrize("hidden", ["gaussian", "relu", "drelu"])
def test_sweeps_leave_the_law_where_it_is(hidden: str, seed: int):
    """From exact draws at beta = 0.7, one sweep through real hidden units."""
    model = model_of("spin", hidden)
    path = model.path(model.flat_base())
    states = annealed("spin", law("spin", hidden)[0]).astype(np.float32)
    log_p = np.float64(eqx.filter_jit(path.log_density)(states, 0.7))
    chances = np.exp(log_p - logsumexp(log_p))
    x = states[np.random.default_rng(seed).choice(len(states), 20_000, p=chances)]
    bits = Stream(seed, "test").at(1, jnp.arange(20_000))
    step = eqx.filter_jit(model.kernel().step)
    moved = np.asarray(step(bits, jnp.asarray(x), path, jnp.float32(0.7)))
    assert (moved != x).any(-1).mean() > 0.2
    assert chi_square(states, moved, chances) > 1e-6


def test_hidden_units_drawn_at_another_beta_are_caught(seed: int):
    """Broken variant: the hidden units see fields of beta = 1, the visible ones those of 0.7."""
    model = model_of("spin", "drelu")
    path = model.path(model.flat_base())
    states = annealed("spin", law("spin", "drelu")[0]).astype(np.float32)
    log_p = np.float64(eqx.filter_jit(path.log_density)(states, 0.7))
    chances = np.exp(log_p - logsumexp(log_p))
    x = jnp.asarray(states[np.random.default_rng(seed).choice(len(states), 20_000, p=chances)])

    @eqx.filter_jit
    def stale(bits, x):
        return path.draw_state(bits, path.draw_latent(bits, x, 1.0), 0.7)

    moved = np.asarray(stale(Stream(seed, "test").at(1, jnp.arange(20_000)), x))
    assert chi_square(states, moved, chances) < 1e-6


@pytest.mark.parametrize("hidden", ["gaussian", "relu", "drelu"])
def test_estimates_of_many_seeds(hidden: str):
    """Within the stated error, and the spread over seeds is as stated."""
    model = model_of("binary", hidden)
    exact, path, kernel = exact_log_z(model), model.path(model.flat_base()), model.kernel()
    scores = []
    for i in range(NUM_SEEDS):
        run = annealz.anneal(
            path, kernel, annealz.linear(60), num_chains=400, seed=default_seed() + i
        )
        weights = np.exp(run.log_weights - run.log_weights.max())
        log_z = run.log_z0 + run.log_weights.max() + np.log(weights.mean())
        std_err = weights.std(ddof=1) / weights.mean() / np.sqrt(len(weights))
        assert_within_mc_error(log_z, exact, std_err)
        scores.append((log_z - exact) / std_err)
    spread = np.sum(np.square(scores))
    assert stats.chi2(NUM_SEEDS).sf(spread) > 1e-6, scores
    assert stats.chi2(NUM_SEEDS).cdf(spread) > 1e-6, scores


@pytest.mark.slow
@pytest.mark.parametrize(("visible", "hidden"), CASES)
def test_the_front_door_finds_log_z(visible: str, hidden: str, seed: int):
    """With the search of bases and a second opinion."""
    model = model_of(visible, hidden)
    result = annealz.estimate_log_z(model, num_steps=500, num_chains=500, seed=seed)
    assert_within_mc_error(result.log_z, logsumexp(law(visible, hidden)[1]), result.std_err)
    assert result.ok


def test_spins_are_the_ising_model_of_two_layers():
    """The same couplings on a graph of two colours."""
    size = HIDDEN + VISIBLE
    couplings = np.zeros((size, size))
    couplings[:HIDDEN, HIDDEN:], couplings[HIDDEN:, :HIDDEN] = WEIGHTS, WEIGHTS.T
    ising = annealz.Ising(couplings, np.concatenate([A, B]))
    model = annealz.LayeredRBM(WEIGHTS, A, B, "spin", "spin")
    assert exact_log_z(model) == pytest.approx(exact_log_z(ising), abs=1e-6)


def test_two_gaussian_layers_in_closed_form():
    """Against the hidden layer summed out by hand: a Gaussian over v of another precision."""
    weights = 0.2 * WEIGHTS
    widths = np.array([0.5, 1.0, 1.5, 0.8])
    model = annealz.LayeredRBM(
        weights, A, B, annealz.GaussianUnits(widths), annealz.GaussianUnits(SCALE), OFFSET
    )
    precision = np.diag(widths**-2) - (weights.T * SCALE**2) @ weights
    linear = B + weights.T @ (SCALE**2 * A)
    wanted = (linear @ np.linalg.solve(precision, linear) + (SCALE**2 * A**2).sum()) / 2
    wanted += (VISIBLE + HIDDEN) / 2 * np.log(2 * np.pi) + np.log(SCALE).sum()
    wanted += OFFSET - np.linalg.slogdet(precision)[1] / 2
    assert exact_log_z(model) == pytest.approx(wanted, abs=1e-5)
    with pytest.raises(ValueError, match="largest singular value must be below 1, got"):
        annealz.LayeredRBM(3 * WEIGHTS, A, B, "gaussian", "gaussian")
    with pytest.raises(ValueError, match="largest singular value"):
        annealz.LayeredRBM(3 * WEIGHTS, A, B, "gaussian", "relu")


def test_gaussian_visible_units_are_those_of_the_gaussian_rbm():
    """In its own words: weights W / s, bias b / s^2, less b^2 / 2 s^2."""
    widths = np.array([0.5, 1.0, 1.5, 0.8])
    own = annealz.GaussianRBM(WEIGHTS, A, B, widths)
    model = annealz.LayeredRBM(
        WEIGHTS / widths,
        A,
        B / widths**2,
        annealz.GaussianUnits(widths),
        offset=-float((B**2 / widths**2).sum() / 2),
    )
    assert exact_log_z(model) == pytest.approx(exact_log_z(own), abs=1e-5)


@pytest.mark.parametrize("case", [("spin", "spin"), ("softmax", "drelu"), ("binary", "relu")])
def test_they_are_written_and_read(case: tuple[str, str], tmp_path: Path):
    model = model_of(*case)
    annealz.save_model(tmp_path / "m.npz", model)
    loaded = annealz.load_model(tmp_path / "m.npz")
    assert loaded.digest == model.digest
    assert exact_log_z(loaded) == exact_log_z(model)


def test_bases_of_spins_come_from_data_of_spins():
    model = model_of("spin", "gaussian")
    rows = np.array([[1, -1, 1, 1], [1, 1, -1, 1], [1, 1, -1, 1]])
    base = model.choose_base("base-rate", rows)
    np.testing.assert_allclose(1 / (1 + np.exp(-base.logits)), [0.8, 0.6, 0.4, 0.8], rtol=1e-5)
    np.testing.assert_allclose(model.choose_base("visible-bias").logits, 2 * B, rtol=1e-6)
    with pytest.raises(ValueError, match="-1 and 1 only"):
        model.choose_base("auto", np.zeros((2, 4)))


REFUSED = {
    "kind": (
        lambda: annealz.LayeredRBM(WEIGHTS, A, B, "spins"),
        "visible must be one of binary, spin",
    ),
    "hidden kind": (
        lambda: annealz.LayeredRBM(WEIGHTS, A, B, hidden="softmax"),
        "hidden must be one of binary, spin, gaussian, relu",
    ),
    "shape": (lambda: annealz.LayeredRBM(WEIGHTS.T, A, B), r"of shape \(3, 4\) by the biases"),
    "scale": (
        lambda: annealz.LayeredRBM(WEIGHTS, A, B, hidden=annealz.ReLUUnits(np.array([1.0, 0, 1]))),
        "scale of the hidden units must be 3 positive numbers",
    ),
    "nan": (
        lambda: annealz.LayeredRBM(
            WEIGHTS, A, B, hidden=annealz.DReLUUnits(np.full(3, np.nan), *SIDES[1:])
        ),
        "must be finite",
    ),
    "marginal": (
        lambda: annealz.estimate_log_z(model_of("binary", "relu"), marginal="hidden"),
        "marginal must be visible, got 'hidden'",
    ),
    "offset": (
        lambda: annealz.LayeredRBM(WEIGHTS, A, B, offset=float("inf")),
        "offset must be a finite number",
    ),
    "data": (
        lambda: model_of("binary", "gaussian").choose_base("auto", np.zeros((2, 3))),
        r"data for a model of 4 visible units must have shape \(rows, 4\)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_a_model_is_refused_in_a_sentence(case: str):
    build, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        build()

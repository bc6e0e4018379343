"""Every family against brute force: log Z, paths, kernels, exact draws, estimates of many seeds.

Energies are written down here a second time, spin by spin, with nothing of the library in them.
"""

import functools
import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import annealz
from annealz.core.random import Stream
from annealz.models.exact import exact_log_z
from annealz.models.formats.load import read_model
from annealz.models.formats.npz import save_model
from annealz.testing import assert_within_mc_error, default_seed
from support.families import MODELS, annealed_columns, arrays, chi_square, grid, joint
from support.places import FIXTURES

NUM_SEEDS = 20


DISCRETE = [name for name in MODELS if name != "gaussian"]
CASES = [(name, marginal) for name, model in MODELS.items() for marginal in model.marginals]
QUICK = {
    ("boltzmann", "visible"),
    ("lattice", "visible"),
    ("dbm", "hidden"),
    ("softmax", "visible"),
    ("full potts", "visible"),
}


def cases(quick, only=None):
    """Every family and marginal; those that are not among the quick ones are slow."""
    marks = [
        pytest.param(*case, marks=() if case in quick else pytest.mark.slow)
        for case in CASES
        if only is None or case[0] in only
    ]
    return pytest.mark.parametrize(("name", "marginal"), marks)


def names(*quick: str):
    """Every family; those that are not among the quick ones are slow."""
    marks = [pytest.param(n, marks=() if n in quick else pytest.mark.slow) for n in MODELS]
    return pytest.mark.parametrize("name", marks)


@functools.cache
def marginal_law(name: str, marginal: str) -> tuple[np.ndarray, np.ndarray]:
    """(states, log p*) of the annealed units, all others summed out."""
    states, energies = joint(name)
    kept = states[:, annealed_columns(name, marginal)]
    unique, index = np.unique(kept, axis=0, return_inverse=True)
    index, peaks = index.ravel(), np.full(len(unique), -np.inf)
    np.maximum.at(peaks, index, energies)
    return unique, peaks + np.log(np.bincount(index, np.exp(energies - peaks[index])))


def path_of(name: str, marginal: str):
    model = MODELS[name]
    return model.path(model.choose_base(), marginal)


@pytest.mark.parametrize("name", DISCRETE)
def test_exact_log_z_is_the_brute_sum(name: str):
    _, energies = joint(name)
    assert exact_log_z(MODELS[name]) == pytest.approx(logsumexp(energies), abs=1e-5)


def test_exact_log_z_of_the_gaussian_rbm_is_the_integral():
    """v given h integrates to a Gaussian: completed squares, hidden state by hidden state."""
    model = MODELS["gaussian"]
    assert isinstance(model, annealz.GaussianRBM)
    weights, hidden_bias, bias, scale = arrays(
        (model.weights, model.hidden_bias, model.visible_bias, model.scale)
    )
    total = []
    for h in grid(2, 2, 2):
        push = h @ weights  # multiplies v / s
        mean = bias + scale * push
        rest = (mean**2 - bias**2) / (2 * scale**2) + np.log(scale * np.sqrt(2 * np.pi))
        total.append(h @ hidden_bias + rest.sum())
    assert model.exact_log_z() == pytest.approx(logsumexp(total), abs=1e-5)


@cases(QUICK, DISCRETE)
def test_the_path_ends_in_the_model_and_starts_in_its_base(name: str, marginal: str):
    states, log_law = marginal_law(name, marginal)
    path = path_of(name, marginal)
    x = np.float32(states)
    np.testing.assert_allclose(evaluate(path, "log_density", x, 1.0), log_law, atol=2e-5)
    assert logsumexp(np.float64(evaluate(path, "log_density", x, 0.0))) == pytest.approx(
        path.log_z0, abs=1e-5
    )


@cases(QUICK | {("gaussian", "visible"), ("gaussian", "hidden")})
def test_slopes_and_ratios_are_those_of_the_density(name: str, marginal: str):
    path = path_of(name, marginal)
    x = eqx.filter_jit(path.sample)(Stream(1, "test").at(0, jnp.arange(50)))

    def derivative(path, x, beta):
        one = jnp.ones_like(beta)
        return jax.jvp(lambda b: path.log_density(x, b), (beta,), (one,))[1]

    for beta in (0.0, 0.3, 0.9):
        slope = eqx.filter_jit(derivative)(path, x, jnp.float32(beta))
        np.testing.assert_allclose(evaluate(path, "slope", x, beta), slope, rtol=2e-4, atol=2e-5)
    for low, high in ((0.1, 0.9), (0.5, 0.50001), (0.9, 0.2)):
        with jax.enable_x64(True):
            double = jax.tree.map(in_double, path)
            at = [evaluate(double, "log_density", np.float64(x), beta) for beta in (low, high)]
            same = evaluate(double, "log_ratio", np.float64(x), low, high)
        np.testing.assert_allclose(same, at[1] - at[0], rtol=1e-6, atol=1e-12)
        change = np.float32(high) - np.float32(low)
        got = evaluate(path, "log_ratio", x, low, high)
        wanted = (at[1] - at[0]) / (high - low)
        np.testing.assert_allclose(got / change, wanted, rtol=2e-3, atol=2e-3)


def in_double(array):
    """Real numbers in float64, indices as they are."""
    array = np.asarray(array)
    return jax.device_put(np.float64(array) if array.dtype.kind == "f" else array)


def evaluate(path, method: str, x, *betas: float) -> np.ndarray:
    """A method of a path, compiled."""
    kind = x.dtype
    given = [np.asarray(beta, kind) for beta in betas]
    return np.asarray(eqx.filter_jit(getattr(type(path), method))(path, x, *given))


@cases(QUICK | {("potts", "visible")}, DISCRETE)
@pytest.mark.parametrize("is_reversed", [False, True])
def test_kernels_leave_the_law_where_it_is(name: str, marginal: str, is_reversed: bool, seed: int):
    """From exact draws of p_beta, one sweep: chi-square of where they are."""
    path, kernel = path_of(name, marginal), MODELS[name].kernel()
    kernel = kernel.reversed() if is_reversed else kernel
    states, _ = marginal_law(name, marginal)
    beta, number = jnp.float32(0.7), 20_000
    log_law = np.float64(evaluate(path, "log_density", np.float32(states), 0.7))
    law = np.exp(log_law - logsumexp(log_law))
    x = states[np.random.default_rng(seed).choice(len(states), number, p=law)]
    bits = Stream(seed, "test").at(1, jnp.arange(number))
    step = eqx.filter_jit(type(kernel).step)
    moved = np.asarray(step(kernel, bits, jnp.asarray(x, jnp.float32), path, beta))
    assert (moved != x).any(-1).mean() > 0.2
    assert chi_square(states, moved, law) > 1e-6


def test_a_checkerboard_that_draws_both_colours_at_once_is_caught(seed: int):
    """Mutant: all units in one block, as if none were coupled."""
    name = "potts lattice"
    path, kernel = path_of(name, "visible"), annealz.ColourGibbs(jnp.arange(8)[None])
    states, log_law = marginal_law(name, "visible")
    law = np.exp(log_law - logsumexp(log_law))
    x = states[np.random.default_rng(seed).choice(len(states), 20_000, p=law)]
    bits = Stream(seed, "test").at(1, jnp.arange(20_000))
    moved = np.asarray(eqx.filter_jit(kernel.step)(bits, np.float32(x), path, jnp.float32(1)))
    assert chi_square(states, moved, law) < 1e-6


def test_gaussian_sweeps_leave_the_moments_where_they_are(seed: int):
    """Real states: means and squares of exact draws before and after sweeps at beta = 1."""
    model = MODELS["gaussian"]
    path, kernel = path_of("gaussian", "visible"), model.kernel()
    x = np.asarray(model.exact_draws(40_000, seed))
    before = np.concatenate([x, x**2], 1)
    sweep = eqx.filter_jit(kernel.step)
    for step in range(3):
        x = sweep(Stream(seed, "test").at(step, jnp.arange(40_000)), x, path, jnp.float32(1))
    x = np.asarray(x)
    after = np.concatenate([x, x**2], 1)
    error = np.sqrt((before.var(0) + after.var(0)) / 40_000)
    assert_within_mc_error(after.mean(0), before.mean(0), error)


@cases(CASES, DISCRETE)
def test_exact_draws_have_the_law(name: str, marginal: str, seed: int):
    states, log_law = marginal_law(name, marginal)
    drawn = MODELS[name].exact_draws(20_000, seed, marginal)
    assert chi_square(states, drawn, np.exp(log_law - logsumexp(log_law))) > 1e-6


@cases({("lattice", "visible"), ("dbm", "hidden"), ("potts", "visible")})
def test_estimates_of_many_seeds(name: str, marginal: str):
    """Must show 1 at small size: within the stated error, 20 seeds, and their spread is as stated."""
    model = MODELS[name]
    exact, path, kernel = exact_log_z(model), path_of(name, marginal), MODELS[name].kernel()
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


@names("potts")
def test_the_front_door_with_two_sides_and_a_folder(name: str, tmp_path: Path, seed: int):
    """The same bits from a folder that is read again, and BAR from exact draws."""
    model, out = MODELS[name], tmp_path / "run"
    result = annealz.estimate_log_z(
        model,
        schedule="linear",
        num_steps=60,
        num_chains=400,
        base=model.flat_base(),
        second_opinion=False,
        two_sided=True,
        seed=seed,
        out=out,
    )
    assert result.plan.draws == "exact"
    assert_within_mc_error(result.log_z, exact_log_z(model), result.std_err)
    again = annealz.resume(out)
    assert again.log_z == result.log_z
    problem = again.plan.problem
    assert problem.model.digest == model.digest
    assert type(problem.kernel) is type(model.kernel())


@pytest.mark.parametrize("name", MODELS)
def test_models_are_written_and_read(name: str, tmp_path: Path):
    save_model(tmp_path / "m.npz", MODELS[name], {"note": "here"})
    loaded, meta = read_model(tmp_path / "m.npz")
    assert loaded.digest == MODELS[name].digest
    assert meta == {"name": "m", "note": "here"}


def test_softmax_rbms_of_the_package_rbms():
    by_rbms = json.loads((FIXTURES / "rbms-log-z.json").read_text())["rbms-potts.h5"]
    for update, log_z in by_rbms.items():
        model, _ = read_model(FIXTURES / "rbms-potts.h5" / update)
        assert isinstance(model, annealz.SoftmaxRBM)
        assert exact_log_z(model) == pytest.approx(log_z, abs=1e-6)


REFUSED = {
    "symmetric": (lambda: annealz.Ising([[0, 1], [2, 0]]), "couplings must be symmetric"),
    "diagonal": (lambda: annealz.Potts(np.eye(3), 3), "zeros on the diagonal"),
    "fields": (lambda: annealz.Ising(np.zeros((3, 3)), [1.0]), r"3 numbers, got shape \(1,\)"),
    "states": (lambda: annealz.Potts(np.zeros((3, 3)), 1), "num_states must be at least 2, got 1"),
    "odd side": (lambda: annealz.SquareIsing(3, 0.1), "even and at least 2, got 3.*Ising.square"),
    "layers": (lambda: annealz.DBM([np.ones((2, 3))], [np.ones(3)]), "one more layer of biases"),
    "dbm": (
        lambda: annealz.DBM([np.ones((2, 3))], [np.ones(2), np.ones(3)]),
        r"weights 0 .* shape \(3, 2\) by the biases, got \(2, 3\)",
    ),
    "scale": (
        lambda: annealz.GaussianRBM(np.ones((2, 3)), np.ones(2), np.ones(3), 0.0),
        "scale must be one positive number",
    ),
    "softmax": (
        lambda: annealz.SoftmaxRBM(np.ones((2, 3)), np.ones(2), np.ones((3, 2))),
        r"\(hidden, visible, states\), here of shape \(2, 3, 2\)",
    ),
    "nan": (lambda: annealz.Ising.square(4, np.nan), "coupling must be finite"),
    "base": (
        lambda: MODELS["potts"].choose_base("base-rate"),
        "the base-rate base needs the training data, or their means",
    ),
    "base size": (
        lambda: MODELS["boltzmann"].choose_base(annealz.BernoulliBase.uniform(3)),
        "the base has 3 units and the model 7",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_model_is_refused_in_a_sentence(case: str):
    build, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        build()

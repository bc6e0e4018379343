"""Paths beside the geometric one: through RBMs, moment-averaged, q-paths; each against enumeration."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import annealz
from annealz.core.random import Stream
from annealz.kernels import BlockGibbs, Metropolised
from annealz.models.exact import exact_log_z
from annealz.models.trajectory import TrajectoryPath
from annealz.paths import GaussianMomentPath, GeometricPath, QPath
from annealz.pilots.moment import _base_moments, fit_moment_path
from annealz.testing import (
    PerfectKernel,
    assert_within_mc_error,
    binary_states,
    log_joint,
    random_rbm,
)
from support.path_examples import BASE, MODEL, PATHS, STAGES, q_path, trajectory
from support.places import FIXTURES

STATES = binary_states(4).astype(np.float32)


every_path = pytest.mark.parametrize("name", PATHS)


def evaluate(path, method: str, x, *betas: float) -> np.ndarray:
    """A method of a path, compiled."""
    given = [np.asarray(beta, x.dtype) for beta in betas]
    return np.asarray(eqx.filter_jit(getattr(type(path), method))(path, x, *given))


@eqx.filter_jit
def _model_at(path, beta):
    return path.model_at(beta)


def evaluate_model(path, beta: float) -> annealz.RBM:
    return _model_at(path, np.asarray(beta, np.float32))


def in_float64(tree):
    return jax.tree.map(lambda a: jax.device_put(np.asarray(a, np.float64)), tree)


@every_path
def test_ends_are_base_and_model(name: str):
    path = PATHS[name][0]()
    end = evaluate(path, "log_density", STATES, 1.0)
    np.testing.assert_allclose(end, logsumexp(log_joint(MODEL), axis=0), atol=1e-5)
    start = np.float64(evaluate(path, "log_density", STATES, 0.0))
    assert logsumexp(start) == pytest.approx(path.log_z0, abs=1e-5)


@every_path
@pytest.mark.parametrize(("low", "high"), [(0.05, 0.1), (0.1, 0.9), (0.5, 0.50001)])
def test_ratios_are_differences_of_the_density(name: str, low: float, high: float):
    """Within a piece, over several knots, and a small step."""
    path = PATHS[name][0]()
    low, high = float(np.float32(low)), float(np.float32(high))
    with jax.enable_x64(True):
        exact, x = in_float64(path), np.float64(STATES)
        wanted = evaluate(exact, "log_density", x, high) - evaluate(exact, "log_density", x, low)
    got = evaluate(path, "log_ratio", STATES, low, high)
    np.testing.assert_allclose(got, wanted, rtol=2e-6, atol=2e-6)


@every_path
def test_many_small_ratios_add_up(name: str):
    """Roundings of the parameters cancel from step to step: 20,000 steps end where one does."""
    path = PATHS[name][0]()
    betas = np.linspace(0, 1, 20_001, dtype=np.float32)

    @eqx.filter_jit
    def all_ratios(path, low, high):
        return jax.vmap(lambda a, b: path.log_ratio(STATES, a, b))(low, high)

    ratios = all_ratios(path, betas[:-1], betas[1:])
    ends = [np.float64(evaluate(path, "log_density", STATES, beta)) for beta in (0.0, 1.0)]
    np.testing.assert_allclose(np.float64(ratios).sum(0), ends[1] - ends[0], atol=1e-4)


def test_slopes_are_differences_of_the_density():
    for make, _ in PATHS.values():
        path = make()
        with jax.enable_x64(True):
            exact, x = in_float64(path), np.float64(STATES)
            ahead = evaluate(exact, "log_density", x, 0.4001)
            behind = evaluate(exact, "log_density", x, 0.3999)
        slopes = evaluate(path, "slope", STATES, 0.4)
        np.testing.assert_allclose(slopes, (ahead - behind) / 2e-4, rtol=1e-3, atol=1e-4)


def test_a_trajectory_passes_through_its_models():
    path = trajectory()
    for knot, model in zip((0.2, 0.6, 1.0), STAGES, strict=True):
        here = evaluate_model(path, knot)
        np.testing.assert_allclose(here.weights, model.weights, rtol=1e-6)
        np.testing.assert_allclose(here.visible_bias, model.visible_bias, rtol=1e-6)


def test_a_straight_trajectory_is_the_geometric_path():
    path, straight = TrajectoryPath(BASE, [MODEL]), GeometricPath(BASE, MODEL)
    for beta in (0.0, 0.3, 1.0):
        np.testing.assert_allclose(
            evaluate(path, "log_density", STATES, beta),
            evaluate(straight, "log_density", STATES, beta),
            atol=1e-5,
        )


def test_a_q_path_near_one_is_geometric_between_the_marginals():
    ends = [evaluate(GeometricPath(BASE, MODEL), "log_density", STATES, b) for b in (0.0, 1.0)]
    path = QPath(GeometricPath(BASE, MODEL), 1 - 1e-4)
    here = evaluate(path, "log_density", STATES, 0.3)
    np.testing.assert_allclose(here, 0.7 * ends[0] + 0.3 * ends[1], atol=2e-3)


@every_path
def test_kernels_leave_the_law_where_it_is(name: str, seed: int):
    path, kernel = PATHS[name][0](), PATHS[name][1]
    log_law = np.float64(evaluate(path, "log_density", STATES, 0.5))
    law = np.exp(log_law - logsumexp(log_law))
    number = 40_000
    x = np.random.default_rng(seed).choice(16, number, p=law)
    bits = Stream(seed, "test").at(1, jnp.arange(number))
    moved = eqx.filter_jit(kernel.step)(bits, STATES[x], path, jnp.float32(0.5))
    landed = (np.asarray(moved) @ 2 ** np.arange(4)).astype(int)
    assert (landed != x).mean() > 0.3
    assert stats.chisquare(np.bincount(landed, minlength=16), law * number).pvalue > 1e-6


def test_proposals_that_are_always_taken_are_caught(seed: int):
    """Mutant: the proposal's own law instead of the q-path's."""
    path = q_path(0.2)
    log_law = np.float64(evaluate(path, "log_density", STATES, 0.5))
    law = np.exp(log_law - logsumexp(log_law))
    x = np.random.default_rng(seed).choice(16, 40_000, p=law)
    bits = Stream(seed, "test").at(1, jnp.arange(40_000))
    moved = eqx.filter_jit(BlockGibbs().step)(bits, STATES[x], path.between, jnp.float32(0.5))
    landed = (np.asarray(moved) @ 2 ** np.arange(4)).astype(int)
    assert stats.chisquare(np.bincount(landed, minlength=16), law * 40_000).pvalue < 1e-6


@pytest.mark.parametrize(
    ("name", "schedule"),
    [
        ("trajectory", "mixing"),
        pytest.param("trajectory", "varopt", marks=pytest.mark.slow),
        pytest.param("q", "mixing", marks=pytest.mark.slow),
        pytest.param("q", "varopt", marks=pytest.mark.slow),
    ],
)
def test_schedules_take_any_path(name: str, schedule: str, seed: int):
    """The front door with a path: its slope comes by forward differentiation."""
    make, kernel = PATHS[name]
    result = annealz.estimate_log_z(
        MODEL,
        path=make(),
        kernel=kernel,
        schedule=schedule,
        num_steps=200,
        num_chains=500,
        seed=seed,
    )
    assert_within_mc_error(result.log_z, exact_log_z(MODEL), result.std_err)


def moments_of(model: annealz.RBM) -> dict[str, np.ndarray]:
    """E[h v^T], E[h] and E[v], by enumeration."""
    joint = log_joint(model)
    law = np.exp(joint - logsumexp(joint))
    h, v = binary_states(model.num_hidden), binary_states(model.num_visible)
    return {"weights": h.T @ law @ v, "hidden_bias": law.sum(1) @ h, "visible_bias": law.sum(0) @ v}


def test_moments_of_the_fit_are_averages(seed: int):
    """At every knot, against enumeration of the fitted RBM: within the noise of 1000 chains."""
    fit = fit_moment_path(
        BASE,
        MODEL,
        num_knots=3,
        num_chains=1000,
        num_updates=300,
        num_pilot_steps=100,
        rate=0.5,
        seed=seed,
    )
    assert fit.sweeps == 1000 * (2 * 100 + 3 * 300)
    start, end = _base_moments(BASE, 3), moments_of(MODEL)
    for knot in (0.25, 0.5, 0.75):
        here = moments_of(evaluate_model(fit.path, knot))
        for key, value in here.items():
            wanted = (1 - knot) * np.asarray(getattr(start, key)) + knot * end[key]
            np.testing.assert_allclose(value, wanted, atol=5 * np.sqrt(0.25 / 1000))


def test_the_moment_path_of_gaussians(seed: int):
    """Moments of exact draws, digits of the ratio, and the log Z that was put in."""
    base = annealz.GaussianBase.from_moments([0.0, 1.0], [1.0, 0.25])
    covariance = np.array([[0.3, 0.1], [0.1, 0.2]])
    path = GaussianMomentPath(base, [3.0, -1.0], covariance, log_z=5.0)
    bits = Stream(seed, "test").at(0, jnp.arange(40_000))
    draws = np.asarray(jax.jit(lambda bits: path.draw(bits, jnp.float32(0.3)))(bits))
    apart = np.array([3.0, -2.0])
    mean = np.array([0.9, 0.4])
    wide = 0.7 * np.diag([1, 0.25]) + 0.3 * covariance + 0.21 * np.outer(apart, apart)
    assert_within_mc_error(np.float64(draws).mean(0), mean, np.sqrt(np.diag(wide) / 40_000))
    np.testing.assert_allclose(np.cov(draws.T), wide, rtol=0.1)
    x = draws[:20]
    for low, high in ((0.2, 0.7), (0.5, 0.50001)):
        with jax.enable_x64(True):
            exact = in_float64(path)
            at = [evaluate(exact, "log_density", np.float64(x), b) for b in (low, high)]
        got = evaluate(path, "log_ratio", x, low, high)
        change = float(np.float32(high) - np.float32(low))
        np.testing.assert_allclose(
            got / change, (at[1] - at[0]) / (high - low), rtol=3e-3, atol=1e-2
        )
    run = annealz.anneal(path, PerfectKernel(), annealz.linear(100), num_chains=1000, seed=seed)
    weights = np.exp(run.log_weights - run.log_weights.max())
    log_z = run.log_z0 + run.log_weights.max() + np.log(weights.mean())
    assert_within_mc_error(log_z, 5.0, weights.std() / weights.mean() / np.sqrt(1000))


def test_a_path_through_the_updates_of_a_training(seed: int):
    """Through the three updates that rbms kept in its file."""
    file = FIXTURES / "rbms-binary.h5"
    models = annealz.load_trajectory(file)
    path = TrajectoryPath(annealz.BernoulliBase.uniform(16), models)
    result = annealz.estimate_log_z(
        models[-1], path=path, schedule="linear", num_steps=300, num_chains=500, seed=seed
    )
    assert_within_mc_error(result.log_z, exact_log_z(models[-1]), result.std_err)


REFUSED = {
    "q": (lambda: QPath(GeometricPath(BASE, MODEL), 1.0), "q must be from 0 to below 1, got 1.0"),
    "none": (lambda: TrajectoryPath(BASE, []), "one RBM at least"),
    "shapes": (
        lambda: TrajectoryPath(BASE, [random_rbm(2, 4), MODEL]),
        r"one shape with 4 visible units.*\(2, 4\), \(3, 4\)",
    ),
    "knots": (
        lambda: TrajectoryPath(BASE, STAGES, [0.5, 0.2, 1]),
        "3 betas that rise from above 0",
    ),
    "irreversible": (
        lambda: Metropolised(annealz.ColourGibbs(jnp.arange(4)[:, None])),
        "reversible kernel, got ColourGibbs",
    ),
    "knot count": (
        lambda: fit_moment_path(BASE, MODEL, num_knots=0),
        "num_knots must be at least 1",
    ),
    "covariance": (
        lambda: GaussianMomentPath(annealz.GaussianBase.standard(1), [0.0], [[-1.0]]),
        "symmetric and positive definite",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_path_is_refused_in_a_sentence(case: str):
    build, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        build()


@eqx.filter_jit
def sample(path, bits):
    return path.sample(bits)


@pytest.mark.parametrize("q", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("shift", [-60.0, -18.0, -1.0, 0.0, 1.0, 20.0, 95.0])
def test_a_q_path_keeps_its_digits_wherever_its_ends_are(q: float, shift: float, seed: int):
    """Ratios and slopes against float64, ends far below and far above each other, beta up to 1."""
    straight = GeometricPath(BASE, MODEL)
    x = np.asarray(sample(straight, Stream(seed, "q").at(0, np.arange(5))))
    ends = np.float64(evaluate(straight, "log_ratio", x, 0.0, 1.0))
    path = QPath(straight, q, log_scale=float(ends[0]) - shift)
    gap = (1 - q) * (ends - float(path.log_scale))
    for low, high in ((0.0, 1e-3), (0.3, 0.301), (0.99, 1.0), (0.0, 1.0)):
        above = [np.logaddexp(np.log1p(-b) if b < 1 else -np.inf, np.log(b) + gap if b else -np.inf)
                 for b in (low, high)]  # fmt: skip
        found = np.float64(evaluate(path, "log_ratio", x, low, high))
        exact = (above[1] - above[0]) / (1 - q)
        assert found == pytest.approx(exact, rel=2e-4, abs=2e-5 * (1 + abs(shift)) / (1 - q))
    beta = 0.4
    slope = np.expm1(gap) / (1 - beta + beta * np.exp(gap)) / (1 - q)
    assert evaluate(path, "slope", x, beta) == pytest.approx(slope, rel=1e-3)

"""Paths beside the geometric one, against enumeration."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import annealz
from annealz.core.random import Stream
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.exact import exact_log_z
from annealz.models.trajectory import TrajectoryPath
from annealz.paths.geometric import GeometricPath
from annealz.pilots.moment import _base_moments, fit_moment_path
from annealz.testing import (
    assert_within_mc_error,
    binary_states,
    log_joint,
    random_rbm,
)
from support.path_examples import BASE, MODEL, STAGES, trajectory
from support.places import FIXTURES

STATES = binary_states(4).astype(np.float32)


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


def test_ends_are_base_and_model():
    path = trajectory()
    end = evaluate(path, "log_density", STATES, 1.0)
    np.testing.assert_allclose(end, logsumexp(log_joint(MODEL), axis=0), atol=1e-5)
    start = np.float64(evaluate(path, "log_density", STATES, 0.0))
    assert logsumexp(start) == pytest.approx(path.log_z0, abs=1e-5)


@pytest.mark.parametrize(("low", "high"), [(0.05, 0.1), (0.1, 0.9), (0.5, 0.50001)])
def test_ratios_are_differences_of_the_density(low: float, high: float):
    """Within a piece, over several knots, and a small step."""
    path = trajectory()
    low, high = float(np.float32(low)), float(np.float32(high))
    with jax.enable_x64(True):
        exact, x = in_float64(path), np.float64(STATES)
        wanted = evaluate(exact, "log_density", x, high) - evaluate(exact, "log_density", x, low)
    got = evaluate(path, "log_ratio", STATES, low, high)
    np.testing.assert_allclose(got, wanted, rtol=2e-6, atol=2e-6)


def test_many_small_ratios_add_up():
    """Roundings of the parameters cancel from step to step: 20,000 steps end where one does."""
    path = trajectory()
    betas = np.linspace(0, 1, 20_001, dtype=np.float32)

    @eqx.filter_jit
    def all_ratios(path, low, high):
        return jax.vmap(lambda a, b: path.log_ratio(STATES, a, b))(low, high)

    ratios = all_ratios(path, betas[:-1], betas[1:])
    ends = [np.float64(evaluate(path, "log_density", STATES, beta)) for beta in (0.0, 1.0)]
    np.testing.assert_allclose(np.float64(ratios).sum(0), ends[1] - ends[0], atol=1e-4)


def test_slopes_are_differences_of_the_density():
    path = trajectory()
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


def test_kernels_leave_the_law_where_it_is(seed: int):
    path, kernel = trajectory(), BlockGibbs()
    log_law = np.float64(evaluate(path, "log_density", STATES, 0.5))
    law = np.exp(log_law - logsumexp(log_law))
    number = 40_000
    x = np.random.default_rng(seed).choice(16, number, p=law)
    bits = Stream(seed, "test").at(1, jnp.arange(number))
    moved = eqx.filter_jit(kernel.step)(bits, STATES[x], path, jnp.float32(0.5))
    landed = (np.asarray(moved) @ 2 ** np.arange(4)).astype(int)
    assert (landed != x).mean() > 0.3
    assert stats.chisquare(np.bincount(landed, minlength=16), law * number).pvalue > 1e-6


@pytest.mark.parametrize("schedule", ["mixing", pytest.param("varopt", marks=pytest.mark.slow)])
def test_schedules_take_any_path(schedule: str, seed: int):
    """The front door with a path: its slope comes by forward differentiation."""
    result = annealz.estimate_log_z(
        MODEL,
        path=trajectory(),
        kernel=BlockGibbs(),
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
    "none": (lambda: TrajectoryPath(BASE, []), "one RBM at least"),
    "shapes": (
        lambda: TrajectoryPath(BASE, [random_rbm(2, 4), MODEL]),
        r"one shape with 4 visible units.*\(2, 4\), \(3, 4\)",
    ),
    "knots": (
        lambda: TrajectoryPath(BASE, STAGES, [0.5, 0.2, 1]),
        "3 betas that rise from above 0",
    ),
    "knot count": (
        lambda: fit_moment_path(BASE, MODEL, num_knots=0),
        "num_knots must be at least 1",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_path_is_refused_in_a_sentence(case: str):
    build, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        build()

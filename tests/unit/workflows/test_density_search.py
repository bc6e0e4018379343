"""The search for bases of a density: modes, improper targets, what is charged, defaults."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import logsumexp

import annealz
from annealz.bases.fit_mixture import fit_gaussians
from annealz.diagnostics.findings import Kind
from annealz.diagnostics.status import Status
from annealz.pilots.densities import search
from annealz.pilots.densities.evaluator import Evaluator
from annealz.pilots.densities.findings import improper_direction
from annealz.pilots.densities.modes import find_modes, start_points
from annealz.pilots.densities.population import explore
from support.counted import Counted

GAUSSIAN = annealz.LogDensity(lambda x: -0.5 * jnp.sum(x**2), dim=2, name="gaussian")


def spike(x):
    """A narrow Gaussian inside a wide one, of equal mass."""
    away = x - jnp.array([0.1, 0.0])
    narrow = -0.5 * jnp.sum(away**2) / 0.01**2 - 2 * np.log(0.01)
    return logsumexp(jnp.array([-0.5 * jnp.sum(x**2), narrow]))


def test_a_narrow_mode_inside_a_wide_one_is_another_mode():
    evaluator = Evaluator(annealz.LogDensity(spike, dim=2))
    wide = find_modes(evaluator, np.array([[1.0, 1.0]]))
    assert len(wide) == 1
    both = find_modes(evaluator, np.array([[0.11, 0.0]]), wide)
    assert len(both) == 2
    for mode in both:  # half of Z = 4 pi each
        assert abs(mode.evidence - np.log(2 * np.pi)) < 0.01
    assert both[0].is_same(both[0].place, both[0].value)
    assert find_modes(evaluator, np.array([[0.11, 0.0]]), both) == both  # once each


def test_starts_depend_on_the_seed_and_lie_in_the_support():
    evaluator = Evaluator(GAUSSIAN)
    one, two = start_points(evaluator, 1), start_points(evaluator, 2)
    assert not np.allclose(one, two)
    assert np.abs(one).max() > 16
    corner = annealz.LogDensity(
        lambda x: jnp.where(jnp.all(x > 0.3), -jnp.sum(x), -jnp.inf), dim=4, name="corner"
    )
    evaluator = Evaluator(corner)
    assert np.isfinite(evaluator.values(start_points(evaluator, 1))).any()


@pytest.mark.parametrize(
    ("fn", "is_improper"),
    [
        (lambda x: -0.5 * jnp.sum(x**2), False),
        (lambda x: -jnp.sum(jnp.log1p(x**2)), False),  # Cauchy
        (lambda x: -0.5 * (x[0] - x[1]) ** 2, True),  # flat along (1, 1)
        (lambda x: -x[0] - 0.5 * x[1] ** 2, True),
        (lambda x: -0.5 * jnp.sum(jnp.log1p(x**2)), True),  # falls as 1 / r
        (
            lambda x: -0.75 * jnp.log1p(jnp.sum(x**2)),
            True,
        ),  # as r^-1.5: along no line, but in shells
        (lambda x: -1.25 * jnp.log1p(jnp.sum(x**2)), False),  # as r^-2.5
    ],
    ids=["gaussian", "cauchy", "flat", "slope", "tail", "shells", "student"],
)
def test_densities_without_an_integral_are_seen(fn, is_improper):
    evaluator = Evaluator(annealz.LogDensity(fn, dim=2))
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(40, 2)) @ np.array([[3.0, 2.9], [0.0, 1.0]])
    modes = find_modes(evaluator, np.zeros((1, 2)))
    direction = improper_direction(evaluator, rows, modes, generator)
    assert (direction is not None) == is_improper


def test_several_gaussians_are_distinguished():
    generator = np.random.default_rng(0)
    rows = np.concatenate([generator.normal(0, 1, (300, 2)), generator.normal(20, 2, (100, 2))])
    fit = fit_gaussians(rows, 2, generator)
    order = np.argsort(fit.means[:, 0])
    np.testing.assert_allclose(fit.weights[order], [0.75, 0.25], atol=0.01)
    np.testing.assert_allclose(fit.means[order], [[0, 0], [20, 20]], atol=0.7)
    scales = np.sqrt(np.diagonal(fit.covariances[order], axis1=1, axis2=2))
    np.testing.assert_allclose(scales, [[1, 1], [2, 2]], rtol=0.2)


@pytest.mark.parametrize(
    ("kernel", "each"),
    [
        (annealz.HAIS(step_size=0.5), 1),
        (annealz.HMC(3, step_size=0.5), 3),
        (annealz.RandomWalk(step_size=0.5), 1),
    ],
    ids=["hais", "hmc", "walk"],
)
def test_evaluations_of_a_run_are_those_that_are_made(kernel, each):
    count = 0

    def counted(x):
        nonlocal count
        count += 1

    def fn(x):
        jax.debug.callback(counted, x)
        return -0.5 * jnp.sum((x - 1) ** 2)

    model = annealz.LogDensity(fn, dim=2)
    path = kernel.extend(model.path(annealz.GaussianBase.standard(2)))
    jax.effects_barrier()
    count = 0
    annealz.anneal(path, kernel, annealz.linear(7), num_chains=5)
    jax.effects_barrier()
    assert count == 5 * 7 * each + 5


def test_a_default_run_of_a_function_on_the_host():
    """Right, and evaluations of all pilots are those that are made."""
    count = 0

    def fn(x):  # NumPy: called on the host
        nonlocal count
        count += 1
        return float(-0.5 * np.sum(np.asarray(x, np.float64) ** 2))

    model = annealz.LogDensity(fn, dim=1, name="counted")
    assert not model.is_differentiable
    count = 0
    estimate = annealz.estimate_log_z(model, seed=3)
    assert count == sum(estimate.evaluations.values()) < 50_000
    assert isinstance(model.kernel(), annealz.RandomWalk)
    assert estimate.status is Status.OK
    assert abs(estimate.log_z - 0.5 * np.log(2 * np.pi)) < 5 * estimate.std_err


def test_a_population_without_weight_is_charged():
    fn = Counted(lambda x: jnp.where(jnp.abs(x[0]) < 1, 0.0, -jnp.inf))
    evaluator = Evaluator(annealz.LogDensity(fn, dim=1, is_differentiable=False))
    origins = (annealz.GaussianBase.from_moments([9.0], [[0.1]]), annealz.GaussianBase.standard(1))
    found = search._explored(evaluator, annealz.RandomWalk(), origins, 0, is_straight=False)
    assert [origin.mean[0] for origin, _ in found] == [0]
    assert evaluator.evaluations > 100  # of the one that was lost
    assert evaluator.evaluations + found[0][1].evaluations == fn.since()


def test_many_hot_chains_are_thinned_and_counted():
    """More than are kept at beta = 1: every evaluation is charged once."""
    count = 0

    def fn(x):
        nonlocal count
        count += len(x)
        return -0.5 * np.sum(np.asarray(x, np.float64) ** 2, -1)

    model = annealz.LogDensity(fn, dim=1, vectorized=True)
    kernel = model.kernel()
    path = kernel.extend(model.path(annealz.GaussianBase.from_moments([0.0], [[4.0]])))
    jax.effects_barrier()
    count = 0
    found = explore(path, kernel, seed=1, budget=4_000, num_chains=400)
    assert count == found.evaluations
    assert found.sample.rows.shape[1] == 384
    assert abs(found.sample.rows.var() - 1) < 0.2


@pytest.mark.parametrize(
    ("dim", "is_straight", "chains"),
    [(2, False, 51), (4, False, 320), (9, False, 640), (4, True, 128), (9, True, 384)],
)
def test_how_many_chains_are_hot(monkeypatch, dim, is_straight, chains):
    asked = []
    monkeypatch.setattr(search, "explore", lambda *_, **options: asked.append(options))
    model = annealz.LogDensity(lambda x: -0.5 * jnp.sum(x**2), dim=dim)
    origins = (annealz.GaussianBase.standard(dim),) * 2
    search._explored(Evaluator(model), annealz.HAIS(), origins, 0, is_straight)
    assert [one["num_chains"] for one in asked] == [None, chains]


def test_a_default_run_of_an_easy_density(compiled: list[str]):
    estimate = annealz.estimate_log_z(GAUSSIAN, seed=1)
    assert len(compiled) < 45  # 34 in a fresh process
    assert not {"jit(add)", "jit(dynamic_slice)", "jit(multiply)"} & set(compiled)  # no eager ones
    assert estimate.status is Status.OK
    assert abs(estimate.log_z - np.log(2 * np.pi)) < 5 * estimate.std_err
    assert sum(estimate.evaluations.values()) < 50_000
    assert estimate.second_opinion is not None
    assert estimate.second_opinion.base == "wide"


def test_a_wide_and_a_narrow_state_are_never_ok():
    """A mode that no chain entered is found uphill, and all that this took is charged."""
    fn = Counted(spike)
    model = annealz.LogDensity(fn, dim=2, name="spike")
    estimate = annealz.estimate_log_z(
        model, schedule="linear", num_steps=50, num_chains=50, seed=1, second_opinion=False
    )
    assert estimate.status is Status.UNRELIABLE
    assert {Kind.MISSED_MODE, Kind.TWO_KINDS} & estimate.findings.keys()
    assert sum(estimate.evaluations.values()) == fn.since()
    assert any('method="nested"' in message for message in estimate.messages)


def test_no_density_outside_of_a_support_is_no_weight():
    model = annealz.LogDensity(
        lambda x: jnp.where(x[0] > 0, -0.5 * x[0] ** 2, -jnp.inf), dim=1, name="half"
    )
    estimate = annealz.estimate_log_z(
        model,
        base="standard",
        kernel=annealz.HAIS(step_size=0.5),
        schedule="linear",
        num_steps=20,
        num_chains=400,
    )
    dead = float((estimate.log_weights < -1e5).mean())
    assert abs(dead - 0.5) < 6 * np.sqrt(0.25 / 400)
    assert abs(estimate.log_z - 0.5 * np.log(np.pi / 2)) < 5 * estimate.std_err
    assert estimate.status is Status.OK


def test_nan_is_an_error_that_names_what_to_do():
    model = annealz.LogDensity(lambda x: jnp.log(x[0]) - x[0], dim=1, name="careless")
    with pytest.raises(ValueError, match="return -inf where the density is zero"):
        annealz.estimate_log_z(
            model,
            base="standard",
            kernel=annealz.HAIS(step_size=0.5),
            schedule="linear",
            num_steps=20,
            num_chains=40,
        )

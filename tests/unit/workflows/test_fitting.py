"""Which base is fitted to a sample of a density."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

import annealz
from annealz.pilots.densities.evaluator import Evaluator
from annealz.pilots.densities.fitting import fitted_base, squared_length
from annealz.pilots.densities.modes import find_modes
from annealz.pilots.densities.population import Sample


@pytest.mark.parametrize("ratio", [1.5, 4.0, 100.0])
def test_length_is_exact_for_gaussians_of_two_widths(ratio):
    """From N(0, r) to N(0, 1): sd of U is (1 - 1/r) / sqrt 2 times the variance at beta."""

    def root(beta):
        return (1 - 1 / ratio) / np.sqrt(2) / (beta + (1 - beta) / ratio)

    length = quad(root, 0, 1, epsabs=1e-12)[0]
    assert squared_length(root(1), root(0)) == pytest.approx(length**2, rel=1e-9)


def test_a_base_whose_draws_look_well_is_not_believed():
    assert squared_length(20.0, 0.1) == 400  # narrow: its own draws miss what it misses
    assert squared_length(0.0, 1.0) == 0
    assert squared_length(1.0, 1.0 + 1e-12) == pytest.approx(1)


def sample_of(rows: np.ndarray, fn, sweeps: int = 4) -> Sample:
    """Independent rows as if they were chains."""
    values = np.asarray(jnp.stack([fn(row) for row in jnp.asarray(rows)]), np.float64)
    shape = sweeps, len(rows) // sweeps
    return Sample(rows.reshape(*shape, -1), values.reshape(shape), 0.0)


def chosen(fn, rows: np.ndarray, name: str = "auto"):
    evaluator = Evaluator(annealz.LogDensity(fn, dim=rows.shape[1]))
    modes = find_modes(evaluator, rows[:4])
    before = evaluator.evaluations
    sample = sample_of(rows, fn)
    base = fitted_base(evaluator, modes, sample, name, np.random.default_rng(1), False)
    return base, evaluator.evaluations - before


def test_a_gaussian_in_many_dimensions_gets_no_tails():
    """Student's t fits the shell where its mass is, and takes ten times as many steps from its tails."""
    dim, generator = 30, np.random.default_rng(0)
    base, evaluations = chosen(lambda x: -0.5 * jnp.sum(x**2), generator.normal(size=(800, dim)))
    assert base.name == "laplace"
    assert evaluations == 128  # a perfect fit: no others are looked at


def test_heavy_tails_get_a_base_with_tails():
    generator = np.random.default_rng(0)
    rows = generator.standard_t(2, size=(800, 1)) * np.ones((1, 1))
    base, evaluations = chosen(lambda x: -1.5 * jnp.log1p(jnp.sum(x**2) / 2), rows)
    assert getattr(base, "dof", 0) or getattr(base, "num_components", 1) > 1
    assert evaluations > 128


def test_two_modes_get_two_components_with_their_weights():
    generator = np.random.default_rng(0)
    rows = np.concatenate([generator.normal(-8, 1, (300, 1)), generator.normal(8, 1, (100, 1))])
    rows = generator.permutation(rows)

    def fn(x):
        return jnp.logaddexp(
            jnp.log(3.0) - 0.5 * jnp.sum((x + 8) ** 2), -0.5 * jnp.sum((x - 8) ** 2)
        )

    base, _ = chosen(fn, rows)
    assert base.num_components == 2
    weights = np.sort(np.exp(np.asarray(base.log_weights, float)))
    np.testing.assert_allclose(weights[weights > 0], [0.25, 0.75], atol=0.15)  # by 128 draws


@pytest.mark.parametrize("name", ["laplace", "pilot", "mixture"])
def test_a_base_that_is_asked_for(name):
    rows = np.random.default_rng(0).normal(size=(400, 2))
    base, _ = chosen(lambda x: -0.5 * jnp.sum(x**2), rows, name)
    assert base.name == name

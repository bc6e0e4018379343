"""Functions of NumPy: recognised, called in batches in float64, their failures in one sentence."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import annealz
from annealz.models.functions import JaxFunction
from annealz.models.host_function import HostFunction
from annealz.testing import assert_within_mc_error

RUN = {
    "base": "standard",
    "kernel": annealz.RandomWalk(0.7),
    "schedule": "linear",
    "num_steps": 50,
    "num_chains": 50,
    "second_opinion": False,
}


def bell(x):
    return -0.5 * np.dot(x - 1, x - 1)


def bells(x):
    return -0.5 * np.einsum("ij,ij->i", np.asarray(x) - 1, x - 1)


@pytest.mark.parametrize(
    ("fn", "kind"),
    [
        (bell, HostFunction),
        (lambda x: -0.5 * math.exp(x[0]) - float(x[1]), HostFunction),
        (lambda x: 0.0 if x[0] > 0 else -np.inf, HostFunction),
        (lambda x: -0.5 * jnp.dot(x, x), JaxFunction),
        (lambda x: -0.5 * ((x - np.ones(2)) ** 2).sum(), JaxFunction),
        (lambda x: 0.0, JaxFunction),
    ],
)
def test_functions_are_recognised(fn, kind):
    model = annealz.LogDensity(fn, 2)
    assert isinstance(model.fn, kind)
    assert model.is_differentiable == (kind is JaxFunction)
    assert (model.note is None) == (kind is JaxFunction)


def test_values_are_computed_in_float64_and_the_offset_is_subtracted_there():
    model = annealz.LogDensity(lambda x: 1e9 + bell(np.asarray(x)), 2)
    x = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    exact = -0.5 * ((np.float64(x) - 1) ** 2).sum(1)
    near = jax.jit(lambda x: model.log_density(x, 1e9))(x)
    np.testing.assert_allclose(near, exact, atol=3e-7)
    shifted = jax.jit(lambda x, c: model.log_density(x, c))(x, jnp.float32(1e9))
    np.testing.assert_allclose(shifted, exact, atol=3e-7)
    assert not jax.config.jax_enable_x64
    with pytest.raises(ValueError, match="has no gradient: take kernel=annealz.RandomWalk"):
        model.value_and_gradient(x)


@pytest.mark.parametrize("vectorized", [False, True])
def test_chains_are_evaluated_by_one_call_of_the_host(vectorized):
    shapes = []

    def counted(x):
        shapes.append(np.shape(x))
        return bells(x) if vectorized else bell(x)

    model = annealz.LogDensity(counted, 2, vectorized=vectorized)
    program = jax.jit(model.log_density)
    x = np.arange(14, dtype=np.float32).reshape(7, 2)
    program(x).block_until_ready()
    shapes.clear()
    np.testing.assert_allclose(program(x), [bell(row) for row in x], rtol=1e-6)
    assert shapes == ([(7, 2)] if vectorized else 7 * [(2,)])


def test_the_evidence_of_a_numpy_function(seed):
    model = annealz.LogDensity(bells, 2, vectorized=True)
    estimate = annealz.estimate_log_z(model, seed=seed, **RUN)
    assert_within_mc_error(estimate.log_z, np.log(2 * np.pi), estimate.std_err)


def late(x):
    if np.asarray(x)[0] > 0.5:
        raise KeyError("late")
    return 0.0


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (late, r"fn of density-2 raised KeyError: 'late' at \["),
        (lambda x: np.nan if x[0] > 0 else 0.0, r"real number or -inf, got NaN at \["),
        (lambda x: np.inf if x[0] > 0 else 0.0, r"real number or -inf, got \+inf at \["),
        (lambda x: np.asarray(x), r"must return one real number, got shape \(2,\)"),
        (lambda x: str(np.asarray(x)), "must return one real number, got str"),
    ],
)
def test_what_goes_wrong_in_a_run_is_one_sentence(fn, words, caplog):
    model = annealz.LogDensity(fn, 2)
    with pytest.raises(ValueError, match=words) as caught:
        annealz.estimate_log_z(model, **RUN)
    assert "\n" not in str(caught.value)
    assert not caplog.records


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (lambda x: float(jnp.sum(x)), "mixes JAX with Python numbers or NumPy"),
        (lambda x: 0.0 if jnp.sum(x) > 0 else 1.0, "mixes JAX with Python numbers or NumPy"),
        (lambda x: np.exp(jnp.sum(x)), "mixes JAX with Python numbers or NumPy"),
        (lambda x: np.dot(x, np.ones(3)), r"position of shape \(2,\), and it failed on one: Value"),
        (lambda x: {}["a"], "failed on one: KeyError: 'a'"),
        (lambda x: None, "must return one real number, .* got None"),
        (lambda x: x.sum() + 1j, "must return one real number"),
        (lambda x: x["mean"], "looks parameters up by name .*: give an example of them"),
    ],
)
def test_what_neither_computes_is_refused_in_words(fn, words):
    with pytest.raises(ValueError, match=words) as caught:
        annealz.LogDensity(fn, 2)
    assert "\n" not in str(caught.value)


def test_the_digest_knows_code_and_data():
    def make(shift, scale=1.0):
        return annealz.LogDensity(lambda x: -np.dot(x - shift, x - shift) * scale, 2)

    first = make(np.array([0.0, 1.0]))
    assert first.digest == make(np.array([0.0, 1.0])).digest
    assert first.digest != make(np.array([0.0, 2.0])).digest
    assert first.digest != make(np.array([0.0, 1.0]), 2.0).digest
    assert first.digest != annealz.LogDensity(bell, 2).digest

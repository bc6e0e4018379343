"""Densities in float64, as parts of float32 programs; the error of float32."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import annealz

DATA = 100 + np.random.default_rng(0).normal(size=200_000)
INDEX = np.array([0, 1, 1])


def log_density(x):
    """Of a mean and a log deviation: a sum near -10^5, with indexing and a matrix."""
    mean, log_scale = 100 + x[0] / 100, x[1] / 100
    deviations = jnp.sum((DATA - mean) ** 2) / 2 * jnp.exp(-2 * log_scale)
    ridge = jnp.linalg.cholesky(jnp.eye(2) + jnp.outer(x, x))[1, 1]
    return -deviations - DATA.size * log_scale - 0.1 * (x[INDEX] ** 2).sum() - jnp.log(ridge)


def in_numpy(x):
    x = np.float64(x)
    mean, log_scale = 100 + x[:, 0] / 100, x[:, 1] / 100
    square = ((DATA - DATA.mean()) ** 2).sum() + DATA.size * (mean - DATA.mean()) ** 2
    ridge = np.log((1 + x[:, 0] ** 2 + x[:, 1] ** 2) / (1 + x[:, 0] ** 2)) / 2
    prior = 0.1 * (x[:, INDEX] ** 2).sum(1)
    return -square / 2 * np.exp(-2 * log_scale) - DATA.size * log_scale - prior - ridge


MODEL = annealz.LogDensity(log_density, 2, dtype="float64")
X = np.random.default_rng(1).normal(size=(4, 2)).astype(np.float32)
OFFSET = float(in_numpy(np.zeros((1, 2)))[0])


def slopes():
    steps = 1e-4 * np.eye(2)
    return np.stack([(in_numpy(X + e) - in_numpy(X - e)) / 2e-4 for e in steps], 1)


def test_values_keep_digits_that_float32_loses():
    exact = in_numpy(X) - OFFSET
    values = jax.jit(lambda x: MODEL.log_density(x, OFFSET))(X)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, exact, atol=2e-6 * np.abs(exact).max())
    single = annealz.LogDensity(log_density, 2)
    assert MODEL.rounding(X) == 0
    assert single.rounding(X) > 1e-3
    assert annealz.LogDensity(lambda x: -0.5 * (x**2).sum(), 2).rounding(X) < 1e-6


def test_gradients_inside_every_kind_of_program():
    exact = slopes()

    def gradient(x):
        return MODEL.value_and_gradient(x, OFFSET)[1]

    def by_itself(x):
        return jax.grad(lambda x: MODEL.log_density(x, OFFSET).sum())(x)

    def in_scan(x):
        return jax.lax.scan(lambda c, _: (c, gradient(c)), x, jnp.arange(2))[1][-1]

    def in_while(x):
        loop = (jnp.int32(0), x, jnp.zeros_like(x))
        return jax.lax.while_loop(
            lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1], gradient(s[1])), loop
        )[2]

    together = jax.jit(lambda x: [f(x) for f in (gradient, by_itself, in_scan, in_while)])(X)
    for found in together:
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-3)
    matrix = jax.jit(jax.hessian(MODEL.fn))(X[0])
    np.testing.assert_allclose(matrix, np.asarray(matrix).T, atol=1e-3)
    np.testing.assert_allclose(matrix[0, 0], -20 * np.exp(-X[0, 1] / 50), rtol=0.1)


@pytest.mark.parametrize("is_double_first", [True, False])
def test_both_precisions_of_one_array_do_not_mix(is_double_first):
    shift, scales = np.array([1.0, -0.5]) / 3, {"a": np.array([1 / 3, 2.0])}

    def bell(x):
        return -0.5 * (((x - shift) * scales["a"]) ** 2).sum()

    exact = -0.5 * (((np.float64(X) - shift) * scales["a"]) ** 2).sum(1)
    kinds = ["float64", "float32"] if is_double_first else ["float32", "float64"]
    models = [annealz.LogDensity(bell, 2, dtype=kind) for kind in kinds]
    programs = [jax.jit(lambda x, model=model: model.log_density(x, -1e-3)) for model in models]
    for program in programs:
        np.testing.assert_allclose(program(X), exact + 1e-3, rtol=1e-6)
    assert "f64" not in str(jax.make_jaxpr(programs[kinds.index("float32")])(X))
    assert "f64[2]" in str(jax.make_jaxpr(programs[kinds.index("float64")])(X))
    assert 0 < models[kinds.index("float32")].rounding(X) < 1e-6


def test_the_flag_of_jax_stays_as_it_is():
    assert not jax.config.jax_enable_x64
    assert jnp.ones(2).dtype == np.float32
    assert MODEL.digest != annealz.LogDensity(log_density, 2).digest


@pytest.mark.parametrize("dtype", ["float16", "double precision", np.int32])
def test_other_types_are_refused(dtype):
    with pytest.raises(ValueError, match="dtype must be 'float32' or 'float64'"):
        annealz.LogDensity(log_density, 2, dtype=dtype)


def test_what_jax_cannot_compile_in_float64_is_refused_in_words():
    model = annealz.LogDensity(lambda x: jax.scipy.special.i0e(x[0]), 2, dtype="float64")
    with (
        pytest.warns(UserWarning, match="float64"),
        pytest.raises(ValueError, match="float32 program"),
    ):
        model.check()

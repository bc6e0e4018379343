"""Parameters as pytrees: densities of dictionaries, of JAX and of NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import annealz

EXAMPLE = {"mean": 0.0, "group": {"effects": np.zeros((2, 2)), "scale": 1.0}}
NAMES = ("group.effects", "group.scale", "mean")


def log_density(p):
    return (
        -0.5 * (p["mean"] - 1) ** 2
        - (p["group"]["effects"] ** 2).sum()
        - abs(p["group"]["scale"] - 3)
    )


def by_numpy(p):
    assert isinstance(p["group"]["effects"], np.ndarray)
    return float(log_density(p))


@pytest.mark.parametrize("fn", [log_density, by_numpy])
def test_a_function_takes_the_pytree(fn):
    model = annealz.LogDensity(fn, EXAMPLE)
    assert (model.dim, model.parameters.names) == (6, NAMES)
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    exact = [-0.5 * (r[5] - 1) ** 2 - (r[:4] ** 2).sum() - abs(r[4] - 3) for r in x]
    np.testing.assert_allclose(jax.jit(model.log_density)(x), exact, rtol=1e-6)


def test_many_positions_at_once():
    model = annealz.LogDensity(
        lambda p: p["a"] * p["b"].sum(-1), {"a": 0.0, "b": jnp.zeros(2)}, vectorized=True
    )
    x = np.array([[2.0, 3.0, 4.0], [1.0, 0.0, 5.0]], np.float32)
    np.testing.assert_allclose(model.log_density(x), [14, 5])


def test_rows_are_shown_by_name_and_read_again():
    parameters = annealz.LogDensity(log_density, EXAMPLE).parameters
    rows = np.arange(18.0).reshape(3, 6)
    values = parameters.constrain(rows)
    assert {name: value.shape for name, value in values.items()} == {
        "group.effects": (3, 2, 2),
        "group.scale": (3,),
        "mean": (3,),
    }
    np.testing.assert_array_equal(parameters.unconstrain(values), rows)


@pytest.mark.parametrize("example", [{}, {"a": "b"}, {"a": None}, 2.5, "two", True, -1, None])
def test_what_is_no_example_is_refused(example):
    with pytest.raises(ValueError, match="dim must be a whole number|example of the parameters"):
        annealz.LogDensity(log_density, example)

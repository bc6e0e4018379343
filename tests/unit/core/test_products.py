"""Products of binary states: equal to float32, whichever way the matrix is held."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from annealz.bases.bernoulli import BernoulliBase
from annealz.core.products import BinaryProduct
from annealz.engine import advance
from annealz.engine.anneal import anneal
from annealz.kernels.gibbs import BlockGibbs
from annealz.kernels.hmc import HAIS
from annealz.models.exact import exact_log_z
from annealz.models.log_density import LogDensity
from annealz.paths.geometric import GeometricPath
from annealz.schedules.rules import linear
from annealz.testing import assert_within_mc_error, random_rbm

SHAPES = [(784, 501), (500, 784), (784, 21), (20, 784), (3, 2), (2, 3), (5, 5), (1, 1), (16, 32)]


def states(num_units: int, seed: int) -> np.ndarray:
    return (np.random.default_rng(seed).random((64, num_units)) < 0.3).astype(np.float32)


def bound(x: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """2^-22 of every term for its two halves, as much again for a float32 sum taken in blocks."""
    return 2.0**-21 * (x @ np.abs(np.float64(matrix))) + 1e-44


def test_a_cpu_multiplies_columns_of_zeros_too():
    """They are not in what the product gives, nor in the matrix; whole multiples of 8 need none."""
    matrix = np.random.default_rng(2).normal(size=(30, 21)).astype(np.float32)
    product, x = BinaryProduct(matrix, is_split=False).widened(), states(30, 5)
    assert product.matrix.shape == (30, 24)
    np.testing.assert_allclose(product(x), np.float64(x) @ np.float64(matrix), atol=1e-5)
    np.testing.assert_array_equal(product.dense(), matrix)
    assert product.widened() is product
    for other in (BinaryProduct(matrix[:, :16], is_split=False), BinaryProduct(matrix, True)):
        assert other.widened() is other


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("scale", [1e-20, 1e-3, 1.0, 1e6, 1e30])
def test_the_split_product_is_as_good_as_float32(shape, scale: float, seed: int):
    generator = np.random.default_rng(seed)
    matrix = np.float32(scale * generator.normal(size=shape))
    x = states(shape[0], seed + 1)
    truth = np.float64(x) @ np.float64(matrix)
    found = np.float64(BinaryProduct(matrix, is_split=True)(x))
    assert found.shape == truth.shape
    assert (np.abs(found - truth) <= bound(x, matrix)).all()


def test_entries_of_all_sizes_keep_their_digits(seed: int):
    """Entries down to 2^-17 of the largest carry 22 bits; smaller ones 2^-39 of the largest."""
    matrix = np.float32(
        np.ldexp(np.random.default_rng(seed).uniform(1, 2, (60, 7)), -np.arange(60)[:, None])
    )
    one_each = np.eye(60, dtype=np.float32)
    error = np.abs(np.float64(BinaryProduct(matrix, is_split=True)(one_each)) - np.float64(matrix))
    allowed = np.maximum(2.0**-22 * np.abs(matrix), 2.0**-38 * np.abs(matrix).max())
    assert (error <= allowed).all()


def test_one_half_alone_is_not_enough(seed: int):
    """Mutant: without the low part the bound of float32 is missed by far."""
    matrix = np.float32(np.random.default_rng(seed).normal(size=(500, 784)))
    x = states(500, seed)
    split = BinaryProduct(matrix, is_split=True)
    broken = jax.tree.map(lambda a: a, split)
    object.__setattr__(broken, "matrix", split.matrix.at[500:].set(0))
    truth = np.float64(x) @ np.float64(matrix)
    assert (np.abs(np.float64(broken(x)) - truth) > 5 * bound(x, matrix)).mean() > 0.5


def test_a_matrix_of_zeros():
    assert (BinaryProduct(np.zeros((3, 2), np.float32), is_split=True)(states(3, 0)) == 0).all()


def test_a_cpu_holds_the_matrix_as_it_is():
    if jax.default_backend() == "cpu":
        assert not BinaryProduct(np.ones((3, 2), np.float32)).is_split


def test_a_split_product_is_one_product():
    """The doubled side is part of one product, not a second one."""
    product = BinaryProduct(np.ones((40, 30), np.float32), is_split=True)
    text = jax.jit(lambda x: product(x)).lower(jnp.ones((8, 40))).as_text()
    assert text.count("dot_general") == 1


@pytest.fixture
def gpu_forms(monkeypatch: pytest.MonkeyPatch):
    """The forms that a GPU runs, on this machine: split products, packed states, rounds of steps."""
    whole = BinaryProduct.__init__
    monkeypatch.setattr(
        BinaryProduct, "__init__", lambda self, matrix: whole(self, matrix, is_split=True)
    )
    monkeypatch.setattr(advance, "_ROUND_STEPS", {jax.default_backend(): (4,)})


@pytest.mark.parametrize(("every", "cheap", "apart"), [(10, 10, 9), (18, 9, 16), (1, 0, 0)])
def test_rounds_are_as_long_as_the_way_to_a_record(every, cheap, apart, monkeypatch):
    """Every default run of 10,000 steps: one round of known length up to each record."""
    sizes = advance._ROUND_STEPS["gpu"]
    monkeypatch.setattr(advance, "_ROUND_STEPS", {jax.default_backend(): sizes})
    path = GeometricPath(BernoulliBase.uniform(3), random_rbm(2, 3, 1.0))
    model = LogDensity(lambda x: -jnp.sum(x**2), dim=2)
    carrying = HAIS(step_size=0.5).extend(model.path(model.choose_base("standard")))
    assert advance.round_steps(carrying, every) == cheap
    assert advance.round_steps(path, every) == apart


@pytest.mark.parametrize("marginal", ["visible", "hidden"])
def test_the_engine_in_the_forms_of_a_gpu(gpu_forms, marginal: str, seed: int):
    """Chunks change no bit there either, and E[w] is Z_B / Z_A."""
    model = random_rbm(6, 9, 1.0, seed=3)
    path = GeometricPath(BernoulliBase.uniform(9), model, marginal)
    assert path.pack(jnp.ones((2, 9))).dtype == jnp.float16
    runs = [
        anneal(
            path,
            BlockGibbs(),
            linear(100),
            num_chains=n,
            seed=seed,
            record_every=r,
            chunk_steps=c,
        )
        for n, c, r in ((4000, None, 10), (2000, 7, 1), (2000, 33, 50))  # in blocks of 1,000
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.log_weights, runs[0].log_weights[:2000])
        np.testing.assert_array_equal(run.states, runs[0].states[:2000])
    assert runs[0].states.dtype == np.uint8
    weights = np.exp(runs[0].log_weights + runs[0].log_z0 - exact_log_z(model))
    assert_within_mc_error(weights.mean(), 1.0, weights.std() / np.sqrt(weights.size))


@pytest.mark.parametrize("scale", [0.1, 100.0])  # the second raises the exponent
@pytest.mark.parametrize("is_split", [False, True])
def test_the_transposed_product_is_that_of_the_matrix(scale: float, is_split: bool):
    """With one more column: the same numbers as if it had been made of both."""
    generator = np.random.default_rng(0)
    matrix = generator.normal(size=(40, 70)).astype(np.float32)
    column = (scale * generator.normal(size=70)).astype(np.float32)
    one = BinaryProduct(matrix, is_split=is_split).transposed(matrix, column)
    other = BinaryProduct(np.concatenate([matrix, column[None]]).T, is_split=is_split)
    assert (one.shape, one.is_split) == (other.shape, other.is_split)
    np.testing.assert_array_equal(one.matrix, other.matrix)
    np.testing.assert_array_equal(one.scale, other.scale)

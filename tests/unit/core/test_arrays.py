"""Arrays on the device without programs."""

import jax
import jax.numpy as jnp
import numpy as np

import annealz
from annealz.core.arrays import indices, on_device
from annealz.core.random import Stream


def test_they_hold_the_numbers_in_the_type():
    found = on_device([[1, 2.5]])
    assert found.dtype == jnp.float32
    np.testing.assert_array_equal(found, [[1, 2.5]])
    assert on_device(np.array([True, False])).dtype == jnp.float32
    assert on_device(7, np.uint32).dtype == jnp.uint32
    np.testing.assert_array_equal(indices(4), [0, 1, 2, 3])
    assert indices(4).dtype == jnp.int32


def test_what_is_too_large_becomes_infinite_without_a_warning():
    assert np.isinf(on_device([1e300]))


def test_a_later_change_of_the_numbers_does_not_reach_it():
    own = np.zeros(1000, np.float32)
    there = on_device(own)
    own[:] = 1
    np.testing.assert_array_equal(there, 0)


def test_it_can_be_traced():
    assert jax.jit(lambda x: on_device(x, np.uint32))(3.0).dtype == jnp.uint32


def test_models_bases_paths_and_streams_are_made_without_compiling(compiled):
    rng = np.random.default_rng(0)
    model = annealz.RBM(rng.normal(size=(7, 13)), rng.normal(size=7), rng.normal(size=13))
    for base in (
        annealz.BernoulliBase.uniform(13),
        annealz.BernoulliBase.from_logits(rng.normal(size=13)),
    ):
        for marginal in ("visible", "hidden"):
            annealz.GeometricPath(base, model, marginal)
    Stream(0, "a stream").at(3, np.arange(17))
    assert compiled == []
    jnp.ones(1234) + 1  # one is noticed
    assert compiled

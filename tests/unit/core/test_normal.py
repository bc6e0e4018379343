"""Quantiles of the normal's tail against float64."""

import jax
import numpy as np
from scipy.special import ndtri

from annealz.core.normal import tail_quantile


def test_quantiles_have_the_digits_of_float32():
    words = np.unique(np.geomspace(1, 2**31, 100_000).astype(np.int64) - 1)
    words = np.concatenate([words, 2**31 - 1 - words[:2000]])
    tails = (words.astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-32)
    tails = np.minimum(tails, np.float32(0.5))
    found = np.asarray(jax.jit(tail_quantile)(tails), np.float64)
    exact = -ndtri(np.asarray(tails, np.float64))
    assert (np.abs(found - exact) <= 6e-7 * np.maximum(exact, 0.1)).all()


def test_the_ends_are_reached():
    assert np.asarray(tail_quantile(np.float32(0.5))) == 0
    np.testing.assert_allclose(tail_quantile(np.float32(2.0**-33)), 6.3379, atol=2e-4)

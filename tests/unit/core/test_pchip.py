"""Monotone interpolation against SciPy's."""

import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator

from annealz.core.pchip import pchip


@pytest.mark.parametrize("count", [2, 3, 40])
@pytest.mark.parametrize("is_monotone", [True, False])
def test_as_scipy_does_it(count, is_monotone):
    generator = np.random.default_rng(count)
    for _ in range(20):
        x = np.cumsum(generator.exponential(size=count) + 1e-9)
        y = generator.exponential(size=count).cumsum()
        y = y if is_monotone else np.round(generator.normal(size=count), 1)
        at = np.concatenate([x, generator.uniform(x[0] - 0.1, x[-1] + 0.1, 30)])
        assert np.allclose(pchip(x, y, at), PchipInterpolator(x, y)(at), rtol=1e-14, atol=1e-14)

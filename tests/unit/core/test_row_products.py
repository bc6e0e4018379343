"""Products of rows in blocks are products."""

import numpy as np
import pytest

from annealz.core.arrays import moments, times


@pytest.mark.parametrize("count", [1, 63, 64, 200])
def test_blocks_change_nothing(count: int):
    generator = np.random.default_rng(count)
    rows, matrix = generator.normal(size=(count, 5)), generator.normal(size=(3, 5))
    np.testing.assert_allclose(times(rows, matrix), rows @ matrix.T, atol=1e-12)
    np.testing.assert_allclose(moments(rows, rows @ matrix.T), rows.T @ rows @ matrix.T, atol=1e-12)

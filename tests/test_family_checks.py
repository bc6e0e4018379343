"""Every family by the checks that are offered for anybody's models (`annealz.testing.check_model`)."""

import pytest

from annealz.testing import check_kernel, check_model, check_path
from test_families import MODELS
from test_paths import PATHS

QUICK = ("lattice",)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in MODELS]
)
def test_families_keep_their_promises(name: str, seed: int):
    check_model(MODELS[name], seed=seed)


@pytest.mark.parametrize("name", PATHS)
def test_paths_and_their_kernels_keep_theirs(name: str, seed: int):
    make, kernel = PATHS[name]
    check_path(make(), seed=seed)
    check_kernel(kernel, make(), seed=seed)

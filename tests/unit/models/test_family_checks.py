"""Every family by the checks that are offered for anybody's models (`annealz.testing.check_model`)."""

import pytest

from annealz.kernels.gibbs import BlockGibbs
from annealz.testing import check_kernel, check_model, check_path
from support.families import MODELS
from support.path_examples import trajectory


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_families_keep_their_promises(name: str, seed: int):
    check_model(MODELS[name], seed=seed)


def test_paths_and_their_kernels_keep_theirs(seed: int):
    check_path(trajectory(), seed=seed)
    check_kernel(BlockGibbs(), trajectory(), seed=seed)

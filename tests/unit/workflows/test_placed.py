"""Small densities are computed on the CPU beside a GPU, unless something else was asked for."""

import contextlib

import jax
import jax.numpy as jnp
import pytest

import annealz
from annealz.core.devices import preferred
from annealz.methods import placed as module
from annealz.methods.placed import placed, well_placed

SMALL = annealz.LogDensity(lambda x: -0.5 * jnp.sum(x**2), dim=50)
LARGE = annealz.LogDensity(lambda x: -jnp.sum((jnp.ones((2000, 50)) @ x) ** 2), dim=50)


@pytest.fixture
def gpu(monkeypatch):
    """As if JAX computed on a GPU by itself."""
    monkeypatch.setattr(module, "platform", lambda: "gpu")


@pytest.mark.parametrize(
    ("model", "num_chains", "is_moved"),
    [
        (SMALL, None, True),
        (SMALL, 100_000, False),  # many chains are a GPU's
        (LARGE, None, False),
        (annealz.testing.random_rbm(4, 6), None, False),  # fused steps are quick at any size
    ],
    ids=["small", "many", "large", "rbm"],
)
def test_which_models_go_to_the_cpu(gpu, model, num_chains, is_moved):
    with placed(model, num_chains):
        assert (preferred() is not None) == is_moved
        assert not is_moved or preferred().platform == "cpu"
    assert preferred() is None


def test_on_a_cpu_nothing_is_set():
    with placed(SMALL, None):
        assert preferred() is None


def test_a_device_that_was_asked_for_is_kept(gpu):
    device = jax.devices()[0]
    with jax.default_device(device), placed(SMALL, None) as inner:
        assert inner is None  # nothing was entered
        assert preferred() is device


def test_a_density_is_found_by_its_name_and_its_keyword(gpu, tmp_path, monkeypatch):
    (tmp_path / "density_to_place.py").write_text(
        "import annealz\nimport jax.numpy as jnp\n"
        "bump = annealz.LogDensity(lambda x: -0.5 * jnp.sum(x**2), dim=2)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    seen = well_placed(lambda model, num_chains=None: preferred())
    assert seen("density_to_place:bump").platform == "cpu"
    assert seen(model=SMALL).platform == "cpu"
    assert seen(SMALL, num_chains=100_000) is None
    with contextlib.suppress(ValueError):
        assert (
            seen("density_to_place:missing") is None
        )  # what is wrong is said by the function itself

"""Small densities are computed on the CPU beside a GPU, unless something else was asked for."""

import jax
import jax.numpy as jnp
import pytest

import annealz
from annealz.core.devices import preferred
from annealz.engine import context as module
from annealz.engine.context import Context

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
    with Context() as context:
        context.place(model, num_chains)
        assert (preferred() is not None) == is_moved
        assert not is_moved or preferred().platform == "cpu"
    assert preferred() is None


def test_on_a_cpu_nothing_is_set():
    with Context() as context:
        context.place(SMALL, None)
        assert preferred() is None


def test_a_device_that_was_asked_for_is_kept(gpu):
    device = jax.devices()[0]
    with jax.default_device(device), Context() as context:
        context.place(SMALL, None)
        assert preferred() is device


def test_the_front_door_places_a_density(gpu):
    seen = []
    options = {"base": "standard", "second_opinion": False, "num_steps": 5, "num_chains": 20}
    annealz.estimate_log_z(SMALL, on_progress=lambda now: seen.append(preferred()), **options)
    assert {device.platform for device in seen[1:]} == {"cpu"}  # the first is of its reading
    assert preferred() is None

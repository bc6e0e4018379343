"""Where a run computes is asked in one place, and a CPU run beside a GPU is a CPU run in everything."""

import re

import jax
import numpy as np
import pytest

from annealz import BernoulliBase, BlockGibbs, GeometricPath, anneal, linear
from annealz.core import devices
from annealz.core.devices import versions
from annealz.core.products import BinaryProduct
from annealz.engine import advance, blocks
from annealz.testing import random_rbm
from support.places import ROOT

ASKING = r"jax\.(default_backend|devices|(local_|default_)devices?\b|\w*_count\b|process_\w+)|jax_default_"


class Hopper:
    platform, device_kind = "gpu", "NVIDIA H200"


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch):
    """A machine with a GPU, which JAX takes by itself, and a CPU."""
    cpus = jax.local_devices(backend="cpu")
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    monkeypatch.setattr(
        "jax.local_devices", lambda backend=None: cpus if backend == "cpu" else [Hopper()]
    )


def test_nobody_else_asks_jax():
    source = ROOT / "src" / "annealz"
    asking = {
        str(file.relative_to(source))
        for file in source.rglob("*.py")
        if re.search(ASKING, file.read_text())
    }
    assert asking == {"core/devices.py"}


def test_without_a_preference_the_gpu_computes():
    assert [device.platform for device in devices.local_devices()] == ["gpu"]
    assert devices.platform() == "gpu"
    assert blocks.block_size(2048) == 2048
    assert BinaryProduct(np.ones((3, 2), np.float32)).is_split
    assert versions()["device"] == "gpu NVIDIA H200"
    assert devices.num_side_by_side([Hopper()] * 3) == 3


@pytest.mark.parametrize("name", ["device", "platform"])
def test_a_cpu_that_is_preferred_computes_everything(name: str):
    cpu = jax.devices("cpu")[0]
    with jax.default_device(cpu if name == "device" else "cpu"):
        assert devices.local_devices() == [cpu]
        assert not devices.is_first(devices.local_devices())
        assert devices.platform() == "cpu"
        assert blocks.block_size(2048) == 1024
        assert not BinaryProduct(np.ones((3, 2), np.float32)).is_split
        assert versions()["device"] == "cpu"


def test_the_preference_reaches_the_threads_of_a_run(monkeypatch: pytest.MonkeyPatch):
    """Programs are compiled in the threads too, and must be those of a CPU there."""
    seen = []
    monkeypatch.setattr(advance, "platform", lambda: seen.append(devices.platform()) or seen[-1])
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setitem(blocks._MAX_BLOCK, "cpu", 16)
    with jax.default_device(jax.devices("cpu")[0]):
        path = GeometricPath(BernoulliBase.uniform(11), random_rbm(7, 11))
        run = anneal(path, BlockGibbs(), linear(20), num_chains=100, chunk_steps=10)
    assert run.log_weights.shape == (100,)
    assert set(seen) == {"cpu"}

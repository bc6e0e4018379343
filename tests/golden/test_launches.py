"""Launches of the fused steps on a GPU: entry, source, constants and shapes, without a GPU."""

import hashlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from annealz.bases.bernoulli import BernoulliBase
from annealz.core.random import Stream
from annealz.engine.gpu import cuda
from annealz.engine.gpu.chunk import Chains, Span
from annealz.engine.gpu.large import LargeSteps
from annealz.engine.gpu.lattice import LatticeSteps
from annealz.engine.gpu.many import ManySteps
from annealz.engine.gpu.pairs import PairSteps
from annealz.engine.gpu.small import SmallSteps
from annealz.engine.gpu.tables import TableSteps
from annealz.paths.geometric import GeometricPath
from annealz.testing import random_rbm
from support.chain_systems import SYSTEMS, system
from support.pins import check

_PROCESSORS = 132
_LAYERS = {
    "small": (SmallSteps, 20, 784, 1000),
    "large": (LargeSteps, 500, 784, 1000),
    "many": (ManySteps, 500, 784, 100_000),
}


def _layers(name: str) -> tuple[Any, Any, int]:
    kind, num_hidden, num_visible, num_chains = _LAYERS[name]
    base = BernoulliBase.from_logits(np.linspace(-1, 1, num_visible))
    path = GeometricPath(base, random_rbm(num_hidden, num_visible, 0.3), "visible")
    assert kind.fits(path, num_chains, _PROCESSORS)
    return kind.of(path, _PROCESSORS), path, num_chains


def _chains(name: str) -> tuple[Any, Any, int]:
    path, kernel = system(name)
    found = (kind.of(path, kernel) for kind in (LatticeSteps, PairSteps, TableSteps))
    return next(steps for steps in found if steps is not None and steps.fits), path, 1000


def _words(array: Any) -> str:
    return f"{array.dtype}{list(array.shape)}"


@pytest.mark.parametrize("name", [*_LAYERS, *SYSTEMS])
def test_launches(name: str, monkeypatch: pytest.MonkeyPatch):
    launches = []

    def call(entry, text, constants, args, like, aliases, launch):
        launches.append(
            {
                "entry": entry,
                "source": hashlib.sha256(text.encode()).hexdigest()[:16],
                "constants": dict(sorted(constants.items())),
                "arguments": [_words(array) for array in args],
                "results": [_words(array) for array in like],
                "aliases": {str(key): value for key, value in aliases.items()},
                "launch": list(launch),
            }
        )
        return [jnp.zeros(array.shape, array.dtype) for array in like]

    monkeypatch.setattr(cuda, "call", call)
    steps, path, num_chains = (_layers if name in _LAYERS else _chains)(name)
    stream = Stream(3, "pin")
    states = eqx.filter_eval_shape(path.sample, stream.at(0, jnp.arange(num_chains)))
    zeros = jax.ShapeDtypeStruct((num_chains,), jnp.float32)
    chains = Chains(jnp.arange(num_chains, dtype=jnp.uint32), states, zeros, zeros)
    betas = jax.ShapeDtypeStruct((101,), jnp.float32)
    span = Span(*(jnp.int32(number) for number in (0, 100, 10, 100)), 10)
    eqx.filter_eval_shape(lambda *given: steps(*given), stream, chains, betas, span)
    assert launches
    check("launches.json", name, {"launches": launches}, f"jax {jax.__version__}", lambda *_: None)

"""A small system whose replicas are exchanged, and its laws by enumeration."""

import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from annealz.bases.bernoulli import BernoulliBase
from annealz.core.random import Stream
from annealz.methods.exchange import advance as device
from annealz.methods.exchange.advance import Ensembles
from annealz.methods.exchange.result import Exchange
from annealz.paths.geometric import GeometricPath
from annealz.testing import binary_states, random_rbm

MODEL = random_rbm(3, 4, scale=1.2, seed=7)
BASE = BernoulliBase.from_logits([0.75, -1.5, 1.0, -0.25])
PATH = GeometricPath(BASE, MODEL)
BETAS = np.array([0.0, 0.25, 0.625, 1.0], np.float32)
SMALL = {"num_rungs": 4, "num_ensembles": 11, "num_sweeps": 128}
ASKED = {"method": "exchange", "num_rungs": 4, "num_ensembles": 11, "num_steps": 128}
STATES = binary_states(4)


def log_density(beta: float) -> np.ndarray:
    """log p*_beta of all visible states, float64, from the joint."""
    h = binary_states(3)
    weights, a, b = (np.float64(p) for p in (MODEL.weights, MODEL.hidden_bias, MODEL.visible_bias))
    joint = beta * (h @ weights @ STATES.T + (h @ a)[:, None] + STATES @ b)
    return logsumexp(joint + (1 - beta) * (STATES @ np.float64(BASE.logits)), axis=0)


def law(beta: float) -> np.ndarray:
    density = log_density(beta)
    return np.exp(density - logsumexp(density))


def begun(path, num_ensembles: int, num_rungs: int, seed: int) -> tuple[Stream, Ensembles]:
    stream = Stream(seed, "exchange")
    return stream, device.start(path, stream, jnp.int32(0), num_ensembles, num_rungs)


def advanced(
    path, kernel, stream, block, betas, constants, start, stop, by_rung=False
) -> Ensembles:
    ladder = np.float32(betas), np.float32(constants)
    fresh = np.bool_(False), np.bool_(False)
    numbers = np.int32(start), np.int32(stop), np.float32(1)
    sweeps = device.Sweeps(np.int32(0), *ladder, *numbers, fresh)
    return device.advance(path, kernel, stream, block, sweeps, by_rung)


def same(one: Exchange, other: Exchange) -> None:
    (a, _), (b, _) = one.to_arrays(), other.to_arrays()
    for name, array in a.items():
        np.testing.assert_array_equal(array, b[name], err_msg=name)

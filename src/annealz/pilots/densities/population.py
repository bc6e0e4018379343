"""A population of chains annealed to a density from a wide base: where the mass is, roughly.

The chains are resampled on the way (annealed SMC, `kernels/adaptation.py`), and run on at beta = 1. Their
states carry the density's values, so that bases can be compared on them without another evaluation.

Then they walk on while they are cooled, to beta = 2, 4, 8 and 16, which draws them to the highest places
they can reach. From there searches for narrow modes start, and from states of all temperatures on the way:
a hot chain that has lost a narrow mode may still lie where the way uphill leads into it.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from annealz.core.arrays import indices, on_device
from annealz.core.programs import Compiled
from annealz.core.random import Stream
from annealz.kernels.adaptation import AbstractTunedKernel, Adaptation, adapt
from annealz.kernels.hmc import RandomWalk
from annealz.paths import programs
from annealz.paths.tempered import Phase, PhasePath

_SWEEPS_AT_ONE = 24
_BURN_IN = 4
_MOST_KEPT = 384  # chains, at beta = 1 and beyond
_COOLING = (2.0, 4.0, 8.0, 16.0)
_SWEEPS_A_COOLING = 8
_SOME = 2048  # states in which modes are looked for
_HIGHEST = 4  # of the cooled chains, from which searches start
_HOT = 96  # states of all temperatures together
_WALK = 2.0  # step of a random walk, times the root of the dimension


@dataclasses.dataclass(frozen=True)
class Population:
    """Chains at beta = 1, and how they got there."""

    kernel: AbstractTunedKernel  # tuned on their path
    adaptation: Adaptation
    sample: "Sample"
    starts: np.ndarray
    """(points, dim), of searches for narrow modes: cooled chains, and chains at other temperatures."""
    evaluations: int


@dataclasses.dataclass(frozen=True)
class Sample:
    """Positions (sweeps, chains, dim) at beta = 1, values (sweeps, chains) and log Z, rough."""

    rows: np.ndarray
    values: np.ndarray  # log p* there, less the offset of the path
    log_z: float

    @property
    def flat(self) -> np.ndarray:
        """(sweeps times chains, dim)."""
        return self.rows.reshape(-1, self.rows.shape[-1])

    @property
    def some(self) -> np.ndarray:
        """(at most 2048, dim) of them, evenly."""
        count = len(self.flat)
        return self.flat[np.linspace(0, count - 1, min(count, _SOME)).round().astype(int)]


def explore(
    path: Any, kernel: AbstractTunedKernel, *, seed: int, budget: int, num_chains: int | None = None
) -> Population:
    """Anneal a population along the path of this kernel, for about `budget` sweeps.

    Of many chains, which are there so that no mode is lost while they are hot, some are kept at beta = 1.
    """
    found = adapt(path, kernel, seed=seed, budget=budget, num_chains=num_chains)
    kernel = kernel.with_tuning(found.tuning)
    count = min(found.starts, _MOST_KEPT)
    kept = np.linspace(0, found.starts - 1, count).round().astype(int)
    chains, path, stream = indices(count), path.unnamed(), Stream(seed, "population")
    start = found.x if count == found.starts else on_device(np.asarray(found.x)[kept])
    cooling = len(_COOLING) * _SWEEPS_A_COOLING
    work = (_SWEEPS_AT_ONE + cooling) * count * path.sweep_size
    load = {"work": work, "at_once": start.size}
    x, rows, values = _at_one(path, kernel, stream, chains, start, **load)
    cooled, highest = _cooled(path, kernel, Stream(seed, "cooling"), chains, x, **load)
    some = np.linspace(0, len(found.seen) - 1, _HOT).round().astype(int)
    hot = programs.position(path, found.seen[some], work=0)
    order = np.argsort(-np.asarray(highest, np.float64))  # the highest, and at random some others
    highest = np.concatenate([order[:_HIGHEST], order[_HIGHEST :: len(order) // 4]])
    starts = np.concatenate([np.asarray(cooled, np.float64)[highest], np.asarray(hot, np.float64)])
    rows, values = np.asarray(rows, np.float64), np.asarray(values, np.float64)
    sample = Sample(rows, values, path.log_z0 + found.log_ratio)
    each = kernel.evaluations
    assert each is not None
    evaluations = each * (found.sweeps + _SWEEPS_AT_ONE * count) + found.starts + cooling * count
    return Population(kernel, found, sample, starts, evaluations)


@Compiled
def _cooled(path, kernel, stream, chains, x):
    """Where random walks at every beta of the cooling end, (chains, dim), and the values there.

    A narrow mode rejects leapfrog steps into it, which overshoot; a walk enters where it lands.
    """
    walk, walked = RandomWalk(), PhasePath(path.positions)
    phase = path.split(x)
    x = walked.join(Phase(phase.z, None, phase.value))
    betas = jnp.repeat(jnp.asarray(_COOLING, jnp.float32), _SWEEPS_A_COOLING)
    step = _WALK / phase.z.shape[-1] ** 0.5
    scales = kernel.tuning.at(jnp.float32(1))[1]

    def sweep(x, now):
        k, beta = now
        bits = stream.at(k, chains)
        return walk.move(bits, x, walked, beta, step / jnp.sqrt(beta), scales)[0], None

    x = jax.lax.scan(sweep, x, (jnp.arange(betas.size), betas))[0]
    return walked.position(x), walked.split(x).value


@Compiled
def _at_one(path, kernel, stream, chains, x):
    """The last states at beta = 1, and positions and values after every sweep but the first ones."""

    def sweep(x, k):
        x = kernel.step(stream.at(k, chains), x, path, jnp.float32(1))
        return x, x

    x, along = jax.lax.scan(sweep, x, jnp.arange(_SWEEPS_AT_ONE))
    flat = along[_BURN_IN:].reshape(-1, x.shape[-1])
    shape = _SWEEPS_AT_ONE - _BURN_IN, x.shape[0]
    return x, path.position(flat).reshape(*shape, -1), path.split(flat).value.reshape(shape)

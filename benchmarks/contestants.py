"""What most contestants are: a run of annealz, a program that anneals as a whole, or bare arithmetic.

A timing is the wall clock of one whole call, from schedule to weights on the host; a warm-up call at the
same length compiles. Bare arithmetic draws the random bits of annealz, gives no estimate, and is a floor.
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from annealz.core.random import Stream
from annealz.engine.anneal import anneal
from annealz.schedules.rules import linear
from problem import Timing, standard_error

__all__ = ["Annealing", "Bare", "Program"]


class Annealing:
    """annealz: the engine, end to end, with its default observers and record thinning.

    Start states, all chunks with their returns to the host, records, and the `Run` that comes back. A run
    of up to 1000 steps records every step, a longer one fewer. A step may count as `each`.
    """

    def __init__(
        self, path: Any, kernel: Any, num_chains: int, name: str = "annealz", each: int = 1
    ):
        self._path, self._kernel, self._num_chains = path, kernel, num_chains
        self.name, self._each = name, each

    def __call__(self, num_steps: int, seed: int = 0) -> Timing:
        schedule = linear(max(num_steps // self._each, 1))
        began = time.perf_counter()
        run = anneal(self._path, self._kernel, schedule, num_chains=self._num_chains, seed=seed)
        seconds = time.perf_counter() - began
        return _timing(seconds, run.log_z0, run.log_weights)


class Program:
    """A function of betas, a key and the number of chains, compiled as a whole: log w of every chain.

    A single number is log Z itself, of a program whose chains are not independent.
    """

    def __init__(self, name: str, program: Callable[..., Any], log_z0: float, num_chains: int):
        self.name, self._program = name, program
        self._log_z0, self._num_chains = log_z0, num_chains

    def __call__(self, num_steps: int, seed: int = 0) -> Timing:
        betas, key = jnp.linspace(0, 1, num_steps + 1), jax.random.key(seed)
        began = time.perf_counter()
        log_weights = np.asarray(self._program(betas, key, self._num_chains), np.float64)
        return _timing(time.perf_counter() - began, self._log_z0, log_weights)


class Bare:
    """What a step cannot do without, of random bits, chains and a number of steps that is known."""

    name = "bare arithmetic"

    def __init__(self, program: Callable[..., Any], num_chains: int):
        self._program, self._num_chains = program, num_chains

    def __call__(self, num_steps: int, seed: int = 0) -> Timing:
        stream = Stream(seed, "bare")
        began = time.perf_counter()
        jax.block_until_ready(self._program(stream, self._num_chains, num_steps))
        return Timing(time.perf_counter() - began)


def _timing(seconds: float, log_z0: float, log_weights: np.ndarray) -> Timing:
    log_z = log_z0 + np.logaddexp.reduce(log_weights, axis=None) - np.log(log_weights.size)
    error = standard_error(log_weights) if log_weights.size > 1 else None
    return Timing(seconds, float(log_z), error)

"""Laws and transition matrices by enumeration: kernels run on draws whose outcomes are prescribed."""

import itertools

import jax
import numpy as np

from annealz.kernels import AbstractKernel
from annealz.paths import GeometricPath
from annealz.testing import binary_states


class ScriptedBits:
    """Coins with prescribed outcomes, one row a script; what comes out is their probability."""

    def __init__(self, outcomes: dict[int, np.ndarray]):
        self.outcomes = outcomes
        self.num_chains = len(next(iter(outcomes.values())))
        self.log_probability = np.zeros(self.num_chains)
        self.used: set[int] = set()

    def bernoulli(self, logits, draw: int) -> np.ndarray:
        assert draw not in self.used
        self.used.add(draw)
        outcome = self.outcomes[draw]
        surprise = np.logaddexp(0, np.where(outcome == 1, -1, 1) * np.float64(logits))
        self.log_probability = self.log_probability - surprise.sum(-1)
        return outcome


def scripts(*sizes: int) -> list[np.ndarray]:
    """Every combination of states of layers of these sizes, the first layer slowest."""
    states = [binary_states(size) for size in sizes]
    index = np.array(list(itertools.product(*(range(len(s)) for s in states))))
    return [s[index[:, i]] for i, s in enumerate(states)]


def state_index(states) -> np.ndarray:
    states = np.asarray(states)
    return (states @ 2 ** np.arange(states.shape[-1])).astype(int)


def in_float64(tree):
    """The same pytree in float64; call it with x64 enabled."""
    return jax.tree.map(lambda a: jax.device_put(np.asarray(a, np.float64)), tree)


def transition_matrix(kernel: AbstractKernel, path: GeometricPath, beta: float) -> np.ndarray:
    """T[x, y] = p(y | x) of one step, by running the kernel over all scripts, in float64."""
    num_latent, num_units = path.to_state.shape
    x, latent, y = scripts(num_units, num_latent, num_units)
    bits = ScriptedBits({0: latent, 1: y})
    with jax.enable_x64(True):
        np.testing.assert_array_equal(kernel.step(bits, x, in_float64(path), beta), y)
    probabilities = np.exp(bits.log_probability)
    return probabilities.reshape(2**num_units, 2**num_latent, 2**num_units).sum(1)


def first_law(path: GeometricPath) -> np.ndarray:
    """The law of path.sample, by running it over all scripts of its coins."""
    num_latent, num_units = path.to_state.shape
    sizes = {0: num_units, 2: num_latent, 3: num_units}
    bits = ScriptedBits(dict(zip(sizes, scripts(*sizes.values()), strict=True)))
    states = path.sample(bits)
    repeats = 2 ** sum(size for draw, size in sizes.items() if draw not in bits.used)
    probabilities = np.exp(bits.log_probability) / repeats
    return np.bincount(state_index(states), probabilities, minlength=2**num_units)

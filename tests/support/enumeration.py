"""Laws and transition matrices by enumeration: kernels run on draws whose outcomes are prescribed."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from annealz.kernels.abstract import AbstractKernel
from annealz.paths.geometric import GeometricPath
from annealz.testing import binary_states


class ScriptedBits:
    """Coins with prescribed outcomes, one row a script; what comes out is their probability.

    Inside of a compiled function, in float64.
    """

    def __init__(self, outcomes: dict[int, jax.Array]):
        self.outcomes = outcomes
        self.num_chains = len(next(iter(outcomes.values())))
        self.log_probability = np.zeros(self.num_chains)
        self.used: set[int] = set()

    def bernoulli(self, logits, draw: int) -> jax.Array:
        assert draw not in self.used
        assert logits.dtype == np.float64
        self.used.add(draw)
        outcome = self.outcomes[draw]
        surprise = jnp.logaddexp(0, jnp.where(outcome == 1, -1, 1) * logits)
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


@eqx.filter_jit
def _step(kernel: AbstractKernel, path: GeometricPath, x, beta, outcomes):
    bits = ScriptedBits(outcomes)
    return kernel.step(bits, x, path, beta), bits.log_probability


@eqx.filter_jit
def _sample(path: GeometricPath, outcomes):
    bits = ScriptedBits(outcomes)
    return path.sample(bits), bits.log_probability, sorted(bits.used)


def transition_matrix(kernel: AbstractKernel, path: GeometricPath, beta: float) -> np.ndarray:
    """T[x, y] = p(y | x) of one step, by running the kernel over all scripts, in float64."""
    num_latent, num_units = path.to_state.shape
    x, latent, y = scripts(num_units, num_latent, num_units)
    with jax.enable_x64(True):
        given = in_float64(path), x, np.asarray(beta, np.float64)
        moved, log_probability = _step(kernel, *given, {0: latent, 1: y})
        np.testing.assert_array_equal(moved, y)
    probabilities = np.exp(log_probability)
    return probabilities.reshape(2**num_units, 2**num_latent, 2**num_units).sum(1)


def first_law(path: GeometricPath) -> np.ndarray:
    """The law of path.sample, by running it over all scripts of its coins; call it with x64 enabled."""
    num_latent, num_units = path.to_state.shape
    sizes = {0: num_units, 2: num_latent, 3: num_units}
    outcomes = dict(zip(sizes, scripts(*sizes.values()), strict=True))
    states, log_probability, used = _sample(path, outcomes)
    repeats = 2 ** sum(size for draw, size in sizes.items() if draw not in used)
    probabilities = np.exp(log_probability) / repeats
    return np.bincount(state_index(states), probabilities, minlength=2**num_units)

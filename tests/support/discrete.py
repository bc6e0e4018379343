"""Small networks over discrete units, written twice: with JAX for the library, with NumPy for the truth."""

import dataclasses
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

import annealz
from support.families import grid


@dataclasses.dataclass(frozen=True)
class Network:
    """f(x) = scale sum_j tanh(W hot(x) + b)_j."""

    num_units: int
    num_states: int
    num_hidden: int = 6
    scale: float = 1.0
    seed: int = 0

    @property
    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(self.seed)
        shape = (self.num_hidden, self.num_units, self.num_states)
        return np.float32(rng.normal(0, 1, shape)), np.float32(rng.normal(0, 0.5, self.num_hidden))

    @property
    def states(self) -> np.ndarray:
        return grid(*[self.num_states] * self.num_units)

    def values(self, states: np.ndarray) -> np.ndarray:
        """f of every row, float64."""
        return self.scale * np.tanh(self._fields(states)).sum(-1)

    def gradients(self, states: np.ndarray) -> np.ndarray:
        """df / d hot, (rows, units, states)."""
        inner = self.scale * (1 - np.tanh(self._fields(states)) ** 2)
        return np.einsum("sj,jik->sik", inner, np.float64(self.weights[0]))

    def model(self, wrap: Callable = lambda fn: fn) -> annealz.DiscreteDensity:
        """With `wrap` around its function, such as `Counted`."""
        weights, bias = map(jnp.asarray, self.weights)

        def fn(hot):
            fields = jnp.einsum("jik,ik->j", weights, hot, precision="highest") + bias
            return self.scale * jnp.tanh(fields).sum()

        return annealz.DiscreteDensity(wrap(fn), self.num_units, self.num_states, one_hot=True)

    def binary_model(self) -> annealz.DiscreteDensity:
        """The same of numbers, where there are two states."""
        weights, bias = self.weights
        slope, start = jnp.asarray(weights[..., 1] - weights[..., 0]), weights[..., 0].sum(1) + bias

        def fn(x):
            fields = jnp.matmul(slope, x.astype(jnp.float32), precision="highest") + start
            return self.scale * jnp.tanh(fields).sum()

        return annealz.DiscreteDensity(fn, self.num_units)

    def _fields(self, states: np.ndarray) -> np.ndarray:
        weights, bias = (np.float64(a) for a in self.weights)
        hot = states[..., None] == np.arange(self.num_states)
        return np.einsum("jik,sik->sj", weights, hot) + bias

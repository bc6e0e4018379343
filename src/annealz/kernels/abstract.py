"""A transition T_beta that leaves p_beta invariant."""

import abc

import equinox as eqx
from jaxtyping import Array, Float

from annealz.paths.abstract import AbstractPath
from annealz.random import Bits

__all__ = ["AbstractKernel"]


class AbstractKernel(eqx.Module):
    """One sweep of a Markov chain at a fixed beta."""

    @abc.abstractmethod
    def step(self, bits: Bits, x: Float[Array, "chains ..."], path: AbstractPath, beta):
        """The next state of every chain."""

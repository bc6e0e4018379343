"""A transition T_beta that leaves p_beta invariant."""

import abc

import equinox as eqx
from jaxtyping import Array, Float

from annealz.random import Bits

__all__ = ["AbstractKernel"]


class AbstractKernel(eqx.Module):
    """One sweep of a Markov chain at a fixed beta."""

    @abc.abstractmethod
    def step(self, bits: Bits, x, path, beta) -> Float[Array, "chains ..."]:
        """The next state of every chain, by a transition that leaves p_beta of `path` invariant."""

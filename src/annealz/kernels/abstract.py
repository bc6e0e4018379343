"""A transition T_beta that leaves p_beta invariant, and its reversal R_beta.

    p_beta(x) T_beta(y | x) = p_beta(y) R_beta(x | y)

A transition that is its own reversal is called reversible. Of several reversible moves made in a row
the reversal makes them in the opposite order.
"""

import abc

import equinox as eqx
from jaxtyping import Array, Float

from annealz.random import Bits

__all__ = ["AbstractKernel"]


class AbstractKernel(eqx.Module):
    """One sweep of a Markov chain at a fixed beta."""

    @abc.abstractmethod
    def step(self, bits: Bits, x, path, beta) -> Float[Array, "chains ..."]:
        """The next state of every chain, by a transition that leaves p_beta of `path` invariant.

        Draws of `bits` are numbered from 0; the last, 2^32 - 1, is the engine's own.
        """

    def reversed(self) -> "AbstractKernel":
        """The kernel whose step is the time reversal of this one's, at every beta."""
        raise ValueError(
            f"a run in reverse needs the reversal of its kernel, and {type(self).__name__} does not "
            "tell it: define `reversed`, which returns self where the kernel is reversible."
        )

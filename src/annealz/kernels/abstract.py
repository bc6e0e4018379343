"""A transition T_beta that leaves p_beta invariant, and its reversal R_beta.

    p_beta(x) T_beta(y | x) = p_beta(y) R_beta(x | y)

A transition that is its own reversal is called reversible. Of several reversible moves made in a row
the reversal makes them in the opposite order.
"""

import abc
from typing import NamedTuple

import equinox as eqx
from jaxtyping import Array, Float

from annealz.core.cost import Cost
from annealz.core.random import Bits


class Tuned(NamedTuple):
    """A kernel that is ready, and what making it so took."""

    kernel: "AbstractKernel"
    cost: Cost


class AbstractKernel(eqx.Module):
    """One sweep of a Markov chain at a fixed beta.

    Examples
    --------
    >>> import annealz  # docs/extending.md has a kernel of one's own
    >>> isinstance(annealz.BlockGibbs(), annealz.AbstractKernel)
    True
    """

    @abc.abstractmethod
    def step(self, bits: Bits, x, path, beta) -> Float[Array, "chains ..."]:
        """The next state of every chain, by a transition that leaves p_beta of `path` invariant.

        Draws of `bits` are numbered from 0; the last, 2^32 - 1, is the engine's own.
        """

    @property
    def evaluations(self) -> int | None:
        """Evaluations of the density, with or without gradient, that a sweep takes. A chain takes one more
        where it starts; what `extend` gives must carry the value, or they are not counted. None where that
        is not how a sweep is counted.
        """
        return None

    def cost(self, sweeps: int, starts: int = 0, seconds: float = 0.0) -> Cost:
        """Return the cost of these sweeps, and of `starts` evaluations in addition to theirs."""
        each = self.evaluations
        return Cost(sweeps, 0 if each is None else each * sweeps + starts, seconds)

    def extend(self, path):
        """The path of the states that the kernel moves, such as positions with momenta."""
        return path

    def tuned(self, path, *, seed: int, budget: int) -> "Tuned":
        """The kernel ready for this path, after a pilot of about `budget` sweeps if it needs one."""
        return Tuned(self, Cost())

    def reversed(self) -> "AbstractKernel":
        """The kernel whose step is the time reversal of this one's, at every beta."""
        raise ValueError(
            f"a run in reverse needs the reversal of its kernel, and {type(self).__name__} does not "
            "define it: define `reversed`, which returns self where the kernel is reversible."
        )

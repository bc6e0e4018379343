"""Metropolis steps on a path, proposed by the transition of another path with the same ends.

A reversible transition g(y | x) of the path that lies between proposes y, which is taken with probability

    min(1, p_beta(y) g_beta(x) / (p_beta(x) g_beta(y)))

where g_beta is the law that the proposal leaves invariant. That leaves p_beta invariant and is reversible.
"""

import jax.numpy as jnp

from annealz.core.random import Bits
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.q_path import QPath

__all__ = ["Metropolised"]

_DRAW = 2**32 - 2  # far from those of the proposal


class Metropolised(AbstractKernel):
    """Proposals of a reversible kernel, taken or refused.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> model = random_rbm(4, 6)
    >>> path = annealz.QPath(model.path(annealz.BernoulliBase.uniform(6)), q=0.9)
    >>> estimate = annealz.estimate_log_z(
    ...     model,
    ...     path=path,
    ...     kernel=annealz.Metropolised(annealz.BlockGibbs()),
    ...     schedule="linear",
    ...     num_steps=100,
    ...     num_chains=100,
    ... )
    >>> abs(estimate.log_z - estimate.exact_log_z) < 5 * estimate.std_err
    True
    """

    proposal: AbstractKernel

    def __init__(self, proposal: AbstractKernel):
        if proposal.reversed() is not proposal:
            raise ValueError(
                f"proposal must be a reversible kernel, got {type(proposal).__name__}, whose reversal is "
                "another one: take one such as BlockGibbs."
            )
        self.proposal = proposal

    def step(self, bits: Bits, x, path: QPath, beta):
        def log_excess(x):
            """log p_beta - log g_beta, up to a constant; both are counted from the common start."""
            start = jnp.zeros_like(jnp.asarray(beta, jnp.float32))
            return path.above_start(x, beta) - path.between.log_ratio(x, start, beta)

        proposed = self.proposal.step(bits, x, path.between, beta)
        gain = log_excess(proposed) - log_excess(x)
        uniform = bits.uniforms(1, _DRAW)[:, 0]
        is_taken = uniform <= jnp.exp(jnp.minimum(gain, 0))
        return jnp.where(is_taken.reshape(-1, *(1,) * (x.ndim - 1)), proposed, x)

    def reversed(self) -> "Metropolised":
        return self

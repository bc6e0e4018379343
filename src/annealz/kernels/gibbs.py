"""Block Gibbs: draw the latent layer given the state, then the state given the latent layer.

Both draws are exact conditionals of the joint p_beta(state, latent), so the marginal p_beta(state)
is invariant (and the chain on states is reversible).
"""

from jaxtyping import Array, Float

from annealz.kernels.abstract import AbstractKernel
from annealz.paths.abstract import AbstractBipartitePath
from annealz.random import Bits

__all__ = ["BlockGibbs"]


class BlockGibbs(AbstractKernel):
    """One sweep over both layers."""

    def step(self, bits: Bits, x, path: AbstractBipartitePath, beta) -> Float[Array, "chains ..."]:
        latent = bits.bernoulli(path.latent_logits(x, beta), draw=0)
        return bits.bernoulli(path.state_logits(latent, beta), draw=1)

"""Kernels that are wrong on purpose: every check of a kernel must see them."""

import jax
import jax.numpy as jnp

from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.gibbs import BlockGibbs


class StaleGibbs(AbstractKernel):
    """Mutant: moves with the previous beta of the schedule."""

    betas: jax.Array
    shift: int = -1

    def step(self, bits, x, path, beta):
        here = jnp.argmin(jnp.abs(self.betas - beta))
        other = self.betas[jnp.clip(here + self.shift, 0, self.betas.size - 1)]
        return BlockGibbs().step(bits, x, path, other)


class BiasedGibbs(AbstractKernel):
    """Mutant: the coin of the latent layer favours heads."""

    def step(self, bits, x, path, beta):
        latent = bits.bernoulli(path.latent_logits(x, beta) + 0.4, draw=0)
        return bits.bernoulli(path.state_logits(latent, beta), draw=1)


class SharedGibbs(AbstractKernel):
    """Mutant: both layers are drawn with the same random words."""

    def step(self, bits, x, path, beta):
        latent = bits.bernoulli(path.latent_logits(x, beta), draw=0)
        return bits.bernoulli(path.state_logits(latent, beta), draw=0)


def kernel_name(kernel: AbstractKernel) -> str:
    return type(kernel).__name__

"""Hamiltonian Monte Carlo and Langevin moves, both BlackJAX's.

A chain's key of JAX's generator is a function of (seed, purpose, chain, step) alone. In u = x / scales:

    HMC    p ~ N(0, 1), L leapfrog steps of size e, Metropolis             L + 1 evaluations per sweep
    MALA   u + e^2 / 2 gradient + e N(0, 1), Metropolis                    2

The momentum of HMC is drawn again each time, so that on positions both kernels are their own reversals. The
step of HMC is multiplied by a uniform number from 0.8 to 1.2, of each chain and sweep, so that no
trajectory has the length of a period for ever.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import ArrayLike

from annealz.core.random import Bits
from annealz.kernels.adaptation import AbstractTunedKernel, Tuning, as_tuning
from annealz.paths.abstract import AbstractPath

__all__ = ["HMC", "MALA"]

_JITTER = 0.2


class HMC(AbstractTunedKernel):
    """`num_leapfrog` leapfrog steps with a fresh momentum, and Metropolis's test.

    Examples
    --------
    >>> import annealz
    >>> import jax.numpy as jnp
    >>> model = annealz.LogDensity(lambda x: -0.5 * jnp.sum(x**2), dim=2)
    >>> estimate = annealz.estimate_log_z(
    ...     model,
    ...     kernel=annealz.HMC(step_size=0.5),
    ...     base="standard",
    ...     schedule="linear",
    ...     num_steps=50,
    ...     num_chains=50,
    ... )
    >>> round(estimate.log_z, 4), estimate.evaluations["main"]
    (1.8379, 15000)
    """

    tuning: Tuning | None
    num_leapfrog: int = eqx.field(static=True)
    target_acceptance: ClassVar[float] = 0.8

    def __init__(self, num_leapfrog: int = 5, step_size: ArrayLike | None = None):
        if num_leapfrog < 1:
            raise ValueError(f"num_leapfrog must be at least 1, got {num_leapfrog}.")
        self.tuning, self.num_leapfrog = as_tuning(step_size), num_leapfrog

    @property
    def evaluations(self) -> int:
        return self.num_leapfrog + 1

    def move(self, bits: Bits, x, path: AbstractPath, beta, step, scales):
        import blackjax

        kernel = blackjax.hmc.build_kernel()
        log_density, ones = _one_chain(path, beta, scales), jnp.ones(x.shape[-1], x.dtype)

        def one(key, u, step):
            state = blackjax.hmc.init(u, log_density)
            state, info = kernel(key, state, log_density, step, ones, self.num_leapfrog)
            return state.position, info.acceptance_rate

        jitter = 1 + _JITTER * (2 * bits.uniforms(1, draw=1)[:, 0] - 1)
        u, acceptance = jax.vmap(one)(bits.keys(draw=0), x / scales, step * jitter)
        return u * scales, acceptance

    def reversed(self) -> "HMC":
        return self


class MALA(AbstractTunedKernel):
    """One step of the Metropolis-adjusted Langevin algorithm.

    Examples
    --------
    >>> import annealz
    >>> import jax.numpy as jnp
    >>> model = annealz.LogDensity(lambda x: -0.5 * jnp.sum(x**2), dim=2)
    >>> estimate = annealz.estimate_log_z(
    ...     model,
    ...     kernel=annealz.MALA(step_size=0.5),
    ...     base="standard",
    ...     schedule="linear",
    ...     num_steps=50,
    ...     num_chains=50,
    ... )
    >>> round(estimate.log_z, 4), estimate.evaluations["main"]
    (1.8379, 5000)
    """

    tuning: Tuning | None
    target_acceptance: ClassVar[float] = 0.57

    def __init__(self, step_size: ArrayLike | None = None):
        self.tuning = as_tuning(step_size)

    @property
    def evaluations(self) -> int:
        return 2

    def move(self, bits: Bits, x, path: AbstractPath, beta, step, scales):
        import blackjax

        kernel, log_density = blackjax.mala.build_kernel(), _one_chain(path, beta, scales)

        def one(key, u):
            state = blackjax.mala.init(u, log_density)
            state, info = kernel(key, state, log_density, step**2 / 2)
            return state.position, info.acceptance_rate

        u, acceptance = jax.vmap(one)(bits.keys(draw=0), x / scales)
        return u * scales, acceptance

    def reversed(self) -> "MALA":
        return self


def _one_chain(path: AbstractPath, beta, scales):
    """log p*_beta of one chain in u = x / scales."""
    return lambda u: path.log_density((u * scales)[None], beta)[0]

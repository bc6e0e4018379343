"""Random-walk Metropolis: a Gaussian step, accepted by Metropolis's test. No gradient is used.

    u -> u + e N(0, 1),   u = x / scales                                    2 evaluations per sweep

Symmetric, so the kernel is its own reversal.
"""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import ArrayLike

from annealz.core.random import Bits
from annealz.kernels.adaptation import AbstractTunedKernel, Tuning, as_tuning
from annealz.paths.abstract import AbstractPath

__all__ = ["RandomWalk"]


class RandomWalk(AbstractTunedKernel):
    """One step of random-walk Metropolis, of all coordinates at once.

    Examples
    --------
    >>> import annealz
    >>> import jax.numpy as jnp
    >>> model = annealz.LogDensity(lambda x: -0.5 * jnp.sum(x**2), dim=2)
    >>> estimate = annealz.estimate_log_z(
    ...     model,
    ...     kernel=annealz.RandomWalk(step_size=1.0),
    ...     base="standard",
    ...     schedule="linear",
    ...     num_steps=50,
    ...     num_chains=50,
    ... )
    >>> round(estimate.log_z, 4), estimate.evaluations["main"]
    (1.8379, 5000)
    """

    tuning: Tuning | None
    target_acceptance: ClassVar[float] = 0.234

    def __init__(self, step_size: ArrayLike | None = None):
        self.tuning = as_tuning(step_size)

    @property
    def evaluations(self) -> int:
        return 2

    def move(self, bits: Bits, x, path: AbstractPath, beta, step, scales):
        proposed = x + step * scales * bits.normals(x.shape[-1], draw=0)
        gain = path.log_density(proposed, beta) - path.log_density(x, beta)
        gain = jnp.where(jnp.isnan(gain), -jnp.inf, gain)
        accept = jnp.log(bits.uniforms(1, draw=1)[:, 0]) < gain
        return jnp.where(accept[:, None], proposed, x), jnp.exp(jnp.minimum(gain, 0))

    def reversed(self) -> "RandomWalk":
        return self

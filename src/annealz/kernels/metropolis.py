"""Random-walk Metropolis: a Gaussian step, accepted by Metropolis's test. No gradient is used.

    u -> u + e N(0, 1),   u = x / scales                                    1 evaluation per sweep

Symmetric, so the kernel is its own reversal.
"""

from typing import Any, ClassVar

from jaxtyping import ArrayLike

from annealz.core.random import Bits
from annealz.kernels.adaptation import AbstractTunedKernel, Tuning, as_tuning
from annealz.kernels.leapfrog import accepted
from annealz.paths.abstract import AbstractPath
from annealz.paths.phase import PhasePath


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
    ...     second_opinion=False,
    ... )
    >>> round(estimate.log_z, 4), estimate.evaluations["main"]  # and one where a chain starts
    (1.8379, 2550)
    """

    tuning: Tuning | None
    target_acceptance: ClassVar[float] = 0.234

    def __init__(self, step_size: ArrayLike | None = None):
        self.tuning = as_tuning(step_size)

    @property
    def evaluations(self) -> int:
        return 1

    def extend(self, path: AbstractPath) -> PhasePath:
        return path if isinstance(path, PhasePath) else PhasePath(path)

    def move(self, bits: Bits, x, path: Any, beta, step, scales):
        phase = path.split(x)
        proposed = path.evaluated(phase.z + step * scales * bits.normals(phase.z.shape[-1], draw=0))
        gain = path.field(proposed, beta)[0] - path.field(phase, beta)[0]
        phase, acceptance = accepted(bits.uniforms(1, draw=1)[:, 0], gain, proposed, phase)
        return path.join(phase), acceptance

    def reversed(self) -> "RandomWalk":
        return self

"""Random-walk Metropolis: a Gaussian step, accepted by Metropolis's test. No gradient is used.

    u -> u + e N(0, 1),   u = x / scales                                    1 evaluation per sweep

Symmetric, so the kernel is its own reversal.
"""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from annealz.core.random import Bits
from annealz.kernels.adaptation import AbstractTunedKernel
from annealz.paths.abstract import AbstractPath
from annealz.paths.phase import Phase, PhasePath
from annealz.paths.tempered import where


class RandomWalk(AbstractTunedKernel):
    """One step of random-walk Metropolis, of all coordinates at once.

    Examples
    --------
    >>> import annealz
    >>> import jax.numpy as jnp
    >>> model = annealz.LogDensity(lambda x: -0.5 * jnp.sum(x**2), dim=2)
    >>> estimate = annealz.estimate_log_z(
    ...     model, kernel=annealz.RandomWalk(1.0), base="standard", schedule="linear", num_steps=50
    ... )
    >>> round(estimate.log_z, 4)
    1.8379
    """

    target_acceptance: ClassVar[float] = 0.234

    def __init__(self, step_size: ArrayLike | None = None):
        super().__init__(step_size)

    def extend(self, path: AbstractPath) -> PhasePath:
        return path if isinstance(path, PhasePath) else PhasePath(path)

    def move(self, bits: Bits, x, path: Any, beta, step, scales):
        phase = path.split(x)
        proposed = path.evaluated(phase.z + step * scales * bits.normals(phase.z.shape[-1], draw=0))
        gain = path.field(proposed, beta)[0] - path.field(phase, beta)[0]
        phase, acceptance = accepted(bits.uniforms(1, draw=1)[:, 0], gain, proposed, phase)
        return path.join(phase), acceptance


def accepted(uniforms, gain, moved: Phase, phase: Phase) -> tuple[Phase, Float[Array, " chains"]]:
    """The states after Metropolis's test, and the probability of acceptance of every chain."""
    gain = jnp.where(jnp.isnan(gain), -jnp.inf, gain)
    return where(jnp.log(uniforms) < gain, moved, phase), jnp.exp(jnp.minimum(gain, 0))

"""Hamiltonian Monte Carlo and Langevin moves. In u = z / scales:

    HMC    p ~ N(0, 1), L leapfrog steps of size e, Metropolis             L evaluations per sweep
    MALA   the same with one step: u + e^2 / 2 gradient + e N(0, 1)        1

The momentum is drawn again each time, so that on positions both kernels are their own reversals. The
step of HMC is multiplied by a uniform number from 0.8 to 1.2, of each chain and sweep, so that no
trajectory has the length of a period for ever. The value and gradient where a move ends are carried to the
next one (`paths/phase.py`), which is why these are not BlackJAX's: those keep them at one beta.
"""

from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import ArrayLike

from annealz.core.random import Bits
from annealz.kernels.adaptation import AbstractTunedKernel, Tuning, as_tuning
from annealz.kernels.leapfrog import accepted, leapfrog
from annealz.paths.abstract import AbstractPath
from annealz.paths.phase import PhasePath

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
    ...     second_opinion=False,
    ... )
    >>> round(estimate.log_z, 4), estimate.evaluations["main"]  # and one where a chain starts
    (1.8379, 12550)
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
        return self.num_leapfrog

    def extend(self, path: AbstractPath) -> PhasePath:
        return path if isinstance(path, PhasePath) else PhasePath(path, has_gradient=True)

    def move(self, bits: Bits, x, path: Any, beta, step, scales):
        jitter = 1 + _JITTER * (2 * bits.uniforms(1, draw=2)[:, 0] - 1)
        return _refreshed_move(bits, x, path, beta, step * jitter, scales, self.num_leapfrog)

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
    ...     second_opinion=False,
    ... )
    >>> round(estimate.log_z, 4), estimate.evaluations["main"]  # and one where a chain starts
    (1.8379, 2550)
    """

    tuning: Tuning | None
    target_acceptance: ClassVar[float] = 0.57

    def __init__(self, step_size: ArrayLike | None = None):
        self.tuning = as_tuning(step_size)

    @property
    def evaluations(self) -> int:
        return 1

    def extend(self, path: AbstractPath) -> PhasePath:
        return path if isinstance(path, PhasePath) else PhasePath(path, has_gradient=True)

    def move(self, bits: Bits, x, path: Any, beta, step, scales):
        return _refreshed_move(bits, x, path, beta, step, scales, 1)

    def reversed(self) -> "MALA":
        return self


def _refreshed_move(bits: Bits, x, path: PhasePath, beta, step, scales, num_leapfrog: int):
    """A trajectory from a fresh momentum, which is then forgotten."""
    phase = path.split(x)
    phase = phase._replace(p=bits.normals(phase.z.shape[-1], draw=0))
    moved, gain = leapfrog(path, phase, beta, step, scales, num_leapfrog)
    phase, acceptance = accepted(bits.uniforms(1, draw=1)[:, 0], gain, moved, phase)
    return path.join(phase._replace(p=None)), acceptance

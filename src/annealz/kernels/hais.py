"""Hamiltonian annealed importance sampling: the momentum is kept, and only partly refreshed.

Sohl-Dickstein & Culpepper (2012). The state is a position u = x / scales and a momentum p, the target
p_beta(u) N(p; 0, 1). A sweep makes three moves, each of which leaves that target invariant:

    M   (u', p') = leapfrog(u, p);   to (u', -p') with probability min(1, exp(H - H')), else stay
    F   p -> -p
    R   p -> a p + sqrt(1 - a^2) N(0, 1),        a = exp(-e / persistence)

so that an accepted trajectory keeps its momentum and a rejected one turns round. M is reversible, because
leapfrog followed by F is its own inverse and preserves volume; F is its own inverse; R is reversible.
A sweep R F M (M first) is therefore not reversible, and its reversal makes the moves in the opposite order,

    M F R        R first, then F, then M.

Weights depend on positions alone. L leapfrog steps cost L evaluations: value and gradient at their end are
carried to the next sweep (`paths/phase.py`).
"""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from annealz.core.random import Bits
from annealz.kernels.adaptation import AbstractTunedKernel, Tuning, as_tuning
from annealz.kernels.leapfrog import accepted, leapfrog
from annealz.paths.abstract import AbstractPath
from annealz.paths.phase import PhasePath


class HAIS(AbstractTunedKernel):
    """Leapfrog steps with a momentum that lasts.

    Parameters
    ----------
    num_leapfrog : steps of a trajectory between refreshments
    persistence : time after which 1/e of the momentum is left, where a coordinate's own time is 1
    step_size : by default tuned along beta
    is_reversed : make the moves in the opposite order

    Examples
    --------
    >>> import annealz
    >>> import jax.numpy as jnp
    >>> model = annealz.LogDensity(lambda x: -0.5 * jnp.sum(x**2), dim=2)
    >>> estimate = annealz.estimate_log_z(
    ...     model,
    ...     kernel=annealz.HAIS(step_size=0.5),
    ...     base="standard",
    ...     schedule="linear",
    ...     num_steps=50,
    ...     num_chains=50,
    ... )
    >>> round(estimate.log_z, 4)  # log 2 pi: nothing to anneal between equal ends
    1.8379
    """

    tuning: Tuning | None
    num_leapfrog: int = eqx.field(static=True)
    persistence: float = eqx.field(static=True)
    is_reversed: bool = eqx.field(static=True)
    target_acceptance: ClassVar[float] = 0.9

    def __init__(
        self,
        num_leapfrog: int = 1,
        persistence: float = 1.0,
        step_size: ArrayLike | None = None,
        *,
        is_reversed: bool = False,
    ):
        if num_leapfrog < 1:
            raise ValueError(f"num_leapfrog must be at least 1, got {num_leapfrog}.")
        if not persistence > 0:
            raise ValueError(f"persistence must be positive, got {persistence}.")
        self.tuning, self.num_leapfrog = as_tuning(step_size), num_leapfrog
        self.persistence, self.is_reversed = float(persistence), is_reversed

    @property
    def evaluations(self) -> int:
        return self.num_leapfrog

    def extend(self, path: AbstractPath) -> PhasePath:
        if isinstance(path, PhasePath):
            return path
        return PhasePath(path, has_momentum=True, has_gradient=True)

    def move(self, bits: Bits, x, path: Any, beta, step, scales):
        phase = path.split(x)
        if self.is_reversed:
            phase = phase._replace(p=-self._refreshed(bits, phase.p, step))
        moved, gain = leapfrog(path, phase, beta, step, scales, self.num_leapfrog)
        moved = moved._replace(p=-moved.p)
        phase, acceptance = accepted(bits.uniforms(1, draw=1)[:, 0], gain, moved, phase)
        if not self.is_reversed:
            phase = phase._replace(p=self._refreshed(bits, -phase.p, step))
        return path.join(phase), acceptance

    def reversed(self) -> "HAIS":
        other = HAIS(self.num_leapfrog, self.persistence, is_reversed=not self.is_reversed)
        return other.with_tuning(self.tuning)

    def _refreshed(self, bits: Bits, p, step) -> Float[Array, "chains dim"]:
        kept = jnp.exp(-step * self.num_leapfrog / self.persistence)
        return kept * p + jnp.sqrt(1 - kept**2) * bits.normals(p.shape[-1], draw=0)

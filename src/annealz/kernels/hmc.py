"""Kernels of densities: random walks, leapfrog steps and what is made of them, which is Hamiltonian Monte
Carlo, Langevin moves, and Hamiltonian annealed importance sampling, which keeps its momentum.

In u = z / scales, with log p*_beta as minus the potential energy and momenta p ~ N(0, 1):

    p += e/2 gradient,    u += e p,    p += e/2 gradient             one evaluation per step, at its end
    H = |p|^2 / 2 - log p*_beta,       accept with probability min(1, exp(H - H'))

    HMC    p ~ N(0, 1), L leapfrog steps of size e, Metropolis             L evaluations per sweep
    MALA   the same with one step: u + e^2 / 2 gradient + e N(0, 1)        1

The momentum of both is drawn again each time, so that on positions they are their own reversals. The
step of HMC is multiplied by a uniform number from 0.8 to 1.2, of each chain and sweep, so that no
trajectory has the length of a period for ever. The value and gradient where a move ends are carried to the
next one (`paths/tempered.py`), which is why these are not BlackJAX's: those keep them at one beta.

HAIS (Sohl-Dickstein & Culpepper 2012) has states of a position and a momentum, and the target
p_beta(u) N(p; 0, 1). A sweep makes three moves, each of which leaves that target invariant:

    M   (u', p') = leapfrog(u, p);   to (u', -p') with probability min(1, exp(H - H')), else stay
    F   p -> -p
    R   p -> a p + sqrt(1 - a^2) N(0, 1),        a = exp(-e / persistence)

so that an accepted trajectory keeps its momentum and a rejected one turns round. M is reversible, because
leapfrog followed by F is its own inverse and preserves volume; F is its own inverse; R is reversible.
A sweep R F M (M first) is therefore not reversible, and its reversal makes the moves in the opposite order,

    M F R        R first, then F, then M.

Weights depend on positions alone. L leapfrog steps cost L evaluations.

Random-walk Metropolis uses no gradient: a Gaussian step, accepted by Metropolis's test. It is symmetric, so
that the kernel is its own reversal.

    u -> u + e N(0, 1)                                                1 evaluation per sweep
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from annealz.core.random import Bits
from annealz.kernels.adaptation import AbstractTunedKernel
from annealz.paths.abstract import AbstractPath
from annealz.paths.tempered import Phase, PhasePath, where

_JITTER = 0.2


class RandomWalk(AbstractTunedKernel):
    """One step of random-walk Metropolis, of all coordinates at once.

    Examples
    --------
    >>> import annealz
    >>> annealz.RandomWalk(1.0).evaluations  # per sweep
    1
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


class MALA(AbstractTunedKernel):
    """One step of the Metropolis-adjusted Langevin algorithm.

    Examples
    --------
    >>> import annealz
    >>> annealz.MALA(step_size=0.5).evaluations  # per sweep
    1
    """

    target_acceptance: ClassVar[float] = 0.57

    def __init__(self, step_size: ArrayLike | None = None):
        super().__init__(step_size)

    def move(self, bits: Bits, x, path: Any, beta, step, scales):
        return _refreshed_move(bits, x, path, beta, step, scales, 1)


class HMC(AbstractTunedKernel):
    """`num_leapfrog` leapfrog steps with a fresh momentum, and Metropolis's test.

    Examples
    --------
    >>> import annealz
    >>> annealz.HMC(num_leapfrog=3).evaluations  # per sweep
    3
    """

    num_leapfrog: int = eqx.field(static=True)
    target_acceptance: ClassVar[float] = 0.8

    def __init__(self, num_leapfrog: int = 5, step_size: ArrayLike | None = None):
        if num_leapfrog < 1:
            raise ValueError(f"num_leapfrog must be at least 1, got {num_leapfrog}.")
        super().__init__(step_size)
        self.num_leapfrog = num_leapfrog

    @property
    def evaluations(self) -> int:
        return self.num_leapfrog

    def move(self, bits: Bits, x, path: Any, beta, step, scales):
        jitter = 1 + _JITTER * (2 * bits.uniforms(1, draw=2)[:, 0] - 1)
        return _refreshed_move(bits, x, path, beta, step * jitter, scales, self.num_leapfrog)


class HAIS(HMC):
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
    >>> options = {"kernel": annealz.HAIS(step_size=0.5), "num_steps": 50}
    >>> estimate = annealz.estimate_log_z(model, base="standard", **options)
    >>> round(estimate.log_z, 4)  # log 2 pi: nothing to anneal between equal ends
    1.8379
    """

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
        if not persistence > 0:
            raise ValueError(f"persistence must be positive, got {persistence}.")
        super().__init__(num_leapfrog, step_size)
        self.persistence, self.is_reversed = float(persistence), is_reversed

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


def accepted(uniforms, gain, moved: Phase, phase: Phase) -> tuple[Phase, Float[Array, " chains"]]:
    """The states after Metropolis's test, and the probability of acceptance of every chain."""
    gain = jnp.where(jnp.isnan(gain), -jnp.inf, gain)
    return where(jnp.log(uniforms) < gain, moved, phase), jnp.exp(jnp.minimum(gain, 0))


def leapfrog(
    path: PhasePath, phase: Phase, beta, step, scales, num_steps: int
) -> tuple[Phase, Float[Array, " chains"]]:
    """Where leapfrog leads, and H before minus H after; the step may differ from chain to chain."""
    step = jnp.asarray(step).reshape(-1, 1)
    start, gradient = path.field(phase, beta)

    def leap(_, carry):
        phase, _, gradient = carry
        p = phase.p + step / 2 * gradient * scales
        moved = path.evaluated(phase.z + step * p * scales, p)
        value, gradient = path.field(moved, beta)
        return moved._replace(p=p + step / 2 * gradient * scales), value, gradient

    carry = phase, start, gradient
    moved, end, _ = (
        leap(0, carry) if num_steps == 1 else jax.lax.fori_loop(0, num_steps, leap, carry)
    )
    return moved, end - start + ((phase.p**2).sum(-1) - (moved.p**2).sum(-1)) / 2


def _refreshed_move(bits: Bits, x, path: PhasePath, beta, step, scales, num_leapfrog: int):
    """A trajectory from a fresh momentum, which is then forgotten."""
    phase = path.split(x)
    phase = phase._replace(p=bits.normals(phase.z.shape[-1], draw=0))
    moved, gain = leapfrog(path, phase, beta, step, scales, num_leapfrog)
    phase, acceptance = accepted(bits.uniforms(1, draw=1)[:, 0], gain, moved, phase)
    return path.join(phase._replace(p=None)), acceptance

"""Leapfrog steps and Metropolis's test, on states that carry their evaluations (`paths/phase.py`).

In u = z / scales, with log p*_beta as minus the potential energy and momenta p ~ N(0, 1):

    p += e/2 gradient,    u += e p,    p += e/2 gradient             one evaluation per step, at its end
    H = |p|^2 / 2 - log p*_beta,       accept with probability min(1, exp(H - H'))
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from annealz.paths.phase import Phase, PhasePath


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


def accepted(uniforms, gain, moved: Phase, phase: Phase) -> tuple[Phase, Float[Array, " chains"]]:
    """The states after Metropolis's test, and the probability of acceptance of every chain."""
    gain = jnp.where(jnp.isnan(gain), -jnp.inf, gain)
    return moved.where(jnp.log(uniforms) < gain, phase), jnp.exp(jnp.minimum(gain, 0))

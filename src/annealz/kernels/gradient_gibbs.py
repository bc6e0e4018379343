"""Gibbs with gradients (Grathwohl et al. 2021): the gradient says which unit is worth changing.

With d(x)[i, k] the gain of log p_beta that the gradient at x promises if unit i took the state k,

    propose (i, k) with probability  Q(i, k | x) = exp(d[i, k] / 2) / sum exp(d / 2),   over all k != x_i
    take it with probability         min(1, p_beta(y) Q(i, x_i | y) / (p_beta(x) Q(i, k | x)))

Metropolis's test makes it exact however poor the promise is. Value and gradient where the chain stands are
carried along (`paths/discrete.py`), so that a proposal takes one evaluation with its gradient. Every
proposal is reversible with respect to the same p_beta, and so is a sweep of several.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from annealz.core.random import Bits
from annealz.core.units import SoftmaxUnits
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.unit_gibbs import discrete_path
from annealz.paths.abstract import AbstractPath
from annealz.paths.discrete import DiscretePath, Evaluated


class GradientGibbs(AbstractKernel):
    """`num_proposals` changes of one unit, proposed by the gradient and taken or refused.

    Examples
    --------
    >>> import annealz
    >>> import jax.numpy as jnp
    >>> model = annealz.DiscreteDensity(lambda x: 0.5 * jnp.sum(x), num_units=4)
    >>> estimate = annealz.estimate_log_z(
    ...     model,
    ...     kernel=annealz.GradientGibbs(num_proposals=2),
    ...     base="uniform",
    ...     schedule="linear",
    ...     num_steps=50,
    ...     num_chains=50,
    ...     second_opinion=False,
    ... )
    >>> abs(estimate.log_z - estimate.exact_log_z) < 5 * estimate.std_err
    True
    """

    num_proposals: int = eqx.field(static=True)

    def __check_init__(self):
        count = self.num_proposals
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(f"num_proposals must be a whole number, at least 1, got {count!r}.")

    @property
    def evaluations(self) -> int:
        return self.num_proposals

    def extend(self, path: AbstractPath) -> DiscretePath:
        own = discrete_path(path, "GradientGibbs")
        own.model.check_gradient()
        return own if own.has_gains else own.carrying(gains=True)

    def step(self, bits: Bits, x, path: DiscretePath, beta):
        def propose(k, parts: Evaluated) -> Evaluated:
            forward = _log_chances(parts, path, beta)
            options = SoftmaxUnits(forward.shape[-1])
            chosen = options.sample(bits, forward, 2 * k)[:, 0].astype(jnp.int32)
            unit, state = jnp.divmod(chosen, path.num_states)
            is_unit = unit[:, None] == jnp.arange(path.num_units)
            old = jnp.where(is_unit, parts.x, 0).sum(-1).astype(jnp.int32)
            other = path.evaluated(jnp.where(is_unit, state[:, None].astype(x.dtype), parts.x))
            back = _log_chances(other, path, beta)
            there = jnp.take_along_axis(forward, chosen[:, None], 1)[:, 0]
            home = jnp.take_along_axis(back, (unit * path.num_states + old)[:, None], 1)[:, 0]
            gain = path.at_beta(other.x, other.value, beta) - path.at_beta(
                parts.x, parts.value, beta
            )
            is_taken = bits.uniforms(1, 2 * k + 1)[:, 0] <= jnp.exp(gain + home - there)
            return jax.tree.map(
                lambda new, now: jnp.where(is_taken.reshape(-1, *(1,) * (now.ndim - 1)), new, now),
                other,
                parts,
            )

        parts = jax.lax.fori_loop(0, self.num_proposals, propose, path.split(x))
        return path.join(parts)

    def reversed(self) -> "GradientGibbs":
        return self


def _log_chances(parts: Evaluated, path: DiscretePath, beta):
    """log Q of every change, (chains, units * states); -inf for the state that a unit has."""
    base = path.base_gains(parts.x)
    table = base + beta * (parts.gains - base)
    table = jnp.concatenate([jnp.zeros_like(table[..., :1]), table], -1)
    is_here = parts.x[..., None] == jnp.arange(path.num_states)  # (chains, units, states)
    gains = table - jnp.where(is_here, table, 0).sum(-1, keepdims=True)
    logits = jnp.where(is_here, -jnp.inf, gains / 2).reshape(parts.x.shape[0], -1)
    return jax.nn.log_softmax(logits, axis=-1)

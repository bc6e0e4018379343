"""Annealed SMC: systematic resampling within islands of chains, on a frozen schedule.

An island is n consecutive chains that exchange nothing with others. After the increment of a step,
with weights w_i of mean m and relative variance s^2 over the island,

    ESS = n / (1 + s^2)                                resample where ESS < r n: s^2 > 1/r - 1
    a_i = min {j : w_0 + … + w_j > (i + u) m}          where chain i goes on from; one uniform u
    w_i = m

Chain j is copied n w_j / sum w times in expectation and the island's mean weight is kept, so the mean
of w stays unbiased, over every island and over all chains. Chains of one island become dependent and
islands stay independent: what is known of the error is in the islands' means.

Ancestors are a function of the weights, which the move of the step does not touch. So chains are
copied after that move, whose product is still that of the increment; copies part with the next one.

Everything is float32 and relative to the island's largest weight. The share of a chain is off by some
1e-6 of a copy; the mean weight is kept as a compensated pair, to some 1e-7.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from annealz.core.errors import InputError
from annealz.core.numerics import add_compensated
from annealz.core.random import Bits

RESAMPLING_DRAW = 2**32 - 1  # the draw of `Bits` that no kernel may use
_NUM_ISLANDS = 20  # at least
_LARGEST_ISLAND = 50
_MANY_CHAINS = _NUM_ISLANDS * _LARGEST_ISLAND


def island_size(num_chains: int) -> int:
    """Chains an island: 50 from 1000 chains on, a twentieth of the chains below."""
    unit = island_unit(num_chains)
    if num_chains % unit:
        below = num_chains // unit * unit
        raise InputError(
            "num_chains",
            f"must be a multiple of {_NUM_ISLANDS}, and of {_LARGEST_ISLAND} from {_MANY_CHAINS} on, to be "
            "resampled in islands of one size",
            num_chains,
            f"take {f'{below} or ' if below else ''}{below + unit}",
        )
    return min(num_chains // _NUM_ISLANDS, _LARGEST_ISLAND)


def island_unit(num_chains: int) -> int:
    """What the number of chains must be a multiple of, to be cut into islands."""
    return _NUM_ISLANDS if num_chains < _MANY_CHAINS else _LARGEST_ISLAND


class Resampling(eqx.Module):
    """Systematic resampling of the islands whose ESS is below `threshold` times their size."""

    tolerance: Float[Array, ""]
    island_size: int = eqx.field(static=True)

    def __init__(self, threshold: float, island_size: int):
        if not 0 < threshold <= 1:
            raise ValueError(
                "resample must lie above 0 and at most at 1, the share of an island's chains under "
                f"which its ESS may not fall, got {threshold}: 0.5 is usual, None resamples never."
            )
        self.tolerance = jnp.float32(1 / threshold - 1)
        self.island_size = island_size

    def __call__(
        self,
        bits: Bits,
        log_weights: Float[Array, " chains"],
        compensation: Float[Array, " chains"],
        held: PyTree[Array],
    ) -> tuple[Float[Array, " chains"], Float[Array, " chains"], PyTree[Array], Bool[Array, "..."]]:
        """The log weights, their compensation and what chains hold, resampled; and which islands were.

        `bits` are those of the first chain of every island. The leaves of `held` have the chain axis
        first; they are copied only if an island asks for it.
        """
        shape = (-1, self.island_size)
        pairs = log_weights.reshape(shape), compensation.reshape(shape)
        largest = pairs[0].max(1, keepdims=True)
        weights = jnp.exp(pairs[0] - largest + pairs[1])  # (islands, island_size)
        # An island with a log weight of NaN is left alone, for the engine to see it.
        variance = ((weights / weights.mean(1, keepdims=True) - 1) ** 2).mean(1)
        is_due = jnp.isfinite(pairs[0]).all(1) & (variance > self.tolerance)

        def resampled():
            mean = jnp.log(weights.mean(1, keepdims=True))
            new = add_compensated(largest, 0, mean)
            kept = (jnp.where(is_due[:, None], a, b) for a, b in zip(new, pairs, strict=True))
            uniforms = bits.uniforms(1, RESAMPLING_DRAW)
            islands, size = weights.shape
            drawn = jnp.where(is_due[:, None], ancestors(weights, uniforms), jnp.arange(size))
            rows = (drawn + size * jnp.arange(islands)[:, None]).reshape(-1)
            return *(a.reshape(-1) for a in kept), jax.tree.map(lambda leaf: leaf[rows], held)

        out = jax.lax.cond(is_due.any(), resampled, lambda: (log_weights, compensation, held))
        return *out, is_due


def ancestors(
    weights: Float[Array, "islands size"], uniforms: Float[Array, "islands 1"]
) -> Int[Array, "islands size"]:
    """Which chain of its island each one goes on from."""
    size = weights.shape[1]
    edges = jnp.cumsum(weights, 1)
    edges = edges / edges[:, -1:] * size
    below = np.nextafter(np.arange(1, size + 1, dtype=np.float32), np.float32(0))
    points = jnp.minimum(jnp.arange(size) + uniforms, below)  # i + u < i + 1 when rounded, too
    return (edges[:, None, :] <= points[:, :, None]).sum(-1)

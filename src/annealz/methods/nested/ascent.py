"""How high the likelihood rises: uphill from live points by random steps, without gradients.

What live points hold is what is left of the evidence only if the likelihood does not rise steeply above
them. It does at a transition of first order: a narrow state inside a wide one of like mass. Volumes must
then shrink by many nats in which the evidence hardly grows, and a run that ends there ends too early.
So the end is decided by the highest likelihood that can be found, L_max: a run ends where

    X L_max  <  tolerance times the evidence so far

The search is the (1+1) evolution strategy with the rule of one fifth (Rechenberg 1973), from many points
side by side: x' = x + s C z is kept if it is higher; s grows by e^(0.8 / c) then, and else falls by
e^(-0.2 / c), c = 1 + dim / 3. On a quadratic top it comes nearer by a factor e in about 5 dim steps.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from annealz.core.random import Stream
from annealz.methods.nested.walk import Target


def rounds_of(dim: int) -> int:
    """Steps uphill from each point."""
    return 50 + 30 * dim


@eqx.filter_jit
def ascend(
    stream: Stream,
    first: Array,
    x: Float[Array, "rows dim"],
    factor: Float[Array, "dim dim"],
    target: Target,
    offset: Float[Array, ""],
) -> Float[Array, ""]:
    """The highest log L - offset that is found from these points; its bits are of steps from `first`."""
    num_rows, dim = x.shape
    chains, patience = jnp.arange(num_rows), 1 + dim / 3

    def step(i, now):
        x, height, log_size = now
        normals = stream.at(first + i, chains).normals(dim, 0)
        move = jnp.matmul(normals, factor.T, precision=jax.lax.Precision.HIGHEST)
        other = x + jnp.exp(log_size)[:, None] * move
        _, log_likelihood = target(other, offset)
        is_higher = log_likelihood > height
        log_size = log_size + (is_higher - jnp.float32(0.2)) / patience
        x = jnp.where(is_higher[:, None], other, x)
        return x, jnp.where(is_higher, log_likelihood, height), log_size

    _, height = target(x, offset)
    start = (x, height, jnp.zeros(num_rows, jnp.float32))
    return jax.lax.fori_loop(0, rounds_of(dim), step, start)[1].max()

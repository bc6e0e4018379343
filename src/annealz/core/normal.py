"""Quantiles of a standard normal in its tail, in few operations.

With u the probability beyond, 0 < u <= 1/2,

    w = -log(4 u (1 - u)),     quantile = (1 - 2 u) q(w)

q is smooth in w where w < 6 and in sqrt(w) beyond; it is a polynomial of degree 9 in either (Giles 2012 has
the form; the coefficients are fitted to u from 2^-34 on). In float32 the relative error is at most 3e-7, as
that of `jax.scipy.special.ndtri`, which takes 2.5 times the operations and 1.8 times as long to compile.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

_CUT = 6.0
_NEAR_CENTRE, _FAR_CENTRE = 3.0, 3.6
_NEAR = (
    2.29603523,
    0.341716883,
    -0.00811557855,
    -0.00118238368,
    0.000276445276,
    -1.80414368e-05,
    -2.66626352e-06,
    6.44290055e-07,
    -6.13051819e-09,
    -8.24027635e-09,
)
_FAR = (
    4.85959609,
    1.42548077,
    0.00384631832,
    -0.00239775461,
    0.00112424564,
    -0.000609348109,
    0.000465482466,
    -0.000301659339,
    5.7090226e-05,
    2.09570596e-05,
)


def tail_quantile(u: Float[Array, "..."]) -> Float[Array, "..."]:
    """x >= 0 that a standard normal exceeds with probability u, 2^-34 <= u <= 1/2."""
    w = jnp.maximum(-jnp.log(4 * u * (1 - u)), 0)
    is_near = w < _CUT
    z = jnp.where(is_near, w - _NEAR_CENTRE, jnp.sqrt(w) - _FAR_CENTRE)
    q = jnp.where(is_near, _NEAR[-1], _FAR[-1])
    for near, far in zip(_NEAR[-2::-1], _FAR[-2::-1], strict=True):
        q = q * z + jnp.where(is_near, near, far)
    return (1 - 2 * u) * q

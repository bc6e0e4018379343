"""Arithmetic that keeps its digits: float32 on the device, float64 on the host.

Difference of softplus. Both forms are exact, for any `low` and `step`:

    softplus(low + step) - softplus(low) =        log1p(sigmoid( low) expm1( step))
                                         = step + log1p(sigmoid(-low) expm1(-step))

The plain difference loses most of its digits in float32 once `step` is small. Each form above
loses them only where its sigmoid is near 1 and its expm1 near -1. So the form is chosen by the
sign of `low`, which keeps the sigmoid at or under 1/2. What remains is overflow (inf or nan, never
a plausible number) where `low` and `step` have opposite signs and `|step|` is over 88.

Compensated sum. A float32 pair (total, carry) keeps about 48 bits of a sum of 1e5 increments
(two-sum of Knuth); total + carry is formed in float64 on the host.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

__all__ = ["add_compensated", "log_sum", "softplus_difference"]


def softplus_difference(low: Float[Array, "..."], step: Float[Array, "..."]) -> Float[Array, "..."]:
    """softplus(low + step) - softplus(low), to the last digits of `step`."""
    above = low > 0
    inner = jax.nn.sigmoid(-jnp.abs(low)) * jnp.expm1(jnp.where(above, -step, step))
    return jnp.where(above, step, 0) + jnp.log1p(inner)


def add_compensated(total, carry, increment):
    """(total, carry) after adding `increment`; the rounding error goes to `carry`."""
    new = total + increment
    back = new - total
    return new, carry + ((total - (new - back)) + (increment - back))


def log_sum(log_terms: np.ndarray) -> float:
    """log of a sum of exponentials, in float64."""
    largest = np.max(log_terms)
    return float(largest + np.log(np.exp(log_terms - largest).sum()))

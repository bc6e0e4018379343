"""Arithmetic that keeps its digits, float32 on the device and float64 on the host; and numbers as text.

Difference of softplus. Both forms are exact, for any `low` and `step`:

    softplus(low + step) - softplus(low) =        log1p(sigmoid( low) expm1( step))
                                         = step + log1p(sigmoid(-low) expm1(-step))

The plain difference loses most of its digits in float32 once `step` is small. Each form above
loses them only where its sigmoid is near 1 and its expm1 near -1. So the form is chosen by the
sign of `low`, which keeps the sigmoid at or under 1/2. What remains is a `step` of over 70 against
the sign of `low`, where the sigmoid may underflow or expm1 overflow: inf or nan comes back, never a
plausible number.

Compensated sum. A float32 pair (total, carry) keeps about 48 bits of a sum of 1e5 increments
(two-sum of Knuth); total + carry is formed in float64 on the host.
"""

import math
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from annealz.core.errors import InputError


def softplus_difference(low: Float[Array, "..."], step: Float[Array, "..."]) -> Float[Array, "..."]:
    """softplus(low + step) - softplus(low), to the last digits of `step`."""
    above = jnp.where(low == 0, step > 0, low > 0)
    turned = jnp.where(above, -step, step)
    inner = jax.nn.sigmoid(-jnp.abs(low)) * jnp.expm1(turned)
    is_lost = (jnp.abs(low) > 87) & (turned > 70)
    return jnp.where(above, step, 0) + jnp.log1p(jnp.where(is_lost, jnp.inf, inner))


def add_compensated(total, carry, increment):
    """(total, carry) after adding `increment`; the rounding error goes to `carry`."""
    new = total + increment
    back = new - total
    return new, carry + ((total - (new - back)) + (increment - back))


def log_sum(log_terms: np.ndarray) -> float:
    """log of a sum of exponentials, in float64."""
    largest = np.max(log_terms)
    return float(largest + np.log(np.exp(log_terms - largest).sum()))


def finite_or_none(value: float) -> float | None:
    """The value for JSON, which knows no infinity: None for what is unknown."""
    return value if np.isfinite(value) else None


def whole_number(name: str, value: Any) -> int:
    """The argument of this name as an integer: 1000 or 1e3, not 0.5."""
    try:
        is_whole = isinstance(value, float | np.floating) and value == int(value)
        return operator.index(int(value) if is_whole else value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, OverflowError):
        raise InputError(name, "must be a whole number", value) from None


def error_text(std_err: float | None) -> str:
    """Return a standard error, unknown where it is None or not finite."""
    return f"{std_err:.4f}" if std_err is not None and math.isfinite(std_err) else "unknown"


def with_error(value: float, std_err: float | None) -> str:
    """Return a number with its standard error, unknown where that is None or not finite."""
    return f"{value:.4f} ± {error_text(std_err)}"


def interval_text(interval: tuple[float, float]) -> str:
    """Return an interval, unknown where a bound is not finite."""
    low, high = interval
    is_known = math.isfinite(low) and math.isfinite(high)
    return f"{low:.4f} … {high:.4f}" if is_known else "unknown"

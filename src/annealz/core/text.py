"""Numbers with their errors as text."""

import math


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

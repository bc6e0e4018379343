"""Results as text: numbers with their errors, and rows below each other."""

import math

__all__ = ["as_text", "error_text", "interval_text", "with_error"]


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


def as_text(title: str, rows: list[tuple[str, str]], messages: tuple[str, ...]) -> str:
    """Return the rows (label and value) aligned under a title, then the messages."""
    width = max(len(label) for label, _ in rows)
    lines = [f"  {label:<{width}}  {value}" for label, value in rows]
    return "\n".join([title, *lines, *(f"  ! {message}" for message in messages)])

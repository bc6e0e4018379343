"""Settings as Python writes them: arguments of `estimate_log_z`, or another function to call."""

from typing import Any

__all__ = ["CALLS", "in_python"]

CALLS = {
    ("exact", True): "annealz.exact_log_z",
    ("method", "exchange"): "annealz.exchange_log_z",
    ("method", "nested"): "annealz.nested_log_z",
}
"""Functions that do what an option of the command line asks for."""


def in_python(name: str, value: Any) -> str:
    """num_steps=400, or the function to call.

    Examples
    --------
    >>> from annealz.diagnostics.in_python import in_python
    >>> in_python("num_steps", 400), in_python("base", "fitted"), in_python("method", "exchange")
    ('num_steps=400', 'base="fitted"', 'annealz.exchange_log_z')
    """
    if (name, value) in CALLS:
        return CALLS[name, value]
    if name == "data":
        return "data=DATA"
    if name == "map":
        return f'annealz.load_model(file, map="{value}")'
    return f'{name}="{value}"' if isinstance(value, str) else f"{name}={value}"

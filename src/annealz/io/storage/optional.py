"""Packages that only some users need."""

import importlib
from typing import Any

__all__ = ["need"]


def need(package: str, what: str, extra: str) -> Any:
    """The package, or a sentence that says how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ValueError(
            f"{what} with {package.partition('.')[0]}, which is not installed: "
            f"pip install 'annealz[{extra}]'."
        ) from error

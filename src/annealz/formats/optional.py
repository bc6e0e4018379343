"""Packages that only some files need."""

import importlib
from typing import Any

__all__ = ["need"]


def need(package: str, what: str) -> Any:
    """The package, or a sentence that says how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ValueError(
            f"{what} are read with {package.partition('.')[0]}, which is not installed: "
            "pip install 'annealz[formats]'."
        ) from error

"""A model by import path: `package.module:name`, a model or a function without arguments that makes one.

Importing runs the module's code, so this is for modules of one's own. The current folder is looked in.
"""

import importlib
import sys
from pathlib import Path

from annealz.models.abstract import AbstractModel

__all__ = ["is_import_path", "load_object"]


def is_import_path(name: str) -> bool:
    """Whether it reads like module:name, each made of Python's names."""
    module, colon, attribute = name.partition(":")
    words = [*module.split("."), *attribute.split(".")]
    return bool(colon) and all(word.isidentifier() for word in words)


def load_object(name: str) -> AbstractModel:
    """The model; a ValueError of one sentence says what is wrong."""
    module, _, attribute = name.partition(":")
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        found = importlib.import_module(module)
    except Exception as error:  # whatever a module may raise
        raise ValueError(f"cannot import the module of {name!r}: {_told(error)}.") from error
    finally:
        if added:
            sys.path.remove(here)
    for word in attribute.split("."):
        if not hasattr(found, word):
            raise ValueError(f"{name!r} was not found: {module} has no {attribute}.")
        found = getattr(found, word)
    model = found
    if callable(found) and not isinstance(found, AbstractModel):
        try:
            model = found()
        except Exception as error:
            raise ValueError(f"cannot make a model of {name!r}: {_told(error)}.") from error
    if not isinstance(model, AbstractModel):
        raise ValueError(
            f"{name!r} must be an annealz model or a function that makes one, got "
            f"{type(model).__name__}."
        )
    return model


def _told(error: Exception) -> str:
    if isinstance(error, ImportError):
        return str(error)
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"

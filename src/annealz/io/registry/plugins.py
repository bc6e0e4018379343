"""What other packages declare for annealz, as entry points of their distributions.

To list them only the metadata of installed packages are read. Their code is imported when it is asked for.
"""

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from annealz.io.reading.words import shown, told

__all__ = ["Declared", "call", "declared", "resolve"]


class Declared(NamedTuple):
    """One entry point: `name = "module:attribute"`."""

    name: str
    reference: str
    package: str
    """The distribution and its version."""


def declared(group: str) -> tuple[Declared, ...]:
    """The entry points of a group, by name."""
    return _declared(group, tuple(sys.path))


@functools.cache
def _declared(group: str, places: tuple[str, ...]) -> tuple[Declared, ...]:
    from importlib.metadata import entry_points  # takes its time: not where nobody asks

    found = [
        Declared(
            shown(one.name),
            one.value,
            "an unknown package"
            if one.dist is None
            else shown(f"{one.dist.name} {one.dist.version}"),
        )
        for one in entry_points(group=group)
    ]
    return tuple(sorted(set(found)))


def resolve(reference: str | Callable[..., Any]) -> Any:
    """What `module:attribute` means; anything but text is meant itself."""
    if not isinstance(reference, str):
        return reference
    module, _, attribute = reference.partition(":")
    found = importlib.import_module(module)
    for word in attribute.split("."):
        found = getattr(found, word)
    return found


def call(owner: str, function: str | Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What a function gives; of another package (`owner`) every failure is a sentence that names it."""
    if not owner:
        return resolve(function)(*arguments, **options)
    try:
        return resolve(function)(*arguments, **options)
    except ValueError:
        raise
    except Exception as error:  # whatever other people's code may raise
        raise ValueError(f"{owner} failed: {type(error).__name__}: {told(error)}.") from error

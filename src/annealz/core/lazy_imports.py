"""Names of a package that are imported when they are first asked for.

A first result waits for its imports: of eight kernels it needs one. A package lists its names once, in the
imports that type checkers read.
"""

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

_IMPORT = re.compile(r"^    from (\S+) import \w+ as (\w+)$", re.MULTILINE)


def listed_imports(file: str) -> dict[str, str]:
    """Return the modules of the names that a package imports for type checkers."""
    text = Path(file).read_text(encoding="utf-8")
    return {name: module for module, name in _IMPORT.findall(text)}


def later(
    package: str, homes: Mapping[str, str], modules: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package; `homes` has the module of every name.

    `modules` are those that have other names as attributes of the package.
    """
    aliases = modules or {}

    def get(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if name in homes:
            value = getattr(import_module(homes[name]), name)
        else:
            try:
                value = import_module(f"{package}.{aliases.get(name, name)}")
            except ModuleNotFoundError as error:
                if error.name != f"{package}.{name}":
                    raise
                raise AttributeError(f"module {package!r} has no attribute {name!r}") from None
        setattr(sys.modules[package], name, value)
        return value

    return get

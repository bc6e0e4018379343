"""A model by import path: `package.module:name` or `path/to/file.py:name`.

The object is a model, a PyMC model, or a function without arguments that makes one of them. Importing runs
the code of the module, so this is for modules of one's own. The current folder is looked in.
"""

import ast
import importlib
import importlib.util
import operator
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from annealz.core.failures import one_line
from annealz.io.reading import listed
from annealz.models.abstract import AbstractModel

_MOST_BYTES = 10**6  # of a module whose names are listed


def is_import_path(name: str) -> bool:
    """Check whether it reads like module:name, each made of Python's names, or like file.py:name."""
    module, colon, attribute = name.rpartition(":")
    words = attribute.split(".")
    if not _is_file(module):
        words += module.split(".")
    return bool(colon) and all(word.isidentifier() for word in words)


def module_of(name: str) -> Path | None:
    """Return the file of a module in the current folder that is given without the name of a model in it."""
    if _is_file(name):
        path = Path(name)
    elif all(word.isidentifier() for word in name.split(".")) and not Path(name).exists():
        path = Path(*name.split(".")).with_suffix(".py")
    else:
        return None
    return path if path.is_file() else None


def without_name(name: str, path: Path) -> str:
    """Write a sentence for a module without the name of a model; nothing is imported for it."""
    try:
        source = path.read_bytes()
        tree = ast.parse(source) if len(source) <= _MOST_BYTES else ast.Module([], [])
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        tree = ast.Module([], [])
    names = [word for node in tree.body for word in _defined(node) if not word.startswith("_")]
    held = f"; it defines {listed(names)}" if names else ""
    return f"{name} is a Python module: give the model in it as well, {name}:NAME{held}."


def _defined(node: ast.stmt) -> list[str]:
    """Return the functions and assigned names that a statement at the top of a module makes."""
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def load_object(name: str) -> AbstractModel:
    """Return the model; a ValueError of one sentence says what is wrong."""
    module, _, attribute = name.rpartition(":")
    if _is_file(module) and not Path(module).is_file():
        raise ValueError(f"cannot import the module of {name!r}: there is no file {module}.")
    try:
        found: Any = _imported(module)
    except Exception as error:  # whatever a module may raise
        raise ValueError(f"cannot import the module of {name!r}: {_told(error)}.") from error
    try:
        found = operator.attrgetter(attribute)(found)
    except AttributeError:
        raise ValueError(f"{name!r} was not found: {module} has no {attribute}.") from None
    if callable(found) and not isinstance(found, AbstractModel) and not _is_pymc(found):
        try:
            found = found()
        except Exception as error:
            raise ValueError(f"cannot make a model of {name!r}: {_told(error)}.") from error
    if _is_pymc(found):
        from annealz.models.from_pymc import from_pymc

        found = from_pymc(found)
    if not isinstance(found, AbstractModel):
        raise ValueError(
            f"{name!r} must be an annealz model, a PyMC model, or a function that makes one, got "
            f"{type(found).__name__}."
        )
    return found


def _is_file(module: str) -> bool:
    return module.endswith(".py")


def _is_pymc(thing: Any) -> bool:
    """Check whether it is a PyMC model, without importing PyMC."""
    pymc = sys.modules.get("pymc")
    return pymc is not None and isinstance(thing, pymc.Model)


def _imported(name: str) -> ModuleType:
    """Import a module, or a file as Python runs it: what lies beside it can be imported, too.

    The name of a file hides no other module.
    """
    if not _is_file(name):
        with _searched(Path.cwd()):
            return importlib.import_module(name)
    path = Path(name).resolve()
    name = f"annealz_file_{path.stem}"
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(path):
        return known
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with _searched(path.parent):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextmanager
def _searched(folder: Path) -> Iterator[None]:
    """Put the modules of this folder first."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, ImportError) else one_line(error)

"""Python objects as bytes, to be sent to workers.

Functions and classes that no installed module holds (lambdas, those of a notebook or of a file in the
current folder) travel by their code. Each time a function is read it would be another one, for which JAX
compiles again. So a worker keeps those that it has read, and gives the same one for the same code.
"""

import contextlib
import functools
import hashlib
import io
import json
import pickle
import sys
import sysconfig
import threading
import types
from collections import OrderedDict
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import jax

__all__ = ["Bytes", "pack", "unpack"]

Bytes = tuple[bytes, dict[str, bytes]]
"""An object, and the functions in it by their digests."""

_MOST_FUNCTIONS = 256  # that a worker keeps
_KINDS = (types.FunctionType, type(jax.jit(lambda: None)))


def pack(what: Any) -> Bytes:
    """Its bytes, those of its functions apart."""
    import cloudpickle

    functions: dict[str, bytes] = {}
    file = io.BytesIO()
    with _by_their_code() as own:

        class Pickler(cloudpickle.Pickler):
            def persistent_id(self, obj: Any) -> str | None:
                if not isinstance(obj, _KINDS) or _is_importable(obj, own):
                    return None
                code = cloudpickle.dumps(obj)
                key = hashlib.sha256(code).hexdigest()
                functions[key] = code
                return key

        Pickler(file, protocol=pickle.HIGHEST_PROTOCOL).dump(what)
    return file.getvalue(), functions


def unpack(packed: Bytes) -> Any:
    """The object again, with the functions that this process has read before."""
    payload, functions = packed

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, pid: str) -> Any:
            return _function(pid, functions[pid])

    try:
        return Unpickler(io.BytesIO(payload)).load()
    except ModuleNotFoundError as error:
        raise ValueError(
            f"a worker has no module {error.name!r}, which the run needs: install it on the workers, or "
            "send it with client.upload_file."
        ) from error


_known: OrderedDict[str, Any] = OrderedDict()
_lock = threading.RLock()


def _function(key: str, code: bytes) -> Any:
    with _lock:
        if key not in _known:
            _known[key] = pickle.loads(code)
            while len(_known) > _MOST_FUNCTIONS:
                _known.popitem(last=False)
        _known.move_to_end(key)
        return _known[key]


def _is_importable(function: Any, own: set[str]) -> bool:
    """Whether a worker finds it by its name."""
    module = getattr(function, "__module__", None)
    if module in (None, "__main__") or module in own:
        return False
    found: Any = sys.modules.get(module)
    for name in getattr(function, "__qualname__", "").split("."):
        found = getattr(found, name, None)
    return found is function


_registry_lock = threading.RLock()


@contextlib.contextmanager
def _by_their_code() -> Iterator[set[str]]:
    """Within the context, what the user's own modules hold is pickled by its code; the names of these."""
    import cloudpickle

    with _registry_lock:
        own = _own_modules()
        before = cloudpickle.list_registry_pickle_by_value()
        new = [sys.modules[name] for name in own - before]
        for module in new:
            cloudpickle.register_pickle_by_value(module)
        try:
            yield own | before
        finally:
            for module in new:
                cloudpickle.unregister_pickle_by_value(module)


def _own_modules() -> set[str]:
    """Modules that were imported from files that nobody installed: workers may lack them."""
    found = set()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        is_module = isinstance(module, types.ModuleType) and module.__name__ == name
        if is_module and isinstance(file, str) and not name.startswith(_NEVER):
            found |= set() if _is_installed(file) else {name}
    return found


_NEVER = ("annealz", "__main__", "__mp_main__")


@functools.cache
def _is_installed(file: str) -> bool:
    """By a package manager, or in editable mode."""
    if not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts):
        return True
    return any(Path(file).is_relative_to(folder) for folder in _installed_folders())


@functools.cache
def _installed_folders() -> frozenset[str]:
    """Of Python's own modules, and of packages in editable mode (PEP 610)."""
    folders = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    for one in metadata.distributions():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            record = json.loads(one.read_text("direct_url.json") or "{}")
            if record["dir_info"]["editable"]:
                folders.add(url2pathname(urlsplit(record["url"]).path))
    return frozenset(folders)

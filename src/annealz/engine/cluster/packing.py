"""Python objects as bytes, to be sent to workers.

Functions that no module holds (lambdas, those of a notebook) travel by their code. Each time one is read it
would be another function, for which JAX compiles again. So a worker keeps those that it has read, and gives
the same one for the same code.
"""

import hashlib
import io
import pickle
import sys
import threading
import types
from collections import OrderedDict
from typing import Any

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

    class Pickler(cloudpickle.Pickler):
        def persistent_id(self, obj: Any) -> str | None:
            if not isinstance(obj, _KINDS) or _is_importable(obj):
                return None
            code = cloudpickle.dumps(obj)
            key = hashlib.sha256(code).hexdigest()
            functions[key] = code
            return key

    file = io.BytesIO()
    Pickler(file, protocol=pickle.HIGHEST_PROTOCOL).dump(what)
    return file.getvalue(), functions


def unpack(packed: Bytes) -> Any:
    """The object again, with the functions that this process has read before."""
    payload, functions = packed

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, pid: str) -> Any:
            return _function(pid, functions[pid])

    return Unpickler(io.BytesIO(payload)).load()


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


def _is_importable(function: Any) -> bool:
    """Whether a worker finds it by its name."""
    module = getattr(function, "__module__", None)
    if module in (None, "__main__"):
        return False
    found: Any = sys.modules.get(module)
    for name in getattr(function, "__qualname__", "").split("."):
        found = getattr(found, name, None)
    return found is function

"""What a result was made with."""

import functools
import platform
from importlib import metadata

from annealz.core.devices import device_name

_version = functools.cache(metadata.version)  # three milliseconds each
_NAMES = ("annealz", "jax", "jaxlib", "equinox", "numpy", "scipy")


def versions() -> dict[str, str]:
    """Versions of what computes, and the device."""
    return {
        **{name: _version(name) for name in _NAMES},
        "python": platform.python_version(),
        "device": device_name(),
    }

"""What a result was made with."""

import functools
import platform
from importlib import metadata

from annealz.core.devices import local_devices

__all__ = ["versions"]

_version = functools.cache(metadata.version)  # three milliseconds each
_NAMES = ("annealz", "jax", "jaxlib", "equinox", "numpy", "scipy")


def versions() -> dict[str, str]:
    """Versions of what computes, and the device."""
    device = local_devices()[0]
    return {
        **{name: _version(name) for name in _NAMES},
        "python": platform.python_version(),
        "device": " ".join(dict.fromkeys([device.platform, device.device_kind])),
    }

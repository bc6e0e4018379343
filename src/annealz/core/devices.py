"""Where this process computes: the one place that asks JAX.

JAX may be given a device or a platform to prefer (`jax.default_device`), which `jax.default_backend` and
`jax.local_devices` ignore. So a CPU run on a machine with a GPU must ask here and not there. The preference
belongs to a thread: threads that compute for another one take it from there (`preferred`, `preferring`).
"""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax

__all__ = [
    "Device",
    "is_first",
    "local_devices",
    "num_side_by_side",
    "platform",
    "preferred",
    "preferring",
]

Device = Any  # jax.Device


def local_devices() -> list[Device]:
    """Where this process computes: all its devices, or those that JAX is set to prefer."""
    device = preferred()
    if isinstance(device, str):
        return jax.local_devices(backend=device)
    return jax.local_devices() if device is None else [device]


def platform() -> str:
    """cpu, gpu or tpu: of the devices that compute."""
    return local_devices()[0].platform


def is_first(devices: Sequence[Device]) -> bool:
    """Whether these are the one device on which JAX puts arrays by itself."""
    return list(devices) == jax.local_devices()[:1]


def num_side_by_side(devices: Sequence[Device]) -> int:
    """How many programs these devices run at a time; a CPU is one device to JAX and has many cores."""
    cores = os.cpu_count() or 1 if devices[0].platform == "cpu" else 1
    return max(len(devices), cores)


def preferred() -> Device | str | None:
    """The device or the platform that JAX is set to prefer in this thread, if any."""
    return jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]


def preferring(device: Device | str | None) -> AbstractContextManager:
    """The same preference in another thread, while the context lasts."""
    return jax.default_device(device)

"""Where this process computes: the one place that asks JAX.

JAX may be given a device or a platform to prefer (`jax.default_device`), which `jax.default_backend` and
`jax.local_devices` ignore. So a CPU run on a machine with a GPU must ask here and not there. The preference
belongs to a thread: threads that compute for another one take it from there (`preferred`, `preferring`).
While runs go to the workers of a cluster, the platform is theirs.
"""

import contextlib
import contextvars
import functools
import os
import platform as machine
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from importlib import metadata
from typing import Any, NamedTuple

import jax

Device = Any  # jax.Device
_version = functools.cache(metadata.version)  # three milliseconds each
_COMPUTES = ("annealz", "jax", "jaxlib", "equinox", "numpy", "scipy")


class Elsewhere(NamedTuple):
    """Where runs are computed, if not in this process."""

    platform: str
    device: str


_elsewhere: contextvars.ContextVar[Elsewhere | None] = contextvars.ContextVar(
    "elsewhere", default=None
)


def local_devices() -> list[Device]:
    """Where this process computes: all its devices, or those that JAX is set to prefer."""
    device = preferred()
    if isinstance(device, str):
        return jax.local_devices(backend=device)
    return jax.local_devices() if device is None else [device]


def platform() -> str:
    """cpu, gpu or tpu: of the devices that compute."""
    elsewhere = _elsewhere.get()
    return local_devices()[0].platform if elsewhere is None else elsewhere.platform


def cpu() -> Device | None:
    """The processor beside other devices; None where JAX has those alone."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return None


def device_name() -> str:
    """The platform and the kind of the devices that compute."""
    elsewhere = _elsewhere.get()
    if elsewhere is not None:
        return elsewhere.device
    device = local_devices()[0]
    return " ".join(dict.fromkeys([device.platform, device.device_kind]))


@contextlib.contextmanager
def computing_on(elsewhere: Elsewhere) -> Iterator[None]:
    """Runs are computed there while the context lasts."""
    token = _elsewhere.set(elsewhere)
    try:
        yield
    finally:
        _elsewhere.reset(token)


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


def versions() -> dict[str, str]:
    """Return the versions of what computes, and the device."""
    return {
        **{name: _version(name) for name in _COMPUTES},
        "python": machine.python_version(),
        "device": device_name(),
    }

"""Where this process computes."""

from typing import Any

import jax

__all__ = ["local_devices"]


def local_devices() -> list[Any]:
    """Where this process computes: all its devices, or the one that JAX was told to prefer."""
    preferred = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(preferred, str):
        return jax.local_devices(backend=preferred)
    return jax.local_devices() if preferred is None else [preferred]

"""What the numbers were measured with: versions, processor, cores. No names of hosts or users."""

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

__all__ = ["machine"]

_PACKAGES = ("annealz", "jax", "jaxlib", "equinox", "numpy")


def machine() -> dict[str, Any]:
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "architecture": platform.machine(),
        "backend": jax.default_backend(),
        "versions": {"python": platform.python_version()} | {p: _version(p) for p in _PACKAGES},
    }


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    return found[1].strip() if found else platform.processor() or "unknown"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None

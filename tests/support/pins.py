"""Pinned results, which a change of the code keeps unless it pins them again (`tests/golden/pin.py`)."""

import functools
import hashlib
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import scipy

FOLDER = Path(__file__).parents[1] / "golden"
IS_PINNING = bool(os.environ.get("ANNEALZ_PIN"))
Agree = Callable[[Any, Any], None]


@functools.cache
def machine() -> str:
    """Return processor, versions and settings: where they are the same, so are bits."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(errors="replace").splitlines() if info.exists() else []
    traits = sorted(
        {line for line in lines if line.startswith(("flags", "Features", "model name"))}
    )
    settings = [
        os.environ.get(name, "") for name in ("XLA_FLAGS", "JAX_DISABLE_MOST_OPTIMIZATIONS")
    ]
    words = " ".join([platform.processor(), str(os.cpu_count()), *traits, *settings])
    versions = f"jax {jax.__version__}, numpy {np.__version__}, scipy {scipy.__version__}"
    return f"{platform.machine()} {hashlib.sha256(words.encode()).hexdigest()[:8]}, {versions}"


def check(file: str, name: str, value: dict[str, Any], place: str, agree: Agree) -> None:
    """Check that `value` equals its pin; where the pin was made at another place, that both agree."""
    path = FOLDER / file
    pins = json.loads(path.read_text()) if path.exists() else {}
    entry, pin = {"place": place, **value}, pins.get(name)
    if IS_PINNING:
        if entry != pin:
            print(f"\n{name}: {_difference(pin or {}, entry)}")
            text = json.dumps(dict(sorted((pins | {name: entry}).items())), indent=1)
            path.write_text(text + "\n")
        return
    assert pin is not None, f"{name} has no pin: run python tests/golden/pin.py"
    if pin["place"] == place:
        assert entry == pin, f"{name}: {_difference(pin, entry)}"
    else:
        agree(value, pin)


def _difference(pin: dict[str, Any], entry: dict[str, Any]) -> str:
    keys = [key for key in {**pin, **entry} if pin.get(key) != entry.get(key)]
    return ", ".join(f"{key} {pin.get(key)} -> {entry.get(key)}" for key in keys)

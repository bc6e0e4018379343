"""`annealz doctor`: what annealz finds on this machine, and whether it computes what it should."""

import importlib.util
import json
import os
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import platformdirs
import typer

from annealz.cli.options import Json
from annealz.cli.show import open_console, show_rows
from annealz.core.compilation_cache import programs_folder
from annealz.io.reading import size_text

__all__ = ["doctor"]

_EXTRAS = {  # package: what it is for
    "h5py": "HDF5 files",
    "safetensors": "safetensors files",
    "numpyro": "NumPyro models",
    "pymc": "PyMC models",
    "distributed": "clusters",
    "xarray": "to_xarray()",
}
_FAILED = 1


def doctor(as_json: Json = False) -> None:
    """Versions, devices, caches, and a self-test of some seconds."""
    found = _found()
    began = time.monotonic()
    found["self-test"] = _self_test()
    found["self-test"]["seconds"] = round(time.monotonic() - began, 1)
    if as_json:
        print(json.dumps(found))
    else:
        show_rows(open_console(), _rows(found))
    if not found["self-test"]["is_passed"]:
        raise typer.Exit(_FAILED)


def _found() -> dict[str, Any]:
    import jax

    from annealz.core.devices import local_devices, platform
    from annealz.core.versions import versions
    from annealz.engine.gpu.choose import has_fused_steps

    is_on = bool(jax.config.jax_enable_compilation_cache)  # pyright: ignore[reportAttributeAccessIssue]
    cache, programs = Path(platformdirs.user_cache_dir("annealz")), programs_folder()
    return {
        "versions": versions(),
        "extras": {name: _version(name) for name in _EXTRAS},
        "platform": platform(),
        "devices": [device.device_kind for device in local_devices()],
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "fused_steps": has_fused_steps(),
        "cache": {"folder": str(cache), "bytes": _bytes_in(cache)},
        "programs": {
            "are_kept": programs is not None and is_on,
            "folder": None if programs is None else str(programs),
            "bytes": 0 if programs is None else _bytes_in(programs),
        },
    }


def _version(package: str) -> str | None:
    if importlib.util.find_spec(package) is None:
        return None
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


def _bytes_in(folder: Path) -> int:
    """Of the files in it; those that vanish meanwhile do not count."""
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except OSError:
            continue
    return total


def _self_test() -> dict[str, Any]:
    """log Z of a small model by annealing, beside its exact value."""
    import numpy as np

    from annealz.api import estimate_log_z
    from annealz.models.exact import exact_log_z
    from annealz.models.rbm import RBM

    normal = np.random.default_rng(0).normal
    model = RBM(normal(size=(8, 12)), normal(size=8), normal(size=12))
    exact = exact_log_z(model)
    estimate = estimate_log_z(
        model,
        base="uniform",
        schedule="linear",
        num_steps=1000,
        num_chains=500,
        second_opinion=False,
    )
    off = estimate.log_z - exact
    return {
        "is_passed": bool(abs(off) < 5 * estimate.std_err and estimate.std_err < 0.1),
        "log_z": estimate.log_z,
        "std_err": estimate.std_err,
        "exact_log_z": exact,
    }


def _rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    versions, test, programs = found["versions"], found["self-test"], found["programs"]
    rows = [(name, version) for name, version in versions.items() if name != "device"]
    for name, version in found["extras"].items():
        missing = f"not installed ({_EXTRAS[name]})"
        rows.append((name, missing if version is None else version))
    names = ", ".join(dict.fromkeys(found["devices"]))
    count = len(found["devices"])
    rows += [
        ("device", f"{found['platform']}, {names}" + (f", {count} of them" if count > 1 else "")),
        ("cores", str(found["cores"])),
        (
            "fused steps",
            "in use" if found["fused_steps"] else "not in use: they are for Hopper GPUs",
        ),
        ("cache", f"{found['cache']['folder']}, {size_text(found['cache']['bytes'])}"),
        (
            "programs",
            f"kept in {programs['folder']}, {size_text(programs['bytes'])}"
            if programs["are_kept"]
            else "not kept: every process compiles its own",
        ),
        (
            "self-test",
            f"{'passed' if test['is_passed'] else 'FAILED'}: log Z {test['log_z']:.4f} ± "
            f"{test['std_err']:.4f}, exact {test['exact_log_z']:.4f}, {test['seconds']} s",
        ),
    ]
    return rows

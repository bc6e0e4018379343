"""Keep the compiled programs of a command for the next one, which then takes half the time.

They lie in JAX's compilation cache, in annealz's folder of the user's cache, at most 1 GB of them, those
that were not used for long dropped first; several processes may share it. Programs use what a processor can
do, so that each kind of it has a folder of its own. `ANNEALZ_PROGRAMS=0` keeps none, and where a folder is
set for JAX (`JAX_COMPILATION_CACHE_DIR`, `jax_compilation_cache_dir`), it is that one.

A command sets it for itself and the processes that it starts. In Python the setting is the user's:
`jax.config.update("jax_compilation_cache_dir", …)`.
"""

import functools
import hashlib
import os
import platform
import warnings
from pathlib import Path

import platformdirs

__all__ = ["keep_programs", "programs_folder"]

_MOST_BYTES = 10**9
_SHORTEST = 0.05  # seconds to compile: those of less are hardly faster to read


def programs_folder() -> Path | None:
    """Where compiled programs are kept; None where they are not."""
    given = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    if given is not None:
        return Path(given) if given else None
    if os.environ.get("ANNEALZ_PROGRAMS") == "0":
        return None
    return Path(platformdirs.user_cache_dir("annealz")) / "programs" / _processor()


def keep_programs() -> None:
    """Set it for JAX, before it is imported, and for the processes that are started from here."""
    folder = _made()
    if folder is None:
        return
    for name, value in _settings(folder).items():
        os.environ.setdefault(name.upper(), str(value))
    _ignore_warnings()


def _made() -> Path | None:
    """The folder, if it is not set for JAX already and can be written."""
    folder = programs_folder()
    if folder is None or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # nothing is kept where nothing can be written
        return None
    return folder if os.access(folder, os.W_OK) else None


def _settings(folder: Path) -> dict[str, object]:
    """By the names of JAX's configuration."""
    return {
        "jax_compilation_cache_dir": str(folder),
        "jax_compilation_cache_max_size": _MOST_BYTES,
        "jax_persistent_cache_min_compile_time_secs": _SHORTEST,
    }


def _ignore_warnings() -> None:
    """A file that is damaged or cannot be written costs a compilation, and nothing else."""
    warnings.filterwarnings("ignore", "Error .* persistent compilation cache", UserWarning)


@functools.cache
def _processor() -> str:
    """A word for the kind of processor: programs use what it can do."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    traits = [line for line in lines if line.startswith(("flags", "Features", "model name"))]
    words = " ".join([platform.machine(), platform.processor(), *sorted({*traits})])
    return hashlib.sha256(words.encode()).hexdigest()[:12]

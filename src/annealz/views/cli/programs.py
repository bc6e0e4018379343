"""Compiled programs are kept for the next command: the first result of a process takes half the time.

They lie in JAX's compilation cache, in annealz's folder of the user's cache, at most 1 GB of them, those
that were not used for long dropped first; several processes may share it. Programs use what a processor can
do, so that each kind of it has a folder of its own. `ANNEALZ_PROGRAMS=0` keeps none, and where a folder is
set for JAX (`JAX_COMPILATION_CACHE_DIR`), it is that one.
"""

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
    folder = programs_folder()
    if folder is None or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # nothing is kept where nothing can be written
        return
    if not os.access(folder, os.W_OK):
        return
    wanted = {
        "JAX_COMPILATION_CACHE_DIR": str(folder),
        "JAX_COMPILATION_CACHE_MAX_SIZE": str(_MOST_BYTES),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": str(_SHORTEST),
    }
    for name, value in wanted.items():
        os.environ.setdefault(name, value)
    # A file that is damaged or cannot be written costs a compilation, and nothing else.
    warnings.filterwarnings("ignore", "Error .* persistent compilation cache", UserWarning)


def _processor() -> str:
    """A word for the kind of processor: programs use what it can do."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    traits = [line for line in lines if line.startswith(("flags", "Features", "model name"))]
    words = " ".join([platform.machine(), platform.processor(), *sorted({*traits})])
    return hashlib.sha256(words.encode()).hexdigest()[:12]

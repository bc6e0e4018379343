"""Compiled programs are kept for the next process: its first result takes half the time.

They lie in JAX's compilation cache, in annealz's folder of the user's cache, at most 1 GB of them, those
that were not used for long dropped first; several processes may share it. Programs use what a processor can
do, so that each kind of it has a folder of its own. `ANNEALZ_PROGRAMS=0` keeps none, and where a folder is
set for JAX (`JAX_COMPILATION_CACHE_DIR`, `jax_compilation_cache_dir`), it is that one.

A command sets it once, for itself and what it starts. In Python the setting is JAX's own, and not ours to
keep: it is made where a call of ours begins and taken back where it ends.
"""

import functools
import hashlib
import os
import platform
import warnings
from pathlib import Path

import platformdirs

from annealz.core.counted import Counted

__all__ = ["keep_programs", "keeping_programs", "programs_folder"]

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


class _Keeping(Counted):
    """JAX's setting, ours while at least one call of ours lasts, in whichever thread."""

    def __init__(self):
        super().__init__()
        self._before: dict[str, object] = {}
        self._given: dict[str, object] = {}

    def begin(self) -> None:
        import jax

        if jax.config.jax_compilation_cache_dir is not None:  # pyright: ignore[reportAttributeAccessIssue]
            return
        folder = _made()
        if folder is not None:
            self._given = _settings(folder)
            self._before = {name: getattr(jax.config, name) for name in self._given}
            self._put(self._given)
            _ignore_warnings()

    def end(self) -> None:
        """Put back what nobody has changed since."""
        import jax

        ours = {name for name, value in self._given.items() if getattr(jax.config, name) == value}
        self._put({name: value for name, value in self._before.items() if name in ours})
        self._before, self._given = {}, {}

    @staticmethod
    def _put(values: dict[str, object]) -> None:
        import jax
        from jax.experimental.compilation_cache.compilation_cache import reset_cache

        for name, value in values.items():
            jax.config.update(name, value)
        if values:
            reset_cache()  # JAX asks once whether there is a folder


keeping_programs = _Keeping()
"""Of a function: its programs are kept, unless JAX has a folder of its own already."""


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

"""Keep the compiled programs of a command for the next one, which then takes half the time.

They lie in JAX's compilation cache, in annealz's folder of the user's cache, at most 1 GB of them, those
that were not used for long dropped first; several processes may share it. Programs use what a processor can
do, so that each kind of it has a folder of its own. `ANNEALZ_PROGRAMS=0` keeps none, and where a folder is
set for JAX (`JAX_COMPILATION_CACHE_DIR`, `jax_compilation_cache_dir`), it is that one.

A command sets it for itself and the processes that it starts. In Python the setting is the user's:
`jax.config.update("jax_compilation_cache_dir", …)`. This module imports nothing of JAX.
"""

import contextlib
import functools
import hashlib
import os
import platform
import secrets
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

import platformdirs

_MOST_BYTES = 10**9
_SHORTEST = 0.05  # seconds to compile: those of less are hardly faster to read
_MOST_TEXTS = 256


def programs_folder() -> Path | None:
    """Return where compiled programs are kept; None where they are not."""
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
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    os.environ.setdefault("JAX_COMPILATION_CACHE_MAX_SIZE", str(_MOST_BYTES))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", str(_SHORTEST))
    # a file that is damaged or cannot be written costs a compilation, and nothing else
    warnings.filterwarnings("ignore", "Error .* persistent compilation cache", UserWarning)


def kept_text(kind: str, of: Iterable[str], make: Callable[[], str]) -> str:
    """Return the text that is made of these words: as it was kept beside the programs, or made and kept.

    Its file is called after the digest of the words, and its first line is the digest of the text. Where
    nothing can be read or written, or a file was damaged, the text is made again.
    """
    folder = programs_folder()
    if folder is None or "://" in os.environ.get("JAX_COMPILATION_CACHE_DIR", ""):
        return make()  # not on a disk, or not at all
    file = folder / kind / f"{_digest(chr(0).join(of))}.txt"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        digest, _, text = file.read_bytes().decode().partition("\n")
        if digest == _digest(text):
            with contextlib.suppress(OSError):  # dropped by another process, or not ours
                os.utime(file)
            return text
    text = make()
    with contextlib.suppress(OSError):  # nothing is kept where nothing can be written
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(f".{secrets.token_hex(4)}")
        new.write_bytes(f"{_digest(text)}\n{text}".encode())
        new.replace(file)
        files = sorted(file.parent.iterdir(), key=lambda one: one.stat().st_mtime)
        for oldest in files[:-_MOST_TEXTS]:
            oldest.unlink(missing_ok=True)
    return text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def _processor() -> str:
    """Return a word for the kind of processor: programs use what it can do."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    traits = [line for line in lines if line.startswith(("flags", "Features", "model name"))]
    words = " ".join([platform.machine(), platform.processor(), *sorted({*traits})])
    return _digest(words)[:12]

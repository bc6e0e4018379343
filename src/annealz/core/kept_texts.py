"""Texts that take long to make are kept for the next process, in a folder beside the compiled programs.

    name of a file    SHA-256 of all that its text is made of
    first line        SHA-256 of the text, which is the rest

Files are written atomically, so that several processes may share them, and those that were not used for
long are dropped. Where nothing can be read or written, or a file was damaged, the text is made again.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from annealz.core.kept_programs import programs_folder
from annealz.io.storage.files import write_atomic

__all__ = ["kept_text"]

_MOST_FILES = 256


def kept_text(kind: str, of: Iterable[str], make: Callable[[], str]) -> str:
    """The text of this kind that is made of these words: read, or made and written."""
    folder = programs_folder()
    if folder is None or "://" in os.environ.get("JAX_COMPILATION_CACHE_DIR", ""):
        return make()  # not on a disk, or not at all
    file = folder / kind / f"{_digest(chr(0).join(of))}.txt"
    text = _read(file)
    if text is None:
        text = make()
        with contextlib.suppress(OSError):  # nothing is kept where nothing can be written
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(file, f"{_digest(text)}\n{text}")
            _drop_oldest(file.parent)
    return text


def _read(file: Path) -> str | None:
    """What was written, whole; it counts as used now."""
    try:
        digest, _, text = file.read_bytes().decode().partition("\n")
        if digest != _digest(text):
            return None
    except (OSError, UnicodeDecodeError):
        return None
    with contextlib.suppress(OSError):  # another process may have dropped it, or it is not ours
        os.utime(file)
    return text


def _drop_oldest(folder: Path) -> None:
    used = []
    for file in folder.glob("*.txt"):
        with contextlib.suppress(OSError):  # dropped by another process
            used.append((file.stat().st_mtime, file))
    for _, file in sorted(used)[: max(len(used) - _MOST_FILES, 0)]:
        file.unlink(missing_ok=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

"""Files and folders that others use at the same time: atomic writes, and one writing process per folder."""

import contextlib
import os
import secrets
from collections.abc import Collection, Iterator
from pathlib import Path

_MOST_ATTEMPTS = 100  # to lock a folder that others take away


def write_atomic(path: str | Path, content: bytes | str) -> None:
    """Write a file of which a reader sees the old content or the new one, never a part.

    An OSError (full disk, read-only folder) leaves what was there before untouched.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except FileExistsError:
        raise  # another's
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    with contextlib.suppress(OSError):  # not every file system can sync a folder
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def check_file(path: str | Path, what: str, endings: Collection[str]) -> Path:
    """Refuse a file that could not be written, before the work is done."""
    path = Path(path)
    if path.suffix.lower() not in endings:
        known = f"one of {', '.join(endings)}" if len(endings) > 1 else "".join(endings)
        raise ValueError(f"the {what} {path} must end in {known}.")
    if path.is_dir():
        raise ValueError(f"the {what} {path} is a folder: give a file.")
    if not path.parent.is_dir():
        raise ValueError(f"the {what} {path} is to go to a folder that does not exist.")
    return path


@contextlib.contextmanager
def writing(what: str) -> Iterator[None]:
    """Refuse, as bad input, a file that cannot be written."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"cannot write {what}: {error.strerror or error}.") from error


@contextlib.contextmanager
def holding(folder: str | Path) -> Iterator[None]:
    """Refuse a folder that another process writes to, and keep others out of it until the end.

    The file `.lock` in it is locked; the system releases it when the process ends, however it ends. A
    folder that is missing is made. One that is empty at the end is deleted, unless it was empty before.
    Where nothing can be locked, writing reports the error.
    """
    from filelock import FileLock, Timeout  # when it is needed: it takes 30 ms

    folder = Path(folder)
    file, was_empty = folder / ".lock", False
    with contextlib.suppress(OSError):
        was_empty = not any(folder.iterdir())
    lock = FileLock(file, blocking=False)
    for _ in range(_MOST_ATTEMPTS):
        try:
            lock.acquire()
            file.write_text(str(os.getpid()))
        except Timeout:
            raise ValueError(
                f"{folder} is in use by another process of annealz{_holder(file)}: wait until it ends, "
                "or choose another folder."
            ) from None
        except (FileNotFoundError, FileExistsError):  # its last user deletes the folder
            continue
        except OSError:
            pass
        break
    try:
        yield
    finally:
        if lock.is_locked:
            with contextlib.suppress(OSError):
                file.unlink()  # while it is locked: filelock refuses one that lost its name
            lock.release()
            if not was_empty:
                with contextlib.suppress(OSError):  # it holds files
                    folder.rmdir()


def _holder(file: Path) -> str:
    """Return the number of the process that wrote a lock's file, in words."""
    with contextlib.suppress(OSError):
        number = file.read_bytes()[:20]
        if number.isdigit():
            return f", number {number.decode()}"
    return ""

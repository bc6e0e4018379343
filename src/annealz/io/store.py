"""The folder of one run, of any kind.

run.json            what the run was given, a record with its `method`; written first: it marks the folder
inputs.npz          arrays that the run was given, and their records
checkpoint-….npz    a part of the run in the middle
part-….npz          finished parts
result.json         the result as the command line prints it with --json; written last: it marks the run as
                    done, and is never read
report.html         the result as a page
000010000.npz …     models along a training
.lock               while a process writes here (`io/files.py`)

Every archive carries the digest of run.json, so that a file of another run is recognised. Nothing in a
folder is ever imported or run.
"""

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from annealz.core import interrupts
from annealz.core.errors import InputError
from annealz.io.archive import load_archive, save_archive
from annealz.io.files import holding, write_atomic
from annealz.io.records import digest_record, load_record, save_record

Archive = tuple[dict[str, np.ndarray], dict[str, Any]]
"""Named arrays, and a record of JSON values."""

_FILES = (
    "checkpoint-*.npz",
    "part-*.npz",
    ".*.tmp",  # what a killed process left in the middle of a write
    f"{'[0-9]' * 9}*.npz",
    "inputs.npz",
    "report.html",
    "result.json",
    "run.json",  # last: as long as it is there, the others are known to be a run's
)
_NO_MARKS = {".*.tmp", "report.html"}  # which alone make no run
_PUT_BACK = "put the file of this run back, or run it again with force=True"


class Store:
    """The folder of one run: what it was given, where it stands, what came out."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.report = self.path / "report.html"
        self._digest: str | None = None

    def writing(self) -> contextlib.AbstractContextManager[None]:
        """Keep other processes out of the folder, and refuse one that another process writes to."""
        return holding(self.path)

    @property
    def holds_run(self) -> bool:
        """Whether the folder is that of a run."""
        return (self.path / "run.json").is_file()

    @property
    def is_done(self) -> bool:
        """Whether the run came to its end."""
        return (self.path / "result.json").is_file()

    @property
    def has_progress(self) -> bool:
        """Whether there is something to resume from."""
        return any(any(self.path.glob(kind)) for kind in _FILES[:2])

    @property
    def method(self) -> str | None:
        """The method of the run; None if there is no run."""
        return self._text("method")

    @property
    def source(self) -> str | None:
        """Where the model was imported from, module:name; to be shown, never to be imported."""
        return self._text("source")

    def check_free(self, force: bool) -> None:
        """Refuse a place that cannot hold a run, or holds one already."""
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"the output {self.path} is a file: give a folder.")
        marks = (kind for kind in _FILES if kind not in _NO_MARKS)
        if not force and any(any(self.path.glob(kind)) for kind in marks):
            state = "a finished" if self.is_done else "an unfinished"
            verb = "read" if self.is_done else "resume"
            raise InputError(
                "",
                f"the output folder {self.path} already holds {state} run",
                remedy=f"choose another, {verb} it with 'annealz resume {self.path}', or overwrite it with "
                "{force=True}",
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_atomic(self.path / ".probe", "")
            (self.path / ".probe").unlink()
        except OSError as error:
            raise self._refusal(error) from error

    def check_done(self) -> None:
        """Refuse what is not a finished run."""
        if not self.holds_run:
            problem = "holds no run" if self.path.is_dir() else "is not the folder of a run"
            raise ValueError(f"{self.path} {problem}: give the output folder of an estimate.")
        if not self.is_done:
            raise ValueError(
                f"{self.path} holds an unfinished run: finish it first with 'annealz resume {self.path}'."
            )

    def create(
        self,
        record: dict[str, Any],
        arrays: dict[str, np.ndarray] | None = None,
        records: dict[str, Any] | None = None,
    ) -> None:
        """Write down what the run is given, in place of what was there."""
        interrupts.check()  # before what an interrupted function returned is written
        self._digest = digest_record(record)
        try:
            self._delete(*_FILES)
            save_record(self.path / "run.json", record)
            if arrays or records:
                self._write(self.path / "inputs.npz", arrays or {}, records or {})
        except OSError as error:
            with contextlib.suppress(OSError):
                self.remove()
            raise self._refusal(error) from error

    def record(self) -> dict[str, Any]:
        """Return what run.json holds."""
        if not self.holds_run:
            raise ValueError(f"{self.path} holds no run to resume: it has no run.json.")
        record = load_record(self.path / "run.json")
        self._digest = digest_record(record)
        return record

    def inputs(self) -> Archive:
        """Return the arrays and records that the run was given."""
        return self._read(self.path / "inputs.npz")

    def has(self, part: str) -> bool:
        """Check whether a part is finished."""
        return self._file(part).is_file()

    def checkpoint(self, part: str) -> Path:
        """Return the file that keeps a part of the run in the middle."""
        return self.path / f"checkpoint-{part}.npz"

    def save(self, part: str, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        """Keep a finished part and delete its checkpoint."""
        interrupts.check()
        self._write(self._file(part), arrays, meta)
        self.checkpoint(part).unlink(missing_ok=True)

    def load(self, part: str) -> Archive:
        """Return the arrays and the record of a finished part."""
        return self._read(self._file(part))

    def finish(self, result: dict[str, Any]) -> None:
        """Write the result, which marks the run as done, and delete what only a resume needs."""
        interrupts.check()
        write_atomic(self.path / "result.json", json.dumps(result, indent=1))
        self._delete("checkpoint-*.npz", ".*.tmp")

    def remove(self) -> None:
        """Delete the run's own files, and the folder if nothing else is in it."""
        self._delete(*_FILES)
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def _delete(self, *kinds: str) -> None:
        for kind in kinds:
            for file in self.path.glob(kind):
                file.unlink(missing_ok=True)

    def _file(self, part: str) -> Path:
        return self.path / f"part-{part}.npz"

    def _write(self, file: Path, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        save_archive(file, arrays, {**meta, "run": self._own_digest()})

    def _read(self, file: Path) -> Archive:
        if not file.is_file():
            raise ValueError(f"{file} is missing: {_PUT_BACK}.")
        arrays, meta = load_archive(file)
        if meta.pop("run", None) != self._own_digest():
            raise ValueError(
                f"{file} does not belong to the run of {self.path / 'run.json'}: {_PUT_BACK}."
            )
        return arrays, meta

    def _own_digest(self) -> str:
        if self._digest is None:
            self.record()
        assert self._digest is not None
        return self._digest

    def _text(self, name: str) -> str | None:
        value = self.record().get(name) if self.holds_run else None
        return value if isinstance(value, str) else None

    def _refusal(self, error: OSError) -> ValueError:
        reason = error.strerror or error
        return ValueError(f"cannot write to the output folder {self.path}: {reason}.")

"""The folder of one run, of any kind.

run.json         what the run was given, a record with its `kind`; written first: it marks the folder
inputs.npz       arrays that the run was given, and their records
checkpoint.npz   the run in the middle; of later parts checkpoint-part-2.npz, …
part-1.npz       finished parts; deleted with the checkpoints when the run is done
run.npz          the finished run, written last, so that it marks the run as done; beside it reverse.npz of
                 the reverse run, second.npz and probe.npz of the second opinion
result.json      the result as the command line prints it with --json; written for others and never read
report.html      the result as a page
000010000.npz …  models along a training
.lock            while a process writes here (`storage/lock.py`)

Every archive carries the digest of run.json, so that a file of another run is recognised. Nothing in a
folder is ever imported or run.
"""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from annealz.io.reading.fields import list_of, one_of
from annealz.io.storage.archive import load_archive, save_archive
from annealz.io.storage.files import write_atomic
from annealz.io.storage.lock import holding
from annealz.io.storage.record import digest_record, load_record, save_record

__all__ = ["Archive", "Store"]

Archive = tuple[dict[str, np.ndarray], dict[str, Any]]
"""Named arrays, and a record of JSON values."""

_BESIDE = ("reverse", "second", "probe")
_TEMPORARY = ("checkpoint*.npz", "part-*.npz")
_FILES = (
    *_TEMPORARY,
    ".*.tmp",  # what a killed process left in the middle of a write
    f"{'[0-9]' * 9}*.npz",
    *(f"{name}.npz" for name in (*_BESIDE, "run", "inputs")),
    "schedule.json",
    "second-schedule.json",
    "report.html",
    "result.json",
    "run.json",  # last: as long as it is there, the others are known to be a run's
)
_MARKS = {".*.tmp", "report.html"}  # which alone make no run
_PUT_BACK = "put the file of this run back, or run it again with force=True"


class Store:
    """The folder of one run: what it was given, where it stands, what came out.

    Examples
    --------
    >>> import numpy as np
    >>> from annealz.io.store import Store
    >>> store = Store("run")
    >>> with store.writing():
    ...     store.check_free(force=False)
    ...     store.create({"kind": "dice", "seed": 1}, {"faces": np.arange(6)})
    ...     store.finish({"mean": 3.5}, {"run": ({"throws": np.array([2, 5])}, {})})
    >>> Store("run").kind, Store("run").results()["run"][0]["throws"].tolist()
    ('dice', [2, 5])
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.report = self.path / "report.html"
        self._digest: str | None = None

    def writing(self) -> contextlib.AbstractContextManager[None]:
        """Keep other processes out of the folder, and refuse one that another process writes to."""
        return holding(self.path)

    @property
    def holds_run(self) -> bool:
        return (self.path / "run.json").is_file()

    @property
    def is_done(self) -> bool:
        return self.has("run")

    @property
    def has_progress(self) -> bool:
        """Whether there is something to resume from."""
        return any(True for kind in _TEMPORARY for _ in self.path.glob(kind))

    @property
    def kind(self) -> str | None:
        """Of the run; None where there is none."""
        return self._text("kind")

    @property
    def source(self) -> str | None:
        """Where the model was imported from, module:name; to be shown, never to be imported."""
        return self._text("source")

    def check_free(self, force: bool) -> None:
        """Refuse a place that cannot hold a run, or holds one already."""
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"the output {self.path} is a file: give a folder.")
        if not force and any(
            True for kind in _FILES if kind not in _MARKS for _ in self.path.glob(kind)
        ):
            state, verb = (
                ("a finished run", "read") if self.is_done else ("an unfinished run", "resume")
            )
            raise ValueError(
                f"the output folder {self.path} already holds {state}: choose another, {verb} it with "
                f"'annealz resume {self.path}', or overwrite it with force=True."
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
            raise ValueError(
                f"{self.path} {problem}: give the folder that 'annealz estimate --out' wrote."
            )
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
        self._digest = digest_record(record)
        try:
            self._delete(*_FILES)
            save_record(self.path / "run.json", record)
            if arrays or records:
                self._write("inputs", arrays or {}, records or {})
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
        return self.load("inputs")

    def has(self, name: str) -> bool:
        return (self.path / f"{name}.npz").is_file()

    def checkpoint(self, name: str = "part-1") -> Path:
        """Return the file that keeps a part of the run in the middle."""
        suffix = "" if name == "part-1" else f"-{name}"
        return self.path / f"checkpoint{suffix}.npz"

    def save(self, name: str, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        """Keep a finished part and delete its checkpoint; a disk that refuses it stops nothing."""
        with contextlib.suppress(OSError):
            self._write(name, arrays, meta)
            self.checkpoint(name).unlink(missing_ok=True)

    def load(self, name: str) -> Archive:
        """Return the arrays and the record of an archive of this run."""
        path = self.path / f"{name}.npz"
        if not path.is_file():
            raise ValueError(f"{path} is missing: {_PUT_BACK}.")
        arrays, meta = load_archive(path)
        if meta.pop("run", None) != self._own_digest():
            raise ValueError(
                f"{path} does not belong to the run of {self.path / 'run.json'}: {_PUT_BACK}."
            )
        return arrays, meta

    def finish(self, result: dict[str, Any], archives: Mapping[str, Archive]) -> None:
        """Save what came out, the archive "run" and those beside it, and delete what led to it."""
        beside = [name for name in archives if name != "run"]
        for name in beside:
            self._write(name, *archives[name])
        write_atomic(self.path / "result.json", json.dumps(result, indent=1))
        arrays, meta = archives["run"]
        self._write("run", arrays, {**meta, "beside": beside})
        self._delete(*_TEMPORARY)

    def results(self) -> dict[str, Archive]:
        """Return the archives that the run was finished with."""
        arrays, meta = self.load("run")
        try:
            beside = list_of(one_of(*_BESIDE))(meta.pop("beside", None))
        except ValueError as error:
            raise ValueError(f"{self.path / 'run.npz'} is damaged: beside {error}.") from error
        return {"run": (arrays, meta), **{name: self.load(name) for name in beside}}

    def remove(self) -> None:
        """Delete the run's own files, and the folder if nothing else is in it."""
        self._delete(*_FILES)
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def _delete(self, *kinds: str) -> None:
        for kind in kinds:
            for file in self.path.glob(kind):
                file.unlink(missing_ok=True)

    def _write(self, name: str, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        if name not in ("inputs", "run", *_BESIDE) and not name.startswith("part-"):
            raise ValueError(
                f"an archive of a run must be one of run, {', '.join(_BESIDE)} or part-…, got {name!r}."
            )
        save_archive(self.path / f"{name}.npz", arrays, {**meta, "run": self._own_digest()})

    def _own_digest(self) -> str:
        if self._digest is None:
            self.record()
        assert self._digest is not None
        return self._digest

    def _text(self, name: str) -> str | None:
        value = self.record().get(name) if self.holds_run else None
        return value if isinstance(value, str) else None

    def _refusal(self, error: OSError) -> ValueError:
        return ValueError(
            f"cannot write to the output folder {self.path}: {error.strerror or error}."
        )

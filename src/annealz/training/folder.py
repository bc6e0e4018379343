"""The folder of one training, beside the model file that it is to end in.

model.npz                    what comes out
model.training/
    training.json            settings, data and file; written first, so that it marks the folder
    checkpoint.npz           the newest state; gone when the training is done
    000010000.npz …          with a series: the model after so many updates, a model file each
    result.json              with a series: the result, when the training is done, and a digest of
                             training.json, so that one of another training is noticed

Without a series the folder is gone when the training is done.
"""

import contextlib
import re
from pathlib import Path
from typing import Any, Self

from annealz.core.errors import InputError
from annealz.io.reading.fields import (
    Field,
    Record,
    finite,
    line,
    list_of,
    number,
    optional,
    text,
    whole,
)
from annealz.io.storage.files import write_atomic
from annealz.io.storage.record import digest_record, load_record, save_record
from annealz.models.formats.npz import load_rbm, save_rbm
from annealz.models.rbm import RBM

__all__ = ["TrainingFolder", "load_series"]

OUTCOME = Record(
    "the result of a training",
    (
        *(Field(name, line) for name in ("file", "name", "digest")),
        *(Field(name, whole) for name in ("num_hidden", "num_visible", "num_updates")),
        Field("data", Record("data", (Field("name", line), Field("digest", text)))),
        Field("reconstruction_error", number),
        Field("pseudo_log_likelihood", number),
        Field("exact_log_z", optional(number)),
        Field("log_likelihood", optional(number)),
        Field("seconds", finite),
        Field("series", optional(line)),
        Field("messages", list_of(text)),
    ),
)

_RECORD, _CHECKPOINT, _RESULT = "training.json", "checkpoint.npz", "result.json"
_MEMBER = re.compile(r"\d{9,}\.npz")


class TrainingFolder:
    """One folder, one training."""

    def __init__(self, path: str | Path):
        self.path = Path(path)

    @classmethod
    def beside(cls, out: Path) -> Self:
        """The folder of the training that is to end in this model file."""
        return cls(out.with_name(f"{out.stem}.training"))

    @property
    def checkpoint(self) -> Path:
        return self.path / _CHECKPOINT

    def is_training(self) -> bool:
        """Whether there is a training in this folder, done or not."""
        return (self.path / _RECORD).is_file()

    def check(self, out: Path, force: bool) -> None:
        """Refuse a model file that cannot be written or would overwrite something."""
        if out.suffix != ".npz":
            raise ValueError(f"the model file {out} must end in .npz.")
        if out.is_dir():
            raise ValueError(f"the model file {out} is a folder: give a file.")
        if not out.parent.is_dir():
            raise ValueError(f"the model file {out} is to go to a folder that does not exist.")
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path} is a file, and checkpoints are to go to this folder.")
        if out.exists() and not force:
            raise InputError(
                "",
                f"the model file {out} exists",
                remedy="choose another, or overwrite it with {force=True}",
            )
        if self._present() and not force:
            raise InputError(
                "",
                f"{self.path} already holds a training",
                remedy=f"resume it with 'annealz resume {self.path}', choose another file, or overwrite it "
                "with {force=True}",
            )
        try:
            probe = out.with_name(f".{out.name}.probe")
            write_atomic(probe, "")
            probe.unlink()
        except OSError as error:
            raise ValueError(
                f"cannot write to the folder {out.parent.absolute()}: {error.strerror or error}."
            ) from error

    def create(self, record: dict[str, Any]) -> None:
        """Write down what the training is given, in place of what was there."""
        try:
            self.path.mkdir(exist_ok=True)
            self._unlink(self._present())
            save_record(self.path / _RECORD, record)
        except OSError as error:
            raise ValueError(
                f"cannot write to the folder {self.path}: {error.strerror or error}."
            ) from error

    def record(self) -> dict[str, Any]:
        """What the training was given."""
        if not self.is_training():
            raise ValueError(f"{self.path} holds no training to resume: it has no {_RECORD}.")
        return load_record(self.path / _RECORD)

    def add(self, num_done: int, model: RBM, meta: dict[str, Any]) -> None:
        """A member of the series."""
        save_rbm(self.path / f"{num_done:09d}.npz", model, meta)

    def result(self) -> dict[str, Any] | None:
        """The result of a training that is done, else None."""
        path = self.path / _RESULT
        if not path.is_file():
            return None
        stored, own = load_record(path), digest_record(self.record())
        if stored.get("training", own) != own:
            raise ValueError(
                f"{path} does not belong to the training of {self.path / _RECORD}: put the file of this "
                "training back, or delete it and resume."
            )
        return OUTCOME.check(stored.get("result"), path)

    def finish(self, result: dict[str, Any], keep: bool) -> None:
        """Drop the checkpoint, and all the rest unless it is to be kept."""
        if not keep:
            self.remove()
            return
        training = digest_record(self.record())
        save_record(self.path / _RESULT, {"result": result, "training": training})
        self._unlink([self.checkpoint, *self._temporary()])

    def remove(self) -> None:
        """Delete the training's own files, and the folder if nothing else is in it."""
        if self.path.is_dir():
            self._unlink(self._present())
            with contextlib.suppress(OSError):
                self.path.rmdir()

    def _present(self) -> list[Path]:
        """The training's own files, the record last: it says what the others are."""
        named = [self.path / name for name in (_CHECKPOINT, _RESULT, _RECORD)]
        found = [*_members(self.path), *self._temporary(), *named]
        return [path for path in found if path.exists()]

    def _temporary(self) -> list[Path]:
        """What a killed process left behind in the middle of a write."""
        return list(self.path.glob(".*.tmp"))

    def _unlink(self, paths: list[Path]) -> None:
        for path in paths:
            path.unlink(missing_ok=True)


def load_series(folder: str | Path) -> list[tuple[int, RBM]]:
    """The models along a training, as (updates, model) in the order of the updates."""
    members = _members(Path(folder))
    if not members:
        raise InputError("", f"{folder} holds no series of models", remedy="train with {series}")
    return [(int(path.stem), load_rbm(path)[0]) for path in members]


def _members(folder: Path) -> list[Path]:
    found = folder.glob("*.npz") if folder.is_dir() else ()
    return sorted(
        (path for path in found if _MEMBER.fullmatch(path.name)), key=lambda p: int(p.stem)
    )

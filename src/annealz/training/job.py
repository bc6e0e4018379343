"""Training from a data source to a model file, with checkpoints beside it.

Killed at any moment and resumed, it ends in the same bits as if it had never stopped.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from annealz.core.errors import InputError
from annealz.engine.checkpoint import Checkpoint, Saver, digest_of
from annealz.io.reading.fields import Field, Record, file_name, finite, optional, text, whole
from annealz.io.storage.lock import holding
from annealz.io.storage.record import digest_record
from annealz.models.formats.npz import save_rbm
from annealz.models.rbm import RBM
from annealz.training.data.source import SOURCE, DataSource, digest_rows
from annealz.training.folder import TrainingFolder
from annealz.training.outcome import Outcome, exact_values
from annealz.training.settings import Settings
from annealz.training.train import DivergenceError, TrainingProgress, fit

__all__ = ["resume_training", "train_to_file"]

_TRAINED = Record(
    "the settings of a training",
    (
        Field("num_hidden", whole),
        Field("algorithm", text, False),
        *(
            Field(name, whole, False)
            for name in ("gibbs_steps", "num_updates", "batch_size", "seed")
        ),
        Field("learning_rate", finite, False),
        Field("final_learning_rate", optional(finite), False),
        Field("weight_decay", finite, False),
    ),
)
TRAINING = Record(
    "the record of a training",
    (
        Field("settings", _TRAINED),
        Field("data", SOURCE),
        Field("file", file_name),
        Field("series", optional(whole)),
        Field("checkpoint_seconds", finite),
    ),
)

OnProgress = Callable[[TrainingProgress], None]


def train_to_file(
    source: DataSource,
    settings: Settings,
    out: str | Path,
    *,
    series: int | None = None,
    force: bool = False,
    checkpoint_seconds: float = 15.0,
    on_progress: OnProgress | None = None,
) -> Outcome:
    """Train an RBM on the source's data and write it to the npz file `out`.

    With `series` the model after every so many updates is kept in the folder beside `out`.
    """
    out = Path(out)
    if series is not None and series < 1:
        raise InputError("series", "must be at least 1", series)
    folder = TrainingFolder.beside(out)
    if not out.parent.is_dir():
        folder.check(out, force)
    with holding(folder.path):
        folder.check(out, force)
        data = source.read()
        record = {
            "settings": settings.to_dict(),
            "data": {**source.to_dict(), "digest": digest_rows(data)},
            "file": out.name,
            "series": series,
            "checkpoint_seconds": checkpoint_seconds,
        }
        folder.create(record)
        return _run(folder, record, data, on_progress)


def resume_training(path: str | Path, *, on_progress: OnProgress | None = None) -> Outcome:
    """Resume the training in a folder. One that is done is only read."""
    folder = TrainingFolder(path)
    folder.record()  # refuses what is not a training
    with holding(folder.path):
        return _go_on(folder, on_progress)


def _go_on(folder: TrainingFolder, on_progress: OnProgress | None) -> Outcome:
    path = folder.path
    record = TRAINING.check(folder.record(), path)
    result = folder.result()
    if result is not None:
        names = [field.name for field in dataclasses.fields(Outcome)]
        return Outcome(
            **{**{name: result[name] for name in names}, "messages": tuple(result["messages"])}
        )
    try:
        data = DataSource.from_dict(record["data"]).read()
    except (ValueError, OSError) as error:
        raise ValueError(f"the data of the training in {path} are gone: {error}") from error
    if digest_rows(data) != record["data"]["digest"]:
        where = record["data"]["path"] or record["data"]["name"]
        raise ValueError(
            f"the data in {where} changed since the training in {path} began: bring them back, or "
            "train again."
        )
    return _run(folder, record, data, on_progress)


def _run(
    folder: TrainingFolder,
    record: dict[str, Any],
    data: np.ndarray,
    on_progress: OnProgress | None,
) -> Outcome:
    names = [field.name for field in dataclasses.fields(Settings)]
    known = {name: value for name, value in record["settings"].items() if name in names}
    settings, series = Settings(**known), record["series"]
    out = folder.path.parent / record["file"]
    source = {key: record["data"][key] for key in ("name", "digest")}

    def meta(name: str, model: RBM, num_done: int) -> dict[str, Any]:
        training = {**settings.to_dict(), "data": source}
        if num_done < settings.num_updates:
            training["num_done"] = num_done
        return {"name": name, "training": training, "digest": model.digest}

    def keep(num_done: int, model: RBM) -> None:
        folder.add(num_done, model, meta(f"{out.stem}-{num_done}", model, num_done))

    def full(error: OSError, path: Path) -> ValueError:
        return ValueError(
            f"cannot write to {path}: {error.strerror or error}; make room, then resume with: "
            f"annealz resume {folder.path}"
        )

    kept = Checkpoint(folder.checkpoint, digest_of((), digest_record(record)))
    try:
        found = fit(
            data,
            settings,
            on_progress=on_progress,
            report=None if series is None else keep,
            report_every=series or settings.num_updates,
            saver=Saver(kept, record["checkpoint_seconds"]),
        )
    except DivergenceError:
        folder.remove()
        raise
    except OSError as error:
        raise full(error, folder.path) from error
    log_z, log_likelihood = exact_values(found.model, data, settings.seed)
    outcome = Outcome(
        file=str(out),
        name=out.stem,
        num_hidden=found.model.num_hidden,
        num_visible=found.model.num_visible,
        data=source,
        num_updates=settings.num_updates,
        reconstruction_error=found.fitness.reconstruction_error,
        pseudo_log_likelihood=found.fitness.pseudo_log_likelihood,
        exact_log_z=log_z,
        log_likelihood=log_likelihood,
        seconds=found.seconds,
        digest=found.model.digest,
        series=None if series is None else str(folder.path),
        messages=found.messages,
    )
    known = {} if log_z is None else {"exact_log_z": log_z}
    try:
        save_rbm(out, found.model, {**meta(out.stem, found.model, settings.num_updates), **known})
        folder.finish(outcome.to_dict(), keep=series is not None)
    except OSError as error:
        raise full(error, out) from error
    return outcome

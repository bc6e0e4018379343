"""Training from a data source to a model file, with checkpoints and models along the way beside it.

model.npz                    what comes out
model.training/              a run's folder (`io/store.py`); gone at the end, unless it keeps a series
    000010000.npz …          the model after so many updates, a model file each
    part-outcome.npz         the outcome of a training with a series

Killed at any moment and resumed, it ends in the same bits as if it had never stopped. Log-likelihoods are
means over the training data, in nats per example; intensities are drawn once for them, from the seed of the
training.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from annealz.core.errors import InputError
from annealz.core.random import derive_seed
from annealz.diagnostics.sheet import Result, Sheet, record_of
from annealz.engine.checkpoint import Checkpoint, Saver, digest_of
from annealz.engine.context import Context
from annealz.io.files import check_file
from annealz.io.records import (
    TypedRecord,
    digest_record,
    file_name,
    finite,
    line,
    list_of,
    number,
    optional,
    table,
    text,
    whole,
)
from annealz.io.store import Store
from annealz.models.density import log_densities
from annealz.models.exact import exact_log_z
from annealz.models.formats.npz import save_rbm
from annealz.models.rbm import RBM
from annealz.training.contrastive import Settings
from annealz.training.data import DataSource, binarise, digest_rows
from annealz.training.train import DivergenceError, TrainingProgress, fit

_EXACT_UNITS = 20  # of the smaller layer: an enumeration of seconds

OnProgress = Callable[[TrainingProgress], None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingPlan(TypedRecord):
    """What a training is given."""

    what: ClassVar[str] = "the record of a training"

    settings: Annotated[Settings, Settings.within]
    data: Annotated[DataSource, DataSource.within]
    data_digest: Annotated[str, text]
    file: Annotated[str, file_name]
    """The model file, beside the folder."""
    series: Annotated[int | None, optional(whole)] = None
    checkpoint_seconds: Annotated[float, finite] = 15.0

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return {**super().to_dict(), "method": "training"}

    def meta(self, num_done: int, model: RBM) -> dict[str, Any]:
        """Return the record of a model after so many updates."""
        data = {"name": self.data.name, "digest": self.data_digest}
        training, name = {**self.settings.to_dict(), "data": data}, Path(self.file).stem
        if num_done < self.settings.num_updates:
            training["num_done"], name = num_done, f"{name}-{num_done}"
        return {"name": name, "training": training, "digest": model.digest}


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Outcome(Result, TypedRecord):
    """The figures of a trained model, and where it is."""

    what: ClassVar[str] = "the result of a training"

    file: Annotated[str, line]
    name: Annotated[str, line]
    num_hidden: Annotated[int, whole]
    num_visible: Annotated[int, whole]
    data: Annotated[dict[str, str], table]
    """Name and digest."""
    num_updates: Annotated[int, whole]
    reconstruction_error: Annotated[float, number]
    pseudo_log_likelihood: Annotated[float, number]
    exact_log_z: Annotated[float | None, optional(number)]
    log_likelihood: Annotated[float | None, optional(number)]
    """Exact, where log Z is."""
    seconds: Annotated[float, finite]
    digest: Annotated[str, line]
    series: Annotated[str | None, optional(line)]
    """The folder of the series."""
    extra_messages: Annotated[list[str], list_of(text)]
    """Such as that a checkpoint could not be written."""

    def sheet(self) -> Sheet:
        """Return what the result shows."""
        rows = {
            "model": self.file,
            "size": f"{self.num_hidden} hidden, {self.num_visible} visible units",
            "data": self.data["name"],
            "updates": f"{self.num_updates:,}",
            "reconstruction error": f"{self.reconstruction_error:.5f} a unit",
            "pseudo-likelihood": f"{self.pseudo_log_likelihood:.2f} nats per example",
        }
        if self.exact_log_z is not None and self.log_likelihood is not None:
            rows["exact log Z"] = f"{self.exact_log_z:.4f}"
            rows["log-likelihood"] = f"{self.log_likelihood:.2f} nats per example, exact"
        if self.series is not None:
            rows["series"] = self.series
        rows |= {"time": f"{self.seconds:.1f} s", "next": f"annealz estimate {self.file}"}
        record = TypedRecord.to_dict(self)
        del record["extra_messages"]
        return self.described(("model", self.file), tuple(rows.items()), record=record)


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
    check_file(out, "model file", [".npz"])
    if out.exists() and not force:
        raise InputError(
            "force", f"is needed to overwrite {out}", remedy="give it, or choose another file"
        )
    store = training_store(out)
    with Context(out=store.path, force=force) as context:
        context.check_folder()
        data = source.rows()
        plan = TrainingPlan(
            settings=settings,
            data=source,
            data_digest=digest_rows(data),
            file=out.name,
            series=series,
            checkpoint_seconds=checkpoint_seconds,
        )
        store.create(plan.to_dict())
        return _run(plan, store, data, on_progress)


def resume_training(path: str | Path, *, on_progress: OnProgress | None = None) -> Outcome:
    """Resume the training in a folder. One that is done is only read."""
    store = Store(path)
    record = store.record()
    if record.get("method") != "training":
        raise ValueError(f"{path} holds no training, but another run: annealz.resume resumes it.")
    plan = TrainingPlan.read(record, path)
    with Context(out=path, is_resumed=True):
        if store.has("outcome"):
            return Outcome.read(store.load("outcome")[1], path)
        try:
            data = plan.data.rows()
        except (ValueError, OSError) as error:
            raise ValueError(f"the data of the training in {path} are gone: {error}") from error
        if digest_rows(data) != plan.data_digest:
            raise ValueError(
                f"the data in {plan.data.path or plan.data.name} changed since the training in {path} "
                "began: bring them back, or train again."
            )
        return _run(plan, store, data, on_progress)


def training_store(out: str | Path) -> Store:
    """Return the folder of the training that is to end in this model file."""
    return Store(Path(out).with_suffix(".training"))


def _run(
    plan: TrainingPlan, store: Store, data: np.ndarray, on_progress: OnProgress | None
) -> Outcome:
    """Train, write the model, and drop what only a resume needs."""
    settings, place = plan.settings, store.path
    out = place.parent / plan.file

    def keep(num_done: int, model: RBM) -> None:
        save_rbm(store.path / f"{num_done:09d}.npz", model, plan.meta(num_done, model))

    digest = digest_of((), digest_record(plan.to_dict()))
    saver = Saver(Checkpoint(store.checkpoint("training"), digest), plan.checkpoint_seconds)
    report, every = (None, settings.num_updates) if plan.series is None else (keep, plan.series)
    try:
        found = fit(
            data, settings, on_progress=on_progress, report=report, report_every=every, saver=saver
        )
        place, model = out, found.model
        log_z, log_likelihood = _exact_values(model, data, settings.seed)
        meta = plan.meta(settings.num_updates, model)
        outcome = Outcome(
            file=str(out),
            name=out.stem,
            **record_of(model, "num_hidden num_visible digest"),
            **found.fitness._asdict(),
            data=meta["training"]["data"],
            num_updates=settings.num_updates,
            exact_log_z=log_z,
            log_likelihood=log_likelihood,
            seconds=found.seconds,
            series=None if plan.series is None else str(store.path),
            extra_messages=list(found.messages),
        )
        save_rbm(out, model, meta | ({} if log_z is None else {"exact_log_z": log_z}))
        if plan.series is None:
            store.remove()
        else:
            store.save("outcome", {}, TypedRecord.to_dict(outcome))
            store.finish(outcome.to_dict())
    except DivergenceError:
        store.remove()
        raise
    except OSError as error:
        raise ValueError(
            f"cannot write to {place}: {error.strerror or error}; make room, then resume with: "
            f"annealz resume {store.path}"
        ) from error
    return outcome


def _exact_values(model: RBM, data: np.ndarray, seed: int) -> tuple[float | None, float | None]:
    """Return exact log Z and mean log-likelihood of the data; None of models too large to enumerate."""
    if min(model.num_hidden, model.num_visible) > _EXACT_UNITS:
        return None, None
    log_z = exact_log_z(model)
    rows = binarise(data, derive_seed(seed, "likelihood"))
    return log_z, float(log_densities(model, rows).mean() - log_z)

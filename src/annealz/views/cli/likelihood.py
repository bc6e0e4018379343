"""`annealz likelihood`: the mean log-likelihood of data under a model."""

from __future__ import annotations

import io
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from annealz.core.names import DEFAULT_MODEL, DEFAULT_SCHEDULE, packaged_models
from annealz.core.storage.files import write_atomic
from annealz.views.cli.estimate import drop_scratch, interrupted, run_estimate, settle
from annealz.views.cli.options import (
    Base,
    Chains,
    CheckpointSeconds,
    Exact,
    Force,
    Json,
    Map,
    Marginal,
    MaxMemory,
    MaxSeconds,
    Mnist,
    Model,
    Out,
    Quiet,
    Resample,
    Schedule,
    SecondOpinion,
    Seed,
    Steps,
    Strict,
    TargetStdErr,
    TwoSided,
)
from annealz.views.cli.progress import show_progress
from annealz.views.cli.show import show_result

if TYPE_CHECKING:
    import numpy as np

    from annealz.models.rbm import RBM
    from annealz.workflows.estimate import Estimate

__all__ = ["likelihood"]

_TABLES = (".npy", ".csv")


def likelihood(
    model: Model = DEFAULT_MODEL,
    data: Annotated[
        str | None,
        typer.Argument(
            help="mnist-test (default for models of MNIST), mnist, or a file of rows in "
            "[0, 1]: npy, npz, IDX (gz or not).",
            show_default=False,
        ),
    ] = None,
    schedule: Schedule = DEFAULT_SCHEDULE,
    steps: Steps = None,
    chains: Chains = None,
    seed: Seed = 0,
    names: Map = None,
    base: Base = "auto",
    marginal: Marginal = None,
    target_std_err: TargetStdErr = None,
    max_seconds: MaxSeconds = None,
    two_sided: TwoSided = False,
    second_opinion: SecondOpinion = True,
    resample: Resample = None,
    exact: Exact = False,
    conservative: Annotated[
        bool,
        typer.Option("--conservative", help="Also compute a lower bound, by reverse annealing."),
    ] = False,
    per_example: Annotated[
        Path | None, typer.Option(help="Write log p(v) of every example (npy, csv).")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="Take log Z from the run in this folder, done or not.")
    ] = None,
    mnist: Mnist = None,
    out: Out = None,
    force: Force = False,
    checkpoint_seconds: CheckpointSeconds = 15.0,
    max_memory: MaxMemory = None,
    strict: Strict = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Mean log-likelihood of DATA under MODEL, with the error of log Z and that of the data apart."""
    from annealz.models.formats.load import load_binary
    from annealz.models.formats.naming import MappedFile
    from annealz.training.data.source import DataSource
    from annealz.workflows.folder import RunFolder
    from annealz.workflows.likelihood import check_examples, log_likelihood

    model = MappedFile.of(model, names)
    rbm, meta = load_binary(model)
    source = DataSource.of(data or _default_data(model, meta), mnist)
    if per_example is not None:
        _check_table(per_example, force)
    making: dict[str, Any] = {
        "schedule": schedule,
        "num_steps": steps,
        "num_chains": chains,
        "seed": seed,
        "base": base,
        "marginal": marginal,
        "target_std_err": target_std_err,
        "max_seconds": max_seconds,
        "two_sided": two_sided,
        "second_opinion": second_opinion,
        "resample": resample,
    }
    if run is not None:
        _check_run(run, rbm, {**making, "exact": exact, "out": out})
    rows = check_examples(source.examples(), rbm, source.name)
    words = ["annealz", "likelihood", model, *([] if data is None else [data])]
    words += [] if names is None else ["--map", names]
    words += ["--conservative"] if conservative else []
    words += [] if per_example is None else ["--per-example", str(per_example)]
    words += [] if mnist is None else ["--mnist", str(mnist)]
    go_on = f"{shlex.join(words)} --run"
    if run is None:
        estimate, folder = run_estimate(
            model,
            out,
            quiet,
            exact=exact,
            go_on=go_on,
            force=force,
            checkpoint_seconds=checkpoint_seconds,
            **making,
        )
    else:
        estimate, folder = _resume(run, quiet, go_on), RunFolder(run)
    try:
        with show_progress(quiet or not conservative) as progress:
            result = log_likelihood(
                rbm,
                rows,
                estimate=estimate,
                conservative=conservative,
                data_name=source.name,
                on_progress=progress,
            )
        show_result(result, as_json, "log-likelihood")
        if per_example is not None:
            _save_table(result.log_likelihoods, per_example)
    except KeyboardInterrupt:
        raise interrupted(folder, go_on, is_kept=True) from None
    except ValueError:
        if run is None:
            drop_scratch(folder)
        raise
    settle(estimate, folder)


def _default_data(model: str, meta: dict[str, Any]) -> str:
    """MNIST's test split, for a model that was trained on its training split."""
    trained_on = (meta.get("training") or {}).get("data", {}).get("name", "")
    if model in packaged_models() or trained_on in ("mnist", "mnist-train"):
        return "mnist-test"
    raise ValueError(f"DATA is missing: give mnist-test, mnist or a file of rows for {model}.")


def _resume(run: Path, quiet: bool, go_on: str) -> Estimate:
    from annealz.workflows.folder import RunFolder
    from annealz.workflows.log_z import resume as resume_run

    try:
        with show_progress(quiet) as progress:
            return resume_run(run, on_progress=progress)
    except KeyboardInterrupt:
        raise interrupted(RunFolder(run), go_on) from None


def _check_run(run: Path, model: RBM, making: dict[str, Any]) -> None:
    """Refuse the run of another model, and options that ask for a new one."""
    from annealz.workflows.folder import RunFolder

    usual = {
        "schedule": DEFAULT_SCHEDULE,
        "seed": 0,
        "base": "auto",
        "two_sided": False,
        "second_opinion": True,
        "exact": False,
    }
    given = [
        f"--{name.removeprefix('num_').replace('_', '-')}"
        for name, value in making.items()
        if value != usual.get(name)
    ]
    if given:
        raise ValueError(
            f"--run takes log Z from {run}, and {', '.join(given)} would make another: leave one out."
        )
    settings = RunFolder(run).settings()
    if settings.model_digest != model.digest:
        raise ValueError(
            f"the run in {run} is that of another model, {settings.model}: give its own."
        )


def _check_table(path: Path, force: bool) -> None:
    """Refuse a file that could not be written, before the work is done."""
    if path.suffix not in _TABLES:
        raise ValueError(f"the file {path} must end in one of {', '.join(_TABLES)}.")
    if not path.parent.is_dir():
        raise ValueError(f"the file {path} is to go to a folder that does not exist.")
    if path.exists() and not force:
        raise ValueError(f"{path} exists: choose another name, or overwrite it with --force.")


def _save_table(values: np.ndarray, path: Path) -> None:
    """One value per example, in their order."""
    import numpy as np

    if path.suffix == ".npy":
        buffer = io.BytesIO()
        np.save(buffer, values, allow_pickle=False)
        content: bytes | str = buffer.getvalue()
    else:
        lines = [f"{i},{value!r}" for i, value in enumerate(values.tolist())]
        content = "\n".join(["example,log_likelihood", *lines, ""])
    try:
        write_atomic(path, content)
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror or error}.") from error

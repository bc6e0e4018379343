"""`annealz likelihood`: the mean log-likelihood of data under a model."""

from __future__ import annotations

import csv
import io
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from annealz.cli.estimate import drop_scratch, interrupted, run_estimate, settle
from annealz.cli.kept_run import check_run, resume_kept
from annealz.cli.options import (
    Base,
    Chains,
    CheckpointSeconds,
    Exact,
    Force,
    Json,
    Map,
    Marginal,
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
from annealz.cli.progress import show_progress
from annealz.cli.show import show_result
from annealz.core.names import DEFAULT_MODEL, DEFAULT_SCHEDULE, packaged_models
from annealz.io.files import write_atomic

if TYPE_CHECKING:
    import numpy as np


__all__ = ["likelihood"]

_TABLES = (".npy", ".csv")


def likelihood(
    model: Model = DEFAULT_MODEL,
    data: Annotated[
        str | None,
        typer.Argument(
            help="mnist-test (default for models of MNIST), mnist, a file of rows (npy, npz, IDX), or "
            "aligned sequences in FASTA.",
            show_default=False,
        ),
    ] = None,
    alphabet: Annotated[
        str | None,
        typer.Option(
            help="Of sequences: protein, rna, dna, or the letters in the order of their states.",
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
    strict: Strict = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Mean log-likelihood of DATA under MODEL, with the error of log Z and that of the data apart."""
    from annealz.methods.folder import RunFolder
    from annealz.models.formats.load import read_model
    from annealz.models.formats.naming import MappedFile
    from annealz.results.examples import read_examples
    from annealz.results.likelihood import check_conservative, log_likelihood

    model = MappedFile.of(model, names)
    target, meta = read_model(model)
    chosen = data or _default_data(model, meta)
    if conservative:
        check_conservative(target)
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
        check_run(run, target, {**making, "exact": exact, "out": out})
    examples = read_examples(chosen, target, alphabet=alphabet, mnist=mnist)
    words = ["annealz", "likelihood", model, *([] if data is None else [data])]
    words += [] if names is None else ["--map", names]
    words += [] if alphabet is None else ["--alphabet", alphabet]
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
        estimate, folder = resume_kept(run, quiet, go_on), RunFolder(run)
    try:
        with show_progress(quiet or not conservative) as progress:
            result = log_likelihood(
                target,
                examples.rows,
                estimate=estimate,
                conservative=conservative,
                data_name=examples.name,
                on_progress=progress,
            )
        show_result(result, as_json, "log-likelihood")
        if per_example is not None:
            _save_table(result.log_likelihoods, per_example, examples.labels)
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


def _check_table(path: Path, force: bool) -> None:
    """Refuse a file that could not be written, before the work is done."""
    if path.suffix not in _TABLES:
        raise ValueError(f"the file {path} must end in one of {', '.join(_TABLES)}.")
    if not path.parent.is_dir():
        raise ValueError(f"the file {path} is to go to a folder that does not exist.")
    if path.exists() and not force:
        raise ValueError(f"{path} exists: choose another name, or overwrite it with --force.")


def _save_table(values: np.ndarray, path: Path, labels: tuple[str, ...] | None = None) -> None:
    """One value per example, in their order; a table has their labels too, where they have any."""
    import numpy as np

    if path.suffix == ".npy":
        buffer = io.BytesIO()
        np.save(buffer, values, allow_pickle=False)
        content: bytes | str = buffer.getvalue()
    else:
        content = _csv(values, labels)
    try:
        write_atomic(path, content)
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror or error}.") from error


def _csv(values: np.ndarray, labels: tuple[str, ...] | None) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["example", "log_likelihood", *([] if labels is None else ["name"])])
    for i, value in enumerate(values.tolist()):
        writer.writerow([i, repr(value), *([] if labels is None else [labels[i]])])
    return text.getvalue()

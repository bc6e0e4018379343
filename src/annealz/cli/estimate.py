"""`annealz estimate`: log Z of a model."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
import typer

from annealz.cli.cluster import lost, open_client
from annealz.cli.exchange import run_exchange
from annealz.cli.method import check_method
from annealz.cli.nested import finish_nested, run_nested
from annealz.cli.network import shown_in, with_evidence
from annealz.cli.options import (
    Along,
    Base,
    Chains,
    CheckpointSeconds,
    Cluster,
    Data,
    Draws,
    Ensembles,
    Evidence,
    Exact,
    Force,
    InnerSteps,
    Json,
    Kernel,
    Live,
    Log10,
    Map,
    Marginal,
    MaxEvaluations,
    MaxSeconds,
    Method,
    Model,
    Out,
    Plot,
    Quiet,
    Report,
    Resample,
    Rungs,
    Runs,
    Schedule,
    SecondOpinion,
    Seed,
    Steps,
    Strict,
    TargetStdErr,
    TlsCa,
    TlsCert,
    TlsKey,
    TwoSided,
)
from annealz.cli.progress import show_enumeration, show_progress
from annealz.cli.retry import retry
from annealz.cli.show import Result, check_page, check_plot, save_pages, show_result
from annealz.core.names import DEFAULT_MODEL, DEFAULT_SCHEDULE, METHODS

if TYPE_CHECKING:
    from annealz.methods.annealing.estimate import Estimate
    from annealz.methods.exchange.estimate import ExchangeEstimate
    from annealz.methods.folder import RunFolder
    from annealz.pilots.sizing import Forecast

__all__ = [
    "drop_scratch",
    "estimate",
    "finish",
    "interrupted",
    "run_estimate",
    "scratch_folder",
    "settle",
]


_SCRATCH = Path(platformdirs.user_cache_dir("annealz")) / "runs"


def estimate(
    context: typer.Context,
    model: Model = DEFAULT_MODEL,
    method: Method = METHODS[0],
    schedule: Schedule = DEFAULT_SCHEDULE,
    steps: Steps = None,
    chains: Chains = None,
    rungs: Rungs = None,
    ensembles: Ensembles = None,
    live: Live = None,
    runs: Runs = None,
    inner_steps: InnerSteps = None,
    max_evaluations: MaxEvaluations = None,
    seed: Seed = 0,
    base: Base = "auto",
    data: Data = None,
    evidence: Evidence = None,
    names: Map = None,
    marginal: Marginal = None,
    kernel: Kernel = None,
    target_std_err: TargetStdErr = None,
    max_seconds: MaxSeconds = None,
    two_sided: TwoSided = False,
    draws: Draws = None,
    second_opinion: SecondOpinion = True,
    resample: Resample = None,
    along: Along = None,
    exact: Exact = False,
    out: Out = None,
    force: Force = False,
    checkpoint_seconds: CheckpointSeconds = 15.0,
    cluster: Cluster = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    plot: Plot = None,
    report: Report = None,
    strict: Strict = False,
    log10: Log10 = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Estimate log Z of MODEL."""
    from annealz.models.formats.naming import MappedFile

    model = MappedFile.of(model, names)
    method = check_method(context, method)
    check_plot(plot)
    check_page(report)
    model = with_evidence(model, evidence, quiet)
    if method == "nested":
        found = run_nested(
            model,
            quiet,
            num_live=live,
            num_runs=runs,
            num_inner_steps=inner_steps,
            max_evaluations=max_evaluations,
            base=base,
            seed=seed,
        )
        finish_nested(found, plot, report, as_json, context.find_root().obj, log10=log10)
        return
    common: dict[str, Any] = {
        "exact": exact,
        "base": base,
        "data": _data(data),
        "marginal": marginal,
        "kernel": kernel,
        "seed": seed,
        "force": force,
        "checkpoint_seconds": checkpoint_seconds,
    }
    numbers = None if along is None else _numbers(along)
    with open_client(cluster, tls_ca, tls_cert, tls_key, quiet) as client:
        if method == "exchange":
            result, folder = run_exchange(
                model,
                out,
                quiet,
                num_rungs=rungs,
                num_ensembles=ensembles,
                num_sweeps=steps,
                client=client,
                **common,
            )
        else:
            result, folder = run_estimate(
                model,
                out,
                quiet,
                schedule=schedule,
                num_steps=steps,
                num_chains=chains,
                target_std_err=target_std_err,
                max_seconds=max_seconds,
                two_sided=two_sided,
                draws=draws,
                second_opinion=second_opinion,
                resample=resample,
                along=numbers,
                client=client,
                **common,
            )
    arguments = context.find_root().obj
    finish(result, folder, plot, report, as_json, arguments, shown_in(result, log10))


def _data(file: Path | None) -> Any:
    """The rows or means of a file, where one is given."""
    if file is None:
        return None
    from annealz.training.data.array import read_data

    return read_data(file)


def _numbers(text: str) -> list[float]:
    """The numbers of an option, separated by commas."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(f"--along must be numbers separated by commas, got {text!r}.") from None


def run_estimate(
    model: str,
    out: Path | None,
    quiet: bool,
    *,
    exact: bool = False,
    go_on: str = "annealz resume",
    **options: Any,
) -> tuple[Estimate, RunFolder | None]:
    """log Z by `estimate_log_z` with these options, its progress shown and its checkpoints kept.

    `go_on` is the command that, followed by the folder, goes on after an interruption.
    """
    from annealz.engine.cluster.lost import LostCluster
    from annealz.methods.annealing.log_z import estimate_log_z
    from annealz.methods.folder import RunFolder
    from annealz.models.exact import exact_log_z
    from annealz.models.formats.load import load_model

    known = None
    if exact:
        with show_enumeration(quiet) as progress:
            known = exact_log_z(load_model(model), progress)
    folder = scratch_folder() if out is None else RunFolder(out)
    try:
        with show_progress(quiet) as progress:
            result = estimate_log_z(
                model,
                out=None if folder is None else folder.path,
                exact_log_z=known,
                on_progress=progress,
                on_forecast=None if quiet else _show_forecast,
                **options,
            )
    except KeyboardInterrupt:
        raise interrupted(folder, go_on) from None
    except LostCluster as error:
        raise lost(error, folder) from None
    except ValueError:
        drop_scratch(folder)
        raise
    return result, folder


def _show_forecast(ahead: Forecast) -> None:
    print(f"annealz: {ahead}.", file=sys.stderr)  # above the bar, where there is one


def finish(
    result: Estimate | ExchangeEstimate,
    folder: RunFolder | None,
    plot: Path | None,
    report: Path | None,
    as_json: bool,
    arguments: list[str] | None = None,
    shown: Result | None = None,
) -> None:
    """Show the result, or what is `shown` instead of it.

    What could not be saved is reported after it, with status 2, and the run is kept.

    Of one that cannot be trusted, made with these arguments, the command that may do better is shown too.
    """
    next_command = None if arguments is None else retry(arguments, result)
    show_result(shown or result, as_json, "log Z", next_command)
    try:
        save_pages(result, plot, report, as_json)
    except ValueError as error:
        if folder is None or not folder.is_done():
            raise
        raise ValueError(
            f"{error} The run is kept: 'annealz report {folder.path} -o FILE'."
        ) from error
    settle(result, folder)


def settle(result: Estimate | ExchangeEstimate, folder: RunFolder | None) -> None:
    """Drop a folder that served this run only; say so where another holds no result."""
    if not drop_scratch(folder) and folder is not None and not folder.is_done():
        raise ValueError(result.extra_messages[-1])


def interrupted(
    folder: RunFolder | None, go_on: str = "annealz resume", *, is_kept: bool = False
) -> typer.Exit:
    """Say how to go on, where the folder holds a checkpoint or is to be kept; exit status 130."""
    if folder is not None and (is_kept or folder.has_progress()):
        again = f" --model {folder.source}" if folder.source else ""
        command = f"{go_on} {folder.path}{again}"
        print(f"annealz: interrupted; resume with: {command}", file=sys.stderr)
    else:
        drop_scratch(folder)
        print("annealz: interrupted, and nothing was saved.", file=sys.stderr)
    return typer.Exit(130)


def scratch_folder() -> RunFolder | None:
    """A folder of this run's own, kept only if the run is interrupted; None if it cannot be made."""
    from annealz.methods.folder import RunFolder

    try:
        _SCRATCH.mkdir(parents=True, exist_ok=True)
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-"
        return RunFolder(tempfile.mkdtemp(prefix=name, dir=_SCRATCH))
    except OSError as error:
        reason = error.strerror or error
        print(f"annealz: {_SCRATCH}: {reason}; this run cannot be resumed.", file=sys.stderr)
        return None


def drop_scratch(folder: RunFolder | None) -> bool:
    """Remove a scratch folder; whether it was one."""
    if folder is None or folder.path.parent != _SCRATCH:
        return False
    folder.remove()
    return True

"""One estimate, as every command runs it: its folder, its cluster, its progress, and how it ends."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
import typer

from annealz.cli.cluster import open_client
from annealz.cli.options import Options, request_options
from annealz.cli.progress import show_enumeration, show_progress
from annealz.cli.show import check_page, check_plot, save_pages, show_result

if TYPE_CHECKING:
    from annealz.io.store import Store

__all__ = ["end", "interrupted", "resume_run", "run_estimate", "settle"]

_SCRATCH = Path(platformdirs.user_cache_dir("annealz")) / "runs"
_LOST, _UNTRUSTED = 3, 4  # exit status


def run_estimate(
    options: Options, client: Any, *, go_on: str = "annealz resume", **changes: Any
) -> tuple[Any, Store | None]:
    """Estimate log Z with the options of a command, its progress shown and its checkpoints kept.

    `go_on` is the command that, followed by the folder, goes on after an interruption; `changes` are
    arguments that the options do not have.
    """
    from annealz.api import estimate_log_z
    from annealz.engine.cluster.lost import LostCluster
    from annealz.io.store import Store

    given = vars(options)
    arguments = {one.name: given[one.name] for one in request_options() if one.name in given}
    if arguments.get("data") is not None:
        from annealz.training.data.array import read_data

        arguments["data"] = read_data(arguments["data"])
    if arguments.get("along") is not None:
        arguments["along"] = _numbers(arguments["along"])
    arguments |= {"model": options.model, "out": options.out} | changes
    arguments["exact_log_z"] = _exact_log_z(options, arguments["model"])
    store = _scratch() if arguments["out"] is None else Store(arguments["out"])
    arguments["out"] = None if store is None else store.path
    try:
        with show_progress(options.quiet) as progress:
            result = estimate_log_z(
                method=given.get("method", "annealing"),
                force=options.force,
                checkpoint_seconds=options.checkpoint_seconds,
                client=client,
                on_progress=progress,
                on_forecast=None if options.quiet else _show_forecast,
                **arguments,
            )
    except KeyboardInterrupt:
        raise interrupted(store, go_on) from None
    except LostCluster as error:
        raise _lost(error, store) from None
    except ValueError:
        drop_scratch(store)
        raise
    return result, store


def resume_run(
    run: Path, options: Options, client: Any = None, model: Any = None, go_on: str = "annealz resume"
) -> tuple[Any, Store]:
    """Return the estimate of a run that a folder keeps, resumed if it is not done."""
    from annealz.api import resume
    from annealz.engine.cluster.lost import LostCluster
    from annealz.io.store import Store

    store = Store(run)
    try:
        with show_progress(options.quiet) as progress:
            return resume(run, model=model, client=client, on_progress=progress), store
    except KeyboardInterrupt:
        raise interrupted(store, go_on) from None
    except LostCluster as error:
        raise _lost(error, store) from None


def end(
    options: Options,
    result: Any,
    headline: str,
    estimates: list[tuple[Any, Store | None]],
    next_command: str | None = None,
    pictured: Any = None,
) -> None:
    """Show a result, write its picture and its page, and settle the folders of its runs.

    What could not be saved is reported after the result, with status 2, and the run is kept.
    """
    record = show_result(result, options.as_json, headline, next_command)
    try:
        plot = getattr(options, "plot", None)
        save_pages(pictured or result, plot, getattr(options, "report", None), options.as_json)
    except ValueError as error:
        store = estimates[0][1]
        if store is None or not store.is_done:
            raise
        raise ValueError(
            f"{error} The run is kept: 'annealz report {store.path} -o FILE'."
        ) from error
    for estimate, store in estimates:
        settle(estimate, store)
    shown = [record, *(row for row in record.get("models", []) if isinstance(row, dict))]
    if options.strict and any(one.get("status") == "unreliable" for one in shown):
        raise typer.Exit(_UNTRUSTED)


def check_outputs(options: Options) -> None:
    """Refuse pictures and pages that could not be written, before the work is done."""
    check_plot(getattr(options, "plot", None))
    check_page(getattr(options, "report", None))


def settle(result: Any, store: Store | None) -> None:
    """Drop a folder that served this run only; say so if another holds no result."""
    if not drop_scratch(store) and store is not None and not store.is_done:
        raise ValueError(result.extra_messages[-1])


def interrupted(
    store: Store | None, go_on: str = "annealz resume", *, is_kept: bool = False
) -> typer.Exit:
    """Say how to go on, if the folder holds a checkpoint or is to be kept; exit status 130."""
    if store is not None and (is_kept or store.has_progress):
        print(f"annealz: interrupted; resume with: {_command(store, go_on)}", file=sys.stderr)
    else:
        drop_scratch(store)
        print("annealz: interrupted, and nothing was saved.", file=sys.stderr)
    return typer.Exit(130)


def _lost(error: Exception, store: Store | None) -> typer.Exit:
    """Say how to go on without the cluster; exit status 3."""
    has_progress = store is not None and store.has_progress
    remedy = f"  Resume with: {_command(store, 'annealz resume')}" if has_progress else ""
    print(f"annealz: {error}{remedy}", file=sys.stderr)
    return typer.Exit(_LOST)


def _command(store: Store, go_on: str) -> str:
    model = f" --model {store.source}" if store.source else ""
    return f"{go_on} {store.path}{model}"


def _scratch() -> Store | None:
    """Return a folder of this run's own, kept only if the run is interrupted; None if there is no room."""
    from annealz.io.store import Store

    try:
        _SCRATCH.mkdir(parents=True, exist_ok=True)
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-"
        return Store(tempfile.mkdtemp(prefix=name, dir=_SCRATCH))
    except OSError as error:
        reason = error.strerror or error
        print(f"annealz: {_SCRATCH}: {reason}; this run cannot be resumed.", file=sys.stderr)
        return None


def drop_scratch(store: Store | None) -> bool:
    """Remove a scratch folder; return whether it was one."""
    if store is None or store.path.parent != _SCRATCH:
        return False
    store.remove()
    return True


def _exact_log_z(options: Options, model: str) -> float | None:
    """Return the exact value, if it is asked for."""
    if not getattr(options, "exact", False):
        return None
    from annealz.models.exact import exact_log_z
    from annealz.models.formats.load import load_model

    with show_enumeration(options.quiet) as progress:
        return exact_log_z(load_model(model), progress)


def _numbers(text: str) -> list[float]:
    """Return the numbers of an option, separated by commas."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(f"--along must be numbers separated by commas, got {text!r}.") from None


def _show_forecast(ahead: Any) -> None:
    print(f"annealz: {ahead}.", file=sys.stderr)  # above the bar, where there is one


__all__ += ["check_outputs", "drop_scratch", "open_client"]

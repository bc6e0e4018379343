"""One estimate, as every command runs it: its folder, its cluster, its progress, and how it ends."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
import typer

from annealz.cli.options import Options, given_names, request_options
from annealz.cli.progress import show_enumeration, show_progress
from annealz.cli.show import save_pages, show_sheet
from annealz.core import interrupts
from annealz.core.errors import InputError
from annealz.core.names import METHODS

if TYPE_CHECKING:
    from annealz.diagnostics.sheet import Sheet
    from annealz.io.store import Store

_SCRATCH = Path(platformdirs.user_cache_dir("annealz")) / "runs"
_LOST, _UNRELIABLE = 3, 4  # exit status


@contextlib.contextmanager
def open_client(options: Options) -> Iterator[Any]:
    """Open a client of the cluster that is asked for; None without --cluster."""
    if options.cluster is None:
        yield None
        return
    if getattr(options, "method", None) == "nested":  # before workers start
        raise InputError(
            "cluster",
            "does not fit {method} nested (it runs in this process)",
            remedy="leave it out",
        )
    from annealz.engine.cluster import LostCluster
    from annealz.engine.connect import connected

    with connected(options.cluster) as client:
        if not options.quiet:
            threads: Any = client.nthreads()
            workers = _counted(len(threads), "worker")
            cores = _counted(sum(threads.values()), "thread")
            print(f"annealz: {workers} with {cores}.", file=sys.stderr)
        try:
            yield client
        except LostCluster as error:
            print(f"annealz: {error}", file=sys.stderr)
            raise typer.Exit(_LOST) from None


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def run_estimate(
    options: Options, client: Any, *, go_on: str = "annealz resume", **changes: Any
) -> tuple[Any, Store | None]:
    """Estimate log Z with the options of a command, its progress shown and its checkpoints kept.

    `go_on` is the command that, followed by the folder, goes on after an interruption; `changes` are
    arguments that the options do not have.
    """
    from annealz.api import estimate_log_z

    given = vars(options) | changes
    arguments = {one.name: given[one.name] for one in request_options() if one.name in given}
    if arguments.get("data") is not None:
        from annealz.training.data import read_data

        arguments["data"] = read_data(arguments["data"])
    if arguments.get("along") is not None:
        arguments["along"] = _numbers(arguments["along"])
    known = _exact_log_z(given)
    store = _scratch() if given["out"] is None else _store(given["out"])
    with _ending(store, go_on), show_progress(options.quiet) as progress:
        result = estimate_log_z(
            given["model"],
            method=given.get("method", METHODS[0]),
            exact_log_z=known,
            out=None if store is None else store.path,
            force=options.force,
            checkpoint_seconds=options.checkpoint_seconds,
            client=client,
            on_progress=progress,
            on_forecast=None if options.quiet else _show_forecast,
            **arguments,
        )
    return result, store


def resume_run(
    run: Path, options: Options, client: Any, model: Any = None, go_on: str = "annealz resume"
) -> tuple[Any, Store]:
    """Return the estimate of a run that a folder keeps, resumed if it is not done."""
    from annealz.api import resume

    store = _store(run)
    with _ending(store, go_on), show_progress(options.quiet) as progress:
        return resume(run, model=model, client=client, on_progress=progress), store


def chains_of(options: Options, client: Any, model: Any, go_on: str) -> tuple[Any, Store | None]:
    """Return the estimate of the run of --run, or else a new one; `model` is the model itself."""
    if options.run is None:
        return run_estimate(options, client, go_on=go_on)
    makes_another = {*(one.name for one in request_options()), "method", "exact", "out"}
    given = [name for name in given_names(options.context) if name in makes_another]
    if given:
        words = ", ".join(f"{{{name}}}" for name in given)
        raise InputError(
            "run",
            f"takes log Z from {options.run}, and {words} would make another",
            remedy="leave one out",
        )
    record = _store(options.run).record()
    if record.get("model_digest") != model.digest:
        raise ValueError(
            f"the run in {options.run} is that of another model, {record.get('model')}: give its own."
        )
    return resume_run(options.run, options, client, model, go_on)


@contextlib.contextmanager
def _ending(store: Store | None, go_on: str) -> Iterator[None]:
    """Say how to go on after an interruption or without a cluster; drop the scratch of bad input."""
    from annealz.engine.cluster import LostCluster

    try:
        with interrupts.awaiting():
            yield
    except KeyboardInterrupt:
        raise interrupted(store, go_on) from None
    except LostCluster as error:
        remedy = (
            f"  Resume with: {_resuming(store, 'annealz resume')}" if _has_progress(store) else ""
        )
        print(f"annealz: {error}{remedy}", file=sys.stderr)
        raise typer.Exit(_LOST) from None
    except (ValueError, OSError):
        drop_scratch(store)
        raise


def interrupted(
    store: Store | None, go_on: str = "annealz resume", *, is_kept: bool = False
) -> typer.Exit:
    """Say how to go on, if the folder holds a checkpoint or is to be kept; exit status 130."""
    if is_kept or _has_progress(store):
        print(f"annealz: interrupted; resume with: {_resuming(store, go_on)}", file=sys.stderr)
    else:
        drop_scratch(store)
        print("annealz: interrupted, and nothing was saved.", file=sys.stderr)
    return typer.Exit(130)


def _has_progress(store: Store | None) -> bool:
    return store is not None and store.has_progress


def _resuming(store: Any, go_on: str) -> str:
    is_model_missing = go_on == "annealz resume" and store.source
    return f"{go_on} {store.path}" + (f" --model {store.source}" if is_model_missing else "")


def end(
    options: Options,
    sheet: Sheet,
    estimates: list[tuple[Any, Store | None]],
    next_command: str | None = None,
) -> None:
    """Show a sheet, write picture and page of its estimate, and settle the folders of its runs.

    What could not be saved is reported after the result, with status 2, and the run is kept.
    """
    show_sheet(sheet, options.as_json, next_command)
    (estimate, store), *_ = estimates
    try:
        save_pages(options, estimate)
    except ValueError as error:
        if store is None or not store.is_done:
            raise
        raise ValueError(
            f"{error} The run is kept: 'annealz report {store.path} -o FILE'."
        ) from error
    settle(*estimates)
    exit_if_unreliable(options, sheet)


def exit_if_unreliable(options: Options, sheet: Sheet) -> None:
    """Exit with a status of its own, if --strict asks for it."""
    if options.strict and sheet.status is not None and not sheet.status:
        raise typer.Exit(_UNRELIABLE)


def settle(*estimates: tuple[Any, Store | None]) -> None:
    """Drop folders that served this command only; say so if another holds no result."""
    for result, store in estimates:
        if not drop_scratch(store) and store is not None and not store.is_done:
            raise ValueError(result.extra_messages[-1])


def _store(path: Path) -> Store:
    from annealz.io.store import Store

    return Store(path)


def _scratch() -> Store | None:
    """Return a folder of this run's own, kept only if the run is interrupted; None if there is no room."""
    try:
        _SCRATCH.mkdir(parents=True, exist_ok=True)
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-"
        return _store(Path(tempfile.mkdtemp(prefix=name, dir=_SCRATCH)))
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


def _exact_log_z(given: dict[str, Any]) -> float | None:
    """Return the exact value, if it is asked for."""
    if not given.get("exact"):
        return None
    from annealz.models.exact import exact_log_z
    from annealz.models.formats.load import load_model

    with show_enumeration(given["quiet"]) as progress:
        return exact_log_z(load_model(given["model"]), progress)


def _numbers(text: str) -> list[float]:
    """Return the numbers of an option, separated by commas."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise InputError("along", "must be numbers separated by commas", text) from None


def _show_forecast(ahead: Any) -> None:
    print(f"annealz: {ahead}.", file=sys.stderr)  # above the bar, where there is one

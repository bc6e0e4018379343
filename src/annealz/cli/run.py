"""The estimates of a command: their folders, their cluster, their progress, and how they end."""

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

from annealz.cli.options import Options, given_names, request_options, request_values
from annealz.cli.show import save_pages, show_sheet
from annealz.core import interrupts
from annealz.core.errors import InputError
from annealz.core.names import METHODS
from annealz.views.progress import enumeration_report, live_report

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


@contextlib.contextmanager
def open_session(options: Options, go_on: str = "annealz resume") -> Iterator[Session]:
    """Open the session of a command; folders that served this command only are dropped at its end.

    `go_on` is the command that, followed by a folder, goes on after an interruption.
    """
    with open_client(options) as client:
        session = Session(options, client, go_on)
        try:
            yield session
        finally:
            session.drop()


class Session:
    """The estimates of a command, and the folders that hold them."""

    def __init__(self, options: Options, client: Any, go_on: str):
        self._options, self._client, self._go_on = options, client, go_on
        self._runs: list[tuple[Any, Store | None]] = []
        self._scratch: list[Store] = []

    def estimate(self, **changes: Any) -> Any:
        """Return an estimate of log Z; `changes` are arguments that the options do not have."""
        from annealz.api import estimate_log_z

        options = Options(**vars(self._options) | changes)
        arguments, known = request_values(options), _exact_log_z(options)
        store = self._new_folder() if options.out is None else self._folder(options.out)
        with self.ending(store):
            result = estimate_log_z(
                options.model,
                method=getattr(options, "method", METHODS[0]),
                exact_log_z=known,
                out=None if store is None else store.path,
                force=options.force,
                checkpoint_seconds=options.checkpoint_seconds,
                client=self._client,
                progress=not options.quiet,
                on_forecast=None if options.quiet else _show_forecast,
                **arguments,
            )
        self._runs.append((result, store))
        return result

    def resumed(self, run: Path, model: Any = None) -> Any:
        """Return the estimate of a run that a folder keeps, resumed if it is not done."""
        from annealz.api import resume

        store = self._folder(run)
        with self.ending(store):
            progress = not self._options.quiet
            result = resume(run, model=model, client=self._client, progress=progress)
        self._runs.append((result, store))
        return result

    def chains_of(self, model: Any) -> Any:
        """Return the estimate of the run of --run, or else a new one; `model` is the model itself."""
        from annealz.io.store import Store

        folder = self._options.run
        if folder is None:
            return self.estimate()
        makes_another = {*(one.name for one in request_options()), "method", "exact", "out"}
        given = [name for name in given_names(self._options.context) if name in makes_another]
        if given:
            words = ", ".join(f"{{{name}}}" for name in given)
            raise InputError(
                "run",
                f"takes log Z from {folder}, and {words} would make another",
                remedy="leave one out",
            )
        record = Store(folder).record()
        if record.get("model_digest") != model.digest:
            raise ValueError(
                f"the run in {folder} is that of another model, {record.get('model')}: give its own."
            )
        return self.resumed(folder, model)

    @contextlib.contextmanager
    def ending(self, store: Store | None = None) -> Iterator[None]:
        """Say how to go on after an interruption or without a cluster; by default with the last run."""
        from annealz.engine.cluster import LostCluster

        store = store or (self._runs[-1][1] if self._runs else None)
        try:
            with interrupts.awaiting():
                yield
        except KeyboardInterrupt:
            raise interrupted(store if self._is_kept(store) else None, self._go_on) from None
        except LostCluster as error:
            if store is None or not self._is_kept(store):
                raise
            remedy = f"  Resume with: {_resuming(store, 'annealz resume')}"
            raise LostCluster(f"{error}{remedy}") from None

    def end(self, sheet: Sheet, next_command: str | None = None) -> None:
        """Show a sheet, write picture and page of the first estimate, and settle.

        What could not be saved is reported after the result, with status 2, and the run is kept.
        """
        show_sheet(sheet, self._options.as_json, next_command)
        result, store = self._runs[0]
        try:
            save_pages(self._options, result)
        except ValueError as error:
            if store is None or not store.is_done:
                raise
            self._is_kept(store)
            raise ValueError(
                f"{error} The run is kept: 'annealz report {store.path} -o FILE'."
            ) from error
        self.settle(sheet)

    def settle(self, sheet: Sheet) -> None:
        """Say so if a folder holds no result; exit with a status of its own if --strict asks for it."""
        for result, store in self._runs:
            if store is not None and store not in self._scratch and not store.is_done:
                raise ValueError(result.extra_messages[-1])
        if self._options.strict and sheet.status is not None and not sheet.status:
            raise typer.Exit(_UNRELIABLE)

    def drop(self) -> None:
        """Remove the folders that served this command only."""
        for store in self._scratch:
            store.remove()

    def _is_kept(self, store: Store | None) -> bool:
        """Keep a folder from which one can go on; return whether it is one."""
        if store is None or not (store.has_progress or store.is_done):
            return False
        self._scratch = [one for one in self._scratch if one.path != store.path]
        return True

    def _folder(self, path: Path) -> Store:
        """Return the folder of a run; of this command alone it is where nobody else looks."""
        from annealz.io.store import Store

        store = Store(path)
        if path.parent == _SCRATCH:
            self._scratch.append(store)
        return store

    def _new_folder(self) -> Store | None:
        """Return a folder that is kept only if the run is interrupted; None if there is no room."""
        try:
            _SCRATCH.mkdir(parents=True, exist_ok=True)
            name = f"{time.strftime('%Y%m%d-%H%M%S')}-"
            return self._folder(Path(tempfile.mkdtemp(prefix=name, dir=_SCRATCH)))
        except OSError as error:
            reason = error.strerror or error
            print(f"annealz: {_SCRATCH}: {reason}; this run cannot be resumed.", file=sys.stderr)
            return None


def interrupted(store: Store | None, go_on: str = "annealz resume") -> typer.Exit:
    """Say how to resume what a folder holds, if there is one; exit status 130."""
    if store is None:
        print("annealz: interrupted, and nothing was saved.", file=sys.stderr)
    else:
        print(f"annealz: interrupted; resume with: {_resuming(store, go_on)}", file=sys.stderr)
    return typer.Exit(130)


def _resuming(store: Store, go_on: str) -> str:
    is_model_missing = go_on == "annealz resume" and store.source
    return f"{go_on} {store.path}" + (f" --model {store.source}" if is_model_missing else "")


def _exact_log_z(options: Options) -> float | None:
    """Return the exact value, if it is asked for."""
    if not getattr(options, "exact", False):
        return None
    from annealz.models.exact import exact_log_z
    from annealz.models.formats.load import load_model

    with live_report(enumeration_report, options.quiet) as progress:
        return exact_log_z(load_model(options.model), progress)


def _show_forecast(ahead: Any) -> None:
    print(f"annealz: {ahead}.", file=sys.stderr)  # above the bar, where there is one

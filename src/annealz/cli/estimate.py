"""`annealz estimate`: log Z of a model."""

import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import platformdirs
import typer

from annealz.cli.options import Base, Data, Force, Json, Marginal, Model, Plot, Quiet, Seed
from annealz.cli.progress import show_enumeration, show_progress
from annealz.cli.show import check_plot, save_figure, show_result
from annealz.data.array import read_data
from annealz.estimate import Estimate, estimate_log_z
from annealz.folder import RunFolder
from annealz.formats.load import DEFAULT_MODEL, load_model
from annealz.models.exact import exact_log_z
from annealz.plan import DEFAULT_SCHEDULE, SCHEDULE_NAMES
from annealz.sizing import Forecast

__all__ = ["estimate", "finish", "interrupted"]

_SCRATCH = Path(platformdirs.user_cache_dir("annealz")) / "runs"


def estimate(
    model: Model = DEFAULT_MODEL,
    schedule: Annotated[
        str, typer.Option(help=f"{', '.join(SCHEDULE_NAMES)}, or a file of betas.")
    ] = DEFAULT_SCHEDULE,
    steps: Annotated[
        int | None, typer.Option(help="Annealing steps K (10000 where not given).")
    ] = None,
    chains: Annotated[int | None, typer.Option(help="Chains N (1000 where not given).")] = None,
    seed: Seed = 0,
    base: Base = "auto",
    data: Data = None,
    marginal: Marginal = "visible",
    target_std_err: Annotated[
        float | None, typer.Option(help="Take as many chains as this error needs.")
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Enumerate the exact log Z too (up to 25 units).")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for checkpoints and results.")] = None,
    force: Force = False,
    checkpoint_seconds: Annotated[
        float, typer.Option(help="Seconds between checkpoints.", min=0)
    ] = 15.0,
    plot: Plot = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Estimate log Z of MODEL."""
    check_plot(plot)
    known = None
    if exact:
        with show_enumeration(quiet) as progress:
            known = exact_log_z(load_model(model)[0], progress)
    values = None if data is None else read_data(data)
    folder = scratch_folder() if out is None else RunFolder(out)
    try:
        with show_progress(quiet) as progress:
            result = estimate_log_z(
                model,
                schedule=schedule,
                num_steps=steps,
                num_chains=chains,
                base=base,
                data=values,
                marginal=marginal,
                target_std_err=target_std_err,
                seed=seed,
                out=None if folder is None else folder.path,
                force=force,
                exact_log_z=known,
                checkpoint_seconds=checkpoint_seconds,
                on_progress=progress,
                on_forecast=None if quiet else _show_forecast,
            )
    except KeyboardInterrupt:
        raise interrupted(folder) from None
    except ValueError:
        if out is None and folder is not None:
            folder.remove()
        raise
    finish(result, folder, plot, as_json)


def _show_forecast(ahead: Forecast) -> None:
    print(f"annealz: {ahead}.", file=sys.stderr)


def finish(result: Estimate, folder: RunFolder | None, plot: Path | None, as_json: bool) -> None:
    """Show the result; a result that could not be saved is shown all the same, with status 2."""
    show_result(result, as_json, "log Z")
    if plot is not None:
        save_figure(result.plot(), plot)
    if folder is None:
        return
    if folder.path.parent == _SCRATCH:
        folder.remove()
    elif not folder.is_done():
        raise ValueError(result.messages[-1])


def interrupted(folder: RunFolder | None) -> typer.Exit:
    """Say how to go on; exit status 130."""
    if folder is not None and folder.checkpoint.exists():
        print(f"annealz: interrupted; go on with: annealz resume {folder.path}", file=sys.stderr)
    else:
        if folder is not None and folder.path.parent == _SCRATCH:
            folder.remove()
        print("annealz: interrupted, and nothing was saved.", file=sys.stderr)
    return typer.Exit(130)


def scratch_folder() -> RunFolder | None:
    """A folder of this run's own, kept only if the run is cut off; None where none can be had."""
    try:
        _SCRATCH.mkdir(parents=True, exist_ok=True)
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-"
        return RunFolder(tempfile.mkdtemp(prefix=name, dir=_SCRATCH))
    except OSError as error:
        reason = error.strerror or error
        print(f"annealz: {_SCRATCH}: {reason}; this run cannot be resumed.", file=sys.stderr)
        return None

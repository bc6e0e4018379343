"""`annealz estimate --method exchange`: which options fit, and the run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from annealz.core.names import METHODS
from annealz.views.cli.cluster import lost
from annealz.views.cli.progress import show_enumeration, show_progress

if TYPE_CHECKING:
    from annealz.workflows.exchange.estimate import ExchangeEstimate
    from annealz.workflows.folder import RunFolder

__all__ = ["check_method", "run_exchange"]

_OF_ANNEALING = {
    "schedule": "a ladder of its own takes the place of a schedule",
    "chains": "it has --rungs times --ensembles of them",
    "target_std_err": "take more --steps or --ensembles for a smaller error",
    "max_seconds": "--steps and --ensembles decide how long it takes",
    "two_sided": "neighbouring temperatures are joined from both sides already",
    "draws": "neighbouring temperatures are joined from both sides already",
    "second_opinion": "round trips and its ensembles are its own evidence",
    "resample": "replicas exchange their temperatures instead",
    "along": "log Z is known at its own temperatures",
}
_OF_EXCHANGE = ("rungs", "ensembles")


def check_method(context: typer.Context, method: str) -> bool:
    """Whether replica exchange is wanted; options that do not fit the method are refused."""
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}: choose one of {', '.join(METHODS)}.")
    is_exchange = method == "exchange"
    for name in _OF_ANNEALING if is_exchange else _OF_EXCHANGE:
        if not _is_given(context, name):
            continue
        option = f"--{name.replace('_', '-')}"
        if is_exchange:
            raise ValueError(
                f"{option} does not fit --method exchange ({_OF_ANNEALING[name]}): leave it out."
            )
        raise ValueError(f"{option} belongs to --method exchange: add that, or leave it out.")
    return is_exchange


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")


def run_exchange(
    model: str, out: Path | None, quiet: bool, *, exact: bool, **options: Any
) -> tuple[ExchangeEstimate, RunFolder | None]:
    """log Z by `exchange_log_z` with these options, its progress shown and its checkpoints kept."""
    from annealz.engine.cluster.lost import LostCluster
    from annealz.models.exact import exact_log_z
    from annealz.models.formats.load import load_model
    from annealz.views.cli.estimate import drop_scratch, interrupted, scratch_folder
    from annealz.workflows.exchange.log_z import exchange_log_z
    from annealz.workflows.folder import RunFolder

    known = None
    if exact:
        with show_enumeration(quiet) as progress:
            known = exact_log_z(load_model(model)[0], progress)
    folder = scratch_folder() if out is None else RunFolder(out)
    given = {name: value for name, value in options.items() if value is not None}
    try:
        with show_progress(quiet) as progress:
            result = exchange_log_z(
                model,
                out=None if folder is None else folder.path,
                exact_log_z=known,
                on_progress=progress,
                **given,
            )
    except KeyboardInterrupt:
        raise interrupted(folder) from None
    except LostCluster as error:
        raise lost(error, folder) from None
    except ValueError:
        drop_scratch(folder)
        raise
    return result, folder

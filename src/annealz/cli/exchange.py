"""`annealz estimate --method exchange`: the run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from annealz.cli.cluster import lost
from annealz.cli.progress import show_enumeration, show_progress

if TYPE_CHECKING:
    from annealz.methods.exchange.estimate import ExchangeEstimate
    from annealz.methods.folder import RunFolder

__all__ = ["run_exchange"]


def run_exchange(
    model: str, out: Path | None, quiet: bool, *, exact: bool, **options: Any
) -> tuple[ExchangeEstimate, RunFolder | None]:
    """log Z by `exchange_log_z` with these options, its progress shown and its checkpoints kept."""
    from annealz.cli.estimate import drop_scratch, interrupted, scratch_folder
    from annealz.engine.cluster.lost import LostCluster
    from annealz.methods.exchange.log_z import exchange_log_z
    from annealz.methods.folder import RunFolder
    from annealz.models.exact import exact_log_z
    from annealz.models.formats.load import load_model

    known = None
    if exact:
        with show_enumeration(quiet) as progress:
            known = exact_log_z(load_model(model), progress)
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

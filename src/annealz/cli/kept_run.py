"""`--run`: log Z from the run that a folder keeps, instead of a new one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from annealz.cli.estimate import interrupted
from annealz.cli.progress import show_progress
from annealz.core.names import DEFAULT_SCHEDULE

if TYPE_CHECKING:
    from annealz.methods.annealing.estimate import Estimate
    from annealz.models.abstract import AbstractModel

__all__ = ["check_run", "resume_kept"]

_USUAL = {
    "schedule": DEFAULT_SCHEDULE,
    "seed": 0,
    "base": "auto",
    "two_sided": False,
    "second_opinion": True,
    "exact": False,
}


def check_run(run: Path, model: AbstractModel, making: dict[str, Any]) -> None:
    """Refuse the run of another model, and options that ask for a new one."""
    from annealz.methods.folder import RunFolder

    given = [
        f"--{name.removeprefix('num_').replace('_', '-')}"
        for name, value in making.items()
        if value != _USUAL.get(name)
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


def resume_kept(run: Path, quiet: bool, go_on: str, model: AbstractModel | None = None) -> Estimate:
    """The estimate of the run, which is resumed where it is not done; `go_on` as in `run_estimate`."""
    from annealz.methods.annealing.log_z import resume as resume_run
    from annealz.methods.folder import RunFolder

    try:
        with show_progress(quiet) as progress:
            return resume_run(run, model=model, on_progress=progress)
    except KeyboardInterrupt:
        raise interrupted(RunFolder(run), go_on) from None

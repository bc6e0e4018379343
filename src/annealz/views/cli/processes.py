"""A command in one of several processes: the first shows and writes, the others help and say nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from annealz.core.reading.budget import option_again

if TYPE_CHECKING:
    from annealz.engine.workers.team import LostProcess, Team
    from annealz.workflows.folder import RunFolder

__all__ = ["follow", "join_team", "lost"]

_LOST = 3  # exit status


def join_team(
    distributed: bool,
    coordinator: str | None,
    num_processes: int | None,
    process_id: int | None,
    quiet: bool,
) -> Team:
    """The processes that share the run; this one alone without --distributed."""
    from annealz.engine.workers.distributed import initialize
    from annealz.engine.workers.team import SOLO

    if not distributed:
        given = {
            "coordinator": coordinator,
            "num-processes": num_processes,
            "process-id": process_id,
        }
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"--{name} goes with --distributed: give both, or neither.")
        return SOLO
    team = initialize(coordinator, num_processes, process_id)
    if team.is_leader and not quiet:
        devices = sum(team.num_devices)
        print(f"annealz: {team.size} processes with {devices} devices.", file=sys.stderr)
    return team


def follow(team: Team, model: str | None) -> None:
    """Help the first process until it is done; what stops it ends this one with the same status.

    A model that is imported is imported by the word of this command line, not by that of the first process.
    """
    from annealz.engine.workers.team import LostProcess
    from annealz.models.formats.python_object import is_import_path, load_object
    from annealz.workflows.workers.together import help_out

    given = {} if model is None or not is_import_path(model) else {"model": load_object(model)}
    try:
        help_out(team, given=given, wants_result=False)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except LostProcess as error:
        print(f"annealz: {error}", file=sys.stderr)
        raise typer.Exit(_LOST) from None
    except ValueError:  # process 0 says it
        raise typer.Exit(2) from None


def lost(error: LostProcess, folder: RunFolder | None) -> typer.Exit:
    """Say how to go on without the process that is gone; exit status 3."""
    remedy = (
        "" if folder is None else f"  Resume with: annealz resume {folder.path}{option_again()}"
    )
    print(f"annealz: {error}{remedy}", file=sys.stderr)
    return typer.Exit(_LOST)

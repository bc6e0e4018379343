"""`annealz estimate --method nested`: the run, and its result."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from annealz.cli.network import shown_in
from annealz.cli.progress import show_progress
from annealz.cli.retry import with_changes
from annealz.cli.show import save_pages, show_result

if TYPE_CHECKING:
    from annealz.methods.nested.estimate import NestedEstimate

__all__ = ["finish_nested", "run_nested"]


def run_nested(model: str, quiet: bool, **options: Any) -> NestedEstimate:
    """log Z by `nested_log_z` with these options, its progress shown."""
    from annealz.methods.nested.log_z import nested_log_z

    given = {name: value for name, value in options.items() if value is not None}
    try:
        with show_progress(quiet) as progress:
            return nested_log_z(model, on_progress=progress, **given)
    except KeyboardInterrupt:
        print("annealz: interrupted, and nothing was saved.", file=sys.stderr)
        raise typer.Exit(130) from None


def finish_nested(
    result: NestedEstimate,
    plot: Path | None,
    report: Path | None,
    as_json: bool,
    arguments: list[str] | None,
    *,
    log10: bool = False,
) -> None:
    """Show the result, with the command that may do better where it cannot be trusted."""
    again = None
    if result.next_try is not None and arguments is not None:
        again = with_changes(arguments, result.next_try.settings)
    show_result(shown_in(result, log10), as_json, "log Z", again)
    save_pages(result, plot, report, as_json)

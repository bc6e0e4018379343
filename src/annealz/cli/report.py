"""`annealz report`: the page of a finished run."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["report"]


def report(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run (estimate --out).")],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="The page, .html.", show_default="RUN/report.html"),
    ] = None,
) -> None:
    """Write the finished run in the folder RUN as one HTML page that needs nothing else.

    It holds the number with its error and status, pictures, the cost, and the command that reproduces it.
    """
    from annealz.methods.annealing.runner import read_estimate
    from annealz.methods.exchange.folder import ExchangeFolder, is_exchange
    from annealz.methods.exchange.log_z import read_exchange
    from annealz.methods.folder import RunFolder
    from annealz.training.folder import TrainingFolder
    from annealz.views.report import check_report

    folder = RunFolder(run)
    if TrainingFolder(run).is_training():
        raise ValueError(f"{run} holds a training, which has no report: give the folder of a run.")
    folder.check_done()
    path = check_report(folder.report if out is None else out)
    found = read_exchange(ExchangeFolder(run)) if is_exchange(folder) else read_estimate(folder)
    found.report(path)
    print(f"report: {path}")

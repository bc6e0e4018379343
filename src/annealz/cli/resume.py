"""`annealz resume`: resume a run that was interrupted."""

from pathlib import Path
from typing import Annotated

import typer

from annealz.cli.cluster import lost, open_client
from annealz.cli.estimate import finish, interrupted
from annealz.cli.options import (
    Cluster,
    Json,
    Plot,
    Quiet,
    Report,
    Strict,
    TlsCa,
    TlsCert,
    TlsKey,
)
from annealz.cli.progress import show_progress
from annealz.cli.show import check_page, check_plot
from annealz.cli.train import resume_training

__all__ = ["resume"]


def resume(
    folder: Annotated[Path, typer.Argument(help="The folder of the run or training.")],
    model: Annotated[
        str | None,
        typer.Option(
            help="The model again, module:name, where it was imported: a folder's word imports nothing."
        ),
    ] = None,
    cluster: Cluster = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    plot: Plot = None,
    report: Report = None,
    strict: Strict = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Resume the run or training in FOLDER; the result is the same as without the interruption."""
    from annealz.engine.cluster.lost import LostCluster
    from annealz.methods.annealing.log_z import resume as resume_run
    from annealz.methods.folder import RunFolder
    from annealz.models.formats.load import load_model
    from annealz.training.folder import TrainingFolder

    run_folder = RunFolder(folder)
    if TrainingFolder(folder).is_training():
        if plot is not None or report is not None:
            raise ValueError("a training has no picture or report: leave out --plot and --report.")
        if model is not None:
            raise ValueError("a training knows its model: leave out --model.")
        if cluster is not None:
            raise ValueError("a training runs in one process: leave out --cluster.")
        resume_training(folder, as_json, quiet)
        return
    check_plot(plot)
    check_page(report)
    run_folder.settings()  # a folder that cannot be resumed is refused before workers are started
    given = None if model is None else load_model(model)
    try:
        with (
            open_client(cluster, tls_ca, tls_cert, tls_key, quiet) as client,
            show_progress(quiet) as progress,
        ):
            result = resume_run(folder, model=given, client=client, on_progress=progress)
    except KeyboardInterrupt:
        raise interrupted(run_folder) from None
    except LostCluster as error:
        raise lost(error, run_folder) from None
    finish(result, run_folder, plot, report, as_json)

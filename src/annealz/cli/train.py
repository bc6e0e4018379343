"""`annealz train`: an RBM fitted to data, written to a model file."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from annealz.cli.options import CheckpointSeconds, Force, Json, Mnist, Quiet, Seed
from annealz.cli.progress import show_training
from annealz.cli.show import show_result
from annealz.core.names import ALGORITHMS

if TYPE_CHECKING:
    from annealz.training.contrastive import Algorithm
    from annealz.training.folder import TrainingFolder
    from annealz.training.outcome import Outcome

__all__ = ["resume_training", "train"]


def train(
    data: Annotated[
        str, typer.Argument(help="mnist, or a file of rows in [0, 1]: npy, npz, IDX (gz or not).")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The model file (npz) to write.")],
    hidden: Annotated[int, typer.Option(help="Hidden units.")] = 20,
    algorithm: Annotated[str, typer.Option(help=f"{' or '.join(ALGORITHMS)}.")] = "pcd",
    gibbs_steps: Annotated[int, typer.Option(help="Gibbs sweeps per update.")] = 1,
    updates: Annotated[int, typer.Option(help="Parameter updates.")] = 250_000,
    learning_rate: Annotated[float, typer.Option(help="Of the first update.")] = 0.01,
    final_learning_rate: Annotated[
        float | None, typer.Option(help="Of the last update, reached linearly.")
    ] = None,
    weight_decay: Annotated[
        float, typer.Option(help="L2 weight decay, of the weights only.")
    ] = 0.0,
    batch: Annotated[int, typer.Option(help="Rows per update, and chains.")] = 100,
    seed: Seed = 0,
    series: Annotated[
        int | None, typer.Option(help="Keep the model every so many updates as well.")
    ] = None,
    mnist: Mnist = None,
    checkpoint_seconds: CheckpointSeconds = 15.0,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train an RBM on DATA by contrastive divergence.

    Checkpoints, and the models of --series, go to the folder FILE.training beside the model file.
    """
    from annealz.training.data.source import DataSource
    from annealz.training.folder import TrainingFolder
    from annealz.training.job import train_to_file
    from annealz.training.settings import Settings

    settings = Settings(
        num_hidden=hidden,
        algorithm=cast("Algorithm", algorithm),
        gibbs_steps=gibbs_steps,
        num_updates=updates,
        learning_rate=learning_rate,
        final_learning_rate=final_learning_rate,
        weight_decay=weight_decay,
        batch_size=batch,
        seed=seed,
    )
    source = DataSource.of(data, mnist)

    def work(on_progress) -> "Outcome":
        return train_to_file(
            source,
            settings,
            out,
            series=series,
            force=force,
            checkpoint_seconds=checkpoint_seconds,
            on_progress=on_progress,
        )

    _go(work, TrainingFolder.beside(out), as_json, quiet)


def resume_training(folder: Path, as_json: bool, quiet: bool) -> None:
    """Resume the training in a folder."""
    from annealz.training import job
    from annealz.training.folder import TrainingFolder

    _go(
        lambda on_progress: job.resume_training(folder, on_progress=on_progress),
        TrainingFolder(folder),
        as_json,
        quiet,
    )


def _go(
    work: "Callable[..., Outcome]", folder: "TrainingFolder", as_json: bool, quiet: bool
) -> None:
    try:
        with show_training(quiet) as progress:
            outcome = work(progress)
    except KeyboardInterrupt:
        if folder.is_training():
            words = f"interrupted; resume with: annealz resume {folder.path}"
        else:
            words = "interrupted, and nothing was saved."
        print(f"annealz: {words}", file=sys.stderr)
        raise typer.Exit(130) from None
    show_result(outcome, as_json, "model")

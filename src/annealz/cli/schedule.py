"""`annealz schedule`: make a schedule and save it."""

from pathlib import Path
from typing import Annotated

import typer

from annealz.bases.choose import BASES, choose_base
from annealz.cli.progress import show_progress
from annealz.cli.show import check_plot, save_figure
from annealz.data.array import read_data
from annealz.formats.load import DEFAULT_MODEL, load_model
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.geometric import MARGINALS, GeometricPath
from annealz.plan import SCHEDULE_NAMES, plan_schedule

__all__ = ["schedule"]


def schedule(
    model: Annotated[
        str, typer.Argument(help="Packaged name (see 'annealz models') or npz file.")
    ] = DEFAULT_MODEL,
    name: Annotated[
        str, typer.Option("--schedule", help=f"{', '.join(SCHEDULE_NAMES)}.")
    ] = "varopt",
    steps: Annotated[int, typer.Option(help="Annealing steps K.")] = 10_000,
    out: Annotated[Path, typer.Option("-o", "--out", help="The schedule, as JSON.")] = Path(
        "schedule.json"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the pilot.")] = 0,
    base: Annotated[str, typer.Option(help=f"Where to start: {', '.join(BASES)}.")] = "auto",
    data: Annotated[
        Path | None, typer.Option(help="Training data or means for the base rate: npy, npz, IDX.")
    ] = None,
    marginal: Annotated[
        str, typer.Option(help=f"The layer annealed: {', '.join(MARGINALS)}.")
    ] = "visible",
    plot: Annotated[
        Path | None, typer.Option(help="The picture [default: beside the schedule, .png].")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")] = False,
) -> None:
    """Make a schedule for MODEL: a pilot run where the rule needs one, then the file and a picture."""
    picture = out.with_suffix(".png") if plot is None else plot
    check_plot(picture)
    for path in (out, picture):
        if path.exists() and not force:
            raise ValueError(f"{path} exists: choose another name, or overwrite it with --force.")
    rbm, _ = load_model(model)
    chosen = choose_base(rbm, base, None if data is None else read_data(data))
    with show_progress(quiet) as progress:
        made = plan_schedule(
            name,
            GeometricPath(chosen, rbm, marginal),
            BlockGibbs(),
            num_steps=steps,
            seed=seed,
            on_progress=progress,
        )
    try:
        made.save(out)
    except OSError as error:
        raise ValueError(f"cannot write the schedule {out}: {error.strerror or error}.") from error
    save_figure(made.plot().figure, picture)
    print(f"{made.name}, {made.num_steps:,} steps: {out}, {picture}")
    report = made.provenance
    print(f"pilot: {report.get('pilot_sweeps', 0):,} sweeps")
    if "predicted_gain" in report:
        print(
            f"J: {report['linear_cost']:.4g} linear, {report['cost']:.4g} now: under perfect mixing the "
            f"variance of log w falls by {report['predicted_gain']:.2f}"
        )

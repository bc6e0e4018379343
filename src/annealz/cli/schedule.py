"""`annealz schedule`: make a schedule and save it."""

from pathlib import Path
from typing import Annotated

import typer

from annealz.cli.options import (
    Base,
    Data,
    Force,
    Map,
    Marginal,
    Model,
    Plot,
    Quiet,
    Seed,
    Steps,
)
from annealz.cli.progress import show_progress
from annealz.cli.show import check_plot, save_figure
from annealz.core.names import DEFAULT_MODEL, DEFAULT_SCHEDULE

__all__ = ["schedule"]


def schedule(
    model: Model = DEFAULT_MODEL,
    name: Annotated[str, typer.Option("--schedule", help="{schedules}.")] = DEFAULT_SCHEDULE,
    steps: Steps = None,
    chains: Annotated[
        int, typer.Option(help="Chains of the run to come: they size the pilot of mixing.", min=1)
    ] = 1000,
    out: Annotated[Path, typer.Option("-o", "--out", help="The schedule, as JSON.")] = Path(
        "schedule.json"
    ),
    seed: Seed = 0,
    base: Base = "auto",
    data: Data = None,
    names: Map = None,
    marginal: Marginal = None,
    plot: Plot = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Make a schedule for MODEL, with a pilot run where the rule needs one.

    The picture goes beside the schedule, unless --plot says where.
    """
    from annealz.methods.problem import choose_problem
    from annealz.models.formats.naming import MappedFile
    from annealz.pilots.plan import check_schedule, plan_schedule
    from annealz.training.data.array import read_data

    picture = out.with_suffix(".png") if plot is None else plot
    check_plot(picture)
    if picture == out:
        raise ValueError(
            f"{out} cannot be both the schedule and its picture: give it another ending."
        )
    for path in (out, picture):
        if path.exists() and not force:
            raise ValueError(f"{path} exists: choose another name, or overwrite it with --force.")
    rows = None if data is None else read_data(data)
    chosen = choose_problem(MappedFile.of(model, names), base=base, data=rows, marginal=marginal)
    num_steps = check_schedule(name, steps)
    with show_progress(quiet) as progress:
        problem = chosen.prepared(seed, num_steps, chains, on_progress=progress)
        made = plan_schedule(
            name,
            problem.states,
            problem.kernel,
            num_steps=steps,
            num_chains=chains,
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
            f"variance of log w falls by a factor of {report['predicted_gain']:.2f}"
        )
    if "predicted_variance" in report:
        bound = (
            " or more: some chains forget too slowly to be measured"
            if report["tau_is_bound"]
            else ""
        )
        print(f"predicted variance of log w: {report['predicted_variance']:.3g}{bound}")

"""`annealz compare`: all schedules at equal total cost."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from annealz.cli.cluster import lost, open_client
from annealz.cli.options import (
    Base,
    Cluster,
    Data,
    Json,
    Map,
    Model,
    Plot,
    Quiet,
    Report,
    Seed,
    TlsCa,
    TlsCert,
    TlsKey,
)
from annealz.cli.progress import show_labelled_progress
from annealz.cli.show import check_page, check_plot, open_console, save_pages, show_messages
from annealz.core.names import DEFAULT_MODEL

if TYPE_CHECKING:
    from annealz.results.compare import Comparison

__all__ = ["compare"]


def compare(
    model: Model = DEFAULT_MODEL,
    schedules: Annotated[
        str | None, typer.Option(help="Names, separated by commas (default {compared}).")
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps of a schedule without a pilot.")] = 10_000,
    chains: Annotated[int, typer.Option(help="Chains N.")] = 1000,
    replicates: Annotated[int, typer.Option(help="Independent runs of each schedule.")] = 4,
    seed: Seed = 0,
    base: Base = "auto",
    data: Data = None,
    names: Map = None,
    cluster: Cluster = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    plot: Plot = None,
    report: Report = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare schedules on MODEL at equal total cost, pilots charged.

    The figure goes to compare-NAME.png, unless --plot says where or --json is given.
    """
    from annealz.engine.cluster.lost import LostCluster
    from annealz.models.formats.naming import MappedFile
    from annealz.results.compare import compare_schedules
    from annealz.training.data.array import read_data

    check_plot(plot)
    check_page(report)
    means = None if data is None else read_data(data)
    try:
        with (
            open_client(cluster, tls_ca, tls_cert, tls_key, quiet) as client,
            show_labelled_progress(quiet) as progress,
        ):
            result = compare_schedules(
                MappedFile.of(model, names),
                schedules=None if schedules is None else _names(schedules),
                num_steps=steps,
                num_chains=chains,
                num_replicates=replicates,
                base=base,
                data=means,
                seed=seed,
                client=client,
                on_progress=progress,
            )
    except LostCluster as error:
        raise lost(error, None) from None
    if as_json:
        print(json.dumps(result.to_dict(), allow_nan=False))
    else:
        _show(result)
    picture = Path(f"compare-{result.model}.png") if plot is None and not as_json else plot
    save_pages(result, picture, report, as_json)
    if not as_json:
        print(f"figure: {picture}")


def _names(text: str) -> list[str]:
    """The names of an option, separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _show(result: "Comparison") -> None:
    import numpy as np

    console = open_console()
    exact = "" if result.exact_log_z is None else f", exact log Z {result.exact_log_z:.4f}"
    count = len(result.contenders[0].log_weights)
    console.print(
        f"{escape(result.model)}: {count} replicates of {result.budget:,} sweeps, "
        f"base {result.base}{exact}",
        highlight=False,
    )
    table = Table(box=None, padding=(0, 2, 0, 0))
    headings = (
        "schedule",
        "steps",
        "pilot",
        "log Z",
        "off by (s.e.)",
        "ESS: median (range)",
        "Var log w",
        "status",
    )
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "schedule" else "right")
    for c in result.contenders:
        gap = "–"
        if result.exact_log_z is not None:
            off = c.log_z - result.exact_log_z
            gap = f"{off:+.4f}" + (f" ({off / c.std_err:+.1f})" if c.std_err > 0 else "")
        low, high = c.variance_interval()
        table.add_row(
            c.name,
            f"{c.num_steps:,}",
            f"{c.sweeps['pilot']:,}",
            f"{c.log_z:.4f} ± {c.std_err:.4f}",
            gap,
            f"{np.median(c.ess):.0f} ({c.ess.min():.0f}–{c.ess.max():.0f})",
            f"{c.variance.mean():.3f} ({low:.3f} … {high:.3f})",
            c.status.value,
        )
    console.print(table)
    console.print(result.verdict, highlight=False)
    show_messages(console, result.messages)

"""The figures of the race: ESS against K, and the schedules themselves. One PNG each."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from outcome import Outcome
from race import Key
from verdicts import model_label, schedule_label

__all__ = ["draw_charts", "write_charts"]

_STYLES = {  # the colours of Okabe and Ito, as in papers/kiwaki2015
    "linear": ("#000000", "D"),
    "sm08": ("#CC79A7", "P"),
    "gms13": ("#D55E00", "X"),
    "varopt": ("#0072B2", "o"),
    "varopt-0.009": ("#56B4E9", "s"),
    "varopt-0.006": ("#009E73", "^"),
    "varopt-0.003": ("#E69F00", "v"),
    "mixing": ("#8B0000", "*"),
}
_GREY = "#777777"
_DODGE = 0.095  # between neighbours, where one K is 1 from the next


def write_charts(race: Outcome, folder: Path) -> None:
    for name, figure in draw_charts(race).items():
        figure.savefig(folder / f"{name}.png", dpi=150, metadata={"Software": None})


def draw_charts(race: Outcome) -> dict[str, Figure]:
    return {"ess": _ess(race), "curves": _curves(race)}


def _ess(race: Outcome) -> Figure:
    title = "ESS of 1,000 chains at equal cost: mean and range of 20 replicates"
    figure, panels = _panels(race, title)
    steps = race.steps("base-rate")
    for axes, model in panels:
        for place, (name, (colour, marker)) in enumerate(_STYLES.items()):
            is_ours = name == "mixing"
            for group, num_steps in enumerate(steps):
                key = Key(model, "base-rate", name, num_steps)
                if key in race.cells:
                    ess = race.column(key, "ess")
                    axes.errorbar(
                        group + _DODGE * (place - 3.5),
                        ess.mean(),
                        yerr=[[ess.mean() - ess.min()], [ess.max() - ess.mean()]],
                        color=colour,
                        marker=marker,
                        ls="none",
                        ms=10 if is_ours else 5,
                        elinewidth=1.6 if is_ours else 0.8,
                        label=schedule_label(name) if group == 0 else None,
                    )
        axes.set(yscale="log", ylim=(1, 1300))
        axes.set_xticks(range(len(steps)), [f"{k:,}" for k in steps])
        axes.yaxis.set_major_locator(FixedLocator([1, 3, 10, 30, 100, 300, 1000]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.grid(axis="y", lw=0.4, color="#DDDDDD")
    _label(figure, panels, "K", "ESS")
    return figure


def _curves(race: Outcome) -> Figure:
    steps = max(race.steps("base-rate"))
    title = f"β(t) at K = {steps:,}: mean and range of 20 replicates, each from its own pilot"
    figure, panels = _panels(race, title)
    for axes, model in panels:
        for name in ("linear", "varopt", "mixing"):
            betas = race.curves[Key(model, "base-rate", name, steps)]
            t, colour = np.linspace(0, 1, betas.shape[1]), _STYLES[name][0]
            axes.fill_between(t, betas.min(0), betas.max(0), color=colour, alpha=0.25, lw=0)
            axes.plot(t, betas.mean(0), color=colour, lw=1.4, label=schedule_label(name))
        axes.set(xlim=(0, 1), ylim=(0, 1.01))
    _label(figure, panels, "t = k / K", "β")
    return figure


def _panels(race: Outcome, title: str) -> tuple[Figure, list[tuple[Axes, str]]]:
    models = race.models("base-rate")
    columns = min(3, len(models))
    rows = -(-len(models) // columns)
    figure = Figure(figsize=(4.2 * columns, 0.9 + 3.3 * rows), layout="constrained")
    figure.suptitle(title, fontsize=12)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    panels = list(zip(grid.flat, models, strict=False))
    for axes, model in panels:
        axes.set_title(model_label(model))
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(which="both", colors=_GREY)
    return figure, panels


def _label(figure: Figure, panels: list[tuple[Axes, str]], x: str, y: str) -> None:
    for axes, _ in panels:
        place = axes.get_subplotspec()
        if place is not None and place.is_last_row():
            axes.set_xlabel(x)
        if place is not None and place.is_first_col():
            axes.set_ylabel(y)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)

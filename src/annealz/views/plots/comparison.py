"""Figures of a comparison of schedules."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from annealz.views.plots import style

if TYPE_CHECKING:
    from annealz.results.compare import Comparison

_DASHES, _MARKERS = ("-", "--", ":", "-."), (None, "o", "^", "s")
_COLOURS = (style.BLUE, style.RED, style.GREEN, style.PURPLE, style.GREY)


def plot_comparison(comparison: "Comparison") -> Figure:
    """Draw log Z with two standard errors, and the ESS of every replicate, by schedule."""
    figure = style.panels(
        (11, 0.42 * len(comparison.contenders) + 1.8),
        lambda ax: plot_contender_log_z(comparison, ax),
        lambda ax: plot_contender_ess(comparison, ax),
        title=f"{style.plain(comparison.model)}, equal total cost",
    )
    figure.axes[1].tick_params(labelleft=False)
    return figure


def plot_contender_log_z(comparison: "Comparison", ax: Axes | None = None) -> Axes:
    """Draw log Z of every schedule with two standard errors."""
    ax = style.new_axes(ax, _size(comparison))
    for row, contender in enumerate(comparison.contenders):
        error = 2 * contender.std_err if np.isfinite(contender.std_err) else None
        ax.errorbar(contender.log_z, row, xerr=error, fmt="o", color=style.BLUE, capsize=3)
    style.mark_exact(ax.axvline, comparison.exact_log_z)
    legend = 0 if comparison.exact_log_z is None else 2
    return _rows(ax, comparison, legend, xlabel="log Z", title="log Z ± 2 standard errors")


def plot_contender_ess(comparison: "Comparison", ax: Axes | None = None) -> Axes:
    """Draw the ESS of every replicate of every schedule, and the median."""
    ax = style.new_axes(ax, _size(comparison))
    for row, contender in enumerate(comparison.contenders):
        labels = ("replicate", "median") if row == 0 else (None, None)
        rows = np.full(contender.ess.size, row)
        ax.plot(contender.ess, rows, "o", color=style.BLUE, alpha=0.5, label=labels[0])
        median = np.median(contender.ess)
        ax.plot(median, row, "|", color=style.RED, ms=14, mew=2.5, label=labels[1])
    ax.set_xlim(left=0)
    label = f"effective of {comparison.num_chains:,} chains"
    return _rows(ax, comparison, 2, xlabel=label, title="ESS")


def plot_contender_schedules(comparison: "Comparison", ax: Axes | None = None) -> Axes:
    """Draw beta against the fraction of steps, of every schedule: that of its first replicate."""
    ax = style.new_axes(ax)
    for place, contender in enumerate(comparison.contenders):
        times = np.linspace(0, 1, 401)
        steps = np.linspace(0, 1, contender.num_steps + 1)
        ax.plot(
            times,
            np.interp(times, steps, contender.betas),
            color=_COLOURS[place % len(_COLOURS)],
            ls=_DASHES[place % len(_DASHES)],
            marker=_MARKERS[place // len(_DASHES) % len(_MARKERS)],
            markevery=(20 * place % 80, 80),
            ms=4,
            lw=1.5,
            label=contender.name,
        )
    ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    limits = {"xlim": (0, 1), "ylim": (0, 1.01)}
    return style.finish(ax, xlabel="t = k / K", ylabel="β", title="the schedules", **limits)


def _size(comparison: "Comparison") -> tuple[float, float]:
    return 4.8, 0.3 * len(comparison.contenders) + 1.6


def _rows(ax: Axes, comparison: "Comparison", legend: int, **settings: str) -> Axes:
    """Return finished axes with a row for every schedule."""
    names = [contender.name for contender in comparison.contenders]
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    return style.finish(ax, legend, **settings)

"""Pictures of a schedule.

The time spent at each beta is m = dt/dbeta; its integral is 1. Least variance has m ∝ √(g tau) for chains
that remember and m ∝ √g for those that do not (`schedules/`), so that terrain and schedule have one scale:
√g and √(g tau), each divided by its integral.
"""

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes

from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain
from annealz.schedules.time_density import normalised
from annealz.views.plots.style import BLUE, GREEN, RED, legend_above, new_axes, plain, tidy

__all__ = ["plot_dwell", "plot_schedule"]

_NUM_BINS = 100
_NUM_POINTS = 2001


def plot_schedule(schedule: Schedule, ax: Axes | None = None) -> Axes:
    """beta against the fraction of steps done."""
    ax = new_axes(ax)
    pick = np.unique(np.linspace(0, schedule.num_steps, _NUM_POINTS).astype(int))
    ax.plot(pick / schedule.num_steps, schedule.betas[pick], color=BLUE, lw=2)
    ax.set(xlabel="t = k / K", ylabel="β", xlim=(0, 1), ylim=(0, 1.01))
    ax.set_title(f"schedule: {plain(schedule.name)}, {schedule.num_steps:,} steps")
    tidy(ax)
    return ax


def plot_dwell(schedule: Schedule, terrain: Terrain | None = None, ax: Axes | None = None) -> Axes:
    """The time that a schedule spends at each beta, over what a terrain asks for."""
    ax = new_axes(ax)
    edges = np.linspace(0, 1, min(_NUM_BINS, schedule.num_steps) + 1)
    if schedule.num_steps <= _NUM_BINS:
        edges = schedule.betas
    times = np.interp(edges, schedule.betas, np.linspace(0, 1, schedule.num_steps + 1))
    spent = np.diff(times) / np.diff(edges)
    ax.stairs(spent, edges, fill=True, color=BLUE, alpha=0.35, label="time spent, dt/dβ")
    top = np.quantile(spent, 0.98)
    for label, grid, wanted, color, dashes in _wanted(terrain):
        ax.plot(grid, wanted, label=label, color=color, ls=dashes, lw=1.8)
        top = max(top, np.quantile(wanted, 0.98))
    ax.set(xlabel="β", xlim=(0, 1), ylim=(0, 1.15 * top))
    ax.set_ylabel("share of the steps per β")
    ax.set_title(f"where {plain(schedule.name)} spends its steps")
    if terrain is not None:
        legend_above(ax, 3)
    tidy(ax)
    return ax


def _wanted(
    terrain: Terrain | None,
) -> Iterator[tuple[str, np.ndarray, np.ndarray, str, str]]:
    """What least variance asks for, as label, betas, density, colour and dashes."""
    if terrain is None:
        return
    if terrain.tau is not None:
        grid, friction = terrain.on_grid(with_memory=True)
        yield "∝ √(g τ)", grid, normalised(grid, np.sqrt(friction)), RED, "-"
    grid, g = (terrain.smoothed() if terrain.tau is None else terrain).on_grid()
    yield "∝ √g", grid, normalised(grid, np.sqrt(g)), GREEN, "--"

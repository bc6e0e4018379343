"""Figures of a schedule, and of a terrain: what a pilot learned along the path.

The time spent at each beta is m = dt/dbeta; its integral is 1. Least variance has m ∝ √(g tau) for chains
that remember and m ∝ √g for those that do not (`schedules/`), so that terrain and schedule have one scale:
√g and √(g tau), each divided by its integral.
"""

import functools
from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from annealz.schedules.schedule import Schedule
from annealz.schedules.steps import normalised
from annealz.schedules.terrain import Terrain
from annealz.views.plots import style

_NUM_BINS = 100
_NUM_POINTS = 2001


def plot_schedule(schedule: Schedule, ax: Axes | None = None) -> Axes:
    """Draw beta against the fraction of steps done."""
    ax = style.new_axes(ax)
    pick = np.unique(np.linspace(0, schedule.num_steps, _NUM_POINTS).astype(int))
    ax.plot(pick / schedule.num_steps, schedule.betas[pick], color=style.BLUE, lw=2)
    title = f"schedule: {style.plain(schedule.name)}, {schedule.num_steps:,} steps"
    limits = {"xlim": (0, 1), "ylim": (0, 1.01)}
    return style.finish(ax, xlabel="t = k / K", ylabel="β", title=title, **limits)


def plot_dwell(schedule: Schedule, terrain: Terrain | None = None, ax: Axes | None = None) -> Axes:
    """Draw the time that a schedule spends at each beta, over what a terrain asks for."""
    ax = style.new_axes(ax)
    edges = np.linspace(0, 1, min(_NUM_BINS, schedule.num_steps) + 1)
    if schedule.num_steps <= _NUM_BINS:
        edges = schedule.betas
    times = np.interp(edges, schedule.betas, np.linspace(0, 1, schedule.num_steps + 1))
    spent = np.diff(times) / np.diff(edges)
    ax.stairs(spent, edges, fill=True, color=style.BLUE, alpha=0.35, label="time spent, dt/dβ")
    top = np.quantile(spent, 0.98)
    for label, grid, wanted, color, dashes in _wanted(terrain):
        ax.plot(grid, wanted, label=label, color=color, ls=dashes, lw=1.8)
        top = max(top, np.quantile(wanted, 0.98))
    ax.set_ylim(0, 1.15 * top)
    title = f"where {style.plain(schedule.name)} spends its steps"
    return _finish(ax, title, "share of the steps per β", 0 if terrain is None else 3)


def _wanted(
    terrain: Terrain | None,
) -> Iterator[tuple[str, np.ndarray, np.ndarray, str, str]]:
    """Yield what least variance asks for, as label, betas, density, colour and dashes."""
    if terrain is None:
        return
    if terrain.tau is not None:
        grid, friction = terrain.on_grid(with_memory=True)
        yield "∝ √(g τ)", grid, normalised(grid, np.sqrt(friction)), style.RED, "-"
    grid, g = (terrain.smoothed() if terrain.tau is None else terrain).on_grid()
    yield "∝ √g", grid, normalised(grid, np.sqrt(g)), style.GREEN, "--"


def plot_terrain(terrain: Terrain) -> Figure:
    """Draw mean and variance of the slope; its tau where measured, else the pilot's ESS."""
    last = plot_pilot_ess if terrain.tau is None else plot_tau
    draw = terrain.plot_mean, terrain.plot_variance, functools.partial(last, terrain)
    return style.panels((12, 3.6), *draw)


def plot_mean(terrain: Terrain, ax: Axes | None = None) -> Axes:
    """Draw the mean of the slope, d log Z / dbeta."""
    ax = style.new_axes(ax)
    ax.plot(terrain.betas, terrain.mean, color=style.BLUE, **_marks(terrain))
    return _finish(ax, "mean of the slope, d log Z / dβ", "nats per β")


def plot_variance(terrain: Terrain, ax: Axes | None = None) -> Axes:
    """Draw the variance of the slope, raw and smoothed."""
    ax = style.new_axes(ax)
    seen = np.where(terrain.variance > 0, terrain.variance, np.nan)  # a log axis has no zero
    ax.plot(terrain.betas, seen, color=style.BLUE, lw=1, label="raw", **_marks(terrain))
    smooth = terrain.smoothed()
    ax.plot(smooth.betas, smooth.variance, color=style.RED, ls="--", label="smoothed")
    style.log_if_wide(ax, "y", terrain.variance)
    return _finish(ax, "variance of the slope, g(β)", "g, nats² per β²", 2)


def plot_tau(terrain: Terrain, ax: Axes | None = None) -> Axes:
    """Draw the autocorrelation time of the slope; triangles where the pilot found only a bound."""
    if terrain.tau is None or terrain.tau_is_bound is None:
        raise ValueError("this terrain has no tau: survey it with survey_mixing.")
    ax = style.new_axes(ax)
    tau, bound = terrain.tau, terrain.tau_is_bound
    ax.plot(terrain.betas, tau, color=style.BLUE)
    for where, marker, size, color, label in (
        (~bound, "o", 4, style.BLUE, "measured"),
        (bound, "^", 6, style.RED, "at least"),
    ):
        if where.any():  # nothing, not clipped, would have a place of its own in the layout
            points = terrain.betas[where], tau[where]
            ax.plot(*points, marker, ms=size, color=color, clip_on=False, label=label)
    style.log_if_wide(ax, "y", tau)
    return _finish(ax, "autocorrelation time τ(β)", "τ, sweeps", 2)


def plot_pilot_ess(terrain: Terrain, ax: Axes | None = None) -> Axes:
    """Draw the ESS of the pilot."""
    ax = style.new_axes(ax)
    ax.plot(terrain.betas, terrain.ess, color=style.BLUE, **_marks(terrain))
    ax.set_ylim(0, 1.05 * float(np.max(terrain.ess)))
    return _finish(ax, "ESS of the pilot", "effective chains")


def _marks(terrain: Terrain) -> dict:
    """Return a dot for every knot, where they are few."""
    return {"marker": "o", "ms": 3, "clip_on": False} if terrain.betas.size <= 50 else {}


def _finish(ax: Axes, title: str, unit: str, legend: int = 0) -> Axes:
    return style.finish(ax, legend, xlabel="β", ylabel=unit, title=title, xlim=(0, 1))

"""Pictures of a terrain: what a pilot learned along the path."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from annealz.schedules.terrain import Terrain
from annealz.views.plots.style import (
    BLUE,
    RED,
    legend_above,
    level_titles,
    log_if_wide,
    new_axes,
    tidy,
)

__all__ = ["plot_mean", "plot_pilot_ess", "plot_tau", "plot_terrain", "plot_variance"]


def plot_terrain(terrain: Terrain) -> Figure:
    """Mean and variance of the slope; its tau where measured, else the pilot's ESS."""
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    plot_mean(terrain, left)
    plot_variance(terrain, middle)
    (plot_pilot_ess if terrain.tau is None else plot_tau)(terrain, right)
    level_titles(left, middle, right)
    return figure


def plot_mean(terrain: Terrain, ax: Axes | None = None) -> Axes:
    """Mean of the slope, d log Z / dbeta."""
    ax = new_axes(ax)
    ax.plot(terrain.betas, terrain.mean, color=BLUE, **_marks(terrain))
    return _finish(ax, "mean of the slope, d log Z / dβ", "nats per β")


def plot_variance(terrain: Terrain, ax: Axes | None = None) -> Axes:
    """Variance of the slope, raw and smoothed."""
    ax = new_axes(ax)
    seen = np.where(terrain.variance > 0, terrain.variance, np.nan)  # a log axis has no zero
    ax.plot(terrain.betas, seen, color=BLUE, lw=1, label="raw", **_marks(terrain))
    smooth = terrain.smoothed()
    ax.plot(smooth.betas, smooth.variance, color=RED, ls="--", label="smoothed")
    log_if_wide(ax, "y", terrain.variance)
    _finish(ax, "variance of the slope, g(β)", "g, nats² per β²")
    legend_above(ax)
    return ax


def plot_tau(terrain: Terrain, ax: Axes | None = None) -> Axes:
    """Autocorrelation time of the slope; triangles where the pilot found only a bound."""
    if terrain.tau is None or terrain.tau_is_bound is None:
        raise ValueError("this terrain has no tau: survey it with survey_mixing.")
    ax = new_axes(ax)
    tau, bound = terrain.tau, terrain.tau_is_bound
    ax.plot(terrain.betas, tau, color=BLUE)
    for where, marker, size, color, label in (
        (~bound, "o", 4, BLUE, "measured"),
        (bound, "^", 6, RED, "at least"),
    ):
        if where.any():  # nothing, not clipped, would have a place of its own in the layout
            points = terrain.betas[where], tau[where]
            ax.plot(*points, marker, ms=size, color=color, clip_on=False, label=label)
    log_if_wide(ax, "y", tau)
    _finish(ax, "autocorrelation time τ(β)", "τ, sweeps")
    legend_above(ax)
    return ax


def plot_pilot_ess(terrain: Terrain, ax: Axes | None = None) -> Axes:
    """ESS of the pilot."""
    ax = new_axes(ax)
    ax.plot(terrain.betas, terrain.ess, color=BLUE, **_marks(terrain))
    ax.set_ylim(0, 1.05 * float(np.max(terrain.ess)))
    return _finish(ax, "ESS of the pilot", "effective chains")


def _marks(terrain: Terrain) -> dict:
    """A dot at every knot, where they are few."""
    return {"marker": "o", "ms": 3, "clip_on": False} if terrain.betas.size <= 50 else {}


def _finish(ax: Axes, title: str, unit: str) -> Axes:
    ax.set(xlabel="β", ylabel=unit, title=title, xlim=(0, 1))
    tidy(ax)
    return ax

"""Pictures of a schedule and of an estimate.

Figures are made without pyplot, so that they need no display and nothing global changes; a
notebook shows them, `figure.savefig(file)` writes them.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from annealz.schedules.schedule import Schedule
from annealz.terrain import Terrain

__all__ = ["plot_comparison", "plot_estimate", "plot_schedule", "plot_terrain"]

_BLUE, _ORANGE, _GREY, _GREEN = "#1f5fa8", "#d9730d", "#777777", "#2a8a5b"
_ROOM = 0.72  # of the height, for a histogram below its legend


def plot_schedule(schedule: Schedule, axes: Axes | None = None) -> Axes:
    """beta against the fraction of steps done."""
    if axes is None:
        axes = Figure(figsize=(4.5, 3.5), layout="constrained").add_subplot()
    pick = np.unique(np.linspace(0, schedule.num_steps, 2001).astype(int))
    axes.plot(pick / schedule.num_steps, schedule.betas[pick], color=_BLUE, lw=2)
    axes.set(xlabel="t = k / K", ylabel="β", xlim=(0, 1), ylim=(0, 1.01))
    axes.set_title(f"schedule: {schedule.name}, {schedule.num_steps:,} steps")
    _tidy(axes)
    return axes


def plot_estimate(estimate) -> Figure:
    """beta(t), on-the-fly ESS, and the histogram of log w; of both sides where there are two."""
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    plot_schedule(estimate.schedule, left)

    trace = estimate.trace
    steps = np.concatenate([[0], trace.steps]) / estimate.num_steps
    middle.plot(steps, np.concatenate([[estimate.num_chains], trace.ess]), color=_BLUE, lw=1.5)
    middle.set(xlabel="t = k / K", ylabel="ESS", xlim=(0, 1), ylim=(0, 1.03 * estimate.num_chains))
    if estimate.run.num_resamplings:
        times = f"resampled {estimate.run.num_resamplings:,} times"
        middle.set_title(f"on-the-fly ESS, {times}")
    else:
        middle.set_title(f"on-the-fly ESS, {estimate.ess:.1f} at the end")
    _tidy(middle)

    if estimate.two_sided is None:
        shown = estimate.run.log_z0 + estimate.log_weights
        right.hist(_without_left_tail(shown), bins="auto", color=_BLUE, alpha=0.55)
        right.set_title(f"log weights of {estimate.num_chains:,} chains")
    else:
        _plot_sides(right, estimate)
    _mark_log_z(right, estimate)
    title = f"{estimate.model}: log Z = {estimate.log_z:.3f} ± {estimate.std_err:.3f}"
    figure.suptitle(title, fontweight="bold")
    return figure


def _plot_sides(axes: Axes, estimate) -> None:
    """Forward and reverse work, and the means of them, which enclose log Z."""
    log_z0, bounds = estimate.run.log_z0, estimate.two_sided.sandwich
    forward = _without_left_tail(log_z0 + estimate.run.work)
    reverse = -_without_left_tail(-log_z0 - estimate.reverse.work)
    both = np.concatenate([forward, reverse])
    bins = np.histogram_bin_edges(both, bins="auto").tolist()
    axes.hist(forward, bins, color=_BLUE, alpha=0.5, label="forward")
    axes.hist(reverse, bins, color=_GREEN, alpha=0.5, label="reverse")
    for bound, color in ((bounds.lower, _BLUE), (bounds.upper, _GREEN)):
        axes.axvline(log_z0 + bound, ymax=_ROOM, color=color, ls=":", lw=1.6)
    draws = estimate.settings["draws"]
    axes.set_title(f"work of {estimate.num_chains:,} chains a side, {draws} draws")


def _mark_log_z(axes: Axes, estimate) -> None:
    """The estimate with its interval, and the exact value, over a histogram."""
    if np.isfinite(estimate.interval()).all():
        axes.axvspan(*estimate.interval(), ymax=_ROOM, color=_ORANGE, alpha=0.25, lw=0)
    label = f"log Z = {estimate.log_z:.3f}"
    axes.axvline(estimate.log_z, ymax=_ROOM, color=_ORANGE, lw=2, label=label)
    if estimate.exact_log_z is not None:
        label = f"exact = {estimate.exact_log_z:.3f}"
        axes.axvline(estimate.exact_log_z, ymax=_ROOM, color="black", ls="--", lw=1.3, label=label)
    axes.set(xlabel="log Z of each chain:  $\\log Z_A + \\log w$", ylabel="chains")
    axes.set_ylim(top=axes.get_ylim()[1] / _ROOM)  # for the legend
    axes.legend(frameon=False, loc="upper left", ncols=2, columnspacing=1, handlelength=1.2)
    _tidy(axes)


def _without_left_tail(values: np.ndarray) -> np.ndarray:
    """All but the lowest 0.5 %: chains left behind, that would squeeze the others."""
    return values[values >= np.quantile(values, 0.005)]


def plot_terrain(terrain: Terrain) -> Figure:
    """Mean and variance of the slope, raw and smoothed; its tau where measured, else the pilot's ESS."""
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    left.plot(terrain.betas, terrain.mean, color=_BLUE)
    left.set(xlabel="β", title="mean of the slope, d log Z / dβ")
    middle.semilogy(terrain.betas, terrain.variance, color=_BLUE, alpha=0.45, lw=1, label="raw")
    middle.semilogy(terrain.betas, terrain.smoothed().variance, color=_ORANGE, label="smoothed")
    middle.set(xlabel="β", title="variance of the slope, g(β)")
    middle.legend(frameon=False)
    if terrain.tau is None:
        right.plot(terrain.betas, terrain.ess, color=_BLUE)
        right.set(xlabel="β", title="ESS of the pilot", ylim=(0, None))
    else:
        _plot_memory(right, terrain)
    for axes in (left, middle, right):
        axes.set_xlim(0, 1)
        _tidy(axes)
    return figure


def _plot_memory(axes: Axes, terrain: Terrain) -> None:
    tau = np.asarray(terrain.tau)
    bound = np.asarray(terrain.tau_is_bound)
    axes.semilogy(terrain.betas, tau, color=_BLUE)
    axes.semilogy(terrain.betas[~bound], tau[~bound], "o", ms=4, color=_BLUE, label="measured")
    if bound.any():
        axes.semilogy(terrain.betas[bound], tau[bound], "^", ms=5, color=_ORANGE, label="at least")
    axes.set(xlabel="β", title="autocorrelation time τ(β), sweeps")
    axes.legend(frameon=False)


def plot_comparison(comparison) -> Figure:
    """log Z with two standard errors, and the ESS of every replicate, by schedule."""
    figure = Figure(figsize=(11, 0.42 * len(comparison.contenders) + 1.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for row, contender in enumerate(comparison.contenders):
        left.errorbar(
            contender.log_z, row, xerr=2 * contender.std_err, fmt="o", color=_BLUE, capsize=3
        )
        right.plot(contender.ess, np.full(contender.ess.size, row), "o", color=_BLUE, alpha=0.5)
        right.plot(np.median(contender.ess), row, "|", color=_ORANGE, ms=16, mew=2.5)
    if comparison.exact_log_z is not None:
        left.axvline(comparison.exact_log_z, color="black", ls="--", lw=1.3, label="exact")
        left.legend(frameon=False)
    left.set(xlabel="log Z ± 2 standard errors", title=f"{comparison.model}, equal total cost")
    left.set_yticks(range(len(comparison.contenders)), [c.name for c in comparison.contenders])
    left.invert_yaxis()
    right.set(xlabel="ESS of each replicate, and the median", xlim=(0, None))
    right.set_title(f"of {comparison.num_chains:,} chains")
    for axes in (left, right):
        _tidy(axes)
    return figure


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=_GREY)

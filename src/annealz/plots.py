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

_BLUE, _ORANGE, _GREY = "#1f5fa8", "#d9730d", "#777777"


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
    """beta(t), on-the-fly ESS, and the histogram of log w."""
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    plot_schedule(estimate.schedule, left)

    trace = estimate.trace
    steps = np.concatenate([[0], trace.steps]) / estimate.num_steps
    middle.plot(steps, np.concatenate([[estimate.num_chains], trace.ess]), color=_BLUE, lw=1.5)
    middle.set(xlabel="t = k / K", ylabel="ESS", xlim=(0, 1), ylim=(0, 1.03 * estimate.num_chains))
    middle.set_title(f"on-the-fly ESS, {estimate.ess:.1f} at the end")
    _tidy(middle)

    shifted = estimate.run.log_z0 + estimate.log_weights
    shown = shifted[shifted >= np.quantile(shifted, 0.005)]
    right.hist(shown, bins="auto", color=_BLUE, alpha=0.55)
    if np.isfinite(estimate.interval()).all():
        right.axvspan(*estimate.interval(), ymax=0.77, color=_ORANGE, alpha=0.25, lw=0)
    label = f"log Z = {estimate.log_z:.3f}"
    right.axvline(estimate.log_z, ymax=0.77, color=_ORANGE, lw=2, label=label)
    if estimate.exact_log_z is not None:
        label = f"exact = {estimate.exact_log_z:.3f}"
        right.axvline(estimate.exact_log_z, ymax=0.77, color="black", ls="--", lw=1.3, label=label)
    right.set(xlabel="log Z of each chain:  $\\log Z_A + \\log w$", ylabel="chains")
    right.set_ylim(top=1.3 * right.get_ylim()[1])  # room for the legend
    right.set_title(f"log weights of {estimate.num_chains:,} chains")
    right.legend(frameon=False, loc="upper left", ncols=2, columnspacing=1, handlelength=1.2)
    _tidy(right)
    title = f"{estimate.model}: log Z = {estimate.log_z:.3f} ± {estimate.std_err:.3f}"
    figure.suptitle(title, fontweight="bold")
    return figure


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

"""Figures of an annealed estimate: on-the-fly ESS, weights, work of two sides, convergence in chains."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from annealz.views.plots import style
from annealz.views.plots.schedule import plot_schedule

if TYPE_CHECKING:
    from annealz.methods.annealing.estimate import Estimate

_MOST_BINS = 81


def plot_estimate(estimate: "Estimate") -> Figure:
    """Draw beta(t), on-the-fly ESS, and the histogram of log w; of both sides where there are two."""
    weights = plot_weights if estimate.two_sided is None else plot_work
    return style.panels(
        (12, 3.8),
        lambda ax: plot_schedule(estimate.schedule, ax),
        lambda ax: plot_ess(estimate, ax),
        lambda ax: weights(estimate, ax),
        title=f"{style.plain(estimate.model)}: log Z = {estimate.log_z:.3f} ± {estimate.std_err:.3f}",
    )


def plot_ess(estimate: "Estimate", ax: Axes | None = None) -> Axes:
    """Draw on-the-fly ESS of the forward chains against the fraction of steps done."""
    ax, trace, size = style.new_axes(ax), estimate.trace, estimate.num_chains
    steps = np.concatenate([[0], trace.steps]) / estimate.num_steps
    ax.plot(steps, np.concatenate([[size], trace.ess]), color=style.BLUE, lw=1.5)
    ax.set(xlabel="t = k / K", ylabel="effective chains", xlim=(0, 1), ylim=(0, 1.03 * size))
    if estimate.run.num_resamplings:
        ax.set_title(f"on-the-fly ESS, resampled {estimate.run.num_resamplings:,} times")
    else:
        ax.set_title(f"on-the-fly ESS, {trace.ess[-1]:.1f} at the end")
    style.tidy(ax)
    return ax


def plot_weights(estimate: "Estimate", ax: Axes | None = None) -> Axes:
    """Draw a histogram of the log weights of the forward chains, with log Z and what k-hat says."""
    ax = style.new_axes(ax)
    shown = _without_left_tail(estimate.run.log_z0 + estimate.log_weights)
    ax.stairs(*np.histogram(shown, _bins(shown)), fill=True, color=style.BLUE, alpha=0.5)
    ax.set_title(f"log weights: {estimate.tail}")
    _mark_interval(ax, estimate)
    return ax


def plot_work(estimate: "Estimate", ax: Axes | None = None) -> Axes:
    """Draw forward and reverse work, the means of them, which enclose log Z, and log Z."""
    if estimate.two_sided is None or estimate.reverse is None:
        raise ValueError("an estimate from one side has no reverse work: take two_sided=True.")
    ax = style.new_axes(ax)
    log_z0, bounds = estimate.run.log_z0, estimate.two_sided.sandwich
    forward = _without_left_tail(log_z0 + estimate.run.work)
    reverse = -_without_left_tail(-log_z0 - estimate.reverse.work)
    bins = _bins(np.concatenate([forward, reverse]))
    counts = np.histogram(forward, bins)[0]
    ax.stairs(counts, bins, fill=True, color=style.BLUE, alpha=0.5, label="forward")
    counts = np.histogram(reverse, bins)[0]
    ax.stairs(counts, bins, color=style.GREEN, lw=1.8, label="reverse")
    for bound, color, dashes, label in (
        (bounds.lower, style.BLUE, ":", "mean forward"),
        (bounds.upper, style.GREEN, "-.", "mean reverse"),
    ):
        ax.axvline(log_z0 + bound, color=color, ls=dashes, lw=1.8, label=label)
    ax.set_title(f"work, {estimate.plan.draws} draws")
    _mark_interval(ax, estimate)
    return ax


def plot_convergence(estimate: "Estimate", ax: Axes | None = None) -> Axes:
    """Draw log Z from the first n chains, with two standard errors."""
    ax, path = style.new_axes(ax), estimate.convergence()
    known = np.isfinite(path.std_err)
    count, middle, half = (x[known] for x in (path.num_chains, path.log_z, 2 * path.std_err))
    if known.sum() > 1:
        label = "± 2 standard errors"
        ax.fill_between(
            count, middle - half, middle + half, color=style.BLUE, alpha=0.2, lw=0, label=label
        )
    ax.plot(
        path.num_chains, path.log_z, "o-", ms=3, lw=1.2, color=style.BLUE, label="first n chains"
    )
    sides = " of each side" if estimate.two_sided is not None else ""
    ax.set(xlabel=f"n, chains{sides}", ylabel="log Z", title="log Z as chains were added")
    style.log_if_wide(ax, "x", path.num_chains)
    style.mark_log_z(ax, estimate.log_z, estimate.exact_log_z)
    return ax


def _mark_interval(ax: Axes, estimate: "Estimate") -> None:
    """Draw the estimate with its interval, and the exact value, over a histogram."""
    if np.isfinite(estimate.interval()).all():
        ax.axvspan(*estimate.interval(), color=style.RED, alpha=0.2, lw=0)
    ax.axvline(estimate.log_z, color=style.RED, lw=2, label=f"log Z = {estimate.log_z:.3f}")
    if estimate.exact_log_z is not None:
        label = f"exact = {estimate.exact_log_z:.3f}"
        ax.axvline(estimate.exact_log_z, color=style.INK, ls="--", lw=1.3, label=label)
    ax.set(xlabel="log Z from each chain, log Z₀ + log w", ylabel="chains")
    ax.set_ylim(bottom=0)
    ax.locator_params(axis="x", nbins=6)
    style.legend_above(ax, 3)
    style.tidy(ax)


def _bins(values: np.ndarray) -> np.ndarray:
    edges = np.histogram_bin_edges(values, bins="auto")
    return edges if edges.size <= _MOST_BINS else np.linspace(edges[0], edges[-1], _MOST_BINS)


def _without_left_tail(values: np.ndarray) -> np.ndarray:
    """Drop the lowest 0.5 %: chains left behind, that would squeeze the others."""
    return values[values >= np.quantile(values, 0.005)]

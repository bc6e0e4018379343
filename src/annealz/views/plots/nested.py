"""Pictures of nested sampling: where the evidence lies along the shrinking prior, and the runs."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from annealz.views.plots.style import (
    BLUE,
    GREEN,
    INK,
    RED,
    legend_above,
    level_titles,
    new_axes,
    plain,
    tidy,
)

if TYPE_CHECKING:
    from annealz.methods.nested.estimate import NestedEstimate

__all__ = ["plot_evidence", "plot_nested", "plot_runs"]

_NUM_BINS = 60


def plot_evidence(estimate: "NestedEstimate", ax: Axes | None = None) -> Axes:
    """log L of all points and their share of the evidence, against how far the prior has shrunk."""
    ax = new_axes(ax)
    merged = estimate.judgement.merged
    deaths = np.concatenate([one.deaths for one in estimate.runs])
    shrunk, weights = -merged.log_volumes, np.exp(merged.log_weights)
    mass, edges = np.histogram(shrunk, _NUM_BINS, weights=weights)
    ax.stairs(mass / mass.max(), edges, fill=True, color=GREEN, alpha=0.4, label="evidence")
    ax.set(xlabel="−log of the prior mass left", ylabel="evidence, relative", ylim=(0, 1.05))
    right = ax.twinx()
    order = np.argsort(shrunk)
    shown = order[np.isfinite(deaths[order])]
    right.plot(shrunk[shown], deaths[shown], color=BLUE, lw=1.3, label="log L")
    low, high = deaths[shown][len(shown) // 10], deaths[shown][-1]
    right.set(ylabel="log L", ylim=(low, high + 0.05 * max(high - low, 1e-6)))
    ax.plot([], [], color=BLUE, lw=1.3, label="log L, on the right")
    ax.set_title(f"information {estimate.information:.1f} nats")
    legend_above(ax)
    tidy(ax)
    return ax


def plot_runs(estimate: "NestedEstimate", ax: Axes | None = None) -> Axes:
    """log Z of every run with two standard errors, and of all together."""
    ax = new_axes(ax)
    each = estimate.judgement.each
    numbers = np.arange(1, len(each) + 1)
    values, errors = np.array([(one.log_z, one.std_err) for one in each]).T
    label = "each run ± 2 standard errors"
    ax.errorbar(numbers, values, 2 * errors, fmt="o", ms=4, capsize=3, color=BLUE, label=label)
    half = 2 * estimate.std_err
    ax.axhspan(estimate.log_z - half, estimate.log_z + half, color=RED, alpha=0.12)
    ax.axhline(estimate.log_z, color=RED, lw=1.2, label=f"together: {estimate.log_z:.3f}")
    if estimate.exact_log_z is not None:
        exact = estimate.exact_log_z
        ax.axhline(exact, color=INK, ls="--", lw=1.3, label=f"exact = {exact:.3f}")
    ax.set(xlabel="run", ylabel="log Z", xticks=numbers, xlim=(0.5, len(each) + 0.5))
    ax.set_title("log Z run by run")
    legend_above(ax)
    tidy(ax)
    return ax


def plot_nested(estimate: "NestedEstimate") -> Figure:
    """The evidence and the runs, side by side."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_evidence(estimate, left)
    plot_runs(estimate, right)
    level_titles(left, right)
    title = f"{plain(estimate.model)}: log Z = {estimate.log_z:.3f} ± {estimate.std_err:.3f}"
    figure.suptitle(title, fontweight="bold")
    return figure

"""Figures of replica exchange and of nested sampling: the ladder, the shrinking prior, rounds and runs."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from annealz.views.plots import style

if TYPE_CHECKING:
    from annealz.methods.exchange.estimate import ExchangeEstimate
    from annealz.methods.exchange.result import Exchange
    from annealz.methods.nested.estimate import NestedEstimate

_NUM_BINS = 60


def plot_exchange(estimate: "ExchangeEstimate") -> Figure:
    """Draw the ladder and the rounds, side by side."""
    ran = estimate.exchange
    return style.panels(
        (10, 4),
        lambda ax: plot_ladder(ran, ax),
        lambda ax: plot_rounds(ran, ax, exact_log_z=estimate.exact_log_z),
        title=f"{style.plain(estimate.model)}: log Z = {estimate.log_z:.3f} ± {estimate.std_err:.3f}",
    )


def plot_ladder(result: "Exchange", ax: Axes | None = None) -> Axes:
    """Draw the barrier up to each beta, marks at the betas, and the density of the barrier."""
    ax, last = style.new_axes(ax), result.last
    barrier = np.concatenate([[0.0], np.cumsum(last.rejections)])
    density = last.rejections / np.diff(last.betas)
    top = max(barrier[-1], 1e-9)
    shown = np.minimum(density / np.quantile(density, 0.98), 1) if density.max() > 0 else density
    label = "its slope, where replicas are held up"
    ax.stairs(shown * top, last.betas, fill=True, color=style.GREEN, alpha=0.25, label=label)
    label = "barrier Λ(β) at the temperatures"
    ax.plot(last.betas, barrier, "o-", ms=3, lw=1.5, color=style.BLUE, label=label)
    ax.vlines(last.betas, -0.07 * top, -0.01 * top, color=style.RED, lw=0.9, label="temperatures")
    ax.set(xlabel="β", ylabel="sum of rejections")
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.08 * top, 1.06 * top))
    ax.set_title(f"ladder: {result.num_rungs} temperatures, barrier {result.barrier:.2f}")
    style.legend_above(ax, 2)
    style.tidy(ax)
    return ax


def plot_rounds(
    result: "Exchange", ax: Axes | None = None, *, exact_log_z: float | None = None
) -> Axes:
    """Draw log Z of every round, with two standard errors, against the sweeps done."""
    ax = style.new_axes(ax)
    done = np.cumsum([one.num_sweeps for one in result.rounds])
    log_z, errors = np.array([(one.log_z, one.std_err) for one in result.rounds]).T
    errors = np.where(np.isfinite(errors), errors, 0)
    label = "each round ± 2 standard errors"
    ax.errorbar(
        done, log_z, 2 * errors, fmt="o-", ms=4, lw=1.2, capsize=3, color=style.BLUE, label=label
    )
    ax.set(xlabel="sweeps done", ylabel="log Z", title="log Z round by round")
    style.log_if_wide(ax, "x", done)
    style.mark_log_z(ax, result.log_z, exact_log_z)
    return ax


def plot_nested(estimate: "NestedEstimate") -> Figure:
    """Draw the evidence and the runs, side by side."""
    return style.panels(
        (10, 4),
        lambda ax: plot_evidence(estimate, ax),
        lambda ax: plot_runs(estimate, ax),
        title=f"{style.plain(estimate.model)}: log Z = {estimate.log_z:.3f} ± {estimate.std_err:.3f}",
    )


def plot_evidence(estimate: "NestedEstimate", ax: Axes | None = None) -> Axes:
    """Draw log L of all points and their share of the evidence, against how far the prior has shrunk."""
    ax, merged = style.new_axes(ax), estimate.judgement.merged
    deaths = np.concatenate([one.deaths for one in estimate.runs])
    shrunk, weights = -merged.log_volumes, np.exp(merged.log_weights)
    mass, edges = np.histogram(shrunk, _NUM_BINS, weights=weights)
    ax.stairs(mass / mass.max(), edges, fill=True, color=style.GREEN, alpha=0.4, label="evidence")
    ax.set(xlabel="−log of the prior mass left", ylabel="evidence, relative", ylim=(0, 1.05))
    right = ax.twinx()
    order = np.argsort(shrunk)
    shown = order[np.isfinite(deaths[order])]
    right.plot(shrunk[shown], deaths[shown], color=style.BLUE, lw=1.3, label="log L")
    low, high = deaths[shown][len(shown) // 10], deaths[shown][-1]
    right.set(ylabel="log L", ylim=(low, high + 0.05 * max(high - low, 1e-6)))
    ax.plot([], [], color=style.BLUE, lw=1.3, label="log L, on the right")
    ax.set_title(f"information {estimate.information:.1f} nats")
    style.legend_above(ax)
    style.tidy(ax)
    return ax


def plot_runs(estimate: "NestedEstimate", ax: Axes | None = None) -> Axes:
    """Draw log Z of every run with two standard errors, and of all together."""
    ax, each = style.new_axes(ax), estimate.judgement.each
    numbers = np.arange(1, len(each) + 1)
    values, errors = np.array([(one.log_z, one.std_err) for one in each]).T
    label = "each run ± 2 standard errors"
    ax.errorbar(
        numbers, values, 2 * errors, fmt="o", ms=4, capsize=3, color=style.BLUE, label=label
    )
    half = 2 * estimate.std_err
    ax.axhspan(estimate.log_z - half, estimate.log_z + half, color=style.RED, alpha=0.12)
    ax.set(xlabel="run", ylabel="log Z", xticks=numbers, xlim=(0.5, len(each) + 0.5))
    ax.set_title("log Z run by run")
    style.mark_log_z(ax, estimate.log_z, estimate.exact_log_z)
    return ax

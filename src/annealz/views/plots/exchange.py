"""Pictures of replica exchange: the ladder with its barrier, and the rounds."""

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
    log_if_wide,
    new_axes,
    plain,
    tidy,
)

if TYPE_CHECKING:
    from annealz.methods.exchange.estimate import ExchangeEstimate
    from annealz.methods.exchange.result import Exchange

__all__ = ["plot_exchange", "plot_ladder", "plot_rounds"]


def plot_ladder(result: "Exchange", ax: Axes | None = None) -> Axes:
    """The barrier up to each beta, marks at the betas, and the density of the barrier."""
    ax, last = new_axes(ax), result.last
    barrier = np.concatenate([[0.0], np.cumsum(last.rejections)])
    density = last.rejections / np.diff(last.betas)
    top = max(barrier[-1], 1e-9)
    shown = np.minimum(density / np.quantile(density, 0.98), 1) if density.max() > 0 else density
    label = "its slope, where replicas are held up"
    ax.stairs(shown * top, last.betas, fill=True, color=GREEN, alpha=0.25, label=label)
    ax.plot(
        last.betas,
        barrier,
        "o-",
        ms=3,
        lw=1.5,
        color=BLUE,
        label="barrier Λ(β) at the temperatures",
    )
    ax.vlines(last.betas, -0.07 * top, -0.01 * top, color=RED, lw=0.9, label="temperatures")
    ax.set(
        xlabel="β", ylabel="sum of rejections", xlim=(-0.01, 1.01), ylim=(-0.08 * top, 1.06 * top)
    )
    ax.set_title(f"ladder: {result.num_rungs} temperatures, barrier {result.barrier:.2f}")
    legend_above(ax, 2)
    tidy(ax)
    return ax


def plot_rounds(
    result: "Exchange", ax: Axes | None = None, *, exact_log_z: float | None = None
) -> Axes:
    """log Z of every round, with two standard errors, against the sweeps done."""
    ax = new_axes(ax)
    done = np.cumsum([one.num_sweeps for one in result.rounds])
    log_z = np.array([one.log_z for one in result.rounds])
    errors = np.array([one.std_err for one in result.rounds])
    errors = np.where(np.isfinite(errors), errors, 0)
    label = "each round ± 2 standard errors"
    ax.errorbar(done, log_z, 2 * errors, fmt="o-", ms=4, lw=1.2, capsize=3, color=BLUE, label=label)
    ax.axhline(result.log_z, color=RED, lw=1.2, label=f"log Z = {result.log_z:.3f}")
    if exact_log_z is not None:
        ax.axhline(exact_log_z, color=INK, ls="--", lw=1.3, label=f"exact = {exact_log_z:.3f}")
    ax.set(xlabel="sweeps done", ylabel="log Z")
    ax.set_title("log Z round by round")
    log_if_wide(ax, "x", done)
    legend_above(ax)
    tidy(ax)
    return ax


def plot_exchange(estimate: "ExchangeEstimate") -> Figure:
    """The ladder and the rounds, side by side."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_ladder(estimate.exchange, left)
    plot_rounds(estimate.exchange, right, exact_log_z=estimate.exact_log_z)
    level_titles(left, right)
    title = f"{plain(estimate.model)}: log Z = {estimate.log_z:.3f} ± {estimate.std_err:.3f}"
    figure.suptitle(title, fontweight="bold")
    return figure

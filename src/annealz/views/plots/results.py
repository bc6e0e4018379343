"""Figures of estimates, and of a comparison of schedules.

annealing     on-the-fly ESS, weights, work of two sides, convergence in chains
exchange      the ladder, and log Z by rounds
nested        the shrinking prior, and log Z by runs
comparison    log Z, ESS and betas of every schedule
"""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from annealz.views.plots import style

if TYPE_CHECKING:
    from annealz.methods.annealing.estimate import Estimate
    from annealz.methods.estimate import AbstractEstimate
    from annealz.methods.exchange.estimate import ExchangeEstimate
    from annealz.methods.exchange.result import Exchange
    from annealz.methods.nested.estimate import NestedEstimate
    from annealz.results.compare import Comparison

_MOST_BINS = 81
_NUM_BINS = 60  # of the prior mass
_DASHES, _MARKERS = ("-", "--", ":", "-."), (None, "o", "^", "s")
_COLOURS = (style.BLUE, style.RED, style.GREEN, style.PURPLE, style.GREY)


def plot_estimate(estimate: "Estimate") -> Figure:
    """Draw beta(t), on-the-fly ESS, and the histogram of log w; of both sides where there are two."""
    weights = estimate.plot_weights if estimate.two_sided is None else estimate.plot_work
    draw = estimate.schedule.plot, estimate.plot_ess, weights
    return style.panels((12, 3.8), *draw, title=_title(estimate))


def plot_ess(estimate: "Estimate", ax: Axes | None = None) -> Axes:
    """Draw on-the-fly ESS of the forward chains against the fraction of steps done."""
    ax, trace, size = style.new_axes(ax), estimate.trace, estimate.num_chains
    steps = np.concatenate([[0], trace.steps]) / estimate.num_steps
    ax.plot(steps, np.concatenate([[size], trace.ess]), color=style.BLUE, lw=1.5)
    title, count = f"on-the-fly ESS, {trace.ess[-1]:.1f} at the end", estimate.run.num_resamplings
    if count:
        title = f"on-the-fly ESS, resampled {count:,} times"
    limits = {"xlim": (0, 1), "ylim": (0, 1.03 * size)}
    return style.finish(ax, xlabel="t = k / K", ylabel="effective chains", title=title, **limits)


def plot_weights(estimate: "Estimate", ax: Axes | None = None) -> Axes:
    """Draw a histogram of the log weights of the forward chains, with log Z and what k-hat says."""
    ax = style.new_axes(ax)
    shown = _without_left_tail(estimate.run.log_z0 + estimate.log_weights)
    ax.stairs(*np.histogram(shown, _bins(shown)), fill=True, color=style.BLUE, alpha=0.5)
    return _finish_histogram(ax, estimate, f"log weights: {estimate.tail}")


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
    return _finish_histogram(ax, estimate, f"work, {estimate.plan.draws} draws")


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
    style.log_if_wide(ax, "x", path.num_chains)
    words = {"xlabel": f"n, chains{sides}", "title": "log Z as chains were added"}
    return style.finish_log_z(ax, estimate.log_z, estimate.exact_log_z, **words)


def plot_exchange(estimate: "ExchangeEstimate") -> Figure:
    """Draw the ladder and the rounds, side by side."""
    ran = estimate.exchange
    rounds = functools.partial(ran.plot_rounds, exact_log_z=estimate.exact_log_z)
    return style.panels((10, 4), ran.plot_ladder, rounds, title=_title(estimate))


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
    title = f"ladder: {result.num_rungs} temperatures, barrier {result.barrier:.2f}"
    limits = {"xlim": (-0.01, 1.01), "ylim": (-0.08 * top, 1.06 * top)}
    return style.finish(ax, 2, xlabel="β", ylabel="sum of rejections", title=title, **limits)


def plot_rounds(
    result: "Exchange", ax: Axes | None = None, *, exact_log_z: float | None = None
) -> Axes:
    """Draw log Z of every round, with two standard errors, against the sweeps done."""
    ax = style.new_axes(ax)
    done = np.cumsum([one.num_sweeps for one in result.rounds])
    _draw_each(ax, done, result.rounds, "o-", "each round ± 2 standard errors")
    style.log_if_wide(ax, "x", done)
    words = {"xlabel": "sweeps done", "title": "log Z round by round"}
    return style.finish_log_z(ax, result.log_z, exact_log_z, **words)


def plot_nested(estimate: "NestedEstimate") -> Figure:
    """Draw the evidence and the runs, side by side."""
    draw = estimate.plot_evidence, estimate.plot_runs
    return style.panels((10, 4), *draw, title=_title(estimate))


def plot_evidence(estimate: "NestedEstimate", ax: Axes | None = None) -> Axes:
    """Draw log L of all points and their share of the evidence, against how far the prior has shrunk."""
    ax, merged = style.new_axes(ax), estimate.judgement.merged
    deaths = np.concatenate([one.deaths for one in estimate.runs])
    shrunk, weights = -merged.log_volumes, np.exp(merged.log_weights)
    mass, edges = np.histogram(shrunk, _NUM_BINS, weights=weights)
    ax.stairs(mass / mass.max(), edges, fill=True, color=style.GREEN, alpha=0.4, label="evidence")
    right = ax.twinx()
    order = np.argsort(shrunk)
    shown = order[np.isfinite(deaths[order])]
    right.plot(shrunk[shown], deaths[shown], color=style.BLUE, lw=1.3, label="log L")
    low, high = deaths[shown][len(shown) // 10], deaths[shown][-1]
    right.set(ylabel="log L", ylim=(low, high + 0.05 * max(high - low, 1e-6)))
    ax.plot([], [], color=style.BLUE, lw=1.3, label="log L, on the right")
    words = {"xlabel": "−log of the prior mass left", "ylabel": "evidence, relative"}
    title = f"information {estimate.information:.1f} nats"
    return style.finish(ax, 2, ylim=(0, 1.05), title=title, **words)


def plot_runs(estimate: "NestedEstimate", ax: Axes | None = None) -> Axes:
    """Draw log Z of every run with two standard errors, and of all together."""
    ax, each = style.new_axes(ax), estimate.judgement.each
    numbers = np.arange(1, len(each) + 1)
    _draw_each(ax, numbers, each, "o", "each run ± 2 standard errors")
    half = 2 * estimate.std_err
    ax.axhspan(estimate.log_z - half, estimate.log_z + half, color=style.RED, alpha=0.12)
    ax.set(xticks=numbers, xlim=(0.5, len(each) + 0.5))
    words = {"xlabel": "run", "title": "log Z run by run"}
    return style.finish_log_z(ax, estimate.log_z, estimate.exact_log_z, **words)


def plot_comparison(comparison: "Comparison") -> Figure:
    """Draw log Z with two standard errors, and the ESS of every replicate, by schedule."""
    size = 11, 0.42 * len(comparison.contenders) + 1.8
    title = f"{style.plain(comparison.model)}, equal total cost"
    figure = style.panels(size, comparison.plot_log_z, comparison.plot_ess, title=title)
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


def _title(estimate: "AbstractEstimate") -> str:
    return f"{style.plain(estimate.model)}: log Z = {estimate.log_z:.3f} ± {estimate.std_err:.3f}"


def _draw_each(ax: Axes, places: np.ndarray, each: Sequence[Any], marker: str, label: str) -> None:
    """Draw log Z of rounds or runs with two standard errors, where these are known."""
    values, errors = np.array([(one.log_z, one.std_err) for one in each]).T
    errors = 2 * np.where(np.isfinite(errors), errors, 0)
    look = {"ms": 4, "lw": 1.2, "capsize": 3, "color": style.BLUE}
    ax.errorbar(places, values, errors, fmt=marker, label=label, **look)


def _finish_histogram(ax: Axes, estimate: "Estimate", title: str) -> Axes:
    """Draw the estimate with its interval, and the exact value, over a histogram."""
    if np.isfinite(estimate.interval()).all():
        ax.axvspan(*estimate.interval(), color=style.RED, alpha=0.2, lw=0)
    ax.axvline(estimate.log_z, color=style.RED, lw=2, label=f"log Z = {estimate.log_z:.3f}")
    style.mark_exact(ax.axvline, estimate.exact_log_z)
    ax.set_ylim(bottom=0)
    ax.locator_params(axis="x", nbins=6)
    label = "log Z from each chain, log Z₀ + log w"
    return style.finish(ax, 3, xlabel=label, ylabel="chains", title=title)


def _bins(values: np.ndarray) -> np.ndarray:
    edges = np.histogram_bin_edges(values, bins="auto")
    return edges if edges.size <= _MOST_BINS else np.linspace(edges[0], edges[-1], _MOST_BINS)


def _without_left_tail(values: np.ndarray) -> np.ndarray:
    """Drop the lowest 0.5 %: chains left behind, that would squeeze the others."""
    return values[values >= np.quantile(values, 0.005)]

"""The figures, from the raw results: one PNG a figure and base.

    schedules          beta(t)                         the paper's figure 1
    log-z-M            log Z-hat +- 3 SE against K     figures 2 (M = 20) and 5 (M = 500)
    ess-M              ESS against K                   figures 3 and 6
    ess-along          on-the-fly ESS against k        figure 4
    ess-beginning      the same as N / ESS - 1, on logarithmic axes
    terrain            g(beta) of every model, raw and smoothed
    error-20           |log Z-hat - log Z| against K

log Z-hat is pooled over the replicates of a cell; ESS and error are those of one replicate of 1,000
chains, their median, bars from the least to the greatest. A schedule has one colour and one marker in
every figure, and points of one K stand beside each other.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from annealz.schedules.terrain import Terrain
from pooled import pool
from results import Cell, Key, Results
from settings import MODELS, SCHEDULES, SIZES, model_label, schedule_label

__all__ = ["draw", "write_figures"]

_STYLES = {  # the colours of Okabe and Ito, distinguishable by everybody
    "varopt": ("#0072B2", "o"),
    "varopt-0.009": ("#56B4E9", "s"),
    "varopt-0.006": ("#009E73", "^"),
    "varopt-0.003": ("#E69F00", "v"),
    "linear": ("#000000", "D"),
    "gms13": ("#D55E00", "X"),
    "sm08": ("#CC79A7", "P"),
}
_MODEL_COLOURS = ("#0072B2", "#E69F00", "#009E73")
_GREY = "#777777"
_DODGE = 0.028  # decades of K between neighbours
_DPI = 150
_SMOOTHING = 0.01  # width in beta, for the eye
_LARGE = 10_000  # K from which estimates have panels of their own
_ALONG = (1000, 10_000, 100_000)
_IN_FIGURE_1 = ("linear", "gms13", "sm08", "varopt")


def write_figures(results: Results, folder: Path) -> list[Path]:
    """All figures as PNG; those of a base other than the first have its name behind theirs."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    bases = list(dict.fromkeys(key.base for key in results.cells))
    for base in bases:
        suffix = "" if base == bases[0] else f"-{base}"
        for name, figure in draw(results, base):
            files.append(folder / f"{name}{suffix}.png")
            figure.savefig(files[-1], dpi=_DPI, metadata={"Software": None})
    return files


def draw(results: Results, base: str) -> Iterator[tuple[str, Figure]]:
    """The figures of one base, by name; those of models that were not run are left out."""
    run = [model for model in MODELS if any(key[:2] == (model, base) for key in results.cells)]
    yield "schedules", _schedules(results, base, [m for m in run if "-pcd-" in m])
    yield "terrain", _terrain(results, base, run)
    for size, models in SIZES.items():
        shown = [model for model in models if model in run]
        if shown:
            yield f"log-z-{size}", _log_z(results, base, shown)
            yield f"ess-{size}", _ess(results, base, shown)
            if all(results.exact_log_z(model) is not None for model in shown):
                yield f"error-{size}", _error(results, base, shown)
    if run[0] == MODELS[0]:
        yield "ess-along", _along(results, base, run[0])
        yield "ess-beginning", _beginning(results, base, run[0])


def _schedules(results: Results, base: str, models: list[str]) -> Figure:
    figure, panels = _panels(len(models), f"Schedules, from the {base} base")
    for axes, model in zip(panels, models, strict=True):
        for name in _IN_FIGURE_1:
            betas = results.curve("schedule", model, base, name)
            t = np.linspace(0, 1, betas.size)
            axes.plot(t, betas, **_style(name, every=betas.size // 8), label=schedule_label(name))
        axes.set(xlabel="t = k / K", xlim=(0, 1), ylim=(0, 1.01), title=model_label(model))
    panels[0].set_ylabel("β")
    _legend(figure, panels[0])
    return figure


def _terrain(results: Results, base: str, models: list[str]) -> Figure:
    sizes = [[m for m in SIZES[size] if m in models] for size in SIZES]
    shown = [group for group in sizes if group]
    figure, panels = _panels(len(shown), f"Pilot's variance of d log p* / dβ, {base} base")
    for axes, group in zip(panels, shown, strict=True):
        for colour, model in zip(_MODEL_COLOURS, group, strict=False):
            betas, variance = results.curve("terrain", model, base)
            known = np.isfinite(variance)
            betas, variance = betas[known], variance[known]
            smooth = Terrain(betas, 0 * betas, variance, 0 * betas).smoothed(_SMOOTHING).variance
            axes.plot(betas, _positive(variance), color=colour, lw=0.8, alpha=0.3)
            axes.plot(betas, _positive(smooth), color=colour, lw=1.8, label=model_label(model))
        axes.set(xlabel="β", xlim=(0, 1), yscale="log")
        axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(group))
    panels[0].set_ylabel("g(β)")
    return figure


def _log_z(results: Results, base: str, models: list[str]) -> Figure:
    """All K above, and the larger ones below on a scale of their own."""
    large = [steps for steps in {key.num_steps for key in results.cells} if steps >= _LARGE]
    rows = (0, _LARGE) if len(large) > 1 else (0,)
    title = f"log Ẑ ± 3 standard errors, {base} base"
    figure, panels = _panels(len(models), title, rows=len(rows))
    for axes, (least, model) in zip(panels, itertools.product(rows, models), strict=True):
        for name in SCHEDULES:
            steps, cells = _along_steps(results, model, base, name)
            shown = steps >= least
            estimates = np.array([pool(cell, results.num_chains) for cell in cells])[shown]
            _points(axes, name, steps[shown], estimates[:, 0], 3 * estimates[:, [1, 1]].T)
        exact = results.exact_log_z(model)
        if exact is not None:
            axes.axhline(exact, color="black", ls="--", lw=1.2, zorder=0, label="exact")
        _axis_of_steps(axes, model_label(model) + (f", K from {least:,}" if least else ""))
        axes.ticklabel_format(axis="y", useOffset=False)
    for axes in panels[:: len(models)]:
        axes.set_ylabel("log Ẑ")
    _legend(figure, panels[0])
    return figure


def _ess(results: Results, base: str, models: list[str]) -> Figure:
    title = f"ESS of {results.num_chains:,} chains: median and range, {base} base"
    figure, panels = _panels(len(models), title, share=True)
    for axes, model in zip(panels, models, strict=True):
        for name in SCHEDULES:
            steps, cells = _along_steps(results, model, base, name)
            _medians(axes, name, steps, [cell["ess"] for cell in cells])
        axes.yaxis.set_major_formatter(FuncFormatter(_count))
        _axis_of_steps(axes, model_label(model))
    panels[0].set_ylabel("ESS")
    panels[0].set_ylim(bottom=0)  # once all panels, which share it, are drawn
    _legend(figure, panels[0])
    return figure


def _error(results: Results, base: str, models: list[str]) -> Figure:
    title = (
        f"|log Ẑ − log Z| of a run of {results.num_chains:,} chains: median and range, {base} base"
    )
    figure, panels = _panels(len(models), title, share=True)
    for axes, model in zip(panels, models, strict=True):
        exact = results.exact_log_z(model)
        for name in SCHEDULES:
            steps, cells = _along_steps(results, model, base, name)
            _medians(axes, name, steps, [np.abs(cell["log_z"] - exact) for cell in cells])
        axes.set_yscale("log")
        _axis_of_steps(axes, model_label(model))
    panels[0].set_ylabel("nats")
    _legend(figure, panels[0])
    return figure


def _along(results: Results, base: str, model: str) -> Figure:
    title = f"{model_label(model)}: on-the-fly ESS as a share of the chains, {base} base"
    figure, panels = _trace_panels(results, title)
    for num_steps, axes in panels.items():
        for name in SCHEDULES:
            share, ess = results.cells[Key(model, base, name, num_steps)].trace
            style = _style(name, every=max(1, ess.size // 6))
            axes.plot(share * num_steps, ess, **style, label=schedule_label(name))
        axes.set(xlim=(0, num_steps), ylim=(0, 1.02))
    _label_first(figure, panels, "ESS / N")
    return figure


def _beginning(results: Results, base: str, model: str) -> Figure:
    title = f"{model_label(model)}: what the ESS has lost by step k, {base} base"
    figure, panels = _trace_panels(results, title)
    for num_steps, axes in panels.items():
        for name in SCHEDULES:
            share, ess = results.cells[Key(model, base, name, num_steps)].trace
            style = _style(name, every=None)
            axes.plot(
                share * num_steps,
                _positive(1 / _positive(ess) - 1),
                **style,
                label=schedule_label(name),
            )
        axes.set(xlim=(num_steps / 200, num_steps), xscale="log", yscale="log")
    _label_first(figure, panels, "variance of N w / Σ w,  N / ESS − 1")
    return figure


def _trace_panels(results: Results, title: str) -> tuple[Figure, dict[int, Axes]]:
    run = {key.num_steps for key in results.cells}
    shown = [steps for steps in _ALONG if steps in run] or sorted(run)
    figure, panels = _panels(len(shown), title, share=True)
    for axes, num_steps in zip(panels, shown, strict=True):
        axes.set(xlabel="step k", title=f"K = {num_steps:,}")
    return figure, dict(zip(shown, panels, strict=True))


def _label_first(figure: Figure, panels: dict[int, Axes], label: str) -> None:
    for axes in panels.values():
        axes.xaxis.set_major_formatter(FuncFormatter(_count))
    first = next(iter(panels.values()))
    first.set_ylabel(label)
    _legend(figure, first)


def _along_steps(
    results: Results, model: str, base: str, name: str
) -> tuple[np.ndarray, list[Cell]]:
    """Every K of a schedule, and its cells."""
    found = {k.num_steps: cell for k, cell in results.cells.items() if k[:3] == (model, base, name)}
    steps = sorted(found)
    return np.array(steps), [found[k] for k in steps]


def _medians(axes: Axes, name: str, steps: np.ndarray, samples: list[np.ndarray]) -> None:
    finite = [_positive(sample) for sample in samples]
    middle = np.array([np.nanmedian(s) if np.isfinite(s).any() else np.nan for s in finite])
    least = np.array([np.nanmin(s) if np.isfinite(s).any() else np.nan for s in finite])
    most = np.array([np.nanmax(s) if np.isfinite(s).any() else np.nan for s in finite])
    _points(axes, name, steps, middle, np.stack([middle - least, most - middle]))


def _points(axes: Axes, name: str, steps: np.ndarray, y: np.ndarray, bars: np.ndarray) -> None:
    place = SCHEDULES.index(name) - (len(SCHEDULES) - 1) / 2
    x = steps * 10.0 ** (_DODGE * place)
    bars = np.where(np.isfinite(bars), bars, 0.0)
    style = _style(name, every=1)
    axes.errorbar(x, y, yerr=bars, **style, elinewidth=1, capsize=1.5, label=schedule_label(name))


def _panels(
    count: int, title: str, *, rows: int = 1, share: bool = False
) -> tuple[Figure, list[Axes]]:
    size = (max(4.2 * count, 6.0), 0.8 + 3.5 * rows)
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(title, fontsize=12)
    panels = list(figure.subplots(rows, count, sharey=share, squeeze=False).flat)
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(which="both", colors=_GREY)
    return figure, panels


def _legend(figure: Figure, axes: Axes) -> None:
    """One legend below all panels."""
    handles, labels = axes.get_legend_handles_labels()
    count = len(handles) if figure.get_figwidth() > 10 else 4
    figure.legend(handles, labels, loc="outside lower center", ncols=count, frameon=False)


def _axis_of_steps(axes: Axes, title: str) -> None:
    axes.set(xscale="log", xlabel="K", title=title)
    axes.xaxis.set_major_formatter(FuncFormatter(_count))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _style(name: str, every: int | None) -> dict:
    colour, marker = _STYLES[name]
    marks = {} if every is None else {"marker": marker, "ms": 4.5, "markevery": every}
    return {"color": colour, "lw": 1.3, **marks}


def _positive(values: np.ndarray) -> np.ndarray:
    """The values that a logarithmic axis can show; NaN for the others."""
    return np.where(np.isfinite(values) & (values > 0), values, np.nan)


def _count(value: float, _) -> str:
    return f"{value:,.0f}"

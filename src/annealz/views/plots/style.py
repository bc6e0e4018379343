"""Shared by all figures: colours that everybody can distinguish, axes, legends.

The colours are Okabe and Ito's; those that are too pale for lines on white (yellow, orange, sky blue) are
left out. Nothing is shown by colour alone: lines differ in their dashes or markers, histograms in filling.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

BLUE, RED, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#a6548a"
INK, GREY = "#000000", "#595959"
_WIDE = 5.0  # times: a range that is read better on a logarithmic scale
_LINE = 14  # points of a line of a legend


def new_axes(ax: Axes | None, size: tuple[float, float] = (4.8, 3.4)) -> Axes:
    """Return the axes given, or those of a figure of their own."""
    return Figure(figsize=size, layout="constrained").add_subplot() if ax is None else ax


def panels(size: tuple[float, float], *draw: Callable[[Axes], Any], title: str = "") -> Figure:
    """Return a figure of panels side by side, each drawn by its function."""
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, len(draw))
    for ax, one in zip(axes, draw, strict=True):
        one(ax)
    level_titles(*axes)
    if title:
        figure.suptitle(title, fontweight="bold")
    return figure


def finish_log_z(ax: Axes, log_z: float, exact: float | None, **settings: Any) -> Axes:
    """Draw an estimate and the exact value as horizontal lines, and finish the axes."""
    ax.axhline(log_z, color=RED, lw=1.2, label=f"log Z = {log_z:.3f}")
    mark_exact(ax.axhline, exact)
    return finish(ax, 2, ylabel="log Z", **settings)


def mark_exact(line: Callable[..., Any], exact: float | None) -> None:
    """Draw the exact value, if it is known, by `axhline` or `axvline` of axes."""
    if exact is not None:
        line(exact, color=INK, ls="--", lw=1.3, label=f"exact = {exact:.3f}")


def plain(name: str) -> str:
    """Escape the dollars of a name, which would begin a formula."""
    return name.replace("$", r"\$")


def finish(ax: Axes, legend: int = 0, **settings: Any) -> Axes:
    """Return axes with their labels, a legend of so many columns, no frame, and quiet ticks."""
    ax.set(**settings)
    if legend:  # between title and data, where it hides nothing
        ax.legend(
            frameon=False,
            loc="lower left",
            bbox_to_anchor=(0, 1),
            borderaxespad=0.1,
            ncols=legend,
            columnspacing=1.2,
            handlelength=1.8,
            fontsize="small",
        )
        level_titles(ax)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(which="both", colors=GREY)
    ax.title.set_fontsize(11)
    return ax


def log_if_wide(ax: Axes, name: Literal["x", "y"], values: np.ndarray) -> None:
    """Set a logarithmic scale with plain numbers where the values call for it, else a linear one from 0."""
    values = values[values > 0]
    span = values.max() / values.min() if values.size else 1.0
    if span < _WIDE:
        ax.set_ylim(bottom=0) if name == "y" else ax.set_xlim(left=0)
        return
    ax.set(**{f"{name}scale": "log"})
    axis = ax.yaxis if name == "y" else ax.xaxis
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if span < 100 else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
    axis.set_minor_formatter(NullFormatter())


def _plain(value: float) -> str:
    return f"{value:,.0f}" if 1 <= value < 1e7 else f"{value:g}"


def level_titles(*axes: Axes) -> None:
    """Set titles of one height, above the legends."""
    rows = max(_legend_rows(ax) for ax in axes)
    for ax in axes:
        ax.set_title(ax.get_title(), pad=6 + _LINE * rows, fontsize=11)


def _legend_rows(ax: Axes) -> int:
    legend = ax.get_legend()
    return 0 if legend is None else -(-len(legend.get_texts()) // getattr(legend, "_ncols", 2))

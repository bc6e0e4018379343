"""Picture of how log Z settled as chains were added (`annealz.diagnostics.convergence`)."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from annealz.views.plots.style import BLUE, INK, RED, legend_above, log_if_wide, new_axes, tidy

if TYPE_CHECKING:
    from annealz.methods.annealing.estimate import Estimate

__all__ = ["plot_convergence"]


def plot_convergence(estimate: "Estimate", ax: Axes | None = None) -> Axes:
    """log Z from the first n chains, with two standard errors."""
    ax, path = new_axes(ax), estimate.convergence()
    known = np.isfinite(path.std_err)
    low, high = path.log_z - 2 * path.std_err, path.log_z + 2 * path.std_err
    if known.sum() > 1:
        ax.fill_between(
            path.num_chains[known],
            low[known],
            high[known],
            color=BLUE,
            alpha=0.2,
            lw=0,
            label="± 2 standard errors",
        )
    ax.plot(path.num_chains, path.log_z, "o-", ms=3, lw=1.2, color=BLUE, label="first n chains")
    ax.axhline(estimate.log_z, color=RED, lw=1.2, label=f"log Z = {estimate.log_z:.3f}")
    if estimate.exact_log_z is not None:
        label = f"exact = {estimate.exact_log_z:.3f}"
        ax.axhline(estimate.exact_log_z, color=INK, ls="--", lw=1.3, label=label)
    sides = " of each side" if estimate.two_sided is not None else ""
    ax.set(xlabel=f"n, chains{sides}", ylabel="log Z")
    ax.set_title("log Z as chains were added")
    log_if_wide(ax, "x", path.num_chains)
    legend_above(ax)
    tidy(ax)
    return ax

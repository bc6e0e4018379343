"""Picture of an estimate: three panels that each exist alone."""

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from annealz.views.plots.schedule import plot_schedule
from annealz.views.plots.style import level_titles, plain
from annealz.views.plots.weights import plot_ess, plot_weights, plot_work

if TYPE_CHECKING:
    from annealz.methods.annealing.estimate import Estimate

__all__ = ["plot_estimate"]


def plot_estimate(estimate: "Estimate") -> Figure:
    """beta(t), on-the-fly ESS, and the histogram of log w; of both sides where there are two."""
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    plot_schedule(estimate.schedule, left)
    plot_ess(estimate, middle)
    (plot_weights if estimate.two_sided is None else plot_work)(estimate, right)
    level_titles(left, middle, right)
    title = f"{plain(estimate.model)}: log Z = {estimate.log_z:.3f} ± {estimate.std_err:.3f}"
    figure.suptitle(title, fontweight="bold")
    return figure

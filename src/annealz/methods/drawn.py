"""What can be drawn of an estimate: its pictures, and its page.

matplotlib is imported when something is drawn.
"""

from pathlib import Path
from typing import Any

__all__ = ["Drawn"]


class Drawn:
    """The pictures of an estimate (`plots/`) and its page (`report/`), as methods."""

    def plot(self: Any):
        """beta(t), on-the-fly ESS and the histogram of log w: a matplotlib figure."""
        from annealz.views.plots import plot_estimate

        return plot_estimate(self)

    def plot_dwell(self: Any, ax=None):
        """The time spent at each beta, over the terrain; returns the matplotlib axes."""
        return self.schedule.plot_dwell(ax, terrain=self.terrain)

    def plot_ess(self: Any, ax=None):
        """On-the-fly ESS against the fraction of steps; returns the matplotlib axes."""
        from annealz.views.plots import plot_ess

        return plot_ess(self, ax)

    def plot_weights(self: Any, ax=None):
        """Histogram of log w of the forward chains, with k-hat; returns the matplotlib axes."""
        from annealz.views.plots import plot_weights

        return plot_weights(self, ax)

    def plot_work(self: Any, ax=None):
        """Forward and reverse work of a two-sided estimate; returns the matplotlib axes."""
        from annealz.views.plots import plot_work

        return plot_work(self, ax)

    def plot_convergence(self: Any, ax=None):
        """log Z and its error from the first chains, up to all; returns the matplotlib axes."""
        from annealz.views.plots import plot_convergence

        return plot_convergence(self, ax)

    def report(self: Any, path: str | Path) -> None:
        """Write all of it as one HTML page that needs nothing else."""
        from annealz.views.report import write_report

        write_report(self, path)

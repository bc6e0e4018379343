"""Figures in a notebook, though they are made without pyplot.

It is pyplot that teaches a notebook to show figures as pictures; one made without it would be shown as
`<Figure size …>`. So the notebook is taught here, unless somebody else has done so.
"""

import sys

from matplotlib.figure import Figure

from annealz.show.live import in_notebook

__all__ = ["show_figures_inline"]


def show_figures_inline() -> None:
    """Let the notebook that runs this, if one does, show figures as PNG pictures."""
    if not in_notebook():
        return
    from IPython.core.pylabtools import select_figure_formats

    shell = sys.modules["IPython"].get_ipython()
    formatter = shell.display_formatter.formatters["image/png"]
    if Figure not in formatter.type_printers:
        select_figure_formats(shell, {"png"})

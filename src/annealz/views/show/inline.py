"""Figures in a notebook, though they are made without pyplot.

It is pyplot that teaches a notebook to show figures as pictures; one made without it would be shown as
`<Figure size …>`. So the notebook is taught here, where annealz is imported. Who has taught it before, or
does so later, is not overruled, and matplotlib is not imported for it.
"""

import sys

from annealz.views.show.live import in_notebook

__all__ = ["show_figures_inline"]


def show_figures_inline() -> None:
    """Let the notebook that runs this, if one does, show figures as PNG pictures."""
    if in_notebook():
        shell = sys.modules["IPython"].get_ipython()
        pictures = shell.display_formatter.formatters["image/png"]
        pictures.for_type_by_name("matplotlib.figure", "Figure", _as_png)


def _as_png(figure) -> bytes | str | None:
    from IPython.core.pylabtools import print_figure

    return print_figure(figure, "png")

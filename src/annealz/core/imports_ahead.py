"""Packages that a call needs late are imported in a thread, while devices start and programs run.

SciPy's interpolation takes a third of a second, arviz-stats a whole one, and a GPU takes longer to start
than both. Where the package is needed, its import waits for the thread, as any import does.
"""

import contextlib
import importlib
import sys
import threading

__all__ = ["import_ahead"]


def import_ahead(*names: str) -> None:
    """Import these modules, in this order, in a thread; those that are there already are left."""
    missing = [name for name in names if name not in sys.modules]
    if missing:
        threading.Thread(target=_import, args=(missing,), daemon=True).start()


def _import(names: list[str]) -> None:
    for name in names:
        with contextlib.suppress(Exception):  # whoever needs it meets the error
            importlib.import_module(name)

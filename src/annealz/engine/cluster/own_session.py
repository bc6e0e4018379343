"""What a local worker does first: leave the session of the command that started it.

Ctrl-C then reaches the command alone, which asks the workers for their blocks and saves them. Dask ends the
workers when the command ends.
"""

import os

__all__ = ["dask_setup"]


def dask_setup(worker) -> None:
    """Called by Dask in the worker's process."""
    if hasattr(os, "setsid"):
        os.setsid()

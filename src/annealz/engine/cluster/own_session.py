"""What a local worker does first: leave the session of the command that started it, and keep to its share.

Ctrl-C then reaches the command alone, which asks the workers for their blocks and saves them. Dask ends the
workers when the command ends. XLA starts a thread for every core, and those of several workers would wait
for each other: two workers on two cores took 1.4 times as long as one process. So XLA has as many threads
as the worker, unless the variable NPROC says otherwise. Their number changes no bit (docs/design-notes.md).
"""

import os

__all__ = ["dask_setup"]


def dask_setup(worker) -> None:
    """Called by Dask in the worker's process, before it computes."""
    if hasattr(os, "setsid"):
        os.setsid()
    os.environ.setdefault("NPROC", str(worker.state.nthreads))

"""Surveys of one estimate that go side by side on a GPU.

A survey is launches of some milliseconds, and host code between them that takes as long. Surveys of
different paths share nothing, so that one thread computes while another waits for the device: those of a
default estimate take 0.17 s instead of 0.26 (docs/design-notes.md). Their kernels still run one after the
other, because JAX has one queue for a device.

Only short ones, which report no progress on their way; only of models that are ours, because functions of
users are called by one thread; and not on a CPU, whose cores have work already, nor on a cluster.
"""

from typing import Any

from annealz.core.devices import platform
from annealz.core.threads import are_ours
from annealz.engine.cluster.current import current_cluster
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.gibbs import BlockGibbs

__all__ = ["may_go_beside"]

_SHORT = 2_000_000  # sweeps of all chains, a quarter of a second


def may_go_beside(kernel: AbstractKernel, budget: int, *of: Any) -> bool:
    """Whether surveys of so many sweeps, by this kernel of these models and bases, may go side by side."""
    is_of_layers = type(kernel) is BlockGibbs  # and not tuned
    is_here = current_cluster() is None and platform() == "gpu"
    return is_of_layers and are_ours(*of) and is_here and budget <= _SHORT

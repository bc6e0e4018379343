"""The blocks of a run, where they are computed: in this process, or by the workers of a cluster."""

import contextlib
from collections.abc import Iterator
from typing import Any

from annealz.engine.cluster.blocks import ClusterBlocks
from annealz.engine.cluster.current import current_cluster
from annealz.engine.cluster.lost import LostCluster
from annealz.engine.local_blocks import LocalBlocks
from annealz.engine.work import InBlocks

__all__ = ["Blocks", "idle", "open_blocks", "saved"]

Blocks = LocalBlocks | ClusterBlocks


@contextlib.contextmanager
def open_blocks(run: InBlocks) -> Iterator[Blocks]:
    """The blocks of this run, until the context ends. Where they are changes no bit."""
    cluster = current_cluster()
    blocks = LocalBlocks(run) if cluster is None else ClusterBlocks(run, cluster)
    with contextlib.closing(blocks):
        yield blocks


def saved(blocks: Blocks, step: int) -> list[Any] | None:
    """The blocks at this step, to be saved; None where they are lost."""
    try:
        return blocks.at(step)
    except LostCluster:
        return None


def idle(blocks: Blocks, num_chains: int) -> list[str]:
    """What to say where some devices have no block."""
    (starts, width), (num_places, name) = blocks.run.blocks, blocks.places
    count = len(starts)
    if count >= num_places:
        return []
    return [
        f"{count} of {num_places} {name} had work: {num_chains:,} chains are {count} of the blocks that "
        f"{name} take; {num_places * width:,} chains would take no longer."
    ]

"""The options of a cluster, and what is said when it is lost."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from distributed import Client

    from annealz.engine.cluster.lost import LostCluster
    from annealz.methods.folder import RunFolder

__all__ = ["lost", "open_client"]

_LOST = 3  # exit status


@contextlib.contextmanager
def open_client(
    cluster: str | None, ca: Path | None, cert: Path | None, key: Path | None, quiet: bool
) -> Iterator[Client | None]:
    """A client of the cluster that is asked for; None without --cluster."""
    if cluster is None:
        for name, file in (("ca", ca), ("cert", cert), ("key", key)):
            if file is not None:
                raise ValueError(f"--tls-{name} goes with --cluster: give both, or neither.")
        yield None
        return
    from annealz.engine.cluster.connect import Tls, connected

    with connected(cluster, Tls(ca, cert, key)) as client:
        if not quiet:
            threads: Any = client.nthreads()
            workers = _counted(len(threads), "worker")
            print(
                f"annealz: {workers} with {_counted(sum(threads.values()), 'thread')}.",
                file=sys.stderr,
            )
        yield client


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def lost(error: LostCluster, folder: RunFolder | None) -> typer.Exit:
    """Say how to go on without what is gone; exit status 3."""
    remedy = ""
    if folder is not None and folder.has_progress():
        again = f" --model {folder.source}" if folder.source else ""
        remedy = f"  Resume with: annealz resume {folder.path}{again}"
    print(f"annealz: {error}{remedy}", file=sys.stderr)
    return typer.Exit(_LOST)

"""A cluster by its name: the address of a scheduler, a scheduler file, or a number of local processes.

Local workers listen on 127.0.0.1 only, and end with the command that asked for them. They leave its
session, so that Ctrl-C reaches the command alone, which asks them for their blocks and saves these. XLA
starts a thread for every core, and those of several workers would wait for each other (two workers on two
cores took 1.4 times as long as one process): XLA has as many threads as its worker, unless NPROC says
otherwise. Their number changes no bit (docs/design-notes.md).
"""

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from annealz.core.errors import InputError
from annealz.io.reading import need, parse_json, read_small

if TYPE_CHECKING:
    from distributed import Client

_CONNECT_SECONDS, _CLOSE_SECONDS = 10, 2
_MOST_LOCAL = 256
_LOCAL_HOST = "127.0.0.1"
_SILENT = logging.CRITICAL + 1  # level of a log


@contextlib.contextmanager
def connected(where: str) -> "Iterator[Client]":
    """Connect to a cluster, until the context ends: an address, a scheduler file, or a number."""
    distributed = need("distributed", "clusters are reached", "cluster")
    for name in ("distributed", "tornado", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(_SILENT)  # a sentence of ours is enough
    if where.isdecimal():
        with _local(distributed, int(where)) as client:
            yield client
        return
    address = where if "://" in where else _address_in(where)
    try:
        client = distributed.Client(
            address, timeout=_CONNECT_SECONDS, set_as_default=False, name="annealz"
        )
    except Exception as error:  # any that reading unknown bytes leads to
        raise ValueError(
            f"no scheduler answered at {address} within {_CONNECT_SECONDS} s: start one, or check the "
            "address and Dask's configuration of certificates."
        ) from error
    try:
        yield client
    finally:
        with contextlib.suppress(TimeoutError):  # of a scheduler that is gone
            client.close(timeout=_CLOSE_SECONDS)


def _address_in(file: str) -> str:
    """Return the address in a scheduler file."""
    if not file.strip() or file.strip("+-.").isdecimal():
        raise InputError(
            "cluster",
            "must be an address such as tcp://host:8786, a scheduler file, or a number of local processes",
            file,
        )
    raw = read_small(file)
    with contextlib.suppress(ValueError, KeyError, TypeError):
        address = parse_json(raw)["address"]
        if isinstance(address, str) and "://" in address:
            return address
    raise ValueError(
        f"{file} is not a scheduler file, which 'dask scheduler --scheduler-file {file}' writes."
    )


@contextlib.contextmanager
def _local(distributed: Any, count: int) -> "Iterator[Client]":
    """Start processes of this machine, which share its cores."""
    if not 1 <= count <= _MOST_LOCAL:
        raise InputError("cluster", f"takes 1 to {_MOST_LOCAL} local processes", count)
    with (
        distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=max((os.cpu_count() or 1) // count, 1),
            host=_LOCAL_HOST,
            dashboard_address=f"{_LOCAL_HOST}:0",
            silence_logs=_SILENT,
            preload=[__name__],
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        try:
            yield client
        except BaseException:  # at once: what counts is stored, and Dask would wait for its tasks
            for nanny in cluster.workers.values():
                nanny.auto_restart = False
                if nanny.pid is not None:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(nanny.pid, signal.SIGKILL)
            raise


def dask_setup(worker: Any) -> None:
    """Prepare a local worker: Dask calls this in its process, before it computes."""
    if hasattr(os, "setsid"):
        os.setsid()
    os.environ.setdefault("NPROC", str(worker.state.nthreads))
    sys.path.append(os.getcwd())  # where module:name was found

"""A cluster by its name: the address of a scheduler, a scheduler file, or a number of local processes.

A local cluster listens on 127.0.0.1 only, and ends with the command that asked for it.

What is at an address is asked first who it is, all within one time limit. Dask's client waits without a
limit where something accepts the connection and says nothing, and reads any answer as its own protocol.
"""

import asyncio
import contextlib
import logging
import os
import re
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from annealz.core.errors import InputError
from annealz.io.reading.json_text import parse_json
from annealz.io.reading.regular import read_small
from annealz.io.storage.optional import need

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["CONNECT_SECONDS", "connected"]

CONNECT_SECONDS = 10
_CLOSE_SECONDS = 2
_ADDRESS = re.compile(r"(?P<protocol>[a-z]+)://(?P<host>\[[^]]+\]|[^/:\s]+):(?P<port>\d{1,5})/?")
_PROTOCOLS = ("tcp", "tls", "ws", "wss", "ucx")
_NO_FILE = re.compile(r"\s*|[+-]?[\d.]+")  # nothing, or a number that is none of processes
_MOST_LOCAL = 256
_LOCAL_HOST = "127.0.0.1"
_NOTHING = logging.CRITICAL + 1  # level of a log


@contextlib.contextmanager
def connected(name: str) -> "Iterator[Client]":
    """A client of the cluster of this name, until the context ends."""
    distributed = need("distributed", "clusters are reached", "cluster")
    _silence()
    if name.isdecimal():
        with _local(distributed, int(name)) as client:
            yield client
        return
    address = _address(name)
    _check_scheduler(address)
    try:
        client = distributed.Client(
            address,
            timeout=CONNECT_SECONDS,
            set_as_default=False,
            name="annealz",
        )
    except (OSError, TimeoutError, RuntimeError, ValueError, TypeError) as error:
        raise ValueError(_silent(address)) from error
    try:
        yield client
    finally:
        with contextlib.suppress(TimeoutError):  # of a scheduler that is gone
            client.close(timeout=_CLOSE_SECONDS)


def _silence() -> None:
    """No logs of Dask on the screen: a sentence of ours is enough. Its loggers have levels of their own."""
    for name in ("distributed", "tornado", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(_NOTHING)


@contextlib.contextmanager
def _local(distributed: Any, count: int) -> "Iterator[Client]":
    """Processes of this machine, which share its cores."""
    if not 1 <= count <= _MOST_LOCAL:
        raise InputError("cluster", f"takes 1 to {_MOST_LOCAL} local processes", count)
    threads = max((os.cpu_count() or 1) // count, 1)
    with (
        distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=threads,
            host=_LOCAL_HOST,
            dashboard_address=f"{_LOCAL_HOST}:0",
            silence_logs=_NOTHING,
            preload=["annealz.engine.cluster.own_session"],
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        try:
            yield client
        except BaseException:
            _end(cluster)
            raise


def _end(cluster: Any) -> None:
    """Local workers at once: what counts is stored, and Dask would wait for tasks under way."""
    for nanny in cluster.workers.values():
        nanny.auto_restart = False
        if nanny.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(nanny.pid, signal.SIGKILL)


def _address(name: str) -> str:
    """The address of a scheduler, given or in its file."""
    found = _ADDRESS.fullmatch(name)
    if found is not None and found["protocol"] in _PROTOCOLS:
        if not 0 < int(found["port"]) < 2**16:
            raise ValueError(f"the port of {name} must be between 1 and 65535.")
        return name
    if "://" in name or _NO_FILE.fullmatch(name):
        raise InputError(
            "cluster",
            "must be an address such as tcp://host:8786, a scheduler file, or a number of local processes",
            name,
        )
    raw = read_small(name)
    try:
        record = parse_json(raw)
        address = record["address"]
        found = _ADDRESS.fullmatch(address)
        if found is None or found["protocol"] not in _PROTOCOLS:
            raise ValueError("its address is none")
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            f"{name} is not a scheduler file, which 'dask scheduler --scheduler-file {name}' writes."
        ) from None
    return address


def _check_scheduler(address: str) -> None:
    """Refuse an address where no scheduler answers in time, or something else does."""
    from dask import config
    from distributed.security import Security

    if config.get("distributed.client.security-loader", None):
        return  # a plugin of Dask's client knows how to connect
    try:
        options = Security().get_connection_args("client")
    except OSError as error:  # of SSL too
        reason = str(error).partition(" (_ssl")[0]
        raise ValueError(
            f"the certificates of TLS must be PEM files of a certificate and its key: {reason}."
        ) from error
    if address.startswith("tls://") and options.get("ssl_context") is None:
        raise ValueError(
            f"{address} needs certificates: name them in Dask's configuration (distributed.comm.tls)."
        )
    try:
        found = asyncio.run(_identity(address, options))
        kind = found["type"]
    except OSError as error:
        raise ValueError(_silent(address)) from error
    except Exception as error:  # any that reading unknown bytes leads to, of memory too
        raise ValueError(
            f"what answers at {address} is not a Dask scheduler: check the address."
        ) from error
    if kind in ("Worker", "Nanny"):
        raise ValueError(f"{address} is a worker: give the address of its scheduler.")


async def _identity(address: str, options: dict[str, Any]) -> Any:
    """What is there says of itself."""
    from distributed.core import rpc

    async with asyncio.timeout(CONNECT_SECONDS):
        async with rpc(address, connection_args=options, timeout=CONNECT_SECONDS) as other:
            return await other.identity()


def _silent(address: str) -> str:
    return (
        f"no scheduler answered at {address} within {CONNECT_SECONDS} s: start one, or check the address "
        "and its certificates."
    )

"""Processes on one or many hosts that share the chains of a run.

`initialize` is called once in every process, before anything that makes JAX look for devices. Processes
find each other through `jax.distributed`, which knows SLURM and Open MPI, or through the address of the
first one. Then they leave it, and talk over connections of their own (`team.py`): while it runs, a process
that dies makes it abort all others, with no chance to say why.

In Python all processes then run the same program: `estimate_log_z` returns the same Estimate in each.

Examples
--------
>>> import annealz
>>> annealz.distributed.current_team().size  # this process alone
1
>>> team = annealz.distributed.initialize("localhost:29500", num_processes=1, process_id=0)
>>> team.size, team.is_leader
(1, True)
"""

import contextlib
import json
import os
import secrets
import socket
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import Client, Listener

import jax
from jax._src.distributed import global_state  # its key-value store has no public door

from annealz.core.devices import local_devices
from annealz.engine.workers.team import SOLO, Team, keep_alive

__all__ = ["current_team", "initialize"]

_KEY = "annealz/team"
_team = SOLO


def current_team() -> Team:
    """The processes that share runs with this one; this one alone before `initialize`."""
    return _team


def initialize(
    coordinator: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    *,
    timeout: int = 300,
) -> Team:
    """Join the other processes.

    Parameters
    ----------
    coordinator : HOST:PORT of process 0, as all others reach it. This and the next two may be left out
        where JAX finds them by itself: under SLURM, Open MPI and on TPUs.
    num_processes, process_id : how many there are, and which this one is, from 0
    timeout : seconds to wait for the others. A process that waits in vain says so and ends with status 2.
    """
    global _team
    if _team is not SOLO:
        raise ValueError("annealz.distributed.initialize must be called once only.")
    _check(coordinator, num_processes, process_id, timeout)
    if num_processes == 1:
        return _team
    is_ours = not jax.distributed.is_initialized()
    with _time_limit(coordinator, num_processes, process_id, timeout):
        if is_ours:
            _find_each_other(coordinator, num_processes, process_id, timeout)
        num_devices = len(local_devices())  # the devices are looked for while all are here
        if global_state.num_processes > 1:
            _team = _connect(num_devices, timeout)
        if is_ours:
            jax.distributed.shutdown()
    return _team


def _check(coordinator, num_processes, process_id, timeout) -> None:
    if timeout < 1:
        raise ValueError(f"timeout must be at least 1 second, got {timeout}.")
    if coordinator is not None:
        host, _, port = coordinator.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 2**16:
            raise ValueError(
                f"coordinator must be HOST:PORT of process 0, such as 10.0.0.1:29500, got {coordinator!r}."
            )
    if num_processes is not None and num_processes < 1:
        raise ValueError(f"num_processes must be at least 1, got {num_processes}.")
    if process_id is not None and process_id < 0:
        raise ValueError(f"process_id must be at least 0, got {process_id}.")
    if process_id is not None and num_processes is not None and process_id >= num_processes:
        raise ValueError(
            f"process_id must be less than num_processes = {num_processes}, got {process_id}: count "
            "from 0."
        )


def _find_each_other(coordinator, num_processes, process_id, timeout: int) -> None:
    if coordinator is not None and process_id == 0:
        _check_port(coordinator)
    try:
        jax.distributed.initialize(
            coordinator, num_processes, process_id, initialization_timeout=timeout + 60
        )
    except ValueError as error:
        raise ValueError(
            "no cluster was found (SLURM, Open MPI) and not all of coordinator, num_processes and "
            "process_id were given: give --coordinator HOST:PORT, --num-processes P and --process-id I."
        ) from error
    except RuntimeError as error:
        raise ValueError(
            "annealz.distributed.initialize must be called before JAX computes anything or looks for "
            f"devices: {str(error).splitlines()[0]}"
        ) from error


def _check_port(coordinator: str) -> None:
    """Refuse a port that is taken; JAX would end the process."""
    port = int(coordinator.rpartition(":")[2])
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            raise ValueError(
                f"port {port} of the coordinator cannot be had: {error.strerror}; choose another."
            ) from error


@contextlib.contextmanager
def _time_limit(coordinator, num_processes, process_id, timeout: int) -> Iterator[None]:
    """Say who is missing before JAX ends the process without a word."""

    def give_up() -> None:
        if process_id == 0:
            missing = f"not all {num_processes or ''} processes came".replace("  ", " ")
        else:
            missing = f"process 0 did not answer at {coordinator or 'the address that JAX found'}"
        print(
            f"annealz: {missing} within {timeout} s: start all of them, with the same coordinator and "
            "number of processes.",
            file=sys.stderr,
            flush=True,
        )
        os._exit(2)

    timer = threading.Timer(timeout, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _connect(num_devices: int, timeout: int) -> Team:
    """A connection between process 0 and every other, by a secret that only they know."""
    client, index, size = global_state.client, global_state.process_id, global_state.num_processes
    assert client is not None
    if index != 0:
        door = json.loads(client.blocking_key_value_get(_KEY, timeout * 1000))
        address = global_state.coordinator_address
        assert address is not None
        host = address.rpartition(":")[0].strip("[]")
        connection = Client((host, door["port"]), authkey=bytes.fromhex(door["secret"]))
        keep_alive(connection)
        connection.send_bytes(json.dumps([index, num_devices]).encode())
        return Team(index, json.loads(connection.recv_bytes()), [connection])
    secret = secrets.token_bytes(32)
    with Listener(("", 0), backlog=size, authkey=secret) as listener:
        port = listener.address[1]
        client.key_value_set(_KEY, json.dumps({"port": port, "secret": secret.hex()}))
        connections, counts = {}, {0: num_devices}
        while len(connections) < size - 1:
            connection = listener.accept()
            keep_alive(connection)
            p, counts[p] = json.loads(connection.recv_bytes())
            connections[p] = connection
    all_counts = [counts[p] for p in range(size)]
    for connection in connections.values():
        connection.send_bytes(json.dumps(all_counts).encode())
    return Team(0, all_counts, [connections[p] for p in range(1, size)])

"""The processes that share a run: process 0 sends commands, the others answer.

    process 0 -> all      inputs, anneal, begin, put, advance, blocks, done, result, stop
    other -> process 0    parts (what its blocks give to a chunk), blocks, wants, failed, interrupt

A message is one line of JSON, which names it, and an array's worth of bytes: nothing is unpickled. Each
process has one connection, to process 0. A process that was killed is noticed at once, since its
connection ends; a host that vanished, within `_SILENT_SECONDS`.
"""

import _thread
import contextlib
import json
import queue
import signal
import socket
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import jax
import numpy as np

__all__ = ["SOLO", "LostProcess", "Message", "Team", "from_bytes", "keep_alive", "to_bytes"]

_SILENT_SECONDS = 30


class LostProcess(RuntimeError):
    """Another process of the run is gone."""


class Message(NamedTuple):
    kind: str
    fields: dict[str, Any]
    payload: bytes

    @classmethod
    def read(cls, raw: bytes) -> "Message":
        head, _, payload = raw.partition(b"\n")
        fields = json.loads(head)
        return cls(fields.pop("kind"), fields, payload)

    def write(self) -> bytes:
        return json.dumps({"kind": self.kind, **self.fields}).encode() + b"\n" + self.payload


class Team:
    """This process and the others.

    Parameters
    ----------
    index : of this process, from 0
    num_devices : of every process
    connections : of process 0, to the others in their order; of another process, to process 0 only
    """

    def __init__(self, index: int, num_devices: list[int], connections: list[Connection]):
        self.index, self.num_devices = index, num_devices
        self._connections, self._lock = connections, threading.Lock()
        self._inbox: queue.SimpleQueue[tuple[int, Message | None]] = queue.SimpleQueue()
        self._lost: int | None = None
        if self.is_leader and connections:
            threading.Thread(target=self._read, daemon=True).start()

    @property
    def size(self) -> int:
        return len(self.num_devices)

    @property
    def is_leader(self) -> bool:
        return self.index == 0

    def owners(self, num_blocks: int) -> list[int]:
        """The process of every block. Blocks are distributed over all devices of all processes in turn."""
        deepest = max(self.num_devices)
        seats = [p for d in range(deepest) for p in range(self.size) if d < self.num_devices[p]]
        return [seats[i % len(seats)] for i in range(num_blocks)]

    # --- process 0 ---

    def tell(
        self,
        kind: str,
        payloads: list[bytes] | bytes = b"",
        to: set[int] | None = None,
        **fields: Any,
    ) -> None:
        """Send a message to all others (or some), with one payload for all or one for each process."""
        for p, connection in enumerate(self._connections, 1):
            if to is not None and p not in to:
                continue
            payload = payloads if isinstance(payloads, bytes) else payloads[p]
            try:
                connection.send_bytes(Message(kind, fields, payload).write())
            except OSError:
                self._lose(p)

    def collect(self, kind: str) -> dict[int, Message]:
        """What every other process answers."""
        answers: dict[int, Message] = {}
        while len(answers) < self.size - 1:
            p, message = self._inbox.get()
            if message is None:
                self._lose(p)
            elif message.kind == "failed":
                self._lost = p
                raise ValueError(f"process {p} failed: {message.fields['text']}")
            elif message.kind == kind:  # else it is, or was sent before, an interrupt
                answers[p] = message
        return answers

    def dismiss(self, why: str, text: str) -> None:
        """Send all remaining processes the command to stop, and why: interrupt, lost or error."""
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.send_bytes(Message("stop", {"why": why, "text": text}, b"").write())

    @property
    def is_whole(self) -> bool:
        """Whether nobody is known to be lost."""
        return self._lost is None

    def _lose(self, p: int) -> None:
        self._lost = p
        raise LostProcess(
            f"process {p} of {self.size} is gone: it was killed, or cannot be reached."
        )

    def _read(self) -> None:
        """Hand on what comes in; in a thread, so that no interrupt finds a message half read."""
        index = {connection: p for p, connection in enumerate(self._connections, 1)}
        while index:
            try:
                ready = wait(list(index))
            except OSError:  # closed on this side
                ready = [connection for connection in index if connection.closed]
            for connection in ready:
                assert isinstance(connection, Connection)
                try:
                    message = Message.read(connection.recv_bytes())
                except (EOFError, OSError):
                    self._inbox.put((index.pop(connection), None))
                    continue
                if message.kind == "interrupt":
                    _thread.interrupt_main()
                self._inbox.put(
                    (index[connection], message)
                )  # an interrupt too: it wakes who waits

    # --- the others ---

    def listen(self) -> Message:
        """The next message of process 0."""
        try:
            return Message.read(self._connections[0].recv_bytes())
        except (EOFError, OSError):
            raise LostProcess(
                f"process 0 of {self.size}, which leads the run, is gone: it was killed, or cannot be "
                "reached."
            ) from None

    def answer(self, kind: str, payload: bytes = b"", **fields: Any) -> None:
        """Send a message to process 0."""
        with self._lock, contextlib.suppress(OSError):  # `listen` reports that it is gone
            self._connections[0].send_bytes(Message(kind, fields, payload).write())

    @contextlib.contextmanager
    def interrupts_passed_on(self) -> Iterator[None]:
        """A first Ctrl-C is passed on to process 0, which stops all after a checkpoint; a second is not."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def pass_on(number: int, frame: Any) -> None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            threading.Thread(target=self.answer, args=("interrupt",), daemon=True).start()

        before = signal.signal(signal.SIGINT, pass_on)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


SOLO = Team(0, [1], [])


def keep_alive(connection: Connection) -> None:
    """Let the system ask whether the other end is still there."""
    count, idle = 3, _SILENT_SECONDS // 4
    with socket.socket(fileno=connection.fileno()) as end:
        try:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for name, value in (("IDLE", idle), ("INTVL", idle), ("CNT", count)):
                if hasattr(socket, f"TCP_KEEP{name}"):
                    end.setsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_KEEP{name}"), value)
        finally:
            end.detach()


def to_bytes(tree: Any) -> bytes:
    """The arrays of a tree, one after another."""
    return b"".join(np.ascontiguousarray(leaf).tobytes() for leaf in jax.tree.leaves(tree))


def from_bytes(raw: bytes, like: Any) -> Any:
    """The tree whose arrays these are, with the structure, shapes and types of `like`."""
    leaves, structure = jax.tree.flatten(like)
    out, at = [], 0
    for leaf in leaves:
        size = leaf.dtype.itemsize * leaf.size
        out.append(np.frombuffer(raw[at : at + size], leaf.dtype).reshape(leaf.shape))
        at += size
    return jax.tree.unflatten(structure, out)

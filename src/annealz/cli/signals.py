"""Ctrl-C and a polite kill, as the command line answers them.

SIGINT     once: a run saves a checkpoint and says how to go on; status 130
SIGTERM    the same, with status 143
again      the process ends at once and says nothing; files are written whole or not at all, so that the
           folder is as it was after the last checkpoint

A thread hears of signals, because Python's own handlers wait for the main thread, which may import, compile
or compute for long; and an exception raised where the main thread happens to be may crash JAX. While work
is under way that can save what it has, the thread sets the flag that it asks about (`core/interrupts.py`);
else nothing would be lost, and the process ends. When the command is over, a signal changes nothing.
"""

import os
import signal
import socket
import sys
import threading
from typing import NoReturn

from annealz.core import interrupts

_STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}
_SHOW_CURSOR = b"\x1b[?25h"  # a live bar hides it

_received: list[int] = []
_over = threading.Event()


def answer_signals() -> None:
    """Answer signals from now on, until the process ends."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    for number in _STATUS:
        signal.signal(number, _ignore)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_listen, args=(reader, writer), daemon=True).start()


def _ignore(*_: object) -> None:
    """Leave a signal to the thread."""


def _listen(reader: socket.socket, _: socket.socket) -> None:
    while True:
        number = reader.recv(1)[0]
        if number not in _STATUS or _over.is_set():
            continue
        _received.append(number)
        is_first = len(_received) == 1
        interrupts.ask()
        if is_first and interrupts.is_awaited():
            continue
        if is_first:
            os.write(2, b"annealz: interrupted.\n")
        _exit(_STATUS[signal.Signals(_received[0])])


def leave(status: int) -> NoReturn:
    """End the process; at once after an interruption, when threads of JAX may still be at work."""
    _over.set()
    if not _received:
        sys.exit(status)
    if status == _STATUS[signal.SIGINT]:
        status = _STATUS[signal.Signals(_received[0])]
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # nobody reads it
            continue
    _exit(status)


def _exit(status: int) -> NoReturn:
    if os.isatty(2):
        os.write(2, _SHOW_CURSOR)
    os._exit(status)

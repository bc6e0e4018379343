"""Ctrl-C and a polite kill, as the command line answers them.

SIGINT     KeyboardInterrupt, once: the run saves a checkpoint and says how to go on; status 130
SIGTERM    the same, with status 143
again      the process ends at once and says nothing; files are written whole or not at all, so that the
           folder is as it was after the last checkpoint
"""

import os
import signal
import sys
import threading
from types import FrameType

__all__ = ["answer_signals", "status_of_signal"]

_STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}
_SHOW_CURSOR = "\x1b[?25h"  # a live bar hides it

_received: list[int] = []


def answer_signals() -> None:
    """From now on, until the process ends, in the main thread."""
    if threading.current_thread() is threading.main_thread():
        for number in _STATUS:
            signal.signal(number, _answer)


def status_of_signal(status: int) -> int:
    """The exit status of a command that ended so: 143 where it was SIGTERM that interrupted it."""
    if status == _STATUS[signal.SIGINT] and _received:
        return _STATUS[signal.Signals(_received[0])]
    return status


def _answer(number: int, _: FrameType | None) -> None:
    _received.append(number)
    if len(_received) == 1:
        raise KeyboardInterrupt
    if sys.stderr.isatty():
        os.write(sys.stderr.fileno(), _SHOW_CURSOR.encode())
    os._exit(_STATUS[signal.Signals(number)])

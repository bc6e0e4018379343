"""Ctrl-C and a polite kill, as the command line answers them.

SIGINT     KeyboardInterrupt, once: the run saves a checkpoint and says how to go on; status 130
SIGTERM    the same, with status 143
again      the process ends at once and says nothing; files are written whole or not at all, so that the
           folder is as it was after the last checkpoint

The exception is raised at the next line of annealz's own code. Inside NumPy and JAX it may be lost, where
they clear up, or come out as another error. Where no such line comes for a second, as in a download, it is
raised all the same, but not in an import. When the command is over, a signal changes its status no more.
"""

import atexit
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

__all__ = ["answer_signals", "status_at_end"]

_STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}
_SHOW_CURSOR = "\x1b[?25h"  # a live bar hides it
_PATIENCE = 1.0  # seconds
_ALARM = getattr(signal, "SIGALRM", None)  # not on Windows
_OURS = os.path.dirname(os.path.dirname(__file__)) + os.sep
_NOT_THERE = {  # typer calls them, and ends without a word on what they raise
    os.path.join(os.path.dirname(__file__), name)
    for name in ("signals.py", "main.py", "options.py")
}

_received: list[int] = []
_at_end: list[int] = []


def answer_signals() -> None:
    """From now on, until the process ends, in the main thread."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGINT) is not _answer:
        for number in _STATUS:
            signal.signal(number, _answer)
        if _ALARM is not None:
            signal.signal(_ALARM, _insist)
        atexit.register(_ignore)  # the first, and so the last that is done


def status_at_end(status: int) -> int:
    """The exit status of a command that ended so: 143 where it was SIGTERM that interrupted it."""
    if status == _STATUS[signal.SIGINT] and _received:
        status = _STATUS[signal.Signals(_received[0])]
    _at_end.append(status)
    return status


def _answer(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    if not _at_end and len(_received) == 1:
        sys.settrace(_at_call)
        while frame is not None:
            if _is_ours(frame):
                frame.f_trace = _at_line
            frame = frame.f_back
        _wake_in(_PATIENCE)
        return
    if sys.stderr.isatty():
        os.write(sys.stderr.fileno(), _SHOW_CURSOR.encode())
    os._exit(_at_end[0] if _at_end else _STATUS[signal.Signals(number)])


def _at_call(frame: FrameType, event: str, argument: Any) -> Any:
    return _at_line if _is_ours(frame) else None


def _at_line(frame: FrameType, event: str, argument: Any) -> Any:
    if event != "line" or _at_end:
        return _at_line
    sys.settrace(None)
    _wake_in(0)
    raise KeyboardInterrupt


def _insist(_: int, frame: FrameType | None) -> None:
    if _at_end or sys.gettrace() is not _at_call:
        return
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            _wake_in(_PATIENCE)
            return
        frame = frame.f_back
    sys.settrace(None)
    raise KeyboardInterrupt


def _wake_in(seconds: float) -> None:
    """Let `_insist` be called then; never with 0."""
    if _ALARM is not None:
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _is_ours(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return file.startswith(_OURS) and file not in _NOT_THERE


def _ignore() -> None:
    """All is done but to take Python down, which would answer in its own way."""
    for number in (*_STATUS, _ALARM):
        if number is not None:
            signal.signal(number, signal.SIG_IGN)

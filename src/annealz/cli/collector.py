"""The collector of cyclic garbage pauses while a command imports, and returns when its work begins.

Imports leave no garbage, and the collector looks through all that they make, again and again: a third of a
second of each command. What they made is never looked at again (`gc.freeze`).
"""

import gc

__all__ = ["pause_collector", "resume_collector"]

_paused: list[bool] = []


def pause_collector() -> None:
    """At the start of the process."""
    if gc.isenabled():
        gc.disable()
        _paused.append(True)


def resume_collector() -> None:
    """Where the work begins, in a process that paused it."""
    if _paused:
        _paused.clear()
        gc.freeze()
        gc.enable()

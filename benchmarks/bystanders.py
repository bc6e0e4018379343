"""How much of the machine other programs took while a block of code ran, in cores.

    others = (busy time of all cores - processor time of our own processes) / wall clock

It counts time stolen by a hypervisor. Rivals that spin at barriers suffer most from company, so a
race on a busy machine says little: well below 0.1 is quiet.
"""

import time
from collections.abc import Sequence

import psutil

__all__ = ["Bystanders"]


class Bystanders:
    """A context; `cores` is filled when it ends."""

    cores: float

    def __init__(self, own_pids: Sequence[int]):
        self._own = [psutil.Process(), *(psutil.Process(pid) for pid in own_pids)]

    def __enter__(self) -> "Bystanders":
        self._began, self._start = time.monotonic(), self._others()
        return self

    def __exit__(self, *_: object) -> None:
        self.cores = (self._others() - self._start) / (time.monotonic() - self._began)

    def _others(self) -> float:
        everyone = psutil.cpu_times()._asdict()
        inside = ("guest", "guest_nice")  # already part of user and nice
        idle = ("idle", "iowait")
        busy = sum(t for kind, t in everyone.items() if kind not in inside + idle)
        mine = (process.cpu_times() for process in self._own)
        return busy - sum(times.user + times.system for times in mine)

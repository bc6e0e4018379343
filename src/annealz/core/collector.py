"""While a call of ours lasts, the collector of cyclic garbage looks through the whole process less often.

Tracing and lowering make some hundred thousand objects that stay. By Python's own settings the collector
goes through all objects of the process, JAX's among them, six times in a first call: 0.5 of 3.5 seconds.
Ten times as many may gather before it does so here; what is young is collected as often as ever. The
setting is Python's own, and not ours to keep: what somebody else has set meanwhile stays.
"""

import gc

from annealz.core.counted import Counted

__all__ = ["collecting_rarely"]

_RARELY = 100  # collections of the middle generation, between those of all objects; Python has 10


class _Thresholds(Counted):
    """Python's thresholds, with the last one raised."""

    def begin(self) -> None:
        self._before = young, middle, old = gc.get_threshold()
        gc.set_threshold(young, middle, max(old, _RARELY))
        self._given = gc.get_threshold()  # from Python 3.14 on the last one has no effect

    def end(self) -> None:
        if gc.get_threshold() == self._given:
            gc.set_threshold(*self._before)


collecting_rarely = _Thresholds()

"""A call leaves the process as it was, and while it lasts another thread notices nothing of it."""

import gc
import logging
import os
import signal
import sys
import threading
import warnings
from typing import Any

import jax
import numpy as np
import pytest

import annealz
from annealz.testing import random_rbm

SIGNALS = (signal.SIGINT, signal.SIGTERM)


EQUINOX = {"jax._src.callback"}  # filter_jit of Equinox filters this logger while a program runs


def state() -> dict[str, Any]:
    """Return what the threads of a process share."""
    names = [*logging.root.manager.loggerDict]
    loggers = [logging.getLogger(), *(logging.getLogger(name) for name in names)]
    return {
        "gc": (gc.isenabled(), gc.get_threshold(), len(gc.callbacks)),
        "warnings": (warnings.showwarning, *warnings.filters),
        "logging": [
            (one.name, one.level, one.disabled, *one.handlers)
            + (() if one.name in EQUINOX else tuple(one.filters))
            for one in loggers
        ],
        "signals": [signal.getsignal(one) for one in SIGNALS],
        "trace": (sys.gettrace(), threading.gettrace(), sys.getprofile(), sys.excepthook),
        "jax": dict(jax.config.values),
        "environment": dict(os.environ),
        "recursion": sys.getrecursionlimit(),
        "folder": os.getcwd(),
    }


class Watch:
    """Compares the state of the process with its first one from a thread of its own."""

    def __enter__(self):
        self.first, self.differences = state(), {}
        self._threads, self._is_over = {*threading.enumerate()}, threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def _look(self) -> None:
        while not self._is_over.wait(0.005):
            self._compare("during")

    def _compare(self, when: str) -> None:
        now = state()
        for name, before in self.first.items():
            if now[name] != before:
                self.differences[name, when] = (before, now[name])

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()
        self._compare("after")
        left = {*threading.enumerate()} - self._threads
        if left:
            self.differences["threads"] = left


MODEL = random_rbm(4, 6)
SMALL = {"num_steps": 50, "num_chains": 60, "progress": True}
DENSITY = annealz.LogDensity(lambda x: -0.5 * (x**2).sum(), 2)
ON_HOST = annealz.LogDensity(lambda x: float(-0.5 * np.square(np.asarray(x)).sum()), 2, "host")
CALLS = {
    "RBM": lambda: annealz.estimate_log_z(MODEL, **SMALL),
    "two sides": lambda: annealz.estimate_log_z(MODEL, two_sided=True, **SMALL),
    "density": lambda: annealz.estimate_log_z(DENSITY, **SMALL),
    "NumPy": lambda: annealz.estimate_log_z(ON_HOST, base="standard", **SMALL),
    "exchange": lambda: annealz.estimate_log_z(
        MODEL, method="exchange", num_steps=64, num_rungs=4, num_ensembles=8
    ),
    "nested": lambda: annealz.estimate_log_z(
        annealz.LogDensity(lambda x: -(x**2).sum(), 2, prior=annealz.GaussianBase.standard(2)),
        method="nested",
        num_live=80,
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_changes_nothing_of_its_process(name: str):
    CALLS[name]()  # imports whatever it needs, which sets some of it once
    with Watch() as watch:
        CALLS[name]()
    assert not watch.differences


def test_a_failing_function_leaves_nothing_behind():
    def fails(x) -> float:
        calls.append(1)
        if len(calls) > 40:
            raise ZeroDivisionError("no more")
        return float(-0.5 * np.square(np.asarray(x)).sum())

    calls: list[int] = []
    model = annealz.LogDensity(fails, 2, "fails")
    with Watch() as watch, pytest.raises(ValueError, match="ZeroDivisionError: no more"):
        annealz.estimate_log_z(model, base="standard", **SMALL)
    assert not watch.differences
    assert CALLS["NumPy"]().std_err > 0


def test_a_failing_function_is_one_sentence_without_a_log(caplog, capfd):
    def fails(x) -> float:
        if np.asarray(x)[0] > 0.3:
            raise ZeroDivisionError("no more")
        return 0.0

    with pytest.raises(ValueError, match="fails raised ZeroDivisionError: no more at") as error:
        annealz.estimate_log_z(annealz.LogDensity(fails, 2, "fails"), base="standard", **SMALL)
    assert isinstance(error.value.__cause__, ZeroDivisionError)
    assert not caplog.records
    assert capfd.readouterr().err == ""


def test_watching_notices_what_a_call_must_not_do():
    """The check can fail: every kind of change that earlier versions made is seen."""
    thresholds = gc.get_threshold()
    with Watch() as watch:
        gc.set_threshold(70_000, 10, 10)
        logging.getLogger("jax").addFilter(keep := logging.Filter())
        stop = threading.Event()
        thread = threading.Thread(target=stop.wait)
        thread.start()
    gc.set_threshold(*thresholds)
    logging.getLogger("jax").removeFilter(keep)
    stop.set()
    thread.join()
    assert {"threads", ("gc", "after"), ("logging", "after")} <= watch.differences.keys()

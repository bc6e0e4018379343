"""Threads compute where the asking one does, and return in order."""

import contextvars
import threading
import time

import jax
import pytest

from annealz.core.devices import preferred
from annealz.core.threads import all_at_once

word = contextvars.ContextVar("word", default="none")


def test_what_belongs_to_the_asking_thread_goes_along():
    word.set("said")
    device = jax.devices("cpu")[0]
    with jax.default_device(device):
        found = all_at_once(2 * [lambda: (word.get(), preferred(), threading.current_thread())])
    assert [one[:2] for one in found] == 2 * [("said", device)]
    assert threading.current_thread() not in {one[2] for one in found}


def test_in_their_order_and_at_once():
    both = threading.Barrier(2, timeout=20)

    def call(number: int) -> int:
        both.wait()
        time.sleep(0.01 * (1 - number))
        return number

    assert all_at_once([lambda: call(0), lambda: call(1)]) == [0, 1]


def test_one_alone_needs_no_thread():
    assert all_at_once([threading.current_thread]) == [threading.current_thread()]
    assert all_at_once([]) == []


def test_an_error_is_not_kept_waiting():
    """Whoever is still at work is left."""
    go_on = threading.Event()

    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        all_at_once([fail, lambda: go_on.wait(20)])
    go_on.set()

"""What was made of the same objects a moment ago is not made again."""

import threading
import time

import numpy as np

from annealz.core.recent import Recent


def test_the_same_objects_and_names_give_the_same_value():
    recent, array, made = Recent(2), np.ones(2), []

    def get(*of):
        return recent.get(of, lambda: made.append(of) or len(made))

    name = "vis"
    assert get(array, "visible") == 1
    assert get(array, f"{name}ible") == 1  # an equal name that is another object
    assert get(array.copy(), "visible") == 2  # an equal array that is another object
    assert get(array, "hidden") == 3
    assert get(array) == 4
    assert get(array, "visible") == 5  # the last two are held, no more
    assert len(made) == 5


def test_threads_that_ask_at_once_make_it_once():
    recent, array, made = Recent(2), np.ones(2), []

    def make():
        time.sleep(0.02)
        made.append(1)
        return object()

    found = []
    threads = [
        threading.Thread(target=lambda: found.append(recent.get([array], make))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == len(set(map(id, found))) == 1

"""How often all objects are gone through: rarely while a call lasts, and as before after it."""

import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

import annealz
from annealz.core.collector import collecting_rarely

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="Python has no last threshold any more"
)


@pytest.fixture(autouse=True)
def usual():
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


@collecting_rarely
def inside(then=lambda: None):
    found = gc.get_threshold()
    then()
    return found


def test_rarely_while_a_call_lasts():
    assert inside() == (700, 10, 100)
    assert gc.get_threshold() == (700, 10, 10)


def test_calls_within_calls():
    seen = []
    inside(lambda: seen.extend([inside(), gc.get_threshold()]))
    assert seen == 2 * [(700, 10, 100)]
    assert gc.get_threshold() == (700, 10, 10)


def test_of_calls_side_by_side_the_last_one_puts_it_back():
    barrier, seen = Barrier(2), []

    def first():
        inside(barrier.wait)
        barrier.wait()

    def second():
        inside(lambda: [barrier.wait(), barrier.wait(), seen.append(gc.get_threshold())])

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(first), pool.submit(second)]:
            done.result(30)
    assert seen == [(700, 10, 100)]
    assert gc.get_threshold() == (700, 10, 10)


def test_after_an_error():
    with pytest.raises(ZeroDivisionError):
        inside(lambda: 1 / 0)
    assert gc.get_threshold() == (700, 10, 10)


def test_what_others_set_stays():
    inside(lambda: gc.set_threshold(5, 5, 5))
    assert gc.get_threshold() == (5, 5, 5)
    gc.set_threshold(700, 10, 5000)
    assert inside() == (700, 10, 5000)


def test_estimates_are_such_calls():
    seen = []

    def note(_):
        seen.append(gc.get_threshold()[2])

    model = annealz.testing.random_rbm(4, 6)
    annealz.estimate_log_z(model, num_steps=100, num_chains=100, on_progress=note)
    assert set(seen) == {100}
    assert gc.get_threshold() == (700, 10, 10)

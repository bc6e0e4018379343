"""Programs compiled in threads: each asked for once, what fails left to the caller, the seconds charged."""

import threading
from concurrent.futures import wait

import pytest

from annealz.core import compilers as module
from annealz.core.compilers import Compilers


@pytest.fixture(autouse=True)
def nothing_asked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_asked", set())


def finish(compilers: Compilers, name: str) -> None:
    """Until the threads are done; `Compilers.wait` leaves to the caller what none of them has begun."""
    wait(compilers._made.get(name, ()))
    compilers.wait(name)


def test_each_is_asked_for_once():
    made = []
    with Compilers() as compilers:
        for name in ("first", "second"):
            compilers.begin(name, "the same", lambda: [lambda: made.append("here")])
            compilers.begin_apart(name, "another", lambda: made.append("elsewhere"))
            finish(compilers, name)
        compilers.begin("third", {}, lambda: pytest.fail("has no hash"))
    assert made == ["here", "elsewhere"]


def test_tracing_is_done_here_and_compiling_elsewhere():
    threads = []

    def traced():
        threads.append(threading.current_thread())
        yield lambda: threads.append(threading.current_thread())

    with Compilers() as compilers:
        compilers.begin("run", 1, traced)
        finish(compilers, "run")
    assert threads[0] is threading.main_thread()
    assert threads[1].name.startswith("annealz-ahead")


def test_what_fails_is_left_to_the_caller():
    """What was traced before is compiled all the same."""
    made = []

    def traced():
        yield lambda: made.append(1)
        yield lambda: 1 / 0
        raise ValueError("no third one")

    with Compilers() as compilers:
        compilers.begin("run", 1, traced)
        finish(compilers, "run")
        compilers.wait("unheard of")
    assert made == [1]


def test_what_no_thread_has_begun_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_num_threads", lambda: 1)
    go_on, made = threading.Event(), []
    with Compilers() as compilers:
        compilers.begin("long", 1, lambda: [lambda: go_on.wait(20)])
        compilers.begin("run", 2, lambda: [lambda: made.append("run")])
        compilers.wait("run")
        go_on.set()
        finish(compilers, "long")
    assert made == []


def test_tracing_and_waiting_are_both_charged(monkeypatch: pytest.MonkeyPatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])

    def traced():
        now[0] += 3
        return [lambda: None]

    class Waited(list):
        def __iter__(self):
            now[0] += 4
            return super().__iter__()

    with Compilers() as compilers:
        compilers.begin("run", 1, traced)
        compilers._made["run"] = Waited(compilers._made["run"])
        now[0] += 100  # what this thread did meanwhile
        assert compilers.wait("run") == 7
        assert compilers.wait("run") == 0

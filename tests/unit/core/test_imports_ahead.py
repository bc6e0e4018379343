"""Modules are imported in a thread, and an error in one is left to whoever needs it."""

import importlib
import sys
import threading

import pytest

from annealz.core.imports_ahead import import_ahead

THREADS = "import threading\nthread = threading.current_thread()\n"


@pytest.fixture
def modules(tmp_path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "ahead_broken.py").write_text("1 / 0")
    (tmp_path / "ahead_whole.py").write_text(THREADS)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield
    for name in ("ahead_broken", "ahead_whole"):
        sys.modules.pop(name, None)


def started() -> set[threading.Thread]:
    return set(threading.enumerate())


def test_in_a_thread_past_what_is_broken(modules):
    before = started()
    import_ahead("ahead_broken", "no_such_module", "ahead_whole")
    for thread in started() - before:
        thread.join(60)
    assert sys.modules["ahead_whole"].thread is not threading.main_thread()
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("ahead_broken")


def test_no_thread_for_what_is_there(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(threading.Thread, "start", lambda self: pytest.fail("a thread was started"))
    import_ahead("sys", "numpy")

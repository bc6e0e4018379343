"""Programs of our calls are kept, and JAX's own settings are left as they were."""

import threading

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from annealz.core import kept_programs as module
from annealz.core.kept_programs import keeping_programs

NAMES = [
    "jax_compilation_cache_dir",
    "jax_compilation_cache_max_size",
    "jax_persistent_cache_min_compile_time_secs",
]


def settings() -> list:
    return [getattr(jax.config, name) for name in NAMES]


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """JAX as it is without a folder, and ours in a temporary place."""
    before = settings()
    monkeypatch.setattr(module.platformdirs, "user_cache_dir", lambda name: str(tmp_path / name))
    monkeypatch.setattr(module, "_SHORTEST", 0.0)
    for name in ("JAX_COMPILATION_CACHE_DIR", "ANNEALZ_PROGRAMS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in zip(NAMES, (None, -1, 1.0), strict=True):
        jax.config.update(name, value)
    reset_cache()
    yield module.programs_folder()
    for name, value in zip(NAMES, before, strict=True):
        jax.config.update(name, value)
    reset_cache()


@keeping_programs
def compile_one(number: float) -> list:
    jax.jit(lambda x: x * number + 1)(np.float32(2))
    return settings()


def files(folder) -> int:
    return len(list(folder.glob("*-cache"))) if folder.is_dir() else 0


def test_programs_of_our_calls_are_kept_and_no_others(folder):
    before = settings()
    inside = compile_one(2.5)
    assert inside == [str(folder), 10**9, 0.0]
    assert settings() == before
    count = files(folder)
    assert count >= 1
    jax.jit(lambda x: x * 3.5 - 7)(np.float32(2))
    assert files(folder) == count


def test_settings_come_back_after_an_error_and_after_the_last_of_two_threads(folder):
    before, inside, go_on = settings(), threading.Event(), threading.Event()

    @keeping_programs
    def wait():
        inside.set()
        go_on.wait(10)

    @keeping_programs
    def fail():
        raise ValueError("no")

    other = threading.Thread(target=wait)
    other.start()
    inside.wait(10)
    with pytest.raises(ValueError, match="no"):
        fail()
    assert settings()[0] == str(folder)  # the other one still runs
    go_on.set()
    other.join()
    assert settings() == before


def test_a_folder_that_is_set_is_left_alone(folder, tmp_path, monkeypatch):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "own"))
    assert compile_one(4.5)[0] == str(tmp_path / "own")
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setenv("ANNEALZ_PROGRAMS", "0")
    assert compile_one(5.5)[0] is None


def test_nothing_is_kept_where_nothing_can_be_written(folder, tmp_path):
    (tmp_path / "annealz").write_text("a file")
    assert compile_one(6.5)[0] is None


def test_what_is_set_during_a_call_stays_set(folder, tmp_path):
    @keeping_programs
    def change() -> None:
        jax.config.update("jax_compilation_cache_dir", str(tmp_path / "own"))

    change()
    assert settings() == [str(tmp_path / "own"), -1, 1.0]


def test_an_interrupt_while_it_is_set_counts_no_call(folder, monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    before = settings()
    with monkeypatch.context() as patch:
        patch.setattr(module._Keeping, "begin", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compile_one(7.5)
    assert compile_one(8.5)[0] == str(folder)
    assert settings() == before

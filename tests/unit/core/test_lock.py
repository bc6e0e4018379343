"""One process at a time in a folder."""

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from annealz.io.files import holding


def test_a_second_one_is_refused_and_a_later_one_is_not(tmp_path: Path):
    folder = tmp_path / "a" / "run"
    with holding(folder):
        assert (folder / ".lock").read_text() == str(os.getpid())
        with pytest.raises(ValueError, match="in use by another process"), holding(folder):
            pass
        (folder / "kept").write_text("")
    assert [file.name for file in folder.iterdir()] == ["kept"]
    with holding(folder):
        pass
    assert (folder / "kept").exists()


def test_a_folder_that_stays_empty_is_taken_away_if_it_was_made_here(tmp_path: Path):
    with holding(tmp_path / "new"):
        pass
    assert not (tmp_path / "new").exists()
    (tmp_path / "own").mkdir()
    with holding(tmp_path / "own"):
        pass
    assert (tmp_path / "own").is_dir()


def test_what_cannot_be_held_is_left_to_who_writes(tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("mine")
    with holding(file):
        pass
    assert file.read_text() == "mine"


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path):
    folder, other = tmp_path / "run", tmp_path / "other"
    folder.mkdir()
    (folder / ".lock").symlink_to(other)
    with holding(folder):
        assert not other.exists()


def test_an_error_lets_go(tmp_path: Path):
    with pytest.raises(KeyError), holding(tmp_path / "run"):
        raise KeyError
    with holding(tmp_path / "run"):
        pass


def test_threads_keep_each_other_out(tmp_path: Path):
    ready, told = threading.Barrier(8), []

    def take():
        ready.wait()
        try:
            with holding(tmp_path / "run"):
                told.append("in")
                time.sleep(0.2)
        except ValueError:
            told.append("out")

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == ["in"] + ["out"] * 7


def _hold(folder: Path) -> None:
    with holding(folder):
        (folder / "held").write_text("")
        time.sleep(60)


def test_a_killed_process_lets_go(tmp_path: Path):
    folder = tmp_path / "run"
    process = multiprocessing.get_context("spawn").Process(target=_hold, args=(folder,))
    process.start()
    while not (folder / "held").exists():
        time.sleep(0.02)
    assert process.pid is not None
    words = f"in use by another process of annealz, number {process.pid}: "
    with pytest.raises(ValueError, match=words), holding(folder):
        pass
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with holding(folder):
        pass


def _race(folder: Path, counts) -> None:
    entered = 0
    while entered < 70:
        try:
            with holding(folder):
                entered += 1
                with counts.get_lock():
                    counts[0] += 1
                    counts[1] = max(counts[0], counts[1])
                with counts.get_lock():
                    counts[0] -= 1
                    counts[2] += 1
        except ValueError:
            pass


def test_no_two_are_in_at_once_however_often_the_lock_comes_and_goes(tmp_path: Path):
    context = multiprocessing.get_context("spawn")
    counts = context.Array("i", 3)  # inside now, inside at most, times
    processes = [context.Process(target=_race, args=(tmp_path / "run", counts)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert counts[1] == 1
    assert counts[2] == 210

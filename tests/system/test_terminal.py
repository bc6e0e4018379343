"""What a terminal shows: stages and curves while it runs, the table alone afterwards, nothing in a pipe."""

import dataclasses
import fcntl
import io
import math
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pyte
import pytest
from rich.console import Console

import annealz
from annealz.cli import plain
from annealz.cli.estimate import settle
from annealz.cli.progress import show_progress
from annealz.cli.retry import retry
from annealz.engine.run import Runs
from annealz.methods.annealing.runner import estimate_of
from annealz.methods.folder import RunFolder
from annealz.testing import random_rbm
from annealz.views.show.board import Board, duration, report_to
from annealz.views.show.live import live_board
from annealz.views.show.terminal import Screen, sparkline, terminal_board

ROWS = 30
PLAIN = {"base": "visible-bias", "second_opinion": False}  # one base, no search
COMMAND = [sys.executable, "-m", "annealz", "estimate", "mnist-cd1-20", "--no-second-opinion"]
# the terminal becomes the one of the session, so that its ^C is heard; a fork of this process would warn
LAUNCH = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
LINEAR = ["--schedule", "linear"]  # no pilot


@pytest.fixture(autouse=True)
def _plain_environment(tmp_path: Path, monkeypatch):
    """Neither colours, nor a locale or a cache of whoever runs the tests; runs of seconds are optimised."""
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.delenv("JAX_DISABLE_MOST_OPTIMIZATIONS", raising=False)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TERM", "xterm-256color")


class Session:
    """A command in a terminal of its own: every picture that it drew, and how it ended."""

    def __init__(self, arguments: list[str], columns: int, interrupt_at: str | None = None):
        self.screen = pyte.Screen(columns, ROWS)
        stream = pyte.ByteStream(self.screen)
        self.raw, self.frames = b"", []
        terminal, inside = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *arguments],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            start_new_session=True,
            env=dict(os.environ),  # readline sets COLUMNS behind it
        )
        os.close(inside)
        while select.select([terminal], [], [], 120)[0]:
            try:
                sent = os.read(terminal, 65536)
            except OSError:  # the end, on Linux
                break
            if not sent:
                break
            self.raw += sent
            stream.feed(sent)
            self.frames.append(self.lines)
            if interrupt_at is not None and any(interrupt_at in line for line in self.lines):
                os.write(terminal, b"\x03")
                interrupt_at = None
        self.status = process.wait()
        os.close(terminal)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display if line.strip()]

    @property
    def text(self) -> str:
        """All that was ever on the screen."""
        return "\n".join(line for frame in self.frames for line in frame)


def test_stages_appear_and_only_the_table_stays():
    session = Session([*COMMAND, "--steps", "15000", "--chains", "64"], columns=90)
    assert session.status == 0, session.text
    order = [session.text.index(f"\n{stage} ") for stage in ("pilot", "annealing")]
    assert order == sorted(order)
    assert re.search(r"✓ pilot \S+ s  ✓ schedule \S+ s", session.text)
    assert re.search(r"annealing  ━+─+ +\d+ %  \S+ s left", session.text)
    assert re.search(r"ESS +[▁▂▃▄▅▆▇█]{3,} +\d+ of 64  log Z \d+\.\d{3}", session.text)
    assert session.lines[0].startswith("model          mnist-cd1-20")
    assert (
        session.lines[-1].split()[0] in ("status", "!", "error") or "--steps" in session.lines[-1]
    )
    assert not re.search(r"[━─✓▁▂▃▄▅▆▇█]", "\n".join(session.lines))
    assert not session.screen.cursor.hidden
    assert b"\x1b[1;32mok" in session.raw or b"\x1b[1;31munreliable" in session.raw


def test_forty_columns_of_ascii_without_colour(monkeypatch):
    monkeypatch.setenv("LANG", "C")
    monkeypatch.setenv("NO_COLOR", "1")
    session = Session([*COMMAND, *LINEAR, "--steps", "15000", "--chains", "64"], columns=40)
    assert session.status == 0, session.text
    live = [frame for frame in session.frames if "model" not in "".join(frame)]
    assert any(re.match(r"annealing  #+-+ +\d+ %", line) for frame in live for line in frame)
    assert any(re.match(r"ESS +\d+ +\d+", line) for frame in live for line in frame)
    for frame in live:
        assert len(frame) <= 3, frame  # a line that wraps makes four
    assert session.raw.isascii()
    assert b"+/-" in session.raw
    assert not re.search(rb"\x1b\[[\d;]*3\d[\d;]*m", session.raw)
    assert session.lines[0].startswith("model")
    assert max(map(len, session.lines)) <= 40


def test_ctrl_c_leaves_one_line_that_says_how_to_go_on(tmp_path):
    out = tmp_path / "run"
    arguments = [*COMMAND, *LINEAR, "--steps", "900000", "--chains", "64"]
    session = Session([*arguments, "--out", str(out)], columns=70, interrupt_at="ESS")
    assert session.status == 130
    said = f"annealz: interrupted; resume with: annealz resume {out}"  # longer than a line
    assert "".join("".join(session.lines).split()) == "".join(said.split())
    assert not session.screen.cursor.hidden


def test_nothing_but_the_result_in_a_pipe():
    """And letters that the encoding lacks are spelled."""
    command = [*COMMAND, *LINEAR, "--steps", "300", "--chains", "64"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONWARNINGS": "error"}
    done = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\x1b" not in done.stdout
    assert b"\r" not in done.stdout
    assert re.match(rb"model +mnist-cd1-20 *\nlog Z +\d+\.\d+ \+/- \d", done.stdout)


def test_quiet_and_pipes_show_no_board(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with show_progress(quiet=True) as report:
        assert report is None
    with live_board() as board:
        assert board is None
    assert capsys.readouterr() == ("", "")


def test_a_dumb_terminal_gets_plain_lines():
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, _environ={"TERM": "dumb"})
    with terminal_board(console) as board:
        for step in range(3):
            board.update("pilot", step, 3)
        board.update("annealing", 1, 9)
    assert file.getvalue() == "annealz: pilot\nannealz: annealing\n"


def test_a_run_tells_its_stages_and_its_parts(seed):
    """A target that is missed: the part that goes on says so."""
    model = random_rbm(4, 6, scale=1.0, seed=1)
    seen: list[annealz.Progress] = []
    result = annealz.estimate_log_z(
        model, num_steps=20, target_std_err=0.02, seed=seed, on_progress=seen.append, **PLAIN
    )
    stages = list(dict.fromkeys(now.stage for now in seen))
    assert stages == ["base", "tuning", "pilot", "schedule", "sizing", "timing", "run"]
    runs = [now for now in seen if now.stage == "run"]
    assert [now.part for now in runs] == sorted(now.part for now in runs)
    assert all(now.num_parts == max(now.part, 1) for now in runs)
    chains = {now.part: now.num_chains for now in runs}
    assert sum(chains.values()) == result.num_chains


def test_parts_of_a_limited_time_are_foretold():
    model = random_rbm(4, 6, scale=1.0, seed=1)
    seen: list[annealz.Progress] = []
    annealz.estimate_log_z(
        model, num_steps=20, num_chains=200, max_seconds=1000, on_progress=seen.append, **PLAIN
    )
    parts = {(now.part, now.num_parts) for now in seen if now.stage == "run"}
    assert parts == {(1, 4), (2, 4), (3, 4), (4, 4)}


def test_two_sides_have_two_stages():
    seen: list[annealz.Progress] = []
    annealz.estimate_log_z(
        random_rbm(4, 6, seed=1), schedule="linear", num_steps=10, num_chains=100, two_sided=True,
        on_progress=seen.append, **PLAIN,
    )  # fmt: skip
    assert list(dict.fromkeys(now.stage for now in seen))[-3:] == ["run", "draws", "reverse"]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def filled_board() -> Board:
    """A pilot of 2 s, then half of a run: 10 s since its first report."""
    clock = Clock()
    board = Board(clock)
    report = report_to(board)
    report(annealz.Progress(0, 1, math.nan, math.nan, "pilot"))
    clock.now = 2.0
    report(annealz.Progress(0, 1, math.nan, math.nan, "run", 2, 3))
    clock.now = 7.0  # compiled
    report(annealz.Progress(100, 1000, 1.0, 1000.0, "run", 2, 3, 1000))
    clock.now = 17.0
    report(annealz.Progress(500, 1000, 201.5, 250.0, "run", 2, 3, 1000))
    return board


def test_time_left_does_not_count_compiling():
    board = filled_board()
    assert board.label == "annealing 2/3"
    assert [tuple(done) for done in board.over] == [("pilot", 2.0)]
    assert board.seconds_left == pytest.approx(10.0 * 500 / 400)
    assert board.levels(4) == [1.0, 1.0, 0.25]


@pytest.mark.parametrize("is_ascii", [False, True])
def test_no_line_is_wider_than_the_terminal(is_ascii):
    for columns in range(1, 140):
        file = io.TextIOWrapper(io.BytesIO(), encoding="ascii" if is_ascii else "utf-8")
        console = Console(file=file, width=columns, force_terminal=True, _environ={"TERM": "xterm"})
        console.print(Screen(filled_board()), end="")
        file.seek(0)
        lines = re.sub(r"\x1b\[[\d;]*m", "", file.read()).splitlines()
        assert len(lines) == 3
        assert max(map(len, lines)) <= columns
        if columns >= 40:
            assert "50 %" in lines[1]
            assert "250" in lines[2]


def test_sparkline_has_a_sign_for_every_level():
    levels = list(np.linspace(0, 1, 8))
    assert sparkline(levels) == "▁▂▃▄▅▆▇█"
    assert sparkline([0.0, 0.55, 1.0], is_ascii=True) == "059"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.44, "0.4 s"), (9.96, "10 s"), (59.4, "59 s"), (185, "3:05"), (3723, "1:02:03")],
)
def test_duration(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({}, False),
        ({"LANG": "C"}, True),
        ({"LANG": "POSIX", "LC_CTYPE": "C.UTF-8"}, True),  # Python's own doing
        ({"LANG": "C.UTF-8"}, False),
        ({"LANG": "en_US.UTF-8"}, False),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "C"}, True),
    ],
)
def test_a_plain_locale_is_recognised(names, expected):
    assert plain._is_plain(names) is expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["estimate", "a b.npz", "--seed=3"], "annealz estimate --steps 12 'a b.npz' --seed=3"),
        (["estimate", "--out", "run", "--steps", "3"], "annealz estimate --steps 12"),
        (
            ["estimate", "--steps=3", "--schedule", "linear"],
            "annealz estimate --steps 12 --schedule linear",
        ),
        (["estimate", "--schedule", __file__], None),  # the steps are those of the file
    ],
)
def test_the_next_command_asks_for_more_steps(poor, words, expected):
    """Where a path was given, and nothing else can be advised."""
    given = dataclasses.replace(poor.settings.given, path=True)
    own = dataclasses.replace(poor, settings=dataclasses.replace(poor.settings, given=given))
    assert own.status is annealz.Status.UNRELIABLE
    assert retry(words, own) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["estimate", "a b.npz", "--seed=3"], "--method exchange 'a b.npz' --seed=3"),
        (["estimate", "--out", "run", "--steps", "3"], "--method exchange --steps 3"),
        (["estimate", "--chains=9", "--schedule", "linear"], "--method exchange"),
        (["estimate", "--schedule", __file__, "--two-sided"], "--method exchange"),
    ],
)
def test_the_next_command_crosses_between_modes(poor, words, expected):
    assert poor.status is annealz.Status.UNRELIABLE
    assert retry(words, poor) == f"annealz estimate {expected}"


@pytest.fixture(scope="module")
def poor() -> annealz.Estimate:
    """Of a model that cannot be enumerated."""
    model = random_rbm(27, 28, scale=2.0, seed=3)
    return annealz.estimate_log_z(model, schedule="linear", num_steps=3, num_chains=100, **PLAIN)


def test_a_result_that_was_not_saved_says_why_and_not_what_to_try(poor, tmp_path):
    unsaved = poor.with_message("could not save the result: No space left on device.")
    assert unsaved.messages[-1].startswith("to do better: ")
    with pytest.raises(ValueError, match="could not save the result"):
        settle(unsaved, RunFolder(tmp_path))


def test_a_result_that_is_ok_has_no_next_command(poor):
    run = dataclasses.replace(poor.run, log_weights=np.linspace(0, 0.1, 100))
    assert retry(["estimate"], estimate_of(poor.settings, Runs(run))) is None

"""What a terminal shows: stages and a bar while it runs, the table alone afterwards, nothing in a pipe."""

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

import pyte
import pytest
from rich.console import Console

import annealz
from annealz.cli import show
from annealz.methods.annealing.advice import next_command
from annealz.models.formats.npz import save_rbm
from annealz.testing import random_rbm
from annealz.views.progress import Board, duration, live_board, live_report, report_to

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
    assert re.search(r"pilot \S+ s  schedule \S+ s", session.text)
    assert re.search(r"annealing ━+[╸╺ ]?━+ +\d+ %  \S+ s left", session.text)
    assert re.search(r"ESS \d+ of 64  log Z \d+\.\d{3}", session.text)
    assert session.lines[0].startswith("model          mnist-cd1-20")
    assert (
        session.lines[-1].split()[0] in ("status", "!", "error") or "--steps" in session.lines[-1]
    )
    assert not re.search(r"[━╸╺]", "\n".join(session.lines))
    assert not session.screen.cursor.hidden
    assert b"\x1b[1;32mok" in session.raw or b"\x1b[1;31munreliable" in session.raw


def test_forty_columns_of_ascii_without_colour(monkeypatch):
    monkeypatch.setenv("LANG", "C")
    monkeypatch.setenv("NO_COLOR", "1")
    session = Session([*COMMAND, *LINEAR, "--steps", "15000", "--chains", "64"], columns=40)
    assert session.status == 0, session.text
    live = [frame for frame in session.frames if "model" not in "".join(frame)]
    assert any(re.match(r"annealing [- ]+ +\d+ %", line) for frame in live for line in frame)
    assert any(re.match(r"ESS +\d+ +of 64", line) for frame in live for line in frame)
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
    with live_report(is_quiet=True) as report:
        assert report is None
    with live_board() as board:
        assert board is None
    assert capsys.readouterr() == ("", "")


def test_a_dumb_terminal_gets_plain_lines():
    file = io.StringIO()
    board = Board(Console(file=file, force_terminal=True, _environ={"TERM": "dumb"}))
    for step in range(3):
        board.show("pilot", step, 3)
    board.show("annealing", 1, 9)
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


def filled_board(console: Console) -> Board:
    """A pilot of 2 s, then half of a run: 10 s since its first report."""
    clock = Clock()
    board = Board(console, get_time=clock)
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
    board = filled_board(Console(file=io.StringIO()))
    assert board.stage.description == "annealing 2/3"
    assert board.over == [("pilot", 2.0)]
    assert board.stage.time_remaining == math.ceil(10.0 * 500 / 400)


def test_brief_stages_of_little_interest_are_not_listed():
    clock = Clock()
    board = Board(Console(file=io.StringIO()), get_time=clock)
    for seconds, label in ((0.1, "tuning"), (0.1, "pilot"), (9.0, "base"), (0.0, "annealing")):
        board.show(label, 0, 1)
        clock.now += seconds
    assert [label for label, _ in board.over] == ["pilot", "base"]


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_no_line_is_wider_than_the_terminal(encoding):
    for columns in range(1, 140):
        file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        console = Console(file=file, width=columns, force_terminal=True, _environ={"TERM": "xterm"})
        console.print(filled_board(console).get_renderable(), end="")
        file.seek(0)
        lines = re.sub(r"\x1b\[[\d;]*m", "", file.read()).splitlines()
        assert len(lines) == 3 or columns < 10
        assert max(map(len, lines)) <= columns
        if columns >= 40:
            assert "50 %" in lines[1]
            assert "ESS 250 of 1,000" in lines[2]
            assert all(line[-3:].strip() == "" or len(line) <= columns - 3 for line in lines)


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
    assert show._is_plain(names) is expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "annealz estimate 'a b.npz' --method exchange --seed 3"),
        ({"second_opinion": True}, "annealz estimate 'a b.npz' --base fitted --seed 3"),
        ({"num_steps": 20_000, "num_chains": 1}, "--chains 100"),
    ],
)
def test_the_next_command_is_the_first_remedy(tmp_path, monkeypatch, given, expected):
    monkeypatch.chdir(tmp_path)
    save_rbm(tmp_path / "a b.npz", random_rbm(27, 28, scale=2.0, seed=3))
    options = {"num_steps": 3, "num_chains": 100, "schedule": "linear", "seed": 3} | PLAIN
    poor = annealz.estimate_log_z("a b.npz", **options | given)
    assert poor.status is annealz.Status.UNRELIABLE
    assert expected in next_command(poor)


def test_a_result_that_is_ok_has_no_next_command():
    options = {"num_steps": 20, "num_chains": 100, "schedule": "linear"} | PLAIN
    assert next_command(annealz.estimate_log_z(random_rbm(4, 6), **options)) is None

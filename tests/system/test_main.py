"""The front door: help without JAX, examples that parse, plain text where nobody looks."""

import os
import re
import shlex
import subprocess
import sys

import pytest
import typer

import annealz
from annealz.cli.main import app
from annealz.cli.show import show_sheet
from annealz.core.names import packaged_models
from annealz.diagnostics.sheet import Sheet
from annealz.io.schedules import SCHEDULES
from support.imports import HEAVY, annealz_in_a_process, imported

COMMANDS = typer.main.get_command(app).commands  # pyright: ignore
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3|4|9|10)\d(?:;\d+)*m")


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], *([command, "--help"] for command in COMMANDS)],
    ids=" ".join,
)
def test_help_and_version_do_not_import_jax(arguments):
    done = annealz_in_a_process(*arguments)
    assert done.returncode == 0
    modules = imported(done.stderr)
    assert "annealz.cli.main" in modules
    assert not HEAVY & modules
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("annealz es", ["estimate"]),
        ("annealz estimate mn", list(packaged_models())),
        ("annealz estimate --schedule ", list(SCHEDULES.names())),
        ("annealz estimate --targ", ["--target-std-err"]),
        ("annealz estimate other", []),  # the shell goes on with files
    ],
)
def test_completion_does_not_import_jax(words, completions):
    done = annealz_in_a_process(
        _ANNEALZ_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(words.count(" "))
    )
    assert done.stdout.split() == completions
    assert not HEAVY & imported(done.stderr)


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        from_main("--version")
    assert capsys.readouterr().out == f"annealz {annealz.__version__}\n"


def from_main(*arguments: str) -> None:
    from annealz.cli.main import main

    main(arguments)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_examples_are_shown_and_parse(name, capsys):
    examples = re.findall(r"^\$ annealz (.*)$", COMMANDS[name].epilog, re.MULTILINE)
    assert len(examples) >= 2
    assert any(example.split()[0] == name for example in examples)
    with pytest.raises(SystemExit, match="0"):
        from_main(name, "--help")
    shown = capsys.readouterr().out
    for example in examples:
        assert f"$ annealz {example}" in shown
        command, *words = shlex.split(example)
        COMMANDS[command].make_context(command, words)  # raises where they do not parse


def test_no_color_is_respected():
    coloured = annealz_in_a_process("--help", FORCE_COLOR="1").stdout
    plain = annealz_in_a_process("--help", FORCE_COLOR="1", NO_COLOR="1").stdout
    assert COLOUR.search(coloured)
    assert not COLOUR.search(plain)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["models"], ["models", "--json"]])
def test_a_reader_that_leaves_is_no_error(arguments):
    """As in `annealz models | head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "annealz", *arguments]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_lines_are_not_wrapped_in_a_pipe(capsys):
    """A row and a message are wider than any terminal."""
    row = ("log Z", "1.0 " + "and so on " * 30)
    show_sheet(Sheet(name="Wide", headline=row, rows=[row], notes=["word " * 60]), False)
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 2
    assert "\x1b" not in out

"""`annealz`: entry point and exit status.

0 done, 1 a self-test that failed, 2 bad input (one line on stderr), 3 the cluster was lost, 4 an unreliable
result (with --strict), 130 interrupted and 143 terminated (with the command that goes on).
"""

import functools
import gc
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer

from annealz.cli import estimate, tools  # noqa: F401 - they register commands
from annealz.cli.options import app
from annealz.cli.show import spell_letters
from annealz.cli.signals import leave
from annealz.core import interrupts
from annealz.core.compilation_cache import keep_programs


def _version(wanted: bool) -> None:
    if wanted:
        from annealz import __version__

        print(f"annealz {__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit; without `arguments` as the program itself."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for the rest of the process
    if sys.stdout is None:
        sys.exit(
            _fail("standard output is closed: send it to /dev/null if nobody reads the result.")
        )
    spell_letters()
    if arguments is not None:
        leave(run(list(arguments)))
    keep_programs()
    status = run(sys.argv[1:])
    gc.freeze()  # the interpreter would look for cycles in all of JAX once more, for a second
    leave(status)


def run(arguments: list[str]) -> int:
    """Run a command and return its exit status."""
    if sys.flags.optimize > 1:
        return _fail(
            "PYTHONOPTIMIZE=2 and python -OO remove docstrings, which help and arviz-stats need: unset it."
        )
    try:
        status = int(_group()(arguments, prog_name="annealz", standalone_mode=False) or 0)
        sys.stdout.flush()
        return status
    except BaseException as error:
        if interrupts.is_asked() or isinstance(error, KeyboardInterrupt | typer.Abort):
            print("annealz: interrupted.", file=sys.stderr)
            return 130
        return _refused(error)


def _refused(error: BaseException) -> int:
    """Say in one line what is wrong with the input; an error of annealz itself is raised."""
    if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):
        return _unheard()  # rich and typer answer it by SystemExit
    if isinstance(error, MemoryError):
        return _fail("not enough memory: take fewer chains or smaller batches.")
    if isinstance(error, ValueError | OSError):
        return _fail(str(error))
    usage = getattr(error, "format_message", None)  # typer's usage errors
    if usage is None:
        problem = _problem_of_settings(error)
        if problem is None:
            raise error
        return _fail(problem)
    command = getattr(getattr(error, "ctx", None), "command_path", "annealz")
    return _fail(f"{usage().rstrip('.')}: see '{command} --help'.") if usage() else 0


def _problem_of_settings(error: BaseException) -> str | None:
    """Return which setting of JAX explains an error, if one does."""
    if "Disallowed" in str(error) and "transfer" in str(error):
        return "JAX_TRANSFER_GUARD forbids transfers to and from devices, which annealz needs: unset it."
    if "jax" not in sys.modules:
        return None
    from annealz.core.devices import local_devices

    try:
        local_devices()
    except Exception:
        platforms = os.environ.get("JAX_PLATFORMS")
        return f"JAX has no device to compute on with JAX_PLATFORMS={platforms}: name others, or unset it."
    return None


@functools.cache
def _group() -> Any:
    """Make all commands, once: typer takes longer for it than most of them to refuse their input."""
    return typer.main.get_command(app)


def _unheard() -> int:
    """Leave quietly where nobody reads on, as in `annealz models | head -1`."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _fail(message: str) -> int:
    print(f"annealz: {' '.join(message.split())}", file=sys.stderr)
    return 2

"""`annealz`: entry point and exit status.

0 done, 1 a self-test that failed, 2 bad input (one line on stderr), 3 the cluster was lost, 4 an unreliable
result (with --strict), 130 interrupted and 143 terminated (with the command that goes on).
"""

import functools
import gc
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from annealz.cli import strict
from annealz.cli.compare import compare
from annealz.cli.doctor import doctor
from annealz.cli.entropy import entropy
from annealz.cli.estimate import estimate
from annealz.cli.evidence import evidence
from annealz.cli.help import Command, show_no_types
from annealz.cli.likelihood import likelihood
from annealz.cli.models import models
from annealz.cli.plain import speak_plainly
from annealz.cli.report import report
from annealz.cli.resume import resume
from annealz.cli.schedule import schedule
from annealz.cli.signals import answer_signals, status_at_end
from annealz.cli.train import train
from annealz.core.compilation_cache import keep_programs

__all__ = ["app", "main"]

_EXAMPLES: dict[Callable[..., None], str] = {
    estimate: """
        annealz estimate
        annealz estimate model.npz --steps 20000 --chains 2000 --out run
        annealz estimate model.npz --target-std-err 0.02 --json
        annealz estimate model.npz --two-sided --report page.html
        annealz estimate model.npz --method exchange --out run
        annealz estimate module:name --method nested
        annealz estimate network.uai --evidence network.uai.evid --log10
    """,
    evidence: """
        annealz evidence my_models:line
        annealz evidence my_models:line my_models:parabola
        annealz evidence analysis/models.py:line --target-std-err 0.05 --json
    """,
    resume: """
        annealz resume run
        annealz resume digits.training
    """,
    schedule: """
        annealz schedule model.npz -o s.json
        annealz estimate model.npz --schedule s.json
    """,
    compare: """
        annealz compare model.npz
        annealz compare mnist-cd25-20 --schedules linear,mixing --steps 2000
    """,
    likelihood: """
        annealz likelihood mnist-pcd-500
        annealz likelihood model.npz rows.npy --conservative
        annealz likelihood potts.npz sequences.fasta --per-example p.csv
    """,
    entropy: """
        annealz entropy mnist-pcd-20
        annealz entropy lattice.npz --steps 2000 --json
    """,
    train: """
        annealz train mnist -o digits.npz
        annealz train rows.npy -o model.npz --hidden 100 --series 5000
    """,
    report: """
        annealz report run
        annealz report run -o page.html
    """,
    models: """
        annealz models
        annealz models --json
    """,
    doctor: """
        annealz doctor
        annealz doctor --json
    """,
}

_INTERRUPTED = "annealz: interrupted."


class _Group(TyperGroup):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        show_no_types(self, ctx)
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # of which typer says nothing
            print(_INTERRUPTED, file=sys.stderr)
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=_Group,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Log partition functions by annealed importance sampling.",
    epilog="See 'annealz COMMAND --help' for the options of a command, with examples.",
)
for _command, _lines in _EXAMPLES.items():
    _shown = "\n".join(f"$ {line.strip()}" for line in _lines.strip().splitlines())
    _rules = "\n\nSchedules:\n\n{rules}" if _command is schedule else ""
    app.command(cls=Command, epilog=f"Examples:\n\n{_shown}{_rules}")(_command)


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; without `arguments` as the program itself, which answers signals."""
    speak_plainly()
    strict.reset()
    if arguments is None:
        answer_signals()
        keep_programs()
    status = _status(sys.argv[1:] if arguments is None else list(arguments))
    if arguments is None:
        gc.freeze()  # the interpreter would look for cycles in all of JAX once more, for a second
    sys.exit(status_at_end(status))


def _status(arguments: list[str]) -> int:
    try:
        ended = _group()(arguments, prog_name="annealz", standalone_mode=False, obj=arguments)
        status = int(ended or 0)
        sys.stdout.flush()
        return status or strict.status()
    except (KeyboardInterrupt, typer.Abort):
        print(_INTERRUPTED, file=sys.stderr)
        return 130
    except BrokenPipeError:
        return _unheard()
    except SystemExit as error:  # rich and typer answer a broken pipe so
        if isinstance(error.__context__, BrokenPipeError):
            return _unheard()
        raise
    except MemoryError:
        return _fail("not enough memory: take fewer chains or smaller batches.")
    except ValueError as error:
        from annealz.cli.spoken import in_words_of_options

        return _fail(in_words_of_options(str(error), _option_names()))
    except OSError as error:
        return _fail(str(error))
    except Exception as error:
        usage = getattr(error, "format_message", None)  # typer's usage errors
        if usage is None:
            raise
        command = getattr(getattr(error, "ctx", None), "command_path", "annealz")
        return _fail(f"{usage().rstrip('.')}: see '{command} --help'.") if usage() else 0


@functools.cache
def _group() -> Any:
    """All commands: typer takes longer to make them than most of them to refuse their input."""
    return typer.main.get_command(app)


def _option_names() -> set[str]:
    """Of all commands."""
    parameters = [one for command in _group().commands.values() for one in command.params]
    return {name for one in parameters for name in one.opts if name.startswith("--")}


def _unheard() -> int:
    """Nobody reads on, as in `annealz models | head -1`: no complaint, and nothing left to be flushed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _fail(message: str) -> int:
    print(f"annealz: {' '.join(message.split())}", file=sys.stderr)
    return 2

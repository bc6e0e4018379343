"""`annealz`: entry point and exit status.

0 done, 2 bad input (one line on stderr), 3 another process of the run was lost, 130 interrupted (both with
the command that goes on).
"""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from annealz.cli.compare import compare
from annealz.cli.estimate import estimate
from annealz.cli.likelihood import likelihood
from annealz.cli.models import models
from annealz.cli.resume import resume
from annealz.cli.schedule import schedule
from annealz.cli.train import train

__all__ = ["app", "main"]

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Log partition functions by annealed importance sampling.",
)
app.command()(estimate)
app.command()(resume)
app.command()(schedule)
app.command()(compare)
app.command()(likelihood)
app.command()(train)
app.command()(models)


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
    """Run the command line and exit."""
    sys.exit(_status(sys.argv[1:] if arguments is None else list(arguments)))


def _status(arguments: list[str]) -> int:
    try:
        return int(app(arguments, prog_name="annealz", standalone_mode=False) or 0)
    except (KeyboardInterrupt, typer.Abort):
        print("annealz: interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except MemoryError:
        return _fail("not enough memory: take fewer chains or smaller batches.")
    except (ValueError, OSError) as error:
        return _fail(str(error))
    except Exception as error:
        usage = getattr(error, "format_message", None)  # typer's usage errors
        if usage is None:
            raise
        return _fail(f"{usage().rstrip('.')}: see 'annealz --help'.") if usage() else 0


def _fail(message: str) -> int:
    print(f"annealz: {' '.join(message.split())}", file=sys.stderr)
    return 2

"""The options of commands: those of requests from their fields, and those that say where and how.

A command is a function of one namespace that holds the values of its options. `help.py` fills in what stands
in braces.
"""

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from annealz.core.names import BASES, DEFAULT_MODEL, KERNELS, MARGINALS, METHODS, packaged_models
from annealz.diagnostics.findings import option_of
from annealz.io.schedules import SCHEDULES
from annealz.methods.annealing.request import AnnealingRequest
from annealz.methods.exchange.request import ExchangeRequest
from annealz.methods.nested.request import NestedRequest

__all__ = ["MODEL", "Options", "argument", "as_command", "completes", "given_words", "option", "request_options", "shared"]

Options = types.SimpleNamespace
"""The values of the options of a command, by name."""

_REQUESTS = (AnnealingRequest, ExchangeRequest, NestedRequest)
_NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "schedule": SCHEDULES.names,
    "base": lambda: BASES,
    "marginal": lambda: MARGINALS,
    "kernel": lambda: KERNELS,
}
_TYPES: dict[str, Any] = {"data": Path, "along": str, "draws": str, "base": str, "kernel": str}


def option(
    name: str, kind: Any, default: Any, help: str, *flags: str, **more: Any
) -> inspect.Parameter:
    """Return an option; `more` goes to typer."""
    info = typer.Option(*flags, help=help, **more)
    return _parameter(name, kind, default, info)


def argument(name: str, kind: Any, default: Any, help: str, **more: Any) -> inspect.Parameter:
    """Return an argument; `more` goes to typer."""
    return _parameter(name, kind, default, typer.Argument(help=help, **more))


def _parameter(name: str, kind: Any, default: Any, info: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
    )


def completes(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return what a shell completes a word to: these names, or files if none of them begins like it."""
    return lambda incomplete: [name for name in names() if name.startswith(incomplete)]


def request_options(*requests: type, without: Iterable[str] = ()) -> list[inspect.Parameter]:
    """Return the options of these requests, each once."""
    options: dict[str, inspect.Parameter] = {}
    for request in requests or _REQUESTS:
        for field in dataclasses.fields(request):
            if field.metadata.get("help") and field.metadata["is_in_cli"]:
                options.setdefault(field.name, _request_option(request, field))
    return [one for name, one in options.items() if name not in without]


def _request_option(request: type, field: Any) -> inspect.Parameter:
    hint = typing.get_type_hints(request)[field.name]
    kind = _TYPES.get(field.name, str if hint is Any else hint)
    if field.default is None and hint is Any:
        kind = kind | None
    flags = [option_of(field.name)]
    if field.default is True:
        flags = [f"{flags[0]}/--no-{flags[0][2:]}"]
    words = field.metadata["help"].replace("{bases}", ", ".join(BASES))
    words = words.replace("{marginals}", ", ".join(MARGINALS))
    more = {"autocompletion": completes(_NAMES[field.name])} if field.name in _NAMES else {}
    return option(field.name, kind, field.default, words, *flags, **more)


MODEL = argument(
    "model",
    str,
    DEFAULT_MODEL,
    "Packaged name (see 'annealz models'), model file ({suffixes}), or module:name of a Python object.",
    autocompletion=completes(packaged_models),
)
METHOD = option(
    "method",
    str,
    METHODS[0],
    "annealing; exchange: replica exchange between values of beta; nested: nested sampling.",
    autocompletion=completes(lambda: METHODS),
)
_SHARED = [
    METHOD,
    option(
        "names",
        str | None,
        None,
        "What the arrays of the file are called: weights=W.T,hidden_bias=bh,visible_bias=bv.",
        "--map",
        metavar="NAMES",
    ),
    option("evidence", Path | None, None, "Observed variables of a UAI network: an evid file."),
    option("exact", bool, False, "Compute the exact log Z too, by enumeration or contraction.", "--exact"),
    option("out", Path | None, None, "Folder for checkpoints and results."),
    option("force", bool, False, "Overwrite what is there.", "--force"),
    option("checkpoint_seconds", float, 15.0, "Seconds between checkpoints.", min=0),
    option(
        "cluster",
        str | None,
        None,
        "Dask workers that compute: tcp://host:8786, a scheduler file, or local processes, like 4.",
        metavar="WHERE",
    ),
    option("mnist", Path | None, None, "Folder with the MNIST files (else fetched once)."),
    option(
        "run", Path | None, None, "Take the chains of the run in this folder, done or not."
    ),
    option("plot", Path | None, None, "Write a picture (png, pdf, svg)."),
    option("report", Path | None, None, "Write an HTML page that holds all of it."),
    option("strict", bool, False, "Exit with status 4 where the result is unreliable.", "--strict"),
    option("log10", bool, False, "Show log10 Z too, as the UAI competitions do.", "--log10"),
    option("as_json", bool, False, "Print one JSON object.", "--json"),
    option("quiet", bool, False, "No progress on stderr.", "--quiet"),
]


def shared(*names: str) -> list[inspect.Parameter]:
    """Return options that several commands have, by name, in this module's order."""
    return [one for one in _SHARED if one.name in names]


def as_command(
    function: Callable[[Options], None], parameters: list[inspect.Parameter]
) -> Callable[..., None]:
    """Return the function that typer makes a command of."""

    def command(context: typer.Context, **values: Any) -> None:
        function(Options(context=context, **values))

    first = inspect.Parameter(
        "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )
    names = [first, *parameters]
    command.__signature__ = inspect.Signature(names)  # pyright: ignore[reportFunctionMemberAccess]
    command.__annotations__ = {one.name: one.annotation for one in names}
    command.__name__, command.__doc__ = function.__name__, function.__doc__
    return command


def given_words(context: typer.Context, without: Iterable[str]) -> list[str]:
    """Return the command as it was given, without these options."""
    words = ["annealz", str(context.info_name)]
    for parameter in context.command.params:
        name = str(parameter.name)
        source, value = context.get_parameter_source(name), context.params.get(name)
        if name in without or value is None or source is None or source.name != "COMMANDLINE":
            continue
        if isinstance(parameter, typer.core.TyperArgument):
            words += [str(one) for one in (value if isinstance(value, list | tuple) else [value])]
        elif isinstance(value, bool):
            words.append((parameter.opts if value else parameter.secondary_opts)[0])
        else:
            words += [parameter.opts[-1], str(value)]
    return words

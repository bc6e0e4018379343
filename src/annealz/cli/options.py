"""The commands and their options: those of requests from their fields, and those that say where and how.

A command is a function of one namespace that holds the values of its options. Its help is filled in when
it is shown, so that other commands do not wait for it:

    {schedules} {compared}    names, all of them and those that `compare` takes by default
    {rules}                   every schedule with its description, a line each
    {suffixes}                endings of model files
"""

import copy
import dataclasses
import inspect
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperArgument, TyperCommand, TyperGroup

from annealz.core.errors import InputError
from annealz.core.names import BASES, DEFAULT_MODEL, KERNELS, MARGINALS, METHODS, packaged_models
from annealz.diagnostics.findings import in_options, option_of
from annealz.io.formats import FORMATS, suffixes
from annealz.io.schedules import SCHEDULES
from annealz.methods.annealing.request import AnnealingRequest
from annealz.methods.exchange.request import ExchangeRequest
from annealz.methods.nested.request import NestedRequest

Options = types.SimpleNamespace
"""The values of the options of a command, by name."""


def _rules() -> str:
    lines = [f"{rule.name}: {rule.description}" for rule in SCHEDULES.usable()]
    return "\n".join([*lines, *SCHEDULES.refusals()])


_WORDS = {
    "{schedules}": lambda: ", ".join(SCHEDULES.names()),
    "{compared}": lambda: ", ".join(SCHEDULES.compared()),
    "{rules}": _rules,
    "{suffixes}": lambda: suffixes(FORMATS.usable()),
}


def _filled(text: str | None) -> str | None:
    for word, value in _WORDS.items():
        if text and word in text:
            text = text.replace(word, escape(value()))
    return text


class _Help:
    """Help whose words are filled in; flags, which take no value, show no type."""

    def format_help(self: Any, ctx: Any, formatter: Any) -> None:
        shown = copy.copy(self)  # another package may be there the next time
        shown.epilog = _filled(self.epilog)
        shown.params = [copy.copy(param) for param in self.params]
        for param in shown.get_params(ctx):
            param.help = _filled(getattr(param, "help", None))
            if getattr(param, "is_flag", False):
                param.metavar = ""
        super(_Help, shown).format_help(ctx, formatter)  # pyright: ignore[reportAttributeAccessIssue]


class _Group(_Help, TyperGroup):
    pass


class _Command(_Help, TyperCommand):
    pass


app = typer.Typer(
    cls=_Group,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Log partition functions by annealed importance sampling.",
    epilog="See 'annealz COMMAND --help' for the options of a command, with examples.",
)
_REQUESTS = (AnnealingRequest, ExchangeRequest, NestedRequest)
_NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "schedule": SCHEDULES.names,
    "base": lambda: BASES,
    "marginal": lambda: MARGINALS,
    "kernel": lambda: KERNELS,
}
_TYPES: dict[str, Any] = {"data": Path}  # of fields that take any object in Python; others are text


def command(
    *parameters: inspect.Parameter, examples: str, more: str = ""
) -> Callable[[Callable[[Options], None]], Callable[[Options], None]]:
    """Register a function of `Options` as a command with these parameters."""
    lines = "\n".join(f"$ {line}" for line in textwrap.dedent(examples).strip().splitlines())

    def register(function: Callable[[Options], None]) -> Callable[[Options], None]:
        def run(context: typer.Context, **values: Any) -> None:
            try:
                function(Options(context=context, **values))
            except InputError as error:
                raise ValueError(error.written(lambda name: _written(name, context))) from error

        first = inspect.Parameter(
            "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
        )
        names = [first, *parameters]
        run.__signature__ = inspect.Signature(names)  # pyright: ignore[reportFunctionMemberAccess]
        run.__annotations__ = {one.name: one.annotation for one in names}
        run.__name__, run.__doc__ = function.__name__, function.__doc__
        app.command(cls=_Command, epilog=f"Examples:\n\n{lines}{more}")(run)
        return function

    return register


def _written(name: str, context: typer.Context) -> str:
    """Write a parameter, or one with a value, as this command does."""
    name, equals, value = name.partition("=")
    if equals:
        return in_options(name, {"True": True, "False": False}.get(value, value))
    for parameter in context.command.params:
        if parameter.name == name:
            is_argument = isinstance(parameter, TyperArgument)
            return str(parameter.metavar) if is_argument else parameter.opts[-1]
    return option_of(name)


def option(
    name: str,
    help: str,
    default: Any = None,
    kind: Any = str,
    flags: Sequence[str] = (),
    **more: Any,
) -> inspect.Parameter:
    """Return an option of the kind of its default, or of this `kind`; `more` goes to typer."""
    info = typer.Option(*(flags or [option_of(name)]), help=help, **more)
    return _parameter(name, kind if default in (None, ...) else type(default), default, info)


def argument(
    name: str, help: str, default: Any = ..., kind: Any = str, **more: Any
) -> inspect.Parameter:
    """Return an argument, in capitals where `more`, which goes to typer, does not name it."""
    info = typer.Argument(help=help, **{"metavar": name.upper(), **more})
    return _parameter(name, kind, default, info)


def _parameter(name: str, kind: Any, default: Any, info: Any) -> inspect.Parameter:
    annotation = Annotated[kind if default is not None else kind | None, info]
    role = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, role, default=default, annotation=annotation)


def _completes(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return what a shell completes a word to: these names, or files if none of them begins like it."""
    return lambda incomplete: [name for name in names() if name.startswith(incomplete)]


def request_options(*requests: type, names: Iterable[str] = ()) -> list[inspect.Parameter]:
    """Return the options of these requests, by default of all methods, each once; or those of names."""
    options: dict[str, inspect.Parameter] = {}
    for request in requests or _REQUESTS:
        hints = typing.get_type_hints(request)
        fields = dataclasses.fields(request)
        for field in sorted(fields, key=lambda one: one.name not in request.__annotations__):
            if field.metadata.get("help") and field.metadata["is_in_cli"]:
                options.setdefault(field.name, _request_option(field, hints[field.name]))
    return [one for one in options.values() if not names or one.name in names]


def request_values(options: Options, *requests: type) -> dict[str, Any]:
    """Return the values of these options, with lists split and files of data read."""
    names = [one.name for one in request_options(*requests) if hasattr(options, one.name)]
    values = {name: getattr(options, name) for name in names}
    if values.get("along") is not None:
        try:
            values["along"] = [float(word) for word in values["along"].split(",")]
        except ValueError:
            text = values["along"]
            raise InputError("along", "must be numbers separated by commas", text) from None
    if values.get("schedules") is not None:
        words = (word.strip() for word in values["schedules"].split(","))
        values["schedules"] = [word for word in words if word]
    if values.get("data") is not None:
        from annealz.training.data import read_data

        values["data"] = read_data(values["data"])
    return values


def _request_option(field: Any, hint: Any) -> inspect.Parameter:
    kind = _TYPES.get(field.name, str) if hint is Any else hint
    flag = option_of(field.name)
    flags = [f"{flag}/--no-{flag[2:]}"] if field.default is True else []
    words = field.metadata["help"].replace("{bases}", ", ".join(BASES))
    words = words.replace("{marginals}", ", ".join(MARGINALS))
    names = _NAMES.get(field.name)
    more = {} if names is None else {"autocompletion": _completes(names)}
    return option(field.name, words, field.default, kind, flags, **more)


MODEL = argument(
    "model",
    "Packaged name (see 'annealz models'), model file ({suffixes}), or module:name of a Python object.",
    DEFAULT_MODEL,
    autocompletion=_completes(packaged_models),
)
OF_RUNS = ("out", "force", "checkpoint_seconds", "cluster", "strict", "as_json", "quiet")
_SHARED = [
    option(
        "method",
        "annealing; exchange: replica exchange between values of beta; nested: nested sampling.",
        METHODS[0],
        autocompletion=_completes(lambda: METHODS),
    ),
    option(
        "map",
        "What the arrays of the file are called: weights=W.T,hidden_bias=bh,visible_bias=bv.",
        metavar="NAMES",
    ),
    option("evidence", "Observed variables of a UAI network: an evid file.", kind=Path),
    option("exact", "Compute the exact log Z too, by enumeration or contraction.", False),
    option("run", "Take the chains of the run in this folder, done or not.", kind=Path),
    option("mnist", "Folder with the MNIST files (else fetched once).", kind=Path),
    option("out", "Folder for checkpoints and results.", kind=Path),
    option("force", "Overwrite what is there.", False),
    option("checkpoint_seconds", "Seconds between checkpoints.", 15.0, min=0),
    option(
        "cluster",
        "Dask workers that compute: tcp://host:8786, a scheduler file, or local processes, like 4.",
        metavar="WHERE",
    ),
    option("plot", "Write a picture (png, pdf, svg).", kind=Path),
    option("report", "Write an HTML page that holds all of it.", kind=Path),
    option("strict", "Exit with status 4 where the result is unreliable.", False),
    option("log10", "Show log10 Z too, as the UAI competitions do.", False),
    option("as_json", "Print one JSON object.", False, flags=["--json"]),
    option("quiet", "No progress on stderr.", False),
]


def shared(*names: str) -> list[inspect.Parameter]:
    """Return options that several commands have, by name, in this module's order."""
    return [one for one in _SHARED if one.name in names]


def given_names(context: typer.Context) -> list[str]:
    """Return the names of the parameters that were typed."""
    names = [str(parameter.name) for parameter in context.command.params]
    return [
        n for n in names if getattr(context.get_parameter_source(n), "name", "") == "COMMANDLINE"
    ]


def given_words(context: typer.Context, without: Iterable[str]) -> list[str]:
    """Return the command as it was typed, without these parameters."""
    words, names = ["annealz", str(context.info_name)], {*given_names(context)} - {*without}
    for parameter in context.command.params:
        if parameter.name not in names:
            continue
        value = context.params[parameter.name]
        if isinstance(parameter, TyperArgument):
            words += [str(one) for one in (value if isinstance(value, list | tuple) else [value])]
        elif isinstance(value, bool):
            words.append((parameter.opts if value else parameter.secondary_opts)[0])
        else:
            words += [parameter.opts[-1], str(value)]
    return words

"""Help that lists what is registered, filled in when it is shown: other commands do not wait for it.

{schedules} {compared}    names, all of them and those that `compare` takes by default
{rules}                   every schedule with its description, a line each
{suffixes}                endings of model files
"""

from typing import Any

from rich.markup import escape
from typer.core import TyperCommand

from annealz.io.formats import FORMATS, suffixes
from annealz.io.schedules import SCHEDULES


class Command(TyperCommand):
    """A command whose help is filled in."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        show_no_types(self, ctx)
        params: list[Any] = [param for param in self.params if getattr(param, "help", None)]
        before = [param.help for param in params], self.epilog
        for param in params:
            param.help = _filled(param.help)
        self.epilog = _filled(self.epilog or "")
        super().format_help(ctx, formatter)
        for param, text in zip(params, before[0], strict=True):
            param.help = text
        self.epilog = before[1]


def show_no_types(command: Any, ctx: Any) -> None:
    """Of flags, which take no value."""
    for param in command.get_params(ctx):
        if getattr(param, "is_flag", False):
            param.metavar = ""


def _filled(text: str) -> str:
    for word, value in _VALUES.items():
        if word in text:
            text = text.replace(word, escape(value()))
    return text


def _rules() -> str:
    lines = [f"{rule.name}: {rule.description}" for rule in SCHEDULES.usable()]
    return "\n".join([*lines, *SCHEDULES.refusals()])


_VALUES = {
    "{schedules}": lambda: ", ".join(SCHEDULES.names()),
    "{compared}": lambda: ", ".join(SCHEDULES.compared()),
    "{rules}": _rules,
    "{suffixes}": lambda: suffixes(FORMATS.usable()),
}

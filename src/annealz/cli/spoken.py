"""Sentences of the library in the words of the command line: `--steps` where Python says `num_steps`.

A word is an argument of the library if it has an underscore and an option of a command has its name:
num_live, max_evaluations. Before a sign of equality one without an underscore is an argument too: base=.
"""

import re
from collections.abc import Collection

from annealz.diagnostics.findings import option_of

__all__ = ["in_words_of_options"]

_WORD = re.compile(
    r"""(?<![\w./'"-])(?P<name>[a-z]+(?:_[a-z]+)*)(?P<equals>=(?P<value>[\w.]*))?"""
    r"""(?!\w|\.\w|[/'"(])"""
)


def in_words_of_options(sentence: str, options: Collection[str]) -> str:
    """The sentence with the names of these options instead of the arguments that they set.

    Examples
    --------
    >>> from annealz.cli.spoken import in_words_of_options
    >>> options = {"--live", "--base", "--two-sided"}
    >>> in_words_of_options("num_live must be at least 2, got 1.", options)
    '--live must be at least 2, got 1.'
    >>> in_words_of_options("give two_sided=True with them, or base=, a base.", options)
    'give --two-sided with them, or --base, a base.'
    """

    def spoken(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        option = option_of(name)
        if option not in options or ("_" not in name and match["equals"] is None):
            return match[0]
        stop = "." if value and value.endswith(".") else ""
        value = (value or "").removesuffix(".")
        return f"{option}{'' if value in ('', 'True') else f' {value}'}{stop}"

    return _WORD.sub(spoken, sentence)

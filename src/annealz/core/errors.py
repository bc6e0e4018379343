"""Errors of input: one sentence that names the parameter, what it must be, what it was, and what to do.

Python and the command line call a parameter by different names (`num_steps`, `--steps`), so the name is
data: whoever shows the error writes it.
"""

from collections.abc import Callable
from typing import Any

__all__ = ["InputError"]


class InputError(ValueError):
    """An argument that cannot be used.

    Parameters
    ----------
    parameter : the name of the argument, as in Python
    requirement : what it must be, as the rest of a sentence that begins with the name
    given : what it was; left out of the sentence by default
    remedy : what to do instead; other parameters stand in braces, as in "leave out {num_chains}"

    Examples
    --------
    >>> from annealz.core.errors import InputError
    >>> error = InputError(
    ...     "num_steps", "must be at least 1", 0, "leave out {schedule} to get the default"
    ... )
    >>> str(error)
    'num_steps must be at least 1, got 0: leave out schedule to get the default.'
    >>> error.written(lambda name: "--" + name.removeprefix("num_"))
    '--steps must be at least 1, got 0: leave out --schedule to get the default.'
    """

    def __init__(self, parameter: str, requirement: str, given: Any = ..., remedy: str = ""):
        self.parameter, self.requirement, self.given = parameter, requirement, given
        self.remedy = remedy
        super().__init__(self.written(str))

    def written(self, name_of: Callable[[str], str]) -> str:
        """Return the sentence with the names that a medium has for parameters."""
        names = _Names(name_of)
        got = "" if self.given is ... else f", got {self.given!r}"
        remedy = f": {self.remedy.format_map(names)}" if self.remedy else ""
        return f"{name_of(self.parameter)} {self.requirement.format_map(names)}{got}{remedy}."


class _Names(dict):
    """Names of parameters as a medium writes them, for `str.format_map`."""

    def __init__(self, name_of: Callable[[str], str]):
        super().__init__()
        self._name_of = name_of

    def __missing__(self, name: str) -> str:
        return self._name_of(name)

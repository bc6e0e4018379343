"""Errors of input: one sentence that names the parameter, what it must be, what it was, and what to do.

Python and the command line call a parameter by different names (`num_steps`, `--steps`), so the name is
data: whoever shows the error writes it.
"""

import re
from collections.abc import Callable
from typing import Any

_NAME = re.compile(r"\{([a-z_]+(?:=\w*)?)\}")


class InputError(ValueError):
    """An argument that cannot be used.

    Parameters
    ----------
    parameter : the name of the argument, as in Python; empty if the sentence begins with something else
    requirement : what it must be, as the rest of a sentence that begins with the name
    given : what it was; left out of the sentence by default
    remedy : what to do instead; other parameters stand in braces, as in "leave out {num_chains}" or
        "give {force=True}"

    Examples
    --------
    >>> from annealz.core.errors import InputError
    >>> error = InputError("num_steps", "must be at least 1", 0, "leave {schedule} out")
    >>> error.written(lambda name: "--" + name.removeprefix("num_"))
    '--steps must be at least 1, got 0: leave --schedule out.'
    """

    def __init__(self, parameter: str, requirement: str, given: Any = ..., remedy: str = ""):
        self.parameter, self.requirement, self.given = parameter, requirement, given
        self.remedy = remedy
        super().__init__(self.written(str))

    def __reduce__(self):  # workers of a cluster send it
        return type(self), (self.parameter, self.requirement, self.given, self.remedy)

    def written(self, name_of: Callable[[str], str]) -> str:
        """Return the sentence with the names that a medium has for parameters."""
        got = "" if self.given is ... else f", got {self.given!r}"
        words = f"{{{self.parameter}}} {self.requirement}" if self.parameter else self.requirement
        remedy = f": {self.remedy}" if self.remedy else ""
        words, remedy = (_NAME.sub(lambda name: name_of(name[1]), text) for text in (words, remedy))
        return f"{words}{got}{remedy}."

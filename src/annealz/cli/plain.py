"""Letters that a stream cannot show, in ASCII.

A stream of another encoding than UTF-8 gets them by an error handler of Python's codecs. A terminal whose
locale is plain C gets ASCII altogether: Python itself takes UTF-8 there, and the terminal need not.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Mapping
from typing import TextIO

_NAME = "annealz.plain"
_SPELLED = {
    "±": "+/-",
    "…": "...",
    "–": "-",
    "—": "-",
    "→": "->",
    "×": "x",
    "·": "*",
    "√": "sqrt",
    "β": "beta",
    "τ": "tau",
    "≤": "<=",
    "≥": ">=",
    "’": "'",
    "\u0302": "^",
}


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(_SPELLED.get(letter, "?") for letter in letters), error.end


def _is_plain(environment: Mapping[str, str]) -> bool:
    """Whether the locale is C; LC_CTYPE=C.UTF-8 is passed over, because Python sets it there by itself."""
    names = [environment.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG")]
    said = [name for name in names if name and name != "C.UTF-8"] or names[:1]
    return said[0] in ("C", "POSIX")


def speak_plainly() -> None:
    """Let stdout and stderr spell what they cannot show."""
    codecs.register_error(_NAME, _spell)
    for stream in (sys.stdout, sys.stderr):
        _adapt(stream, os.environ)


def _adapt(stream: TextIO, environment: Mapping[str, str]) -> None:
    reconfigure = getattr(stream, "reconfigure", None)  # what tests put there may not have it
    if reconfigure is None:
        return
    if stream.isatty() and _is_plain(environment):
        reconfigure(encoding="ascii", errors=_NAME)
    elif (stream.encoding or "").lower().replace("-", "") != "utf8":
        reconfigure(errors=_NAME)

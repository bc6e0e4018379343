"""Docstrings here say `name : what it is`, where others say `name : type`.

Types are in the signature.
"""

import re
from typing import Any

import griffe

_SECTION = re.compile(r"(?<=Parameters\n----------\n)(?:.+\n?)+")
_NAME = re.compile(r"^(\w[\w, ]*) : (.*)$", re.MULTILINE)


class PlainParameters(griffe.Extension):
    """Moves what stands behind the colon to where NumPy's style has descriptions."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            text = obj.docstring.value
            obj.docstring.value = _SECTION.sub(lambda part: _NAME.sub(r"\1\n    \2", part[0]), text)

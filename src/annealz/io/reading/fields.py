"""The fields of a record and what each must be: a table of names and converters, checked at one place.

A converter takes a value of JSON and returns it, or says by a ValueError what it must be.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from annealz.io.reading.words import shown

__all__ = [
    "Field",
    "Record",
    "Table",
    "anything",
    "file_name",
    "finite",
    "flag",
    "line",
    "list_of",
    "number",
    "numbers",
    "one_of",
    "optional",
    "table",
    "text",
    "whole",
]

Converter = Callable[[Any], Any]
_LONGEST_LINE = 1000


def text(value: Any) -> str:
    return value if isinstance(value, str) else _refuse(value, "a text")


def line(value: Any) -> str:
    """A text to be printed, such as a name."""
    if not isinstance(value, str) or len(value) > _LONGEST_LINE or not value.isprintable():
        _refuse(value, "a line of text")
    return value


def file_name(value: Any) -> str:
    """The name of a file beside the record, and no way to another folder."""
    if not line(value) or value in (".", "..") or "/" in value or "\\" in value:
        _refuse(value, "the name of a file")
    return value


def flag(value: Any) -> bool:
    return value if isinstance(value, bool) else _refuse(value, "true or false")


def whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**128:
        _refuse(value, "a whole number")
    return value


def number(value: Any) -> float:
    """Of a float's range, or infinite, or none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse(value, "a number")
    try:
        float(value)
    except OverflowError:
        _refuse(value, "a number")
    return value


def finite(value: Any) -> float:
    return value if math.isfinite(number(value)) else _refuse(value, "a finite number")


def table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else _refuse(value, "a table of names")


def numbers(value: Any) -> list[float]:
    """A list of finite numbers, in float64."""
    return [float(finite(one)) for one in list_of(anything)(value)]


def anything(value: Any) -> Any:
    return value


def optional(of: Converter) -> Converter:
    """The same, or null."""
    return lambda value: None if value is None else of(value)


def one_of(*words: str) -> Converter:
    """One of these texts."""

    def convert(value: Any) -> str:
        known = isinstance(value, str) and value in words
        return value if known else _refuse(value, f"one of {', '.join(words)}")

    return convert


def list_of(of: Converter) -> Converter:
    """A list of such values."""

    def convert(value: Any) -> list[Any]:
        if not isinstance(value, list):
            _refuse(value, "a list")
        return [of(one) for one in value]

    return convert


@dataclasses.dataclass(frozen=True)
class Field:
    """A name and the converter of its value."""

    name: str
    of: Converter
    is_needed: bool = True


@dataclasses.dataclass(frozen=True)
class Record:
    """A record of named fields; names that are not listed stay as they are.

    Parameters
    ----------
    what : what messages call it
    """

    what: str
    fields: tuple[Field, ...]

    def check(self, value: Any, where: object = "") -> dict[str, Any]:
        """The record with its fields converted; the ValueError begins with `where`."""
        start = f"{where}: " if str(where) else ""
        if not isinstance(value, dict):
            raise ValueError(f"{start}{self.what} must be a table of names, got {_kind(value)}.")
        found = dict(value)
        for field in self.fields:
            if field.name not in found:
                if field.is_needed:
                    raise ValueError(f"{start}{self.what} lacks {field.name}.")
                continue
            try:
                found[field.name] = field.of(found[field.name])
            except ValueError as error:
                raise ValueError(f"{start}{field.name} of {self.what} {error}.") from error
        return found

    def __call__(self, value: Any) -> dict[str, Any]:
        """The record as a converter, for one within another."""
        try:
            return self.check(value)
        except ValueError as error:
            raise ValueError(f"is damaged: {str(error).rstrip('.')}") from error


@dataclasses.dataclass(frozen=True)
class Table:
    """Any names, with values of one kind, as a converter."""

    of: Converter

    def __call__(self, value: Any) -> dict[str, Any]:
        return {name: self.of(one) for name, one in table(value).items()}


def _refuse(value: Any, wanted: str) -> Any:
    raise ValueError(f"must be {wanted}, got {_kind(value)}")


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return "a table of names" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and abs(value) >= 2**128:
        return "a number too large"
    return shown(repr(value)[:60] if isinstance(value, str) else value)

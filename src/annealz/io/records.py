"""Records: tables of named JSON values, each checked by a converter, with a digest in their files.

A converter takes a value of JSON and returns it, or says by a ValueError what it must be. A record is a
frozen dataclass whose annotations hold the converters:

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Point(TypedRecord):
        what = "a point"
        x: Annotated[float, finite]
        label: Annotated[str | None, optional(line)] = None

A field without a default is always written. One with the default None is left out where it is None. Where
only a dictionary is wanted, a `Record` lists names and converters.
"""

import dataclasses
import functools
import hashlib
import json
import math
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from annealz.io.files import write_atomic
from annealz.io.reading import parse_json, read_small, shown, told

Converter = Callable[[Any], Any]
_LONGEST_LINE = 1000


def _checked(wanted: str, is_right: Callable[[Any], bool]) -> Converter:
    """Return the converter that takes what is right as it is, and refuses the rest."""

    def convert(value: Any) -> Any:
        if not is_right(value):
            raise ValueError(f"must be {wanted}, got {_kind(value)}")
        return value

    return convert


def _is_line(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_LINE and value.isprintable()


def _is_file_name(value: Any) -> bool:
    """Check that it is the name of a file beside the record, without a path to another folder."""
    return _is_line(value) and value not in ("", ".", "..") and not {"/", "\\"} & {*value}


def _is_whole(value: Any, limit: int = 2**128) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < limit


def _is_number(value: Any) -> bool:
    """Check that a float can hold it; infinity and NaN are numbers too."""
    return isinstance(value, float) or _is_whole(value, limit=2**1023)


text = _checked("a text", lambda value: isinstance(value, str))
line = _checked("a line of text", _is_line)
file_name = _checked("the name of a file", _is_file_name)
flag = _checked("true or false", lambda value: isinstance(value, bool))
whole = _checked("a whole number", _is_whole)
number = _checked("a number", _is_number)
finite = _checked("a finite number", lambda value: math.isfinite(number(value)))
table = _checked("a table of names", lambda value: isinstance(value, dict))
_list = _checked("a list", lambda value: isinstance(value, list))


def one_of(*words: str) -> Converter:
    """Return the converter of one of these texts."""
    known = f"one of {', '.join(words)}"
    return _checked(known, lambda value: isinstance(value, str) and value in words)


def optional(of: Converter) -> Converter:
    """Return a converter that takes null as well."""
    return lambda value: None if value is None else of(value)


def list_of(of: Converter) -> Converter:
    """Return the converter of a list of such values."""
    return lambda value: [of(item) for item in _list(value)]


def table_of(of: Converter) -> Converter:
    """Return the converter of a table of any names, with such values."""
    return lambda value: {name: of(item) for name, item in table(value).items()}


numbers = list_of(lambda item: float(finite(item)))


class Record(NamedTuple):
    """Names and converters of a table; other names in it stay as they are."""

    what: str  # what messages call it
    needed: Mapping[str, Converter]  # of the names that it must have
    others: Mapping[str, Converter] = {}  # of those that it may have

    def check(self, value: Any, where: object = "") -> dict[str, Any]:
        """Return the table with its values converted; the ValueError begins with `where`."""
        start = f"{where}: " if str(where) else ""
        if not isinstance(value, dict):
            raise ValueError(f"{start}{self.what} must be a table of names, got {_kind(value)}.")
        found = dict(value)
        for name, of in {**self.needed, **self.others}.items():
            if name not in found:
                if name in self.needed:
                    raise ValueError(f"{start}{self.what} lacks {name}.")
                continue
            try:
                found[name] = of(found[name])
            except ValueError as error:
                raise ValueError(f"{start}{name} of {self.what} {error}.") from error
        return found

    def within(self, value: Any) -> dict[str, Any]:
        """Convert a record within another."""
        return _within(self.check, value)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TypedRecord:
    """A record as a frozen dataclass; see the module."""

    what: ClassVar[str] = "a record"

    @classmethod
    def read(cls, value: Any, where: object = "", **others: Any) -> Self:
        """Read it from values of JSON; a ValueError says what is wrong, and begins with `where`.

        `others` are fields that the record does not hold.
        """
        stored = _stored(cls)
        needed = {name: of for name, (of, is_needed) in stored.items() if is_needed}
        rest = {name: of for name, (of, is_needed) in stored.items() if not is_needed}
        found = Record(cls.what, needed, rest).check(value, where)
        return cls(**{name: found[name] for name in stored if name in found}, **others)

    @classmethod
    def within(cls, value: Any) -> Self:
        """Convert a record within another."""
        return _within(cls.read, value)

    def to_dict(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        found = {}
        for name, (_, is_needed) in _stored(type(self)).items():
            value = getattr(self, name)
            if value is not None or is_needed:
                found[name] = value.to_dict() if isinstance(value, TypedRecord) else value
        return found


@functools.cache
def _stored(cls: type[TypedRecord]) -> dict[str, tuple[Converter, bool]]:
    """Return the converters of the fields that a file holds, and whether it must hold them."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {
        field.name: (hints[field.name].__metadata__[0], field.default is dataclasses.MISSING)
        for field in dataclasses.fields(cls)
        if hasattr(hints[field.name], "__metadata__")
    }


def save_record(path: str | Path, record: dict[str, Any]) -> None:
    """Write a record atomically, with its digest."""
    write_atomic(path, json.dumps({**record, "digest": digest_record(record)}, indent=1))


def load_record(path: str | Path) -> dict[str, Any]:
    """Read a record that was saved; a ValueError names a file that was altered or damaged."""
    raw = read_small(path)
    try:
        record = table(parse_json(raw))
        if record.pop("digest", None) != digest_record(record):
            raise ValueError("its digest does not match")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} was altered or damaged: {told(error)}.") from error
    return record


def digest_record(record: dict[str, Any]) -> str:
    """Return the hexadecimal SHA-256 of a record, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _within(read: Callable[[Any], Any], value: Any) -> Any:
    try:
        return read(value)
    except ValueError as error:
        raise ValueError(f"is damaged: {str(error).rstrip('.')}") from error


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return "a table of names" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and abs(value) >= 2**128:
        return "a number too large"
    return shown(repr(value)[:60] if isinstance(value, str) else value)

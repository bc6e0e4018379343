"""Records as frozen dataclasses: a field's annotation says what its value in the file must be.

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Point(TypedRecord):
        what = "a point"
        x: Annotated[float, finite]
        label: Annotated[str | None, optional(line)] = None

A field without a default is always written. One with the default None is left out where it is None.
"""

import dataclasses
import typing
from typing import Any, ClassVar, Self

from annealz.io.reading.fields import Field, Record

__all__ = ["TypedRecord"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TypedRecord:
    """What every record of this kind can do; see the module."""

    what: ClassVar[str] = "a record"

    @classmethod
    def read(cls, value: Any, where: object = "") -> Self:
        """From values of JSON; a ValueError says what is wrong with them, and begins with `where`."""
        own = _stored(cls)
        fields = (Field(n, of, one.default is dataclasses.MISSING) for n, (one, of) in own.items())
        found = Record(cls.what, tuple(fields)).check(value, where)
        return cls(**{name: found[name] for name in own if name in found})

    @classmethod
    def within(cls, value: Any) -> Self:
        """The converter of a record within another."""
        try:
            return cls.read(value)
        except ValueError as error:
            raise ValueError(f"is damaged: {str(error).rstrip('.')}") from error

    def to_dict(self) -> dict[str, Any]:
        """As values of JSON."""
        found = {}
        for name, (one, _) in _stored(type(self)).items():
            value = getattr(self, name)
            if value is not None or one.default is dataclasses.MISSING:
                found[name] = value.to_dict() if isinstance(value, TypedRecord) else value
        return found


def _stored(cls: type[TypedRecord]) -> dict[str, tuple[dataclasses.Field[Any], Any]]:
    """Return the fields that a file holds, those with a converter, by name."""
    hints = typing.get_type_hints(cls, include_extras=True)
    own = [(one, getattr(hints[one.name], "__metadata__", None)) for one in dataclasses.fields(cls)]
    return {one.name: (one, metadata[0]) for one, metadata in own if metadata is not None}

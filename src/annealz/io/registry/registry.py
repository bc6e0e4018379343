"""A registry: things by name, annealz's own in one table, those of other packages by entry points.

A package that does not load, or that declares a name which is taken, is refused where that name is asked
for, in one sentence. Everything else works as if it were not there.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from annealz.io.reading.words import told
from annealz.io.registry.plugins import Declared, declared, resolve

__all__ = ["Named", "Registry"]


class Named(Protocol):
    """What can be registered: a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def name(self) -> str: ...
    @property
    def package(self) -> str: ...


T = TypeVar("T", bound=Named)


class Registry(Generic[T]):
    """Things of one kind by name.

    Parameters
    ----------
    group : of the entry points
    noun : what messages call a thing
    own : annealz's own
    """

    def __init__(self, group: str, kind: type[T], noun: str, own: Iterable[T]):
        self.group, self.kind, self.noun = group, kind, noun
        self.own = {thing.name: thing for thing in own}
        self._loaded: dict[Declared, T] = {}

    def names(self) -> tuple[str, ...]:
        """All names, annealz's own first; no code of other packages is imported."""
        others = (one.name for one in declared(self.group))
        return tuple(dict.fromkeys((*self.own, *others)))

    def find(self, name: str) -> T | None:
        """The thing of this name, or None; a ValueError where a package cannot be used."""
        own, others = self.own_of(name), [one for one in declared(self.group) if one.name == name]
        if own is not None and others:
            raise ValueError(
                f"{self._owner(others[0])} has the name of one of annealz's own: rename it, or uninstall "
                "that package."
            )
        if len(others) > 1:
            packages = " and ".join(one.package for one in others)
            raise ValueError(
                f"the {self.noun} {name!r} is declared more than once, by {packages}: uninstall one."
            )
        return self._load(others[0]) if others else own

    def own_of(self, name: str) -> T | None:
        """Annealz's own thing of this name."""
        return self.own.get(name)

    def usable(self) -> list[T]:
        """All that can be used."""
        return [thing for thing, _ in self._tried() if thing is not None]

    def refusals(self) -> list[str]:
        """Why the others cannot be, a sentence each."""
        return [reason for _, reason in self._tried() if reason]

    def _tried(self) -> list[tuple[T | None, str]]:
        found = []
        for name in self.names():
            try:
                found.append((self.find(name), ""))
            except ValueError as error:
                found.append((self.own_of(name), str(error)))
        return found

    def _load(self, one: Declared) -> T:
        if one in self._loaded:
            return self._loaded[one]
        try:
            found = resolve(one.reference)
        except (Exception, SystemExit) as error:  # whatever a module may do when it is imported
            reason = f"{type(error).__name__}: {told(error)}"
            raise ValueError(f"{self._owner(one)} does not load: {reason}.") from error
        if not isinstance(found, self.kind):
            raise ValueError(
                f"{self._owner(one)} must be an annealz.{self.kind.__name__}, got a "
                f"{type(found).__name__}."
            )
        if found.name != one.name:
            raise ValueError(f"{self._owner(one)} calls itself {found.name!r}: one name is needed.")
        self.check(found, self._owner(one))
        self._loaded[one] = dataclasses.replace(found, package=one.package)
        return self._loaded[one]

    def check(self, thing: T, owner: str) -> None:
        """Refuse a thing of another package that cannot be used beside annealz's own."""

    def _owner(self, one: Declared) -> str:
        return f"the {self.noun} {one.name!r} of {one.package}"

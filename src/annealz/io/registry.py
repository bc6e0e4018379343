"""What can be asked for by name: annealz's own in a table, that of other packages by entry points.

To list names only the metadata of installed packages are read; code is imported when it is asked for. A
package that does not load, or that declares a name which is taken, is refused where that name is asked for,
in one sentence. Everything else works as if it were not there.
"""

import dataclasses
import functools
import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from annealz.io.reading import shown, told

_LONGEST = 100


@dataclasses.dataclass(frozen=True)
class Entry:
    """What can be registered: it has a name, a line that describes it, and the package that declares it."""

    noun: ClassVar[str] = "entry"

    name: str
    description: str
    package: str = dataclasses.field(default="", kw_only=True)

    def __post_init__(self):
        if not self.name.isprintable() or not 0 < len(self.name) <= _LONGEST:
            raise ValueError(f"the name of a {self.noun} must be a word, got {self.name!r}.")
        if not self.description.isprintable() or not 0 < len(self.description) <= _LONGEST:
            raise ValueError(
                f"the description of the {self.noun} {self.name} must be a line of at most {_LONGEST} "
                "letters."
            )

    @property
    def owner(self) -> str:
        """What messages call it; nothing of annealz's own."""
        return self.package and f"the {self.noun} {self.name!r} of {self.package}"


T = TypeVar("T")


class _Declared(NamedTuple):
    """One entry point, `name = "module:attribute"`, of a distribution and its version."""

    name: str
    reference: str
    package: str


class Registry(Generic[T]):
    """Things of a class `kind` by name; messages call one a `noun`.

    `own` are annealz's own by name, or the "module:attribute" of each; those of others are entry points of
    this `group`.
    """

    def __init__(self, group: str, kind: type[T], noun: str, own: Mapping[str, T | str]):
        self.group, self.kind, self.noun, self.own = group, kind, noun, own
        self._loaded: dict[_Declared, T] = {}

    def names(self) -> tuple[str, ...]:
        """Return all names, annealz's own first; no code of other packages is imported."""
        others = (point.name for point in self._declared())
        return tuple(dict.fromkeys((*self.own, *others)))

    def find(self, name: str) -> T | None:
        """Return the thing of this name, or None; a ValueError where a package cannot be used."""
        own, others = self.own_of(name), [p for p in self._declared() if p.name == name]
        if own is not None and others:
            raise ValueError(
                f"{self._owner(others[0])} has the name of one of annealz's own: rename it, or uninstall "
                "that package."
            )
        if len(others) > 1:
            packages = " and ".join(point.package for point in others)
            raise ValueError(
                f"the {self.noun} {name!r} is declared more than once, by {packages}: uninstall one."
            )
        return self._load(others[0]) if others else own

    def quietly(self, name: str) -> T | None:
        """Return the thing of this name; None where there is none or it cannot be used."""
        try:
            return self.find(name)
        except ValueError:
            return None

    def own_of(self, name: str) -> T | None:
        """Return annealz's own thing of this name."""
        return resolve(self.own[name]) if name in self.own else None

    def usable(self) -> list[T]:
        """Return all that can be used."""
        return [thing for thing, _ in self._tried() if thing is not None]

    def refusals(self) -> list[str]:
        """Return why the others cannot be, a sentence each."""
        return [reason for _, reason in self._tried() if reason]

    def check(self, thing: T, owner: str) -> None:
        """Refuse a thing of another package that cannot be used beside annealz's own."""

    def _tried(self) -> list[tuple[T | None, str]]:
        found = []
        for name in self.names():
            try:
                found.append((self.find(name), ""))
            except ValueError as error:
                found.append((self.own_of(name), str(error)))
        return found

    def _declared(self) -> tuple[_Declared, ...]:
        return _entry_points(self.group, tuple(sys.path))

    def _load(self, point: _Declared) -> T:
        if point in self._loaded:
            return self._loaded[point]
        try:
            found = resolve(point.reference)
        except (Exception, SystemExit) as error:  # whatever a module may do when it is imported
            reason = f"{type(error).__name__}: {told(error)}"
            raise ValueError(f"{self._owner(point)} does not load: {reason}.") from error
        if not isinstance(found, self.kind):
            raise ValueError(
                f"{self._owner(point)} must be an annealz.{self.kind.__name__}, got a "
                f"{type(found).__name__}."
            )
        if isinstance(found, Entry):
            if found.name != point.name:
                raise ValueError(
                    f"{self._owner(point)} calls itself {found.name!r}: one name is needed."
                )
            found = dataclasses.replace(found, package=point.package)
        self.check(found, self._owner(point))
        self._loaded[point] = found
        return found

    def _owner(self, point: _Declared) -> str:
        return f"the {self.noun} {point.name!r} of {point.package}"


@functools.cache
def _entry_points(group: str, places: tuple[str, ...]) -> tuple[_Declared, ...]:
    """Return the entry points of a group by name, of what is installed in these places."""
    from importlib.metadata import entry_points  # takes its time: not where nobody asks

    found = set()
    for point in entry_points(group=group):
        home = f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
        found.add(_Declared(shown(point.name), point.value, shown(home)))
    return tuple(sorted(found))


def resolve(reference: Any) -> Any:
    """Return what `module:attribute` means; anything but text means itself."""
    if not isinstance(reference, str):
        return reference
    module, _, attribute = reference.partition(":")
    found = importlib.import_module(module)
    for word in attribute.split("."):
        found = getattr(found, word)
    return found


def call(owner: str, function: str | Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function; of another package (`owner`) every failure is a sentence that names it."""
    try:
        return resolve(function)(*arguments, **options)
    except ValueError:
        raise
    except Exception as error:  # whatever other people's code may raise
        if not owner:
            raise
        raise ValueError(f"{owner} failed: {type(error).__name__}: {told(error)}.") from error

"""Method: a way to estimate log Z, as three functions.

    plan        request -> plan        all pilots run here
    run         plan -> runs           parts by name, which the folder of the run keeps
    diagnose    plan, runs -> estimate

Annealing, replica exchange and nested sampling are methods; another package adds one by an entry point of
the group `annealz.methods`, which names an instance (docs/extending.md).
"""

import abc
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, ClassVar

from annealz.core.errors import InputError
from annealz.engine.context import Context
from annealz.io.registry import resolve
from annealz.methods.plan import Plan
from annealz.methods.request import Request

_OWN = {
    "annealing": "annealz.methods.annealing.method:METHOD",
    "exchange": "annealz.methods.exchange.method:METHOD",
    "nested": "annealz.methods.nested.method:METHOD",
}
_GROUP = "annealz.methods"


class AbstractMethod(abc.ABC):
    """A way to estimate log Z.

    A result has `log_z`, `std_err`, `status`, `to_dict()` and `with_message()`, as `annealz.Estimate`; with
    `interval()` models are compared by it, and with `is_low` data have a likelihood.
    """

    request_type: ClassVar[type[Request]]
    plan_type: ClassVar[type[Plan]] = Plan

    @abc.abstractmethod
    def plan(self, request: Any, context: Context) -> Any:
        """Return the plan of a request; pilots run here."""

    @abc.abstractmethod
    def run(self, plan: Any, context: Context) -> Any:
        """Return the runs of a plan."""

    @abc.abstractmethod
    def diagnose(self, plan: Any, runs: Any) -> Any:
        """Return the estimate that the runs give."""

    def request(self, arguments: Mapping[str, Any]) -> Any:
        """Return the request of a call; arguments of other methods are refused."""
        kind = self.request_type
        return kind.of(arguments, lambda name: _refusal(kind.method, name, arguments))


def method_names() -> tuple[str, ...]:
    """Return the names of all methods, annealz's own first."""
    return (*_OWN, *(one.name for one in entry_points(group=_GROUP) if one.name not in _OWN))


def find_method(name: Any) -> AbstractMethod:
    """Return the method of this name, or the one that is given."""
    if isinstance(name, AbstractMethod):
        return name
    if name in _OWN:
        return resolve(_OWN[name])
    for one in entry_points(group=_GROUP):
        if one.name == name:
            return _loaded(one)
    raise InputError("method", f"must be one of {', '.join(method_names())}", name)


def _loaded(point: Any) -> AbstractMethod:
    """Return the method of another package."""
    try:
        method = point.load()
    except (Exception, SystemExit) as error:  # whatever a module may do when it is imported
        raise ValueError(f"the method {point.name!r} does not load: {error}.") from error
    if not isinstance(method, AbstractMethod):
        raise ValueError(
            f"the method {point.name!r} must be an instance of AbstractMethod, got a "
            f"{type(method).__name__}."
        )
    return method


def _refusal(method: str, name: str, arguments: Mapping[str, Any]) -> str | None:
    """Return why a method does not take an argument; None where it has its default."""
    for owner in _OWN:
        field = find_method(owner).request_type.__dataclass_fields__.get(name)
        if field is None:
            continue
        value = arguments[name]
        if value is field.default or (
            isinstance(value, type(field.default)) and value == field.default
        ):
            return None
        if owner != "annealing" and method == "annealing":
            return f"belongs to {{method}} {owner}"
        why = field.metadata.get("reasons", {}).get(method)
        return f"does not fit {{method}} {method}" + (f" ({why})" if why else "")
    return None

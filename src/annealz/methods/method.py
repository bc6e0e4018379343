"""Method: a way to estimate log Z, as three functions.

    plan        request -> plan        all pilots run here
    run         plan -> runs           parts by name, which the folder of the run keeps
    diagnose    plan, runs -> estimate

Annealing, replica exchange and nested sampling are methods; another package adds one by an entry point of
the group `annealz.methods`, which names an instance (docs/extending.md).
"""

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

from annealz.core import names
from annealz.core.errors import InputError
from annealz.engine.context import Context
from annealz.io.registry import Registry
from annealz.methods.plan import Plan
from annealz.methods.request import Request


class AbstractMethod(abc.ABC):
    """A way to estimate log Z.

    A result has `log_z`, `std_err`, `status`, `to_dict()` and `with_message()`, as `annealz.Estimate`; with
    `interval()` models are compared by it, and with `is_low` data have a likelihood.

    Examples
    --------
    >>> import annealz
    >>> from annealz.methods.method import find_method
    >>> isinstance(find_method("exchange"), annealz.AbstractMethod)
    True
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
        """Return the request of a call.

        Arguments of other methods are refused unless they have the default that those give them.
        """
        kind = self.request_type
        own = kind.__dataclass_fields__
        for name in arguments:
            if name in own:
                continue
            reason = _refusal(kind.method, name, arguments[name])
            if reason is not None:
                raise InputError(name, reason, remedy="leave it out")
        return kind(**{name: value for name, value in arguments.items() if name in own})


METHODS = Registry(
    "annealz.methods",
    AbstractMethod,
    "method",
    {name: f"annealz.methods.{name}.method:METHOD" for name in names.METHODS},
)


def find_method(name: Any) -> AbstractMethod:
    """Return the method of this name, or the one that is given."""
    if isinstance(name, AbstractMethod):
        return name
    method = (METHODS.own_of(name) or METHODS.find(name)) if isinstance(name, str) else None
    if method is None:
        raise InputError("method", f"must be one of {', '.join(METHODS.names())}", name)
    return method


def _refusal(method: str, name: str, value: Any) -> str | None:
    """Return why a method does not take an argument; None where it has its default."""
    for owner in names.METHODS:
        field = find_method(owner).request_type.__dataclass_fields__.get(name)
        if field is None:
            continue
        default = field.default
        if value is default or (isinstance(value, type(default)) and value == default):
            return None
        if owner != "annealing" and method == "annealing":
            return f"belongs to {{method}} {owner}"
        why = field.metadata.get("reasons", {}).get(method)
        return f"does not fit {{method}} {method}" + (f" ({why})" if why else "")
    return None

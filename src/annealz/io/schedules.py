"""The schedules that can be asked for by name: what each is, the pilot that it needs, and its rule.

A rule is a function of (terrain, num_steps), or of (num_steps) where it needs no pilot, that gives a
Schedule. This module imports neither the rules nor JAX: the command line lists names in its help. Another
package adds a schedule by an entry point of the group `annealz.schedules` (docs/extending.md).
"""

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from annealz.io.registry import Entry, Registry, call

PILOTS = ("none", "annealed", "knots", "mixing")
_NAME = re.compile(r"[a-z0-9][a-z0-9.+_-]*")


@dataclasses.dataclass(frozen=True)
class ScheduleRule(Entry):
    """A schedule that can be asked for by name.

    Parameters
    ----------
    name : in lower case; what `--schedule` takes
    description : one line, for help and reports
    rule : a function, or "module:function", of (terrain, num_steps); of (num_steps) without a pilot
    pilot : none; annealed (g from a short annealing run); knots (g from runs at 10 values of beta); mixing
        (g and the autocorrelation time tau)
    parameter : the option of `rule` that a number after the name sets, as in varopt-0.009; none by default
    options : what `rule` is given besides
    check : a function, or "module:function", of (value, num_steps) that refuses a bad value of the
        parameter before any pilot runs
    is_compared : whether `compare` takes it where no schedules are named
    predicts_variance : whether a pilot of mixing predicts Var[log w], as `provenance["predicted_variance"]`
        of the schedule, so that a wanted error can choose the steps
    package : which package declares it; annealz fills it in

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> def quadratic(num_steps):
    ...     return annealz.Schedule(np.linspace(0, 1, num_steps + 1) ** 2)
    >>> rule = annealz.ScheduleRule("quadratic", "β = t², no pilot", quadratic)
    >>> rule.rule(4).betas.tolist(), rule.needs_pilot
    ([0.0, 0.0625, 0.25, 0.5625, 1.0], False)
    """

    noun: ClassVar[str] = "schedule"

    rule: str | Callable[..., Any]
    pilot: str = "none"
    parameter: str | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    check: str | Callable[..., Any] | None = None
    is_compared: bool = False
    predicts_variance: bool = False

    def __post_init__(self):
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"the name of a schedule must be like my-rule, got {self.name!r}.")
        super().__post_init__()
        if self.pilot not in PILOTS:
            raise ValueError(
                f"the pilot of the schedule {self.name} must be one of {', '.join(PILOTS)}, got "
                f"{self.pilot!r}."
            )
        if self.predicts_variance and self.pilot != "mixing":
            raise ValueError(
                f"the schedule {self.name} must have a pilot of mixing to predict a variance, got "
                f"{self.pilot!r}."
            )

    @property
    def needs_pilot(self) -> bool:
        return self.pilot != "none"

    def check_steps(self, num_steps: int) -> None:
        """Refuse a value of the parameter that this many steps cannot have."""
        value = None if self.parameter is None else self.options.get(self.parameter)
        if self.check is not None and value is not None:
            call(self.owner, self.check, value, num_steps)

    def at(self, text: str) -> "ScheduleRule | None":
        """Return the rule with its parameter set to this number; None without a parameter or a number."""
        try:
            value = float(text)
        except ValueError:
            return None
        if self.parameter is None or not math.isfinite(value):
            return None
        return dataclasses.replace(
            self,
            name=f"{self.name}-{value:g}",
            description=f"{self.name} with {self.parameter} = {value:g}",
            options={**self.options, self.parameter: value},
        )


def _own(name: str, description: str, rule: str = "", **more: Any) -> ScheduleRule:
    """Return the schedule of a rule of annealz, by default that of its name."""
    where = f"annealz.schedules.rules:{rule or name}"
    return ScheduleRule(name, description, where, is_compared=True, **more)


_VAROPT = _own(
    "varopt",
    "constant speed in √g: least variance under perfect mixing",
    pilot="annealed",
    parameter="max_step",
    check="annealz.schedules.steps:check_max_step",
)
_PAPER_STEPS = ("0.009", "0.006", "0.003")  # the limits of Kiwaki 2015

_OWN = (
    _own(
        "mixing",
        "constant speed in √(g τ): least variance for chains that remember",
        pilot="mixing",
        predicts_variance=True,
    ),
    _own("linear", "equal steps"),
    _own("sm08", "500 : 4,000 : 10,000 equal steps on [0, 0.5], [0.5, 0.9] and [0.9, 1]"),
    _own("gms13", "steps in proportion to √cost of each segment between 10 knots", pilot="knots"),
    _VAROPT,
    *(rule for text in _PAPER_STEPS if (rule := _VAROPT.at(text)) is not None),
    _own(
        "varopt-fixed-point",
        "the equation of varopt, solved by the iteration of the paper",
        "varopt",
        pilot="annealed",
        options={"method": "fixed_point"},
    ),
)


class _Schedules(Registry[ScheduleRule]):
    """Schedules by name; with a rule that has a parameter, its name, a dash and a number is one too."""

    def find(self, name: str) -> ScheduleRule | None:
        return super().find(name) or _with_number(name, self.names(), super().find)

    def own_of(self, name: str) -> ScheduleRule | None:
        return super().own_of(name) or _with_number(name, self.own, super().own_of)

    def compared(self) -> tuple[str, ...]:
        """Return the names that `compare` takes by default."""
        return tuple(n for n in self.names() if (rule := self.quietly(n)) and rule.is_compared)


def _with_number(
    name: str, names: Iterable[str], find: Callable[[str], ScheduleRule | None]
) -> ScheduleRule | None:
    for known in names:
        if name.startswith(f"{known}-") and (rule := find(known)) is not None:
            found = rule.at(name.removeprefix(f"{known}-"))
            if found is not None:
                return found
    return None


SCHEDULES = _Schedules(
    "annealz.schedules", ScheduleRule, ScheduleRule.noun, {rule.name: rule for rule in _OWN}
)


def has_pilot(name: str) -> bool:
    """Check whether one of the listed names is that of a rule with a pilot."""
    rule = SCHEDULES.quietly(name) if name in SCHEDULES.names() else None
    return rule is not None and rule.needs_pilot


def described(name: str) -> str:
    """Return what the schedule of this name is; nothing where the name is not known here."""
    rule = SCHEDULES.quietly(name)
    return "" if rule is None else rule.description

"""What a run was asked for, what it was given, and what its pilots came to: the record in run.json.

A run is a function of its problem, its settings and its schedule. Whoever continues a run, shows it or
reproduces it reads them here.
"""

import dataclasses
from typing import Annotated, Any, ClassVar

from annealz.core.names import DEFAULT_SCHEDULE
from annealz.io.reading.fields import (
    Table,
    finite,
    flag,
    line,
    list_of,
    number,
    numbers,
    one_of,
    optional,
    table,
    text,
    whole,
)
from annealz.io.reading.typed import TypedRecord

__all__ = [
    "AnnealAsked",
    "AnnealSettings",
    "Asked",
    "ExchangeSettings",
    "ExchangedDraws",
    "Given",
    "ProblemSettings",
    "RunSettings",
    "SecondBase",
    "read_settings",
]

METHOD = "exchange"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Given(TypedRecord):
    """Which parts of the problem were given as Python objects."""

    what: ClassVar[str] = "what was given"
    path: Annotated[bool, flag]
    kernel: Annotated[bool, flag]
    base: Annotated[bool, flag]

    @property
    def names(self) -> list[str]:
        """Those that were."""
        return [name for name, is_given in self.to_dict().items() if is_given]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Asked(TypedRecord):
    """The words of the call; None where an object was given instead of a word."""

    what: ClassVar[str] = "what was asked for"
    model: Annotated[str | None, optional(line)]
    base: Annotated[str | None, optional(text)]
    data: Annotated[bool, flag]
    """Whether data were given."""
    marginal: Annotated[str | None, optional(text)]
    kernel: Annotated[str | None, optional(text)] = None
    """Its name, where one was given."""
    map: Annotated[str | None, optional(line)] = None
    """What the arrays of the model's file are called."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnnealAsked(Asked):
    """The same of an annealed run."""

    schedule: Annotated[str | None, optional(text)]
    num_steps: Annotated[int | None, optional(whole)]
    num_chains: Annotated[int | None, optional(whole)]
    observe: Annotated[list[str], list_of(text)]
    """Names of what is observed."""

    @property
    def is_default(self) -> bool:
        """Whether all that is left to the model is left to it."""
        is_plain = self.schedule == DEFAULT_SCHEDULE and self.base == "auto"
        return is_plain and not self.data and self.marginal is None


@dataclasses.dataclass(frozen=True, kw_only=True)
class SecondBase(TypedRecord):
    """Where the chains of the second opinion start."""

    what: ClassVar[str] = "the second opinion"
    base: Annotated[str, line]
    evaluations_a_sweep: Annotated[int | None, optional(whole)] = None
    """Of the density, where they have a kernel of their own, and with it states of their own."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExchangedDraws(TypedRecord):
    """What is known of reverse draws from replica exchange."""

    what: ClassVar[str] = "the draws from replica exchange"
    status: Annotated[str, one_of("ok", "unreliable")]
    messages: Annotated[list[str], list_of(text)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProblemSettings(TypedRecord):
    """What is sampled, in words and digests."""

    what: ClassVar[str] = "what is annealed"
    model: Annotated[str, line]
    """What the model is called."""
    model_digest: Annotated[str, text]
    source: Annotated[str | None, optional(line)]
    """Where the model was imported from, module:name; shown, never imported from a file."""
    base: Annotated[str, text]
    marginal: Annotated[str | None, optional(text)]
    given: Annotated[Given, Given.within]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSettings(ProblemSettings):
    """What every run has."""

    base_digest: Annotated[str | None, optional(text)]
    seed: Annotated[int, whole]
    target_std_err: Annotated[float | None, optional(finite)]
    checkpoint_seconds: Annotated[float, finite]
    exact_log_z: Annotated[float | None, optional(number)]
    pilot_sweeps: Annotated[int, whole]
    pilot_seconds: Annotated[float, finite]
    evaluations_a_sweep: Annotated[int | None, optional(whole)]
    """Of the density; None of models whose cost is counted in sweeps."""
    base_evaluations: Annotated[int, whole]
    """What pilots took beside those of their sweeps, the check of the model and its enumeration too."""
    versions: Annotated[dict[str, str], Table(text)]
    is_uncounted: Annotated[bool | None, optional(flag)] = None
    """True where weights and records evaluate the density as well, because the path carries no value."""

    @property
    def has_wish(self) -> bool:
        """Whether a wanted error or a time limit decides how long the run is."""
        return self.target_std_err is not None


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnnealSettings(RunSettings):
    """The settings of an annealed run."""

    what: ClassVar[str] = "the settings of a run"
    asked: Annotated[AnnealAsked, AnnealAsked.within]
    num_chains: Annotated[int, whole]
    """Planned; a limited time may allow fewer, a missed error take more."""
    wanted_chains: Annotated[int, whole]
    """Before a time limit cut them."""
    max_seconds: Annotated[float | None, optional(finite)]
    part_chains: Annotated[int | None, optional(whole)]
    """Chains per part of a run that comes in parts."""
    resample: Annotated[float | None, optional(finite)]
    two_sided: Annotated[bool, flag]
    second_opinion: Annotated[bool, flag]
    """Whether one was asked for."""
    second: Annotated[SecondBase | None, optional(SecondBase.within)]
    """The second opinion that the run has."""
    base_reason: Annotated[str | None, optional(text)]
    """Why the base was chosen, if it was searched for."""
    can_enumerate: Annotated[bool, flag]
    takes_data: Annotated[bool, flag]
    along: Annotated[list[float] | None, optional(numbers)]
    record_every: Annotated[int | None, optional(whole)]
    draws: Annotated[str | None, optional(one_of("exact", "approximate", "given", "exchange"))] = (
        None
    )
    """Where the reverse run starts from; None without one."""
    rounding: Annotated[float | None, optional(finite)] = None
    """Of one value of a density in float32."""
    whole_seconds: Annotated[float | None, optional(finite)] = None
    """What all that is asked for should take without a time limit."""
    wanted_steps: Annotated[int | None, optional(whole)] = None
    """Without a time limit, where a pilot chose them."""
    offset: Annotated[float | None, optional(number)] = None
    """What the path subtracts from a log density, and adds to log Z."""
    pilot_findings: Annotated[list[dict[str, Any]] | None, optional(list_of(table))] = None
    """What pilots found that speaks against annealing: kinds and their numbers."""
    draw_sweeps: Annotated[int | None, optional(whole)] = None
    """What those draws took, all chains together."""
    draw_evaluations: Annotated[int | None, optional(whole)] = None
    """Of a density, beside those sweeps: by enumeration, or where replicas started."""
    exchange: Annotated[ExchangedDraws | None, optional(ExchangedDraws.within)] = None
    independent_draws: Annotated[int | None, optional(whole)] = None
    """Rows of a given trace that reverse chains start from: chain j from row j modulo this."""

    @property
    def has_wish(self) -> bool:
        """Whether a wanted error or a time limit decides how long the run is."""
        return self.target_std_err is not None or self.max_seconds is not None

    def sweeps_a_draw(self, num_chains: int) -> int:
        """At beta = 1, of each of so many approximate draws."""
        return (self.draw_sweeps or 0) // num_chains if self.draws == "approximate" else 0

    def sweeps_of_draws(self, num_chains: int) -> int:
        """What the draws of so many reverse chains took."""
        if self.draws == "approximate":
            return self.sweeps_a_draw(num_chains) * num_chains
        return self.draw_sweeps or 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExchangeSettings(RunSettings):
    """The settings of a run of replica exchange."""

    what: ClassVar[str] = "the settings of a run of replica exchange"
    asked: Annotated[Asked, Asked.within]
    num_rungs: Annotated[int, whole]
    num_ensembles: Annotated[int, whole]
    num_sweeps: Annotated[int, whole]
    num_draws: Annotated[int, whole]
    method: Annotated[str, one_of(METHOD)] = METHOD


def read_settings(record: dict[str, Any], where: object) -> AnnealSettings | ExchangeSettings:
    """The settings in run.json, of either kind."""
    kind = ExchangeSettings if record.get("method") == METHOD else AnnealSettings
    return kind.read(record, where)

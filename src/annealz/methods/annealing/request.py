"""What annealing is asked for, once or to compare schedules."""

import dataclasses
import math
from typing import Annotated, Any, ClassVar

from annealz.core.errors import InputError
from annealz.core.names import DEFAULT_SCHEDULE
from annealz.io.records import finite, flag, list_of, numbers, optional, text, whole
from annealz.methods.request import PathRequest, option

_JOINED = "neighbouring temperatures are joined from both sides already"
_NO_BETAS = "it has no temperatures"
_ONE_WAY = "it goes one way only"
_CONTRADICTIONS = (
    (
        "num_chains",
        "target_std_err",
        "the wanted error decides the number of chains; leave one out",
    ),
    ("target_std_err", "resample", "leave one out"),
    ("target_std_err", "two_sided", "leave one out"),
    ("max_seconds", "resample", "leave one out"),
    ("max_seconds", "two_sided", "leave one out"),
    ("resample", "two_sided", "resampled chains have no reverse; leave one out"),
)
"""Options that cannot both be given, and what to do."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnnealingRequest(PathRequest):
    """The arguments of `estimate_log_z` for annealing; what contradicts itself is refused."""

    method: ClassVar[str] = "annealing"

    schedule: Annotated[Any, optional(text)] = option(
        DEFAULT_SCHEDULE,
        "{schedules}, or a file of betas.",
        exchange="a ladder of its own takes the place of a schedule",
        nested=_NO_BETAS,
    )
    num_steps: Annotated[int | None, optional(whole)] = option(
        None,
        "Annealing steps K (default: 10000; densities: as needed).",
        nested="it ends by itself; {num_inner_steps} is the length of its walks",
    )
    num_chains: Annotated[int | None, optional(whole)] = option(
        None,
        "Chains N (default: 1000; densities: 256).",
        exchange="it has {num_rungs} times {num_ensembles} of them",
        nested="it has {num_live} points",
    )
    target_std_err: Annotated[float | None, optional(finite)] = option(
        None,
        "Take the steps and chains that this error needs.",
        exchange="take more {num_steps} or {num_ensembles} for a smaller error",
        nested="take more {num_live} points for a smaller error",
    )
    max_seconds: Annotated[float | None, optional(finite)] = option(
        None,
        "End in about this time, with the chains that are done.",
        exchange="{num_steps} and {num_ensembles} decide how long it takes",
        nested="{max_evaluations} limits its cost",
    )
    two_sided: Annotated[bool, flag] = option(
        False,
        "Anneal in reverse too: BAR, and bounds on both sides.",
        exchange=_JOINED,
        nested=_ONE_WAY,
    )
    draws: Annotated[Any, optional(text)] = option(
        None,
        "Where --two-sided starts in reverse: exchange (by default exact or forward).",
        exchange=_JOINED,
        nested=_ONE_WAY,
    )
    second_opinion: Annotated[bool, flag] = option(
        True,
        "Anneal some chains from an unlike base too.",
        exchange="round trips and its ensembles are its own evidence",
        nested="its runs are compared with each other",
    )
    resample: Annotated[float | None, optional(finite)] = option(
        None,
        "Resample islands of chains whose ESS falls below this share.",
        exchange="replicas exchange their temperatures instead",
        nested="it has no chains that are weighted",
    )
    along: Annotated[Any, optional(numbers)] = option(
        None,
        "Betas at which log Z is wanted too: 0.25,0.5,0.75.",
        exchange="log Z is known at its own temperatures",
        nested=_NO_BETAS,
    )
    observe: Annotated[Any, optional(text)] = option(None, is_in_cli=False)
    record_every: Annotated[int | None, optional(whole)] = option(None, is_in_cli=False)

    def __post_init__(self):
        from annealz.diagnostics.along import check_betas
        from annealz.diagnostics.status import ROUNDING

        if self.along is not None:
            object.__setattr__(self, "along", check_betas(self.along).tolist())
        super().__post_init__()
        self.check_whole({"num_steps": -(2**63), "num_chains": 1, "record_every": 1})
        for name in ("target_std_err", "max_seconds"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(name, "must be a positive number", value)
        if self.target_std_err is not None and self.target_std_err <= ROUNDING:
            raise InputError(
                "target_std_err",
                f"must be above {ROUNDING:g}, the error of float32",
                self.target_std_err,
            )
        self._check_together()

    @property
    def has_wish(self) -> bool:
        """Whether a wanted error or a time limit decides how long the run is."""
        return self.target_std_err is not None or self.max_seconds is not None

    @property
    def is_default(self) -> bool:
        """Whether all that is left to the model is left to it, and a second opinion not refused."""
        names = ("schedule", "num_steps", "num_chains", "target_std_err", "max_seconds", "resample")
        names += ("two_sided", "second_opinion", "base", "data", "marginal", "path")
        given = {*self._given(), *self.objects}
        return not given & {*names} and "kernel" not in self.objects

    @property
    def are_exchanged(self) -> bool:
        """Whether the reverse run starts from draws of replica exchange."""
        return isinstance(self.draws, str)

    def _check_together(self) -> None:
        """Refuse options that contradict each other."""
        for name, other, remedy in _CONTRADICTIONS:
            if all(getattr(self, one) not in (None, False) for one in (name, other)):
                raise InputError(name, f"and {{{other}}} cannot both be given", remedy=remedy)
        if isinstance(self.draws, str) and self.draws != "exchange":
            raise InputError("draws", 'must be states of the model, or "exchange"', self.draws)
        if self.draws is not None and not self.two_sided:
            raise InputError(
                "draws", "are where a reverse run starts", remedy="give {two_sided} with them"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompareRequest(PathRequest):
    """The arguments of `compare_schedules`."""

    method: ClassVar[str] = "annealing"
    command: ClassVar[tuple[str, str]] = ("compare", "compare_schedules")

    schedules: Annotated[Any, optional(list_of(text))] = option(
        None, "Names, separated by commas (default {compared})."
    )
    num_steps: Annotated[int, whole] = option(10_000, "Steps of a schedule without a pilot.")
    num_chains: Annotated[int, whole] = option(1000, "Chains N.")
    num_replicates: Annotated[int, whole] = option(4, "Independent runs of each schedule.")
    marginal: Annotated[str | None, optional(text)] = option(None, is_in_cli=False)
    kernel: Annotated[Any, optional(text)] = option(None, is_in_cli=False)

    def __post_init__(self):
        super().__post_init__()
        self.check_whole({"num_steps": 1, "num_chains": 1, "num_replicates": 2})

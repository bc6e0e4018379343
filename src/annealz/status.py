"""May an estimate be trusted, why not, and what to do: every message that a judgement can give.

A message is a kind, its words and its remedy. The remedy carries a number to type: a run of K steps
is told to take 4 K. A kind that is fatal makes the status `unreliable`; the others only inform.
"""

import enum
from collections.abc import Mapping

__all__ = ["Findings", "Found", "Message", "Status", "check_level", "longer", "status_of"]


class _Badge:
    """What a notebook shows of a status; an enum keeps names like this one to itself."""

    def _repr_html_(self) -> str:
        from annealz.show.html import status_html

        return status_html(self)  # pyright: ignore[reportArgumentType]


class Status(_Badge, enum.Enum):
    """How far an estimate can be trusted.

    Examples
    --------
    >>> import annealz
    >>> annealz.Status("ok") is annealz.Status.OK, annealz.Status.UNRELIABLE.value
    (True, 'unreliable')
    >>> from annealz.testing import random_rbm
    >>> estimate = annealz.estimate_log_z(
    ...     random_rbm(4, 6), schedule="linear", num_steps=100, num_chains=10
    ... )
    >>> estimate.status
    <Status.UNRELIABLE: 'unreliable'>
    >>> estimate.messages[0]
    'chains are too few to judge their weights: 10, at least 25 are needed; try --chains 100.'
    """

    OK = "ok"
    UNRELIABLE = "unreliable"


class Message(enum.Enum):
    """What can be found, as (is it fatal, words, remedy)."""

    # of weights
    TOO_FEW_CHAINS = (
        True,
        "chains are too few to judge their weights: {size}, at least {needed} are needed",
        "try --chains {chains}",
    )
    HEAVY_TAIL = (
        True,
        "the weights are heavy-tailed: k-hat = {k:.2f}, limit {limit:.2f}; log Z is probably a lower "
        "bound and its error too small",
        "try {longer} or --two-sided",
    )
    FEW_EFFECTIVE_CHAINS = (
        True,
        "few chains carry the weight: ESS {ess:.1f} of {size}, at least {needed} are needed; log Z is "
        "probably a lower bound and its error too small",
        "try {longer} or --two-sided",
    )
    UNSEEN_TAIL = (
        True,
        "the largest weights were probably not drawn: the spread of the others foretells an ESS of "
        "{foretold:.1f} where {ess:.1f} came, and at least {needed} are needed; log Z is probably a lower "
        "bound and its error too small",
        "try {longer} or --two-sided",
    )
    WIDE_WEIGHTS = (
        False,
        "the log weights spread widely: variance {variance:.1f}, above 1; log Z may be a lower bound",
        "{longer} would narrow it",
    )
    MISSED_TARGET = (
        False,
        "the wanted standard error of {target:g} was missed: {std_err:.2g} came",
        "try {more}",
    )
    OUT_OF_TIME = (
        False,
        "the {limit:g} seconds allowed {done} of {wanted} chains",
        "more time would narrow the error",
    )
    # of islands
    TOO_FEW_ISLANDS = (
        True,
        "islands are too few to judge: {size}, at least {needed} are needed",
        "take more islands, or more chains",
    )
    FEW_EFFECTIVE_ISLANDS = (
        True,
        "few islands carry the weight: {ess:.1f} effective of {size}, at least {needed:.1f} are needed; "
        "log Z is probably a lower bound and its error too small",
        "try {longer}, or larger islands",
    )
    WIDE_ISLANDS = (
        True,
        "the islands' log means spread widely: variance {variance:.2f}, above {limit:g}; log Z is "
        "probably a lower bound and its error too small",
        "try {longer}, or larger islands",
    )
    # of two sides
    TOO_FEW_TWO_SIDED = (
        True,
        "chains are too few to join two sides: {forward} forward and {reverse} reverse, at least "
        "{needed} of each are needed",
        "try --chains {chains}",
    )
    LITTLE_OVERLAP = (
        True,
        "forward and reverse work hardly overlap: {forward:.1f} forward and {reverse:.1f} reverse "
        "chains meet, at least {needed} of each are needed",
        "try {longer}",
    )
    NEGATIVE_GAP = (
        True,
        "the reverse work lies below the forward work, by {size:.3g} ± {std_err:.2g}: the reverse "
        "draws are not from the target",
        "start the reverse chains from exact draws, or from longer chains at beta = 1",
    )
    UNEQUAL_WORK = (
        True,
        "forward and reverse work contradict each other ({z:+.1f} standard errors from Crooks's "
        "theorem): the reverse draws are not from the target",
        "start the reverse chains from exact draws, or from longer chains at beta = 1",
    )
    INEXACT_DRAWS = (
        False,
        "the reverse draws are not exact, so the upper side and the joint estimate are approximate: "
        "a mode that they miss shows nowhere",
        "compare with draws from another start",
    )
    FORWARD_IS_LOW = (
        False,
        "the forward chains alone give {forward:.4f}, which is {difference:.3g} lower: they miss a "
        "part of the target that the reverse draws hold",
        "trust the two sides together, or try {longer}",
    )

    # of replica exchange
    NO_ROUND_TRIPS = (
        True,
        "no replica went from the base to the target and back: the target may hold what none of them "
        "has seen, and log Z may be far off on either side",
        "try {longer}, more rungs or another base",
    )
    FEW_ROUND_TRIPS = (
        True,
        "few replicas went from the base to the target and back: {trips} round trips in {size} "
        "ensembles, at least {needed} are needed",
        "try {longer}, more rungs or another base",
    )
    UNEQUAL_HALVES = (
        True,
        "log Z moved between the halves of the last round, by {size:+.3g} ± {error:.2g}: the replicas "
        "have not settled",
        "try {longer}",
    )
    UNEQUAL_ROUNDS = (
        True,
        "log Z moved between the last two rounds, by {size:+.3g} ± {error:.2g}: the replicas have not "
        "settled",
        "try {longer}",
    )
    ENSEMBLES_REMEMBER = (
        True,
        "ensembles remember where they were: log Z of one part of the run and of the next correlate by "
        "{correlation:.2f} over ensembles, above {limit:.2f}; some have modes that others lack, and the "
        "error may be too small",
        "try {longer}, or another base",
    )
    EXCHANGE_IS_OFF = (
        True,
        "replica exchange is off the exact log Z, by {gap:+.3g} where its standard error is {error:.2g}",
        "try {longer}, more rungs or another base",
    )

    def __init__(self, is_fatal: bool, words: str, remedy: str):
        self.is_fatal, self.words, self.remedy = is_fatal, words, remedy

    def say(self, **values) -> str:
        """The sentence, with its numbers and its remedy."""
        return f"{self.words}; {self.remedy}.".format(**values)


Findings = Mapping[Message, str]
"""What was found, each kind with its sentence."""


class Found:
    """What every judgement tells of its findings."""

    findings: Findings

    @property
    def status(self) -> Status:
        """Unreliable where anything found is fatal."""
        return status_of(self.findings)

    @property
    def messages(self) -> tuple[str, ...]:
        """What was found, in words."""
        return tuple(self.findings.values())


def check_level(level: float) -> None:
    """Refuse what is no level of an interval."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}.")


def status_of(findings: Findings) -> Status:
    """Unreliable where anything found is fatal."""
    return Status.UNRELIABLE if any(kind.is_fatal for kind in findings) else Status.OK


def longer(num_steps: int | None) -> str:
    """Four times the steps, as an option where the present number is known."""
    return "four times the steps" if num_steps is None else f"--steps {4 * num_steps}"

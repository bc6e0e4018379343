"""May an estimate be trusted, why not, and what to do: every message that a judgement can give.

A message is a kind, its words and a remedy, where it has one of its own; what helps most depends on the
whole estimate and is told once (`advice.py`). A kind that is fatal makes the status `unreliable`; the
others only inform. Findings of all evidence are joined: none lifts another's verdict.
"""

import enum
from collections.abc import Mapping

__all__ = ["Findings", "Found", "Message", "Status", "against_exact", "check_level", "status_of"]


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
    ...     random_rbm(4, 6), base="uniform", num_steps=100, num_chains=10, second_opinion=False
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
        "",
    )
    FEW_EFFECTIVE_CHAINS = (
        True,
        "few chains carry the weight: ESS {ess:.1f} of {size}, at least {needed} are needed; log Z is "
        "probably a lower bound and its error too small",
        "",
    )
    UNSEEN_TAIL = (
        True,
        "the largest weights were probably not drawn: the spread of the others foretells an ESS of "
        "{foretold:.1f} where {ess:.1f} came, and at least {needed} are needed; log Z is probably a lower "
        "bound and its error too small",
        "",
    )
    WIDE_WEIGHTS = (
        False,
        "the log weights spread widely: variance {variance:.1f}, above 1; log Z may be a lower bound",
        "",
    )
    EXCHANGE_IS_CHEAPER = (
        False,
        "the pilot predicts a variance of log w of {predicted:.2g}: above 1, replica exchange has had the "
        "smaller error at equal cost",
        "try --method exchange",
    )
    HOPELESS_WEIGHTS = (
        True,
        "the log weights spread over thousands of nats: variance {variance:.3g}; what the largest of them "
        "say is chance",
        "",
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
        "larger islands may do better",
    )
    WIDE_ISLANDS = (
        True,
        "the islands' log means spread widely: variance {variance:.2f}, above {limit:g}; log Z is "
        "probably a lower bound and its error too small",
        "larger islands may do better",
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
        "",
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
    RELATED_DRAWS = (
        True,
        "the reverse draws may still resemble the {ancestors} forward chains that they come from ({why}), "
        "so the two sides do not mend what the forward chains are unreliable for",
        "start the reverse chains from exact draws",
    )
    BEYOND_REACH = (
        True,
        "reverse draws lie where forward chains never go: {share:.1%} of them, where less than one such "
        "run in a thousand would see a forward chain; how much of the target is there rests on the draws "
        "alone, and they are not exact",
        "start the reverse chains from exact draws",
    )
    WIDE_WORK = (
        True,
        "the work spreads too widely to join two sides: variance {variance:.3g} of the {side} work, and "
        "{limit:g} is too much",
        "",
    )
    FORWARD_IS_LOW = (
        False,
        "the forward chains alone give log Z = {forward:.4f}, which is {difference:.3g} lower: they miss a "
        "part of the target that the reverse draws hold",
        "trust the two sides together",
    )

    UNTRUSTED_DRAWS = (
        True,
        "the reverse draws come from replica exchange that cannot be trusted: {why}",
        "",
    )
    # of a second opinion, and of the exact value
    SECOND_IS_HIGHER = (
        True,
        "the second opinion, from the {base} base, is higher by {difference:.3g} ± {noise:.2g}: "
        "{second:.4f} where the first is {first:.4f}; both can only be too low, so the "
        "higher one is reported, as a lower bound",
        "",
    )
    SECOND_IS_LOWER = (
        True,
        "the second opinion, from the {base} base, is lower by {difference:.3g} ± {noise:.2g}: "
        "{second:.4f} where the first is {first:.4f}; one of them misses something, "
        "and the higher one is the better bound",
        "",
    )
    MISSED_REGION = (
        True,
        "chains of the second opinion, from the {base} base, ended where no chain of the first comes: "
        "{missed:.0f} % of the mass by their weights; log Z is probably too low",
        "",
    )
    CONTRADICTS_EXACT = (
        True,
        "the exact value is {exact:.4f}, and the estimate is off by {gap:+.4g} ± {std_err:.2g}: its chains "
        "miss something that the weights do not show",
        "use the exact value",
    )

    # of replica exchange
    NO_ROUND_TRIPS = (
        True,
        "no replica went from the base to the target and back: the target may hold what none of them "
        "has seen, and log Z may be far off on either side",
        "more sweeps, more rungs or another base may help",
    )
    FEW_ROUND_TRIPS = (
        True,
        "few replicas went from the base to the target and back: {trips} round trips in {size} "
        "ensembles, at least {needed} are needed",
        "more sweeps, more rungs or another base may help",
    )
    UNEQUAL_HALVES = (
        True,
        "log Z moved between the halves of the last round, by {size:+.3g} ± {error:.2g}: the replicas "
        "have not settled",
        "more sweeps may help",
    )
    UNEQUAL_ROUNDS = (
        True,
        "log Z moved between the last two rounds, by {size:+.3g} ± {error:.2g}: the replicas have not "
        "settled",
        "more sweeps may help",
    )
    ENSEMBLES_REMEMBER = (
        True,
        "ensembles remember where they were: log Z of one part of the run and of the next correlate by "
        "{correlation:.2f} over ensembles, above {limit:.2f}; some have modes that others lack, and the "
        "error may be too small",
        "more sweeps or another base may help",
    )

    def __init__(self, is_fatal: bool, words: str, remedy: str):
        self.is_fatal, self.words, self.remedy = is_fatal, words, remedy

    def say(self, **values) -> str:
        """The sentence, with its numbers and its remedy, if it has one of its own."""
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.words}{remedy}.".format(**values)


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


_MOST_ERRORS = 4.0
_LEAST_GAP = 0.01  # nats: below, rounding and chance


def against_exact(log_z: float, std_err: float, exact: float | None) -> dict[Message, str]:
    """What the exact value says of an estimate, where it is known and contradicts."""
    if exact is None or abs(log_z - exact) <= max(_MOST_ERRORS * std_err, _LEAST_GAP):
        return {}
    kind = Message.CONTRADICTS_EXACT
    return {kind: kind.say(exact=exact, gap=log_z - exact, std_err=std_err)}


def check_level(level: float) -> None:
    """Refuse what is no level of an interval."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}.")


def status_of(findings: Findings) -> Status:
    """Unreliable where anything found is fatal."""
    return Status.UNRELIABLE if any(kind.is_fatal for kind in findings) else Status.OK

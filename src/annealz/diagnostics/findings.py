"""Findings: what is known for or against an estimate, with its numbers and what would help.

A kind of finding has its words and, where it is fixed, its remedy; one that is fatal makes the status
`unreliable`, the others only inform. Remedies are data: Python and the command line write the settings
that they change each in its own way (`in_python`, `in_options`).
"""

import dataclasses
import enum
import shlex
from collections.abc import Callable, Iterable, Mapping
from string import Formatter
from typing import Any

Writer = Callable[[str, Any], str]
"""How a medium writes a setting, from its name in Python and its value."""


@dataclasses.dataclass(frozen=True)
class Remedy:
    """Settings by their names in Python, with the values to try; None leaves a setting as it is."""

    exact: bool | None = None
    data: bool | None = None  # data are needed, which only the user has
    base: str | None = None
    method: str | None = None
    num_steps: int | None = None
    num_chains: int | None = None
    num_live: int | None = None  # of nested sampling
    num_inner_steps: int | None = None  # of nested sampling
    target_std_err: float | None = None
    max_seconds: int | None = None
    conservative: bool | None = None  # of a log-likelihood
    map: str | None = None  # of a model's file; may name numbers of the finding, in braces
    words: str = ""  # what follows the settings in a sentence, or all there is

    @property
    def settings(self) -> dict[str, Any]:
        """What to change."""
        settings = {name: value for name, value in vars(self).items() if value is not None}
        del settings["words"]
        return settings

    @property
    def is_ready(self) -> bool:
        """Whether a run can be started with it as it is."""
        return bool(self.settings) and not self.data

    def in_words(self, write: Writer) -> str:
        """The settings as the medium writes them, and the words."""
        written = [write(name, value) for name, value in self.settings.items()]
        return ", ".join(part for part in (*written, self.words) if part)


_LOW = "log Z is probably underestimated and its error too small"
_EXACT_DRAWS = "start the reverse chains from exact draws"
_BETTER_DRAWS = "start the reverse chains from exact draws, or from longer chains at beta = 1"
_LARGER_ISLANDS = "larger islands may do better"
_MORE_SWEEPS = "more sweeps may help"
_MORE_TEMPERATURES = "more sweeps, more temperatures or another base may help"
_NESTED = Remedy(method="nested", words="which can")
_MORE_STEPS = "take more steps"
_MORE_OF_ALL = "take more chains or steps"


_Given = tuple[bool, str, Remedy | str | None]


def _fatal(words: str, remedy: Remedy | str | None = None) -> _Given:
    return True, words, remedy


def _mention(words: str, remedy: Remedy | str | None = None) -> _Given:
    return False, words, remedy


class Kind(enum.Enum):
    """A kind of finding: whether it is fatal, its words, and a remedy or the words of one."""

    # of weights
    TOO_FEW_CHAINS = _fatal(
        "chains are too few to diagnose their weights: {size}, at least {needed} are needed"
    )
    HEAVY_TAIL = _fatal(
        f"the weights are heavy-tailed: k-hat = {{k:.2f}}, limit {{limit:.2f}}; {_LOW}"
    )
    FEW_EFFECTIVE_CHAINS = _fatal(
        f"few chains carry the weight: ESS {{ess:.1f}} of {{size}}, at least {{needed}} are needed; {_LOW}"
    )
    UNSEEN_TAIL = _fatal(
        "the largest weights were probably not drawn: the spread of the others predicts an ESS of "
        f"{{predicted:.1f}}, those drawn give {{ess:.1f}}, and at least {{needed}} are needed; {_LOW}"
    )
    WIDE_WEIGHTS = _mention(
        "the log weights spread widely: variance {variance:.1f}, above 1; log Z may be underestimated"
    )
    EXCHANGE_IS_CHEAPER = _mention(
        "the pilot predicts a variance of log w of {predicted:.2g}: above 1, replica exchange has had the "
        "smaller error at equal cost",
        Remedy(method="exchange"),
    )
    HOPELESS_WEIGHTS = _fatal(
        "the log weights spread over thousands of nats: variance {variance:.3g}; the largest of them are "
        "chance"
    )
    MISSED_TARGET = _mention(
        "the wanted standard error of {target:g} was missed: it is {std_err:.2g}",
        "try more steps",
    )
    OUT_OF_TIME = _mention(
        "time limit of {limit:g} s reached after {done} of {wanted} chains",
        "more time would narrow the error",
    )
    SHORTENED = _mention("the time limit of {limit:g} s left {steps} of {wanted} steps")
    SLOW_START = _mention(
        "pilots and compilation took {seconds:.1f} s, more than the time limit of {limit:g} s",
        "the same again takes less, because compiled programs are kept",
    )
    UNCONFIRMED = _fatal(
        "the time limit of {limit:g} s left no time for a second opinion from another base: nothing shows "
        "that chains found all of the mass",
        "give more time; the same again takes less, because compiled programs are kept",
    )
    UNPROBED = _fatal(
        "the weights of the second opinion are unreliable, and the time limit of {limit:g} s left no time "
        "to compare its final states with the first run: nothing shows that chains found all of the mass",
        "give more time; the same again takes less, because compiled programs are kept",
    )
    FAILED_CHECK = _fatal(
        "the second opinion could not be computed, so that nothing confirms the estimate: {why}",
        "look at the log density where the chains of the second base go, or leave the second opinion out",
    )
    # of islands
    TOO_FEW_ISLANDS = _fatal(
        "islands are too few to diagnose: {size}, at least {needed} are needed",
        "take more islands, or more chains",
    )
    FEW_EFFECTIVE_ISLANDS = _fatal(
        "few islands carry the weight: {ess:.1f} effective of {size}, at least {needed:.1f} are needed; "
        + _LOW,
        _LARGER_ISLANDS,
    )
    WIDE_ISLANDS = _fatal(
        f"the islands' log means spread widely: variance {{variance:.2f}}, above {{limit:g}}; {_LOW}",
        _LARGER_ISLANDS,
    )
    # of two sides
    TOO_FEW_TWO_SIDED = _fatal(
        "chains are too few to join two sides: {forward} forward and {reverse} reverse, at least "
        "{needed} of each are needed"
    )
    LITTLE_OVERLAP = _fatal(
        "forward and reverse work hardly overlap: {forward:.1f} forward and {reverse:.1f} reverse "
        "chains meet, at least {needed} of each are needed"
    )
    NEGATIVE_GAP = _fatal(
        "the reverse work lies below the forward work, by {size:.3g} ± {std_err:.2g}: the reverse "
        "draws are not from the target",
        _BETTER_DRAWS,
    )
    UNEQUAL_WORK = _fatal(
        "forward and reverse work contradict each other ({z:+.1f} standard errors from Crooks's "
        "theorem): the reverse draws are not from the target",
        _BETTER_DRAWS,
    )
    INEXACT_DRAWS = _mention(
        "the reverse draws are not exact, so the upper bound and the joint estimate are approximate: "
        "a mode that the draws miss cannot be seen",
        "compare with draws from another start",
    )
    RELATED_DRAWS = _fatal(
        "the reverse draws may still resemble the {ancestors} forward chains that they come from ({why}), "
        "so they do not make up for forward chains that are unreliable",
        _EXACT_DRAWS,
    )
    BEYOND_REACH = _fatal(
        "reverse draws lie where forward chains never go: {share:.1%} of them, where fewer than one run "
        "in a thousand would have a forward chain; the mass of that region is known from the draws only, "
        "and they are not exact",
        _EXACT_DRAWS,
    )
    WIDE_WORK = _fatal(
        "the work spreads too widely to join two sides: variance {variance:.3g} of the {side} work, and "
        "{limit:g} is too much"
    )
    FORWARD_IS_LOW = _mention(
        "the forward estimate is {forward:.4f}, which is {difference:.3g} lower: it misses a part of the "
        "target that the reverse draws hold",
        "trust the two sides together",
    )
    UNTRUSTED_DRAWS = _fatal(
        "the reverse draws come from replica exchange that cannot be trusted: {why}"
    )
    # of a density, by its pilot
    IMPROPER = _fatal(
        "the density does not fall far out along {direction}: it may have no finite integral, and log Z "
        "then means nothing",
        "check priors that are flat or missing",
    )
    MISSED_MODE = _fatal(
        "a mode at {place} holds {share:.0f} % of the mass, and no chain of the pilot came there: "
        "annealing cannot find it",
        _NESTED,
    )
    TWO_KINDS = _fatal(
        "chains at the target fall into two kinds of states, {gap:.1f} nats apart, and do not change "
        "between them: a transition of first order, which annealing cannot follow",
        _NESTED,
    )
    MISSED_NECK = _fatal(
        "{share:.0f} % of the mass lies {side} {name} = {place:.3g}, by Laplace's approximation along it, "
        "and chains of the pilot have {own:.0f} % there: a neck, where others have no room to move",
        "a non-centred form of the density opens it",
    )
    SLOW_CHAINS = _fatal(
        "chains mix slowly along the path: the pilot predicts a variance of log w of {predicted:.2g} over "
        "{steps} steps, above 1, whatever the weights show",
        "more steps, or variables that depend less on each other, may help",
    )
    ROUNDED_DENSITY = _fatal(
        "the log density is known to {rounding:.2g} only in float32, more than a third of the error of "
        "{std_err:.2g}",
        "evaluate it in double precision, by dtype=float64",
    )
    # of a factor graph
    BLOCKED_MOVES = _mention(
        "zeros of the factors leave {share:.0f} % of the variables no other state, where chains of the "
        "pilots ended: single moves may not connect all states, and weights do not show a part that no "
        "chain has reached",
        "compare with the exact value where contraction is possible, or with another base",
    )
    ZERO_WEIGHT = _fatal(
        "no chain ended in a state of positive weight: log Z is unknown, and may be -inf",
        "try more steps, or check whether factors contradict each other",
    )
    SMOOTHED_MEANS = _mention(
        "of the {total} means of the data {count} are 0 or 1: all are smoothed, as those of "
        "{rows:,} rows"
    )
    UNUSED_MEANS = _mention(
        "the model's file holds {name}, as many numbers from 0 to 1 as visible units, and they are not "
        "used",
        Remedy(map="visible_means={name}", words="if these are the means of the data"),
    )
    GUESSED_NAMES = _mention(
        "the names of the arrays in the model's file were guessed: {names}",
        Remedy(map="{names}", words="or another one where this is wrong"),
    )
    # of a second opinion, and of the exact value
    SECOND_IS_HIGHER = _fatal(
        "the second opinion, from the {base} base, is higher by {difference:.3g} ± {noise:.2g}: "
        "{second:.4f} where the first is {first:.4f}; both can only be too low, so the "
        "higher one is reported, as a lower bound"
    )
    SECOND_IS_LOWER = _fatal(
        "the second opinion, from the {base} base, is lower by {difference:.3g} ± {noise:.2g}: "
        "{second:.4f} where the first is {first:.4f}; one of them misses something, "
        "and the higher one is the better bound"
    )
    MISSED_REGION = _fatal(
        "chains of the second opinion, from the {base} base, ended where no chain of the first comes: "
        "{missed:.0f} % of the mass by their weights; log Z is probably too low"
    )
    CONTRADICTS_EXACT = _fatal(
        "the exact value is {exact:.4f}, and the estimate is off by {gap:+.4g} ± {std_err:.2g}: its chains "
        "miss something that the weights do not show",
        "use the exact value",
    )
    # of a log-likelihood
    LIKELIHOOD_IS_HIGH = _fatal(
        "the log-likelihood is likely an upper bound, because log Z is likely too low", _MORE_STEPS
    )
    LIKELIHOOD_IS_OFF = _fatal(
        "the log-likelihood cannot be trusted, because the two sides of log Z do not agree",
        _MORE_STEPS,
    )
    BOUNDS_NOTHING = _mention(
        "the conservative log-likelihood lies above the one that it should bound: annealing fits these "
        "data better than the model does, and bounds nothing here"
    )
    # of an entropy
    FEW_EFFECTIVE_TERMS = _fatal(
        "few chains carry the mean log density: ESS {ess:.1f} of {size}, at least {needed} are needed; the "
        "entropy may be off on either side, and its error too small",
        _MORE_OF_ALL,
    )
    HEAVY_TERMS = _fatal(
        "the terms of the mean log density are heavy-tailed: k-hat = {k:.2f}, limit {limit:.2f}; the "
        "entropy may be off on either side, and its error too small",
        _MORE_OF_ALL,
    )
    # of replica exchange
    NO_ROUND_TRIPS = _fatal(
        "no replica went from the base to the target and back: the target may have modes that none of "
        "them has seen, and log Z may be far off on either side",
        _MORE_TEMPERATURES,
    )
    FEW_ROUND_TRIPS = _fatal(
        "few replicas went from the base to the target and back: {trips} round trips in {size} "
        "ensembles, at least {needed} are needed",
        _MORE_TEMPERATURES,
    )
    UNEQUAL_HALVES = _fatal(
        "log Z moved between the halves of the last round, by {size:+.3g} ± {error:.2g}: the replicas "
        "have not settled",
        _MORE_SWEEPS,
    )
    UNEQUAL_ROUNDS = _fatal(
        "log Z moved between the last two rounds, by {size:+.3g} ± {error:.2g}: the replicas have not "
        "settled",
        _MORE_SWEEPS,
    )
    ENSEMBLES_REMEMBER = _fatal(
        "ensembles remember where they were: log Z of one part of the run and of the next correlate by "
        "{correlation:.2f} over ensembles, above {limit:.2f}; some have modes that others lack, and the "
        "error may be too small",
        "more sweeps or another base may help",
    )

    # of nested sampling
    RUNS_DISAGREE = _fatal(
        "independent runs disagree: log Z of {size} runs differs by up to {spread:.3g} ± {error:.2g}; live "
        "points have lost modes, or their walks are too short"
    )
    UNREACHED_PEAK = _fatal(
        "uphill from live points the likelihood rises {gap:.1f} nats above the highest of them, and they "
        "did not come there: a mode is lost"
    )
    OUT_OF_EVALUATIONS = _fatal(
        "the limit of {limit:,} evaluations was reached while live points held {share:.0%} of the evidence "
        "so far: log Z may be far too low"
    )
    STILL_RISING = _fatal(
        "the likelihood still rises where the prior mass has shrunk by {shrinkage:.0f} nats, as far as "
        "positions can be resolved: the density may be improper, unbounded, or wider than the prior",
        "check the density, or take a wider prior",
    )
    FAILED_SLICES = _fatal(
        "slices found no new point: {failed:,} of {size:,}; walks stay where they are, and log Z may be "
        "off on either side"
    )
    NAN_LIKELIHOOD = _fatal(
        "the density was NaN at {size:,} positions, which were taken as a likelihood of zero",
        "return a number or -inf everywhere",
    )

    def __init__(self, is_fatal: bool, words: str, remedy: Remedy | str | None):
        self.is_fatal, self.words = is_fatal, words
        self.remedy = Remedy(words=remedy) if isinstance(remedy, str) else remedy
        self.names = frozenset(name for _, name, _, _ in Formatter().parse(words) if name)


@dataclasses.dataclass(frozen=True)
class Finding:
    """What was found, with which numbers, and what would help."""

    kind: Kind
    numbers: Mapping[str, Any]
    """By the names that the words of the kind have for them."""
    remedy: Remedy | None = None

    def __post_init__(self):
        if self.numbers.keys() != self.kind.names:
            wanted, given = sorted(self.kind.names), sorted(self.numbers)
            raise ValueError(f"{self.kind.name} has the numbers {wanted}, got {given}.")

    @classmethod
    def of(cls, kind: Kind, remedy: Remedy | None = None, **numbers: Any) -> "Finding":
        """A finding with this remedy, or with that of its kind."""
        remedy = remedy or kind.remedy
        if remedy is not None and remedy.map is not None:
            remedy = dataclasses.replace(remedy, map=remedy.map.format(**numbers))
        return cls(kind, numbers, remedy)

    def to_record(self) -> dict[str, Any]:
        """Kind and numbers as values of JSON."""
        return {"kind": self.kind.name, "numbers": dict(self.numbers)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Finding":
        """The finding of such a record, with the remedy of its kind."""
        try:
            finding = cls.of(Kind[record["kind"]], **record["numbers"])
            finding.what  # noqa: B018 - numbers of another kind cannot be written
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError("a finding of the pilots is damaged.") from error
        return finding

    @property
    def what(self) -> str:
        """What was found, with its numbers."""
        return self.kind.words.format(**self.numbers)

    def what_to_do(self, write: Writer) -> str:
        """The remedy; empty if there is none."""
        if self.remedy is None:
            return ""
        return f"{'try ' if self.remedy.settings else ''}{self.remedy.in_words(write)}"

    def in_words(self, write: Writer) -> str:
        """One sentence."""
        return "; ".join(part for part in (self.what, self.what_to_do(write)) if part) + "."


Findings = Mapping[Kind, Finding]
"""What was found, by kind."""


def by_kind(findings: Iterable[Finding]) -> dict[Kind, Finding]:
    """The findings, in their order."""
    return {finding.kind: finding for finding in findings}


@dataclasses.dataclass(frozen=True)
class Advice:
    """Remedies for one sentence, and the one to try next."""

    remedies: tuple[Remedy, ...] = ()
    next_try: Remedy | None = None
    """The first with which a run can be started as it is; None if there is no such remedy."""

    def in_words(self, write: Writer) -> str:
        """One sentence; empty without remedies."""
        words = ", or ".join(remedy.in_words(write) for remedy in self.remedies)
        return f"to do better: {words}." if words else ""


@dataclasses.dataclass(frozen=True)
class Doubt:
    """Why one of several estimates cannot be trusted."""

    name: str
    """The model that it is of."""
    why: "Note"

    def in_words(self, write: Writer) -> str:
        """One sentence."""
        (why,) = messages_of([self.why], write)
        return f"log Z of {self.name} cannot be trusted: {why.rstrip('.')}."


Note = Finding | Advice | Doubt | str


def messages_of(notes: Iterable[Note], write: Writer) -> tuple[str, ...]:
    """A sentence for each, with settings as the medium writes them."""
    return tuple(note if isinstance(note, str) else note.in_words(write) for note in notes)


def in_python(name: str, value: Any) -> str:
    """Write a setting as Python does: num_steps=400."""
    if name == "exact":
        return "annealz.exact_log_z"
    if name == "data":
        return "data=DATA"
    if name == "map":
        return f'annealz.load_model(file, map="{value}")'
    return f'{name}="{value}"' if isinstance(value, str) else f"{name}={value}"


def option_of(name: str) -> str:
    """Return the option of a setting: --steps of num_steps."""
    return f"--{name.removeprefix('num_').replace('_', '-')}"


def option_words(name: str, value: Any) -> list[str]:
    """The option and its value; DATA stands for a file that only the user has."""
    option = option_of(name)
    if name == "data":
        return [option, "DATA"]
    if isinstance(value, bool):
        return [option if value else option.replace("--", "--no-", 1)]
    if isinstance(value, list):
        return [option, ",".join(str(one) for one in value)]
    return [option, str(value)]


def in_options(name: str, value: Any) -> str:
    """--steps 400."""
    return shlex.join(option_words(name, value))

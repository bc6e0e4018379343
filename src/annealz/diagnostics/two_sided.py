"""Can a pair of forward and reverse runs be trusted?

BAR joins them (`bar.py`), and the means of their work bound the truth:

    E_F[W] <= log Z_B / Z_A <= E_R[W],     gap = E_R[W] - E_F[W] >= 0

by Jensen's inequality on either side. The bounds are of expectations: each mean has a standard error. The
gap is the sum of two relative entropies (Grosse, Ancha & Roy 2016), about Var[W] for slow annealing. A gap
that is negative beyond its noise cannot be, unless the reverse draws are not from the target.

With exact reverse draws the pair sees what forward weights cannot: a mode that no forward chain reached
comes with the draws, as reverse work far above all forward work. What is asked for:

    10 chains per side          at 10 the interval still covered in 0.93 and more (17 laws of work)
    5 effective chains per side fewer, and nothing in the work confirms the error: the robust error
                                covered in 0.62 to 0.84 there, the information's in 0.94 to 0.97
    |crooks_z| <= 4             right pairs went beyond in at most 0.3 % from 100 per side,
                                0.9 % from 10
    gap >= -4 standard errors   the same question without overlap; it alone sees a wrong sign
                                between sides that are far apart

    variance < 1000             of the work of either side

crooks_z has little power against a mode that the draws miss: with 0.3 of the target's mass missed and
BAR 0.12 to 0.23 low, its mean was -4.5 and -2.7 (1000 chains per side). So draws that are not exact are
always mentioned, and do not lift what the forward weights say of themselves: an unreliable forward verdict
is kept, unless the draws come from the forward run and have forgotten their ancestors (`ancestry.py`, which
also gives the error then).

Draws that are not exact may also hold a part of the target that forward chains never reach. By Crooks's
theorem a forward chain has reverse work above D + t with a probability below e^-t, so that work above
D + log N_F + 7 is seen in one run of 1000. With a share q of the draws there, log Z is log 1/(1 - q) above
what the forward chains can confirm. Exact draws have the right q. Others have it only if they mixed between
both parts, which nothing shows: so that must be less than the standard error.

    eight schools, centred (a funnel),     q = 0.20 to 0.52, and log Z 1.7 to 2.5 low, which was ok: the
    6 runs of 200 to 300 chains            other draws overlapped well, so that no effective number was
                                           small, and ancestors were forgotten; the gap was 14 to 640
    ferromagnetic and random RBMs          never beyond the error in 1020 runs

The runs of `ancestry.py`, draws approximate: share that is ok, and share that is ok while the 95 % interval
misses log Z, with reverse chains taken as independent, and now:

                                                                independent         now
    6 ferromagnets that keep their phase (r = 0.68 to 0.85)     1.00    0.50     0.01    0.01
    10 x 12, J = 0.6 (r = 0.11)                                 1.00    0.18     0.62    0.07
    20 x 25, J = 0.25 (r = 0.23)                                1.00    0.18     0.02    0.00
    20 x 25, J = 0.22 (r = 0.00)                                1.00    0.05     0.97    0.05
    8 random RBMs (r = -0.02 to 0.02)                           1.00    0.07     0.99    0.07

A forward estimate that is lower than BAR by 4 of their joint standard errors is mentioned too.
"""

import dataclasses

import numpy as np

from annealz.core.numerics import interval_text, with_error
from annealz.core.weights import delta_std_err, log_mean
from annealz.diagnostics.ancestry import Kinship, kinship, related_std_err
from annealz.diagnostics.bar import Bar, bar
from annealz.diagnostics.diagnostics import Judgement, judge
from annealz.diagnostics.findings import Finding, Findings, Kind, Remedy, by_kind
from annealz.diagnostics.sheet import Sheet, Shown
from annealz.diagnostics.status import Found, Status, normal_interval, status_of

_MIN_CHAINS = 10
_MIN_EFFECTIVE = 5
_MAX_Z = 4
_MAX_VARIANCE = 1000
_REACH = 7  # nats beyond log N_F: one run in 1000


@dataclasses.dataclass(frozen=True)
class Sandwich:
    """Lower and upper bound of log Z_B / Z_A in expectation, with their standard errors."""

    lower: float
    lower_std_err: float
    upper: float
    upper_std_err: float

    @property
    def gap(self) -> float:
        return self.upper - self.lower

    @property
    def gap_std_err(self) -> float:
        return float(np.hypot(self.lower_std_err, self.upper_std_err))


def sandwich(forward: np.ndarray, reverse: np.ndarray) -> Sandwich:
    """Means of the work of forward and of reverse chains."""
    return Sandwich(*_mean(forward), *_mean(reverse))


def _mean(work) -> tuple[float, float]:
    """Mean and its standard error; infinite for one chain."""
    work = np.asarray(work, np.float64)
    std_err = work.std(ddof=1) / np.sqrt(work.size) if work.size > 1 else np.inf
    return float(work.mean()), float(std_err)


@dataclasses.dataclass(frozen=True, repr=False)
class TwoSided(Found, Shown):
    """log Z_B / Z_A from forward and reverse work, and what to think of it.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> options = {"schedule": "linear", "num_steps": 100, "num_chains": 100}
    >>> sides = annealz.estimate_log_z(random_rbm(4, 6), two_sided=True, **options).two_sided
    >>> sides.status.value, sides.lower < sides.upper
    ('ok', True)
    """

    bar: Bar
    sandwich: Sandwich
    forward_log_mean: float
    """log mean w of the forward chains: biased low."""
    findings: Findings
    std_err: float
    """Standard error of `log_ratio`; where the draws come from forward chains, with their kinship in it."""
    kinship: Kinship | None = None
    """How alike reverse chains of one forward chain are, where the draws come from forward chains."""

    @property
    def log_ratio(self) -> float:
        """BAR's log Z_B / Z_A."""
        return self.bar.log_ratio

    @property
    def lower(self) -> float:
        """Mean forward work, at most log Z_B / Z_A, up to `sandwich.lower_std_err`."""
        return self.sandwich.lower

    @property
    def upper(self) -> float:
        """Mean reverse work, at least log Z_B / Z_A, up to `sandwich.upper_std_err`."""
        return self.sandwich.upper

    @property
    def gap(self) -> float:
        """`upper - lower`."""
        return self.sandwich.gap

    @property
    def overlap(self) -> float:
        """Between 0, where the two sides' work never meets, and 1."""
        return self.bar.overlap

    def sheet(self) -> Sheet:
        """Return what it shows."""
        headline = ("log Z_B / Z_A", with_error(self.log_ratio, self.std_err))
        rows = [
            headline,
            ("95 % interval", interval_text(self.interval())),
            ("mean forward work", with_error(self.lower, self.sandwich.lower_std_err)),
            ("mean reverse work", with_error(self.upper, self.sandwich.upper_std_err)),
            ("gap", with_error(self.gap, self.sandwich.gap_std_err)),
            ("overlap", f"{self.overlap:.4f}"),
            ("forward estimate", f"{self.forward_log_mean:.4f}"),
            ("status", self.status.value),
        ]
        return self.described(headline, rows, notes=tuple(self.findings.values()))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of log Z_B / Z_A."""
        return normal_interval(self.log_ratio, self.std_err, level)


def judge_two_sided(
    forward: np.ndarray,
    reverse: np.ndarray,
    *,
    are_exact: bool,
    log_z0: float = 0.0,
    ancestors: np.ndarray | None = None,
    are_forward: bool = True,
    forward_judgement: Judgement | None = None,
) -> TwoSided:
    """Return log Z_B / Z_A from two sides, with its error and its status.

    Parameters
    ----------
    forward : (chains,), log w of forward chains
    reverse : (chains,), -log w of reverse chains
    are_exact : whether the reverse chains started from independent exact draws of the target
    log_z0 : log Z_A, so that messages can state log Z
    ancestors : (reverse chains,), which forward chain each reverse chain comes from; of draws that are not
        exact. Without them an unreliable forward verdict is kept.
    are_forward : False where ancestors are independent draws from elsewhere instead, such as a trace: the
        error counts their copies as relatives, and an unreliable forward verdict is kept all the same.
    forward_judgement : the diagnosis of the forward work, if it is known already

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> low, high = generator.normal([[-0.5], [0.5]], 1, (2, 200))  # of log ratio 0
    >>> sides = annealz.judge_two_sided(low, high, are_exact=True)
    >>> sides.status.value, abs(sides.log_ratio) < 4 * sides.std_err
    ('ok', True)
    """
    forward, reverse = np.asarray(forward, np.float64), np.asarray(reverse, np.float64)
    joined, bounds = bar(forward, reverse), sandwich(forward, reverse)
    alone, alone_std_err = log_mean(forward), delta_std_err(forward)
    kin, std_err, copies = None, joined.std_err, 1.0
    if not are_exact and ancestors is not None:
        kin = kinship(reverse, ancestors)
        std_err = max(std_err, related_std_err(forward, reverse, ancestors))
        if not are_forward:
            kin, copies = None, _design_effect(kin, reverse.size)
    found: list[Finding] = []
    if min(forward.size, reverse.size) < _MIN_CHAINS:
        more = Remedy(num_chains=10 * _MIN_CHAINS)
        sizes = {"forward": forward.size, "reverse": reverse.size}
        found.append(Finding.of(Kind.TOO_FEW_TWO_SIDED, more, **sizes, needed=_MIN_CHAINS))
    elif min(joined.effective) < _MIN_EFFECTIVE or joined.std_err == np.inf:
        meet = dict(zip(("forward", "reverse"), joined.effective, strict=True))
        found.append(Finding.of(Kind.LITTLE_OVERLAP, **meet, needed=_MIN_EFFECTIVE))
    found += _of_work(forward, reverse, joined, bounds, copies)
    if not are_exact:
        share = float(np.mean(reverse - joined.log_ratio > np.log(forward.size) + _REACH))
        if -np.log1p(-min(share, 0.999)) > std_err:
            found.append(Finding.of(Kind.BEYOND_REACH, share=share))
        found += _kept(forward_judgement or judge(forward), kin)
        found.append(Finding.of(Kind.INEXACT_DRAWS))
    difference, is_ok = joined.log_ratio - alone, status_of(by_kind(found)) is Status.OK
    if is_ok and difference > _MAX_Z * np.hypot(std_err, alone_std_err):
        low = Finding.of(Kind.FORWARD_IS_LOW, forward=log_z0 + alone, difference=difference)
        found.append(low)
    return TwoSided(joined, bounds, alone, by_kind(found), std_err, kin)


def _design_effect(kin: Kinship, size: int) -> float:
    """Return the factor by which copies of draws widen the error of mean work: sqrt(1 + (copies - 1) r)."""
    correlation = np.clip(np.nan_to_num(kin.correlation, nan=0.0), 0, 1)
    return float(np.sqrt(1 + (size / kin.num_ancestors - 1) * correlation))


def _of_work(
    forward: np.ndarray, reverse: np.ndarray, joined: Bar, bounds: Sandwich, copies: float = 1.0
) -> list[Finding]:
    """Return what the work of either side, or of the two together, shows to be wrong."""
    found: list[Finding] = []
    variance, side = max((forward.var(), "forward"), (reverse.var(), "reverse"))
    if variance >= _MAX_VARIANCE:
        found.append(Finding.of(Kind.WIDE_WORK, side=side, variance=variance, limit=_MAX_VARIANCE))
    gap_std_err, crooks_z = copies * bounds.gap_std_err, joined.crooks_z / copies
    if bounds.gap < -_MAX_Z * gap_std_err:
        found.append(Finding.of(Kind.NEGATIVE_GAP, size=-bounds.gap, std_err=gap_std_err))
    elif abs(crooks_z) > _MAX_Z:
        found.append(Finding.of(Kind.UNEQUAL_WORK, z=crooks_z))
    return found


def _kept(judgement: Judgement, kin: Kinship | None) -> list[Finding]:
    """Return what makes the forward verdict unreliable, unless the draws have forgotten it."""
    if judgement.status is Status.OK or (kin is not None and kin.is_forgotten):
        return []
    kept = [finding for kind, finding in judgement.findings.items() if kind.is_fatal]
    if kin is not None:
        kept.append(Finding.of(Kind.RELATED_DRAWS, ancestors=kin.num_ancestors, why=kin.in_words))
    return kept

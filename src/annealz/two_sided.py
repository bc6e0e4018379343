"""Can a pair of forward and reverse runs be trusted?

BAR joins them (`bar.py`), the means of their work enclose the truth (`sandwich.py`). With exact
reverse draws the pair sees what forward weights cannot: a mode that no forward chain reached comes
with the draws, as reverse work far above all forward work. What is asked for:

    10 chains a side            at 10 the interval still covered in 0.93 and more (17 laws of work)
    5 effective chains a side   fewer, and nothing in the work confirms the error: the robust error
                                covered in 0.62 to 0.84 there, the information's in 0.94 to 0.97
    |crooks_z| <= 4             right pairs went beyond in at most 0.3 % from 100 chains a side,
                                0.9 % from 10
    gap >= -4 standard errors   the same question without overlap; it alone sees a wrong sign
                                between sides that are far apart

crooks_z has little power against a mode that the draws miss: with 0.3 of the target's mass missed and
BAR 0.12 to 0.23 low, its mean was -4.5 and -2.7 (1000 chains a side). So draws that are not exact are
always mentioned.

A forward estimate that is lower than BAR by 4 of their joint standard errors is mentioned too.
"""

import dataclasses

import numpy as np

from annealz.bar import Bar, bar
from annealz.estimators import delta_std_err, log_mean
from annealz.sandwich import Sandwich, sandwich
from annealz.status import Findings, Found, Message, Status, check_level, longer, status_of

__all__ = ["TwoSided", "judge_two_sided"]

_MIN_CHAINS = 10
_MIN_EFFECTIVE = 5
_MAX_Z = 4


@dataclasses.dataclass(frozen=True)
class TwoSided(Found):
    """log Z_B / Z_A from forward and reverse work, and what to think of it.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> estimate = annealz.estimate_log_z(
    ...     random_rbm(4, 6), schedule="linear", num_steps=100, num_chains=100, two_sided=True
    ... )
    >>> sides = estimate.two_sided
    >>> sides.status.value, sides.messages
    ('ok', ())
    >>> estimate.log_z == estimate.run.log_z0 + sides.log_ratio, estimate.std_err == sides.std_err
    (True, True)
    >>> sides.lower < sides.upper, abs(sides.upper - sides.lower - sides.gap) < 1e-6
    (True, True)
    >>> 0 < sides.overlap <= 1
    True
    """

    bar: Bar
    sandwich: Sandwich
    forward_log_mean: float
    """log mean w of the forward chains alone: biased low."""
    findings: Findings

    @property
    def log_ratio(self) -> float:
        """BAR's log Z_B / Z_A."""
        return self.bar.log_ratio

    @property
    def std_err(self) -> float:
        """Standard error of `log_ratio`."""
        return self.bar.std_err

    @property
    def lower(self) -> float:
        """Mean forward work, at most log Z_B / Z_A but for `sandwich.lower_std_err`."""
        return self.sandwich.lower

    @property
    def upper(self) -> float:
        """Mean reverse work, at least log Z_B / Z_A but for `sandwich.upper_std_err`."""
        return self.sandwich.upper

    @property
    def gap(self) -> float:
        """`upper - lower`."""
        return self.sandwich.gap

    @property
    def overlap(self) -> float:
        """Between 0, where the two sides' work never meets, and 1."""
        return self.bar.overlap

    def _repr_html_(self) -> str:
        from annealz.show.html import two_sided_html

        return two_sided_html(self)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of log Z_B / Z_A.

        Examples
        --------
        >>> import annealz
        >>> import numpy as np
        >>> generator = np.random.default_rng(0)
        >>> sides = annealz.judge_two_sided(
        ...     generator.normal(-0.5, 1, 200), generator.normal(0.5, 1, 200), are_exact=True
        ... )
        >>> low, high = sides.interval(0.99)
        >>> low < 0 < high
        True
        """
        check_level(level)
        return self.bar.interval(level)


def judge_two_sided(
    forward: np.ndarray,
    reverse: np.ndarray,
    *,
    are_exact: bool,
    num_steps: int | None = None,
) -> TwoSided:
    """log Z_B / Z_A from two sides, with its error and its status.

    Parameters
    ----------
    forward : (chains,), log w of forward chains
    reverse : (chains,), -log w of reverse chains
    are_exact : whether the reverse chains started from independent exact draws of the target
    num_steps : K, in which remedies are told

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> forward, reverse = (
    ...     generator.normal(-0.5, 1, 200),
    ...     generator.normal(0.5, 1, 200),
    ... )  # of log ratio 0
    >>> sides = annealz.judge_two_sided(forward, reverse, are_exact=True)
    >>> sides.status.value, abs(sides.log_ratio) < 4 * sides.std_err
    ('ok', True)
    """
    joined, bounds = bar(forward, reverse), sandwich(forward, reverse)
    alone, alone_std_err = log_mean(forward), delta_std_err(forward)
    findings: dict[Message, str] = {}

    def find(kind: Message, **values) -> None:
        findings[kind] = kind.say(**values)

    advice = longer(num_steps)
    if min(np.size(forward), np.size(reverse)) < _MIN_CHAINS:
        find(
            Message.TOO_FEW_TWO_SIDED,
            forward=np.size(forward),
            reverse=np.size(reverse),
            needed=_MIN_CHAINS,
            chains=10 * _MIN_CHAINS,
        )
    elif min(joined.effective) < _MIN_EFFECTIVE or joined.std_err == np.inf:
        meet = dict(zip(("forward", "reverse"), joined.effective, strict=True))
        find(Message.LITTLE_OVERLAP, **meet, needed=_MIN_EFFECTIVE, longer=advice)
    if bounds.gap < -_MAX_Z * bounds.gap_std_err:
        find(Message.NEGATIVE_GAP, size=-bounds.gap, std_err=bounds.gap_std_err)
    elif abs(joined.crooks_z) > _MAX_Z:
        find(Message.UNEQUAL_WORK, z=joined.crooks_z)
    if not are_exact:
        find(Message.INEXACT_DRAWS)
    difference = joined.log_ratio - alone
    if status_of(findings) is Status.OK and difference > _MAX_Z * np.hypot(
        joined.std_err, alone_std_err
    ):
        find(Message.FORWARD_IS_LOW, forward=alone, difference=difference, longer=advice)
    return TwoSided(joined, bounds, alone, findings)

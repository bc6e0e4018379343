"""What the tables are made of: pure functions of excess work, log w less the exact log Z_B / Z_A.

    forward     E[e^x] = 1,  E[x] <= 0          log mean e^x is the error of log Z
    reverse     E[e^-x] = 1, E[x] >= 0          x = -log w_R less the same
    pair        E_F[e^(x/2)] = E_R[e^(-x/2)]    only for reversed kernels, in general (Crooks)

A replicate is a row. The ratio of two mean squared errors is of methods run on the same replicates; its
interval is the percentile bootstrap over replicates, drawn in pairs where they share chains.
"""

import dataclasses

import numpy as np
from scipy import stats

from annealz.diagnostics.bar import bar
from annealz.diagnostics.diagnostics import judge_islands
from annealz.diagnostics.status import Status
from annealz.diagnostics.two_sided import sandwich

LEVEL = 0.95
NUM_RESAMPLES = 9999
NUM_CUT_RESAMPLES = 400


def mean_z(values, expected: float) -> tuple[float, float, float]:
    """Mean, its standard error, and how many of them it lies above what is expected."""
    values = np.asarray(values, np.float64)
    mean, std_err = values.mean(), values.std(ddof=1) / np.sqrt(values.size)
    return float(mean), float(std_err), float((mean - expected) / std_err)


def log_means(excess: np.ndarray, size: int) -> np.ndarray:
    """log of the mean weight of every `size` consecutive chains or islands."""
    rows = np.asarray(excess, np.float64).reshape(-1, size)
    largest = rows.max(1)
    return largest + np.log(np.exp(rows - largest[:, None]).mean(1))


@dataclasses.dataclass(frozen=True)
class PairChecks:
    """A pair of runs against the exact value, each check in standard errors."""

    lower: float
    lower_std_err: float
    upper: float
    upper_std_err: float
    forward_z: float
    """Of mean w over Z_B / Z_A, from 1."""
    reverse_z: float
    """Of mean w_R over Z_A / Z_B, from 1."""
    half_z: float
    """Of the difference of the two half moments."""
    crooks_z: float
    bar_z: float
    """Error of BAR."""
    bar_error: float

    @property
    def lower_z(self) -> float:
        """Above 0 in vain: the forward mean beyond the exact value."""
        return self.lower / self.lower_std_err

    @property
    def upper_z(self) -> float:
        """Below 0 in vain: the reverse mean short of the exact value."""
        return self.upper / self.upper_std_err

    @property
    def gap_z(self) -> float:
        return (self.upper - self.lower) / float(np.hypot(self.lower_std_err, self.upper_std_err))

    def encloses(self, limit: float) -> bool:
        """Forward mean <= exact <= reverse mean, within so many standard errors."""
        return self.lower_z <= limit and self.upper_z >= -limit


def check_pair(forward: np.ndarray, reverse: np.ndarray) -> PairChecks:
    """All checks of a pair, of the excess work of both sides."""
    forward, reverse = (np.asarray(a, np.float64) for a in (forward, reverse))
    bounds, joined = sandwich(forward, reverse), bar(forward, reverse)
    one, two = mean_z(np.exp(forward / 2), 0), mean_z(np.exp(-reverse / 2), 0)
    return PairChecks(
        lower=bounds.lower,
        lower_std_err=bounds.lower_std_err,
        upper=bounds.upper,
        upper_std_err=bounds.upper_std_err,
        forward_z=mean_z(np.exp(forward), 1)[2],
        reverse_z=mean_z(np.exp(-reverse), 1)[2],
        half_z=(one[0] - two[0]) / float(np.hypot(one[1], two[1])),
        crooks_z=joined.crooks_z,
        bar_z=joined.log_ratio / joined.std_err,
        bar_error=joined.log_ratio,
    )


def bar_errors(forward: np.ndarray, reverse: np.ndarray) -> np.ndarray:
    """Error of BAR in every replicate (rows of chains)."""
    return np.array([bar(f, r).log_ratio for f, r in zip(forward, reverse, strict=True)])


@dataclasses.dataclass(frozen=True)
class Ratio:
    """A ratio of mean squared errors with its interval."""

    value: float
    low: float
    high: float
    first: float
    """The mean squared error above the line."""
    second: float

    @property
    def verdict(self) -> str:
        if self.high < 1:
            return "lower"
        return "higher" if self.low > 1 else "no difference shown"


def mse_ratio(errors: np.ndarray, others: np.ndarray, *, are_paired: bool, seed: int = 0) -> Ratio:
    """MSE of `errors` over that of `others`."""
    one, two = np.asarray(errors) ** 2, np.asarray(others) ** 2
    if are_paired and one.size != two.size:
        raise ValueError(f"pairs must be as many, got {one.size} and {two.size}.")
    generator = np.random.default_rng(seed)
    rows = generator.integers(one.size, size=(NUM_RESAMPLES, one.size))
    other = rows if are_paired else generator.integers(two.size, size=(NUM_RESAMPLES, two.size))
    drawn = one[rows].mean(1) / two[other].mean(1)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    first, second = float(one.mean()), float(two.mean())
    return Ratio(first / second, float(low), float(high), first, second)


def cut_mse_ratio(
    islands: np.ndarray, others: np.ndarray, size: int, *, cuts: int = 20, seed: int = 0
) -> Ratio:
    """The ratio over random cuts into runs of `size` groups, its bootstrap over groups.

    Groups of chains are independent, so that any cut into runs is as good as the one that came; over
    many the squared errors of runs average out and what is left is the noise of the groups.
    """
    generator = np.random.default_rng(seed)
    sides = [np.exp(np.asarray(a, np.float64)) for a in (islands, others)]

    def mse(weights: np.ndarray) -> float:
        usable = weights.size // size * size
        orders = [generator.permutation(weights)[:usable] for _ in range(cuts)]
        return float(np.mean(np.log(np.stack(orders).reshape(-1, size).mean(1)) ** 2))

    first, second = map(mse, sides)
    drawn = [
        mse(generator.choice(sides[0], sides[0].size))
        / mse(generator.choice(sides[1], sides[1].size))
        for _ in range(NUM_CUT_RESAMPLES)
    ]
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Ratio(first / second, float(low), float(high), first, second)


@dataclasses.dataclass(frozen=True)
class Coverage:
    """How often an interval held the truth: all runs, and those whose status is ok."""

    hits: int
    total: int
    ok_hits: int
    ok_total: int
    too_low: int
    """Runs whose interval ends below the truth."""
    students: int
    """Runs that Student's interval covers, which is symmetric about log mean."""

    @property
    def share(self) -> float:
        return self.hits / self.total

    def binomial(self) -> tuple[float, float]:
        """Exact interval of the share among runs that are ok."""
        if self.ok_total == 0:
            return 0.0, 1.0
        found = stats.binomtest(self.ok_hits, self.ok_total).proportion_ci(LEVEL)
        return float(found.low), float(found.high)


def island_coverage(island_log_means: np.ndarray) -> Coverage:
    """Coverage of `judge_islands` over rows of islands, of which the truth is 0."""
    hits = ok_hits = ok_total = too_low = students = 0
    for row in island_log_means:
        verdict = judge_islands(row)
        low, high = verdict.interval(LEVEL)
        is_hit, is_ok = low <= 0 <= high, verdict.status is Status.OK
        hits, too_low = hits + is_hit, too_low + (high < 0)
        ok_hits, ok_total = ok_hits + (is_hit and is_ok), ok_total + is_ok
        students += low <= 0 <= 2 * verdict.log_mean - low
    return Coverage(hits, len(island_log_means), ok_hits, ok_total, too_low, students)


def island_z(island_log_means: np.ndarray) -> np.ndarray:
    """Error of every row of islands in its own standard errors."""
    verdicts = [judge_islands(row) for row in island_log_means]
    return np.array([verdict.log_mean / verdict.std_err for verdict in verdicts])


def shuffled(island_log_means: np.ndarray, size: int, repeats: int, seed: int = 0) -> np.ndarray:
    """Islands cut into rows of `size` in `repeats` random orders: less noise from where rows end."""
    generator = np.random.default_rng(seed)
    usable = island_log_means.size // size * size
    orders = [generator.permutation(island_log_means)[:usable] for _ in range(repeats)]
    return np.concatenate(orders).reshape(-1, size)

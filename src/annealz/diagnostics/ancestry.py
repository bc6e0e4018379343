"""Reverse chains that come from forward ones: how alike they are, and what that does to BAR's error.

Approximate draws (`draws.py`) are forward chains that were resampled by weight and moved for a while. Where
the moves do not leave a mode, draws of one ancestor remain alike, and what looks like hundreds of reverse
chains is a few forward chains counted again.

Intraclass correlation of the reverse work: one-way random effects, a ancestors with n_i draws of n in all

    MSB = sum_i n_i (mean_i - mean)^2 / (a - 1),     MSW = sum_ij (W_ij - mean_i)^2 / (n - a)
    n_0 = (n - sum_i n_i^2 / n) / (a - 1),           r = (F - 1) / (F - 1 + n_0),    F = MSB / MSW

and its upper 95 % limit is r with F / f_0.05(a - 1, n - a) instead of F. The draws have forgotten
their ancestors where that limit is below 0.25. From fewer than 10 ancestors, or where each has one draw
only, nothing can be concluded, and they count as not forgotten: draws that were never copied are as
independent as the forward chains, but nothing shows that they went anywhere.

Error: forward chains are resampled together with all their descendants, and BAR is solved in every
resample with its own numbers of chains on either side. The standard error is the larger of its s.d. and
of BAR's own (`bar.py`), which takes all chains as independent; the interval is normal.

Measured, N = 300, 60 runs each, ferromagnetic RBMs of two phases and random RBMs, linear schedule, draws
approximate (100 sweeps). Share of forward runs that are ok, r, share of runs that have forgotten; coverage
at nominal 0.95 of BAR's own interval, of the normal one of the bootstrap's s.d., of its percentiles, and of
this one:

    model, steps                    ok      r    forgotten     own    bootstrap    percentiles    this one
    10 x 12, J = 0.6, 50           0.32   0.11     0.45       0.82      0.92          0.90          0.92
    10 x 12, J = 0.8, 50           0.00   0.75     0.00       0.47      0.88          0.88          0.88
    20 x 25, J = 0.3, 100          0.02   0.79     0.00       0.40      0.85          0.83          0.85
    20 x 25, J = 0.3, field, 100   0.00   0.72     0.00       0.60      0.93          0.92          0.93
    20 x 25, J = 0.35, field, 100  0.00   0.85     0.00       0.40      0.75          0.68          0.75
    40 x 30, J = 0.18, field, 200  0.00   0.68     0.00       0.85      0.97          0.97          0.97
    40 x 30, J = 0.18, 200         0.02   0.84     0.00       0.30      0.88          0.88          0.88
    20 x 25, J = 0.25, field, 60   0.00   0.23     0.02       0.82      0.93          0.93          0.93
    20 x 25, J = 0.22, field, 50   0.68   0.00     0.88       0.95      0.95          0.95          0.95
    random, 15 x 20, 10            0.80  -0.02     0.97       0.93      0.93          0.93          0.93
    random, 15 x 20, 20            0.98   0.01     0.93       0.97      0.95          0.97          0.97
    random, 20 x 15, 20            0.92   0.02     0.98       0.92      0.90          0.90          0.92
    random, 12 x 30, 20            0.78  -0.01     0.98       0.97      0.95          0.95          0.97
    random, 20 x 40, 20            0.35   0.00     0.98       0.93      0.90          0.92          0.93
    random, 20 x 50, 15            0.63  -0.02     0.95       0.90      0.88          0.88          0.90

The limit of 0.25 was chosen on 60 other runs of each of these models, which gave the same picture.
"""

import dataclasses

import numpy as np
from scipy.special import fdtri, log_expit

from annealz.core.weights import batches

_MAX_CORRELATION = 0.25  # of its upper limit
_MIN_ANCESTORS = 10
_LEVEL = 0.95  # one-sided
_NUM_POINTS, _NUM_PASSES = 65, 12


@dataclasses.dataclass(frozen=True)
class Kinship:
    """How alike the reverse work of one ancestor is."""

    num_ancestors: int
    correlation: float
    """Intraclass correlation of the reverse work by ancestor; NaN if it is unknown."""
    upper: float
    """Its upper 95 % limit; 1 if it is unknown."""

    @property
    def is_forgotten(self) -> bool:
        """Whether the draws are shown to have forgotten where they come from."""
        return self.num_ancestors >= _MIN_ANCESTORS and self.upper < _MAX_CORRELATION

    @property
    def in_words(self) -> str:
        """What stands against it that they have."""
        if self.num_ancestors < _MIN_ANCESTORS:
            return f"too few to decide, at least {_MIN_ANCESTORS} are needed"
        if np.isnan(self.correlation):
            return "their work does not show it"
        return (
            f"intraclass correlation {self.correlation:.2f}, at most {self.upper:.2f}; less than "
            f"{_MAX_CORRELATION:g} is needed"
        )


def kinship(reverse: np.ndarray, ancestors: np.ndarray) -> Kinship:
    """Intraclass correlation of the work of reverse chains (chains,) by their ancestors (chains,)."""
    work = np.asarray(reverse, np.float64)
    _, group, sizes = np.unique(ancestors, return_inverse=True, return_counts=True)
    count, total = sizes.size, work.size
    if count < 2 or count == total:
        return Kinship(count, np.nan, 1.0)
    means = np.bincount(group, work) / sizes
    between = (sizes * (means - work.mean()) ** 2).sum() / (count - 1)
    within = ((work - means[group]) ** 2).sum() / (total - count)
    if between == within == 0:  # all work is equal: nothing can be concluded
        return Kinship(count, np.nan, 1.0)
    if within == 0:
        return Kinship(count, 1.0, 1.0)
    typical = (total - (sizes**2).sum() / total) / (count - 1)
    ratio = between / within
    widest = ratio / float(fdtri(count - 1, total - count, 1 - _LEVEL))  # quantile of an F law
    correlation, upper = (float((f - 1) / (f - 1 + typical)) for f in (ratio, widest))
    return Kinship(count, correlation, upper)


def related_std_err(
    forward: np.ndarray,
    reverse: np.ndarray,
    ancestors: np.ndarray,
    num_resamples: int = 400,
    seed: int = 0,
) -> float:
    """S.d. of BAR over resamples of forward chains with their descendants; infinite if unknown."""
    forward = np.asarray(forward, np.float64)
    generator, found = np.random.default_rng(seed), []
    shares = np.full(forward.size, 1 / forward.size)
    for size in batches(num_resamples, forward.size):
        counts = generator.multinomial(forward.size, shares, size=size)
        found.append(related_bar(forward, reverse, ancestors, counts))
    roots = np.concatenate(found)
    roots = roots[np.isfinite(roots)]
    return float(roots.std(ddof=1)) if roots.size > 1 else np.inf


def related_bar(
    forward: np.ndarray, reverse: np.ndarray, ancestors: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """(rows,): BAR where each forward chain, and all its descendants with it, counts so many times.

    counts : (rows, forward chains); NaN for a row without reverse chains

    The two sides of BAR's equation are products of the counts with sums of sigmoids by forward chain, on a
    grid of x = c + D that is narrowed to where the roots of all rows lie; between two points of it the log
    of their ratio is taken as a line.
    """
    forward, reverse = np.asarray(forward, np.float64), np.asarray(reverse, np.float64)
    counts = np.asarray(counts, np.float64)
    order = np.argsort(ancestors, kind="stable")
    parents, starts, sizes = np.unique(ancestors[order], return_index=True, return_counts=True)
    num_forward, num_reverse = counts.sum(1), counts[:, parents] @ sizes
    roots = np.full(len(counts), np.nan)
    rows = np.flatnonzero(num_reverse > 0)
    if rows.size == 0:
        return roots
    counts = counts[rows]
    shift = np.log(num_forward[rows] / num_reverse[rows])

    def log_ratio(points):  # (rows, points): falls in x
        chances = log_expit(forward[:, None] - points), log_expit(points - reverse[order, None])
        largest = [part.max(0) for part in chances]
        one, other = (np.exp(part - top) for part, top in zip(chances, largest, strict=True))
        sums = counts @ one, counts[:, parents] @ np.add.reduceat(other, starts, axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(sums[0]) + largest[0] - np.log(sums[1]) - largest[1]

    margin = 1 + float(np.abs(shift).max())
    low = min(forward.min(), reverse.min()) - margin
    high = max(forward.max(), reverse.max()) + margin
    each = np.arange(rows.size)
    cell, points, values = each, np.array([low, high]), np.zeros((rows.size, 2))
    for _ in range(_NUM_PASSES):
        points = np.linspace(low, high, _NUM_POINTS)
        values = np.nan_to_num(log_ratio(points), nan=0.0)
        cell = np.clip((values > 0).sum(1), 1, _NUM_POINTS - 1)
        narrowed = points[cell.min() - 1], points[cell.max()]
        if narrowed[1] - narrowed[0] > 0.5 * (high - low):
            break
        low, high = narrowed
    left, right = values[each, cell - 1], values[each, cell]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip(np.nan_to_num(left / (left - right), nan=0.5), 0, 1)
    roots[rows] = points[cell - 1] + share * (points[cell] - points[cell - 1]) - shift
    return roots

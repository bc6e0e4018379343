"""Statistics of weighted chains that come in parts, merged on the host, in float64.

A part is a block of a run, or one of several runs. With the largest log w of a part m_b, its
S_b = sum w / e^{m_b} and Q_b = sum (w / e^{m_b})^2, and m the largest m_b, the sums over all chains are

    S = sum_b e^{m_b - m} S_b,    Q = sum_b e^{2 (m_b - m)} Q_b,    log sum w = m + log S,    ESS = S^2 / Q

and with the shares c_b = e^{m_b - m} S_b / S weighted means and variances are

    mean = sum_b c_b mean_b,      variance = sum_b c_b (variance_b + (mean_b - mean)^2)

Parts are added in their order, one after another: whoever ran them, the sum has the same bits.

Runs of different purposes share no random bits: their chains are independent, and the mean weight of all is
unbiased. With N_i chains and log mean weight m_i at a recorded step, a run is a part of the sums

    S_i = N_i e^{m_i},     Q_i = S_i^2 / ESS_i,     log mean w = log(sum S_i / sum N_i)
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from annealz.engine.advance import Block, Record
from annealz.engine.blocks import log_weights_of
from annealz.engine.run import Run, Trace


class Tally(NamedTuple):
    """What a block's weights come to: m, S and Q as above, and how many are not numbers."""

    largest: float
    weight: float
    weight_squared: float
    num_wrong: int


def tally(block: Block, num_real: int) -> Tally:
    """Of the first `num_real` chains of a block; the rest is filling."""
    log_weights = log_weights_of(block)[:num_real]
    num_wrong = int((~np.isfinite(log_weights)).sum())
    if num_wrong:
        return Tally(np.nan, np.nan, np.nan, num_wrong)
    largest = float(log_weights.max())
    weights = np.exp(log_weights - largest)
    return Tally(largest, float(weights.sum()), float((weights**2).sum()), 0)


class Weighted(NamedTuple):
    """The weights of all parts on one scale, numbers or a number per step; one item per part."""

    largest: Any  # m
    sums: list[Any]  # e^{m_b - m} S_b
    squares: list[Any]  # e^{2 (m_b - m)} Q_b

    @classmethod
    def of(cls, parts: Sequence[Any]) -> "Weighted":
        """From what has largest, weight and weight_squared: tallies, or records."""
        largest = np.max([part.largest for part in parts], axis=0)
        scales = [np.exp(part.largest - largest) for part in parts]
        return cls(
            largest,
            [s * part.weight for s, part in zip(scales, parts, strict=True)],
            [s**2 * part.weight_squared for s, part in zip(scales, parts, strict=True)],
        )

    @property
    def total(self) -> Any:
        """S."""
        return sum(self.sums)

    @property
    def log_sum(self) -> Any:
        """log of the sum of all weights."""
        return self.largest + np.log(self.total)

    @property
    def ess(self) -> Any:
        return self.total**2 / sum(self.squares)

    def mean(self, values: Sequence[Any]) -> Any:
        """The weighted mean of what the parts have, (steps, …) each."""
        total, axes = self.total, (1,) * (values[0].ndim - 1)
        shares = [(one / total).reshape(-1, *axes) for one in self.sums]
        return sum(c * value for c, value in zip(shares, values, strict=True))


def recorded_steps(start: int, stop: int, every: int, last: int) -> list[int]:
    """Those among start + 1 .. stop."""
    steps = list(range((start // every + 1) * every, stop + 1, every))
    return [*steps, last] if start < last <= stop and last % every else steps


def merge_records(parts: list[Record], steps: list[int]) -> list[dict[str, Any]]:
    """The records of these steps, each merged over the blocks; arrays of a part hold one step per row."""
    if not steps:
        return []
    parts = [_mended(jax.tree.map(lambda a: np.asarray(a, np.float64), part)) for part in parts]
    weighted = Weighted.of(parts)
    columns = {"log_sum": weighted.log_sum, "ess": weighted.ess}
    for name in parts[0].means:
        mean = weighted.mean([part.means[name] for part in parts])
        within = weighted.mean([part.variances[name] for part in parts])
        between = weighted.mean([(part.means[name] - mean) ** 2 for part in parts])
        columns[f"mean:{name}"], columns[f"variance:{name}"] = mean, within + between
    return [
        {"step": step, **{key: column[i] for key, column in columns.items()}}
        for i, step in enumerate(steps)
    ]


def _mended(part: Record) -> Record:
    """The same without numbers that left float32, where log weights are 1e8 nats apart."""
    is_lost = ~np.isfinite(part.weight_squared) | ~(part.weight_squared > 0)
    if not is_lost.any():
        return part
    means, variances = (
        jax.tree.map(lambda a: np.nan_to_num(a, posinf=0.0, neginf=0.0), tree)
        for tree in (part.means, part.variances)
    )
    weight: Any = np.where(is_lost, 1.0, part.weight)
    squared: Any = np.where(is_lost, 1.0, part.weight_squared)
    return Record(part.largest, weight, squared, means, variances)


def trace_of(
    records: list[dict[str, Any]], betas: np.ndarray, log_z0: float, num_chains: int | None
) -> Trace:
    """The records in columns; without num_chains log Z is known at the last of them, as log_z0."""
    columns = {key: np.array([record[key] for record in records]) for key in records[0]}
    means, variances = (
        {key.removeprefix(kind): columns[key] for key in columns if key.startswith(kind)}
        for kind in ("mean:", "variance:")
    )
    known = columns["log_sum"][-1] if num_chains is None else np.log(num_chains)
    return Trace(
        steps=columns["step"],
        betas=betas[columns["step"]].astype(np.float64),
        log_z=log_z0 + columns["log_sum"] - known,
        ess=columns["ess"],
        means=means,
        variances=variances,
    )


def merge_runs(runs: Sequence[Run]) -> Run:
    """One run of all chains; the purpose is that of the first."""
    first = runs[0]
    if len(runs) == 1:
        return first
    if any(run.schedule.digest != first.schedule.digest for run in runs):
        raise ValueError("runs must share one schedule to be read as one.")
    if any(run.is_reverse or run.island_size is not None for run in runs):
        raise ValueError("runs must go forward without resampling to be read as one.")
    if any(run.trace.means.keys() != first.trace.means.keys() for run in runs):
        raise ValueError(
            "runs must have recorded the same to be read as one: give the same observe."
        )
    names = [name for name in first.carries if all(name in run.carries for run in runs)]
    return Run(
        log_weights=np.concatenate([run.log_weights for run in runs]),
        log_z0=first.log_z0,
        schedule=first.schedule,
        seed=first.seed,
        purpose=first.purpose,
        trace=_merge_traces(runs),
        states=np.concatenate([run.states for run in runs]),
        carries={
            name: jax.tree.map(
                lambda *leaves: np.concatenate(leaves), *(run.carries[name] for run in runs)
            )
            for name in names
        },
        seconds=sum(run.seconds for run in runs),
        num_filling=sum(run.num_filling for run in runs),
        messages=tuple(dict.fromkeys(m for run in runs for m in run.messages)),
    )


def _merge_traces(runs: Sequence[Run]) -> Trace:
    traces, log_z0 = [run.trace for run in runs], runs[0].log_z0
    total = sum(run.num_chains for run in runs)
    log_sums = [run.trace.log_z - log_z0 + np.log(run.num_chains) for run in runs]
    largest = np.max(log_sums, axis=0)
    sums = [np.exp(log_sum - largest) for log_sum in log_sums]
    squares = [one**2 / trace.ess for one, trace in zip(sums, traces, strict=True)]
    weighted = Weighted(largest, sums, squares)
    means, variances = {}, {}
    for name in traces[0].means:
        mean = weighted.mean([trace.means[name] for trace in traces])
        spread = [trace.variances[name] + (trace.means[name] - mean) ** 2 for trace in traces]
        means[name], variances[name] = mean, weighted.mean(spread)
    return Trace(
        steps=traces[0].steps,
        betas=traces[0].betas,
        log_z=log_z0 + weighted.largest + np.log(weighted.total) - np.log(total),
        ess=weighted.ess,
        means=means,
        variances=variances,
    )

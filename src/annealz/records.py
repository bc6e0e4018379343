"""Statistics of recorded steps, merged over the blocks on the host, in float64.

With the largest log w of a block m_b, its S_b = sum w / e^{m_b} and Q_b = sum (w / e^{m_b})^2, and m the
largest m_b, the sums over all chains are

    S = sum_b e^{m_b - m} S_b,    Q = sum_b e^{2 (m_b - m)} Q_b,    log sum w = m + log S,    ESS = S^2 / Q

and with the shares c_b = e^{m_b - m} S_b / S weighted means and variances are

    mean = sum_b c_b mean_b,      variance = sum_b c_b (variance_b + (mean_b - mean)^2)

Blocks are added in their order, one after another: whoever ran them, the sum has the same bits.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from annealz.advance import Block, Record
from annealz.blocks import log_weights_of
from annealz.run import Trace

__all__ = ["Tally", "merge_records", "merge_tallies", "recorded_steps", "tally", "trace_of"]


class Tally(NamedTuple):
    """What a block's weights come to: m, S and Q as above, and how many are no numbers."""

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


def merge_tallies(tallies: list[Tally]) -> tuple[float, float]:
    """log of the sum of all weights, and their ESS."""
    largest = max(one.largest for one in tallies)
    scales = [np.exp(one.largest - largest) for one in tallies]
    weight = sum(s * one.weight for s, one in zip(scales, tallies, strict=True))
    squared = sum(s**2 * one.weight_squared for s, one in zip(scales, tallies, strict=True))
    return float(largest + np.log(weight)), float(weight**2 / squared)


def recorded_steps(start: int, stop: int, every: int, last: int) -> list[int]:
    """Those among start + 1 .. stop."""
    steps = list(range((start // every + 1) * every, stop + 1, every))
    return [*steps, last] if start < last <= stop and last % every else steps


def merge_records(parts: list[Record], steps: list[int]) -> list[dict[str, Any]]:
    """The records of these steps, each merged over the blocks; arrays of a part hold a step a row."""
    if not steps:
        return []
    parts = jax.tree.map(lambda a: np.asarray(a, np.float64), parts)
    largest = np.max([part.largest for part in parts], axis=0)
    scales = [np.exp(part.largest - largest) for part in parts]
    weight = sum(s * part.weight for s, part in zip(scales, parts, strict=True))
    squared = sum(s**2 * part.weight_squared for s, part in zip(scales, parts, strict=True))
    shares = [s * part.weight / weight for s, part in zip(scales, parts, strict=True)]
    columns = {"log_sum": largest + np.log(weight), "ess": weight**2 / squared}
    for name, like in parts[0].means.items():
        each = [share.reshape(-1, *(1,) * (like.ndim - 1)) for share in shares]
        mean = sum(c * p.means[name] for c, p in zip(each, parts, strict=True))
        within = sum(c * p.variances[name] for c, p in zip(each, parts, strict=True))
        between = sum(c * (p.means[name] - mean) ** 2 for c, p in zip(each, parts, strict=True))
        columns[f"mean:{name}"], columns[f"variance:{name}"] = mean, within + between
    return [
        {"step": step, **{key: column[i] for key, column in columns.items()}}
        for i, step in enumerate(steps)
    ]


def trace_of(
    records: list[dict[str, Any]], betas: np.ndarray, log_z0: float, num_chains: int | None
) -> Trace:
    """The records in columns; without num_chains log Z is known at the last of them, as log_z0."""
    columns = {key: np.array([record[key] for record in records]) for key in records[0]}
    named = {kind: {key.removeprefix(kind): column for key, column in columns.items()
                    if key.startswith(kind)} for kind in ("mean:", "variance:")}  # fmt: skip
    known = columns["log_sum"][-1] if num_chains is None else np.log(num_chains)
    return Trace(
        steps=columns["step"],
        betas=betas[columns["step"]].astype(np.float64),
        log_z=log_z0 + columns["log_sum"] - known,
        ess=columns["ess"],
        means=named["mean:"],
        variances=named["variance:"],
    )

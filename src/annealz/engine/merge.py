"""Several runs over one schedule read as one: their chains side by side.

Runs of different purposes share no random bits, so their chains are independent and the mean weight of all
is unbiased. With N_i chains and log mean weight m_i at a recorded step, the sums of weights and of their
squares are

    S_i = N_i e^{m_i},     Q_i = S_i^2 / ESS_i

    log mean w = log(sum S_i / sum N_i),     ESS = (sum S_i)^2 / sum Q_i

and weighted means and variances are joined by the shares S_i / sum S_i (`statistics.py`).
"""

from collections.abc import Sequence

import jax
import numpy as np

from annealz.engine.run import Run, Trace
from annealz.engine.statistics import Weighted


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
    traces, log_z0, total = [r.trace for r in runs], runs[0].log_z0, sum(r.num_chains for r in runs)
    weighted = _weighted(runs)
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


def _weighted(runs: Sequence[Run]) -> Weighted:
    """S_i and Q_i at the recorded steps."""
    log_z0 = runs[0].log_z0
    log_sums = [run.trace.log_z - log_z0 + np.log(run.num_chains) for run in runs]
    largest = np.max(log_sums, axis=0)
    sums = [np.exp(log_sum - largest) for log_sum in log_sums]
    squares = [one**2 / run.trace.ess for one, run in zip(sums, runs, strict=True)]
    return Weighted(largest, sums, squares)

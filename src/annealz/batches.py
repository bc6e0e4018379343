"""Several runs over one schedule read as one: their chains side by side.

Runs of different purposes share no random bits, so their chains are independent and the mean weight of all
is unbiased. With N_i chains and log mean weight m_i at a recorded step, the sums of weights and of their
squares are

    S_i = N_i e^{m_i},     Q_i = S_i^2 / ESS_i

    log mean w = log(sum S_i / sum N_i),     ESS = (sum S_i)^2 / sum Q_i

and weighted means and variances are joined by the shares S_i / sum S_i.
"""

from collections.abc import Sequence

import jax
import numpy as np

from annealz.run import Run, Trace

__all__ = ["merge_runs"]


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
        messages=tuple(dict.fromkeys(m for run in runs for m in run.messages)),
    )


def _merge_traces(runs: Sequence[Run]) -> Trace:
    first, total = runs[0].trace, sum(run.num_chains for run in runs)
    log_z0 = runs[0].log_z0
    log_sums = np.stack([r.trace.log_z - log_z0 + np.log(r.num_chains) for r in runs])
    largest = log_sums.max(0)
    sums = np.exp(log_sums - largest)
    squares = sums**2 / np.stack([run.trace.ess for run in runs])
    shares = sums / sums.sum(0)
    means, variances = {}, {}
    for name in first.means:
        mean = np.stack([run.trace.means[name] for run in runs])
        variance = np.stack([run.trace.variances[name] for run in runs])
        share = shares.reshape(*shares.shape, *(1,) * (mean.ndim - 2))
        means[name] = (share * mean).sum(0)
        variances[name] = (share * (variance + (mean - means[name]) ** 2)).sum(0)
    return Trace(
        steps=first.steps,
        betas=first.betas,
        log_z=log_z0 + largest + np.log(sums.sum(0)) - np.log(total),
        ess=sums.sum(0) ** 2 / squares.sum(0),
        means=means,
        variances=variances,
    )

"""The pilot: a cheap look at the path, before the schedule of the real run is chosen.

`survey` anneals few chains over a linear schedule and records mean and variance of the slope with
on-the-fly weights at every step (Algorithm 2 of Kiwaki 2015). `survey_knots` runs chains at a few
fixed betas, for the moments that GMS13 needs. Both use random streams of their own: no pilot chain
enters an estimate.

A weighted variance about the weighted mean of n effective chains is low by the factor 1 - 1/n, which
matters where the pilot's ESS drops; it is divided out.
"""

import time

import numpy as np

from annealz.core.arrays import indices
from annealz.core.failures import user_errors
from annealz.core.random import Stream
from annealz.engine.anneal import anneal
from annealz.engine.observers import Slope
from annealz.engine.progress import OnProgress, Progress
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.abstract import AbstractPath
from annealz.pilots.run_at_beta import run_at_beta
from annealz.schedules.rules import linear
from annealz.schedules.terrain import Terrain

_UPDATES_A_CALL = 100


@user_errors()
def survey(
    path: AbstractPath,
    kernel: AbstractKernel,
    *,
    num_steps: int = 1000,
    num_chains: int = 100,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Terrain:
    """Mean and variance of the slope along the path, from a linear pilot run.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> path = annealz.GeometricPath(annealz.BernoulliBase.uniform(6), random_rbm(4, 6))
    >>> terrain = annealz.survey(path, annealz.BlockGibbs(), num_steps=100, num_chains=100)
    >>> terrain.betas.size, terrain.sweeps
    (100, 10000)
    """

    def report(now: Progress) -> None:  # its log Z and ESS are none of the run to come
        assert on_progress is not None
        on_progress(now._replace(log_z=np.nan, ess=np.nan, stage="pilot"))

    run = anneal(
        path,
        kernel,
        linear(num_steps),
        num_chains=num_chains,
        seed=seed,
        purpose="survey",
        observers={"slope": Slope()},
        record_every=1,
        on_progress=None if on_progress is None else report,
    )
    each = kernel.evaluations
    shrunk = 1 - 1 / np.maximum(run.trace.ess, 1.1)  # E of a variance about the weighted mean
    return Terrain(
        betas=run.trace.betas,
        mean=run.trace.means["slope"],
        variance=run.trace.variances["slope"] / shrunk,
        ess=run.trace.ess,
        sweeps=run.sweeps,
        seconds=run.seconds,
        provenance={
            "pilot": "annealed",
            "num_steps": num_steps,
            "num_chains": num_chains,
            **({} if each is None else {"starts": run.cost(each).evaluations - each * run.sweeps}),
            "seed": seed,
        },
    )


@user_errors()
def survey_knots(
    path: AbstractPath,
    kernel: AbstractKernel,
    *,
    num_knots: int = 10,
    num_chains: int = 1000,
    num_updates: int = 6000,
    num_burn_in: int = 1000,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Terrain:
    """Mean and variance of the slope at equally spaced betas, from runs at fixed beta.

    The chains of a knot go on from where those of the last one ended; the first `num_burn_in` of the
    `num_updates` sweeps at each knot are left out of the averages.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> path = annealz.GeometricPath(annealz.BernoulliBase.uniform(6), random_rbm(4, 6))
    >>> terrain = annealz.survey_knots(
    ...     path, annealz.BlockGibbs(), num_knots=4, num_chains=100, num_updates=60, num_burn_in=10
    ... )
    >>> terrain.betas.round(2).tolist(), terrain.sweeps
    ([0.0, 0.33, 0.67, 1.0], 24000)
    """
    if num_knots < 2 or num_chains < 1 or not 0 <= num_burn_in < num_updates:
        raise ValueError(
            "a survey at knots takes at least 2 knots, 1 chain, and fewer burn-in sweeps than "
            f"updates, got {num_knots}, {num_chains}, {num_burn_in} of {num_updates}."
        )
    began = time.monotonic()
    stream, chains = Stream(seed, "knots"), indices(num_chains)
    betas = np.linspace(0, 1, num_knots)
    path = kernel.extend(path)
    x = path.sample(stream.at(0, chains))
    means, variances, done = [], [], 0
    for beta in betas:
        parts = []
        for start in range(0, num_updates, _UPDATES_A_CALL):
            count = min(_UPDATES_A_CALL, num_updates - start)
            x, slopes = run_at_beta(path, kernel, stream, chains, x, beta, done, count)
            slopes = slopes.astype(np.float64)
            parts.append(np.stack([slopes.mean(1), slopes.var(1)], axis=1))
            done += count
            if on_progress is not None:
                on_progress(Progress(done, num_knots * num_updates, np.nan, np.nan, "pilot"))
        kept = np.concatenate(parts)[num_burn_in:]
        mean = kept[:, 0].mean()
        means.append(mean)
        variances.append((kept[:, 1] + (kept[:, 0] - mean) ** 2).mean())
    return Terrain(
        betas=betas,
        mean=np.array(means),
        variance=np.array(variances),
        ess=np.full(num_knots, float(num_chains)),
        sweeps=num_knots * num_chains * num_updates,
        seconds=time.monotonic() - began,
        provenance={
            "pilot": "knots",
            "num_knots": num_knots,
            "num_chains": num_chains,
            **({} if kernel.evaluations is None else {"starts": num_chains}),
            "num_updates": num_updates,
            "num_burn_in": num_burn_in,
            "seed": seed,
        },
    )

"""One function per method, with its authors' defaults: (problem, seed, counter) -> {log_z, std_err, …}.

`counter.calls` counts evaluations of the likelihood as they are made: points, not batches. Methods in JAX
have no host to count on: theirs come from the loop counts of the library, which a test compares with a
host callback. One with its gradient counts as one.

dynesty         NestedSampler(likelihood, transform, dim), run_nested(): 500 live points
ultranest       ReactiveNestedSampler, run(); above 20 dimensions its slice sampler of 2 dim steps, as its
                documentation advises
nautilus        Sampler, run(): 2,000 live points, an effective sample size of 10,000, which gives the error
pocomc          Sampler, run(): preconditioned Monte Carlo with a flow
pymc            sample_smc(): IMH, 2,000 draws, two chains; log Z is their mean, and it states no error
blackjax-smc    adaptive tempered SMC to an ESS of one half, in the variables that are N(0, 1) a priori;
                1,000 particles, 5 moves of HMC of 10 leapfrog steps, a mass matrix of the particles'
                variances and a step size moved towards an acceptance of 0.8; it states no error
blackjax-nss    nested slice sampling: 1,000 live points, 100 replaced at a time, max(5, 2 dim) slice steps,
                until the live points hold e^-3 of the evidence; the error by 100 simulated shrinkages
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from problems_with_truth import Problem

__all__ = ["METHODS", "Counter"]


class Counter:
    """A likelihood on the host that counts the points it is asked for."""

    def __init__(self, problem: Problem):
        self.problem, self.calls = problem, 0

    def __call__(self, theta: np.ndarray) -> np.ndarray:
        self.calls += 1 if np.ndim(theta) == 1 else len(theta)
        return self.problem.on_host(theta)

    def one(self, theta: np.ndarray) -> float:
        """The same of one point, a Python number."""
        return float(self(theta))


def dynesty(problem: Problem, seed: int, counter: Counter) -> dict[str, Any]:
    import dynesty

    sampler = dynesty.NestedSampler(
        counter.one, problem.transform, problem.dim, rstate=np.random.default_rng(seed)
    )
    sampler.run_nested(print_progress=False)
    results = sampler.results
    return {"log_z": results.logz[-1], "std_err": results.logzerr[-1]}


def ultranest(problem: Problem, seed: int, counter: Counter) -> dict[str, Any]:
    import logging

    import ultranest
    import ultranest.stepsampler as steps

    logging.getLogger("ultranest").setLevel(logging.ERROR)
    np.random.seed(seed)  # noqa: NPY002, the only way it takes one
    names = [f"x{i}" for i in range(problem.dim)]
    sampler = ultranest.ReactiveNestedSampler(names, counter, problem.transform, vectorized=True)
    if problem.dim > 20:
        sampler.stepsampler = steps.SliceSampler(
            nsteps=2 * problem.dim,
            generate_direction=steps.generate_mixture_random_direction,
        )
    result = sampler.run(show_status=False, viz_callback=False)
    return {"log_z": result["logz"], "std_err": result["logzerr"]}


def nautilus(problem: Problem, seed: int, counter: Counter) -> dict[str, Any]:
    import nautilus

    sampler = nautilus.Sampler(
        problem.transform, counter, n_dim=problem.dim, vectorized=True, pass_dict=False, seed=seed
    )
    sampler.run(verbose=False)
    return {"log_z": sampler.log_z, "std_err": 1 / np.sqrt(sampler.n_eff)}


def pocomc(problem: Problem, seed: int, counter: Counter) -> dict[str, Any]:
    import pocomc
    from scipy import stats

    if problem.low is None or problem.high is None:
        each = [stats.norm(0, 1)] * problem.dim
    else:
        each = [stats.uniform(a, b - a) for a, b in zip(problem.low, problem.high, strict=True)]
    sampler = pocomc.Sampler(pocomc.Prior(each), counter, vectorize=True, random_state=seed)
    sampler.run(progress=False)
    log_z, error = sampler.evidence()
    return {"log_z": log_z, "std_err": error}


def pymc(problem: Problem, seed: int, counter: Counter) -> dict[str, Any]:
    import logging

    import pymc
    import pytensor.tensor as pt
    from pytensor.graph.op import Op

    logging.getLogger("pymc").setLevel(logging.ERROR)

    class Likelihood(Op):
        """The function on the host."""

        itypes, otypes = [pt.dvector], [pt.dscalar]

        def perform(self, node, inputs, outputs):
            outputs[0][0] = np.asarray(counter.one(inputs[0]))

    with pymc.Model():
        if problem.low is None:
            theta = pymc.Normal("theta", 0, 1, shape=problem.dim)
        else:
            theta = pymc.Uniform("theta", problem.low, problem.high, shape=problem.dim)
        pymc.Potential("likelihood", Likelihood()(theta))
        data = pymc.sample_smc(
            cores=1,
            chains=2,
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
        )
    found = data.sample_stats["log_marginal_likelihood"].values  # pyright: ignore
    if isinstance(found.flat[0], list):  # chains of unlike numbers of stages, in one row
        found = found.ravel()
    each = [np.asarray(chain, float) for chain in found]
    ends = np.array([values[np.isfinite(values)][-1] for values in each])
    return {"log_z": ends.mean(), "std_err": None, "chains": ends.tolist()}


PARTICLES, MOVES, LEAPFROGS = 1000, 5, 10


def _standard(problem: Problem) -> Callable:
    """The likelihood of variables that are N(0, I) a priori, in JAX."""
    from jax.scipy.special import ndtr

    if problem.low is None:
        return problem.in_jax
    return lambda z: problem.in_jax(problem.transform_in_jax(ndtr(z)))


def blackjax_smc(
    problem: Problem, seed: int, counter: Counter, particles: int = PARTICLES
) -> dict[str, Any]:
    import blackjax
    import blackjax.smc.resampling
    import jax
    import jax.numpy as jnp

    likelihood = _standard(problem)
    kernel = blackjax.smc.adaptive_tempered.build_kernel(
        lambda z: -0.5 * (z @ z) - problem.dim / 2 * np.log(2 * np.pi),
        likelihood,
        blackjax.hmc.build_kernel(),
        blackjax.hmc.init,
        blackjax.smc.resampling.systematic,
        0.5,
    )

    @jax.jit
    def temperature(key, state, parameters):
        return kernel(key, state, MOVES, parameters)

    key, here = jax.random.split(jax.random.key(seed))
    state = blackjax.smc.tempered.init(jax.random.normal(here, (particles, problem.dim)))
    step, total, temperatures = 0.2, 0.0, 0
    while state.tempering_param < 1:
        key, here = jax.random.split(key)
        parameters = {
            "step_size": jnp.full(1, step),
            "inverse_mass_matrix": state.particles.var(0)[None],
            "num_integration_steps": jnp.full(1, LEAPFROGS),
        }
        state, info = temperature(here, state, parameters)
        total += float(info.log_likelihood_increment)
        step *= float(np.exp(info.update_info.acceptance_rate.mean() - 0.8))
        temperatures += 1
        counter.calls += particles * SMC_EACH
    return {"log_z": total, "std_err": None, "temperatures": temperatures}


SMC_EACH = MOVES * LEAPFROGS + 3
"""Evaluations of a particle per temperature: its moves, where they start, the ESS and the weight."""


def blackjax_nss(
    problem: Problem, seed: int, counter: Counter, live: int = 1000, delete: int = 100
) -> dict[str, Any]:
    import blackjax
    import jax
    import jax.numpy as jnp
    from blackjax.ns.utils import finalise, log_weights
    from jax.scipy.stats import norm, uniform

    def log_prior(x):
        if problem.low is None or problem.high is None:
            return norm.logpdf(x).sum()
        return uniform.logpdf(x, problem.low, problem.high - problem.low).sum()

    algorithm = blackjax.nss(
        log_prior, problem.in_jax, num_inner_steps=max(5, 2 * problem.dim), num_delete=delete
    )
    key, here, last = jax.random.split(jax.random.key(seed), 3)
    start = problem.transform(np.asarray(jax.random.uniform(here, (live, problem.dim))))
    state = algorithm.init(jnp.asarray(start, jnp.float32), rng_key=here)
    counter.calls += live
    step, dead = jax.jit(algorithm.step), []
    while float(state.integrator.logZ_live - state.integrator.logZ) > -3:
        key, here = jax.random.split(key)
        state, info = step(here, state)
        dead.append(info)
        counter.calls += nss_calls(info)
    weights = log_weights(last, finalise(state, dead, update_info=False), shape=100)
    log_z = jax.scipy.special.logsumexp(weights, axis=0)
    return {"log_z": float(log_z.mean()), "std_err": float(log_z.std())}


def nss_calls(info: Any) -> int:
    """Evaluations of the slice moves of one replacement: both ends, expansions, and shrinkages."""
    slices = info.update_info
    made = np.asarray(slices.num_expansions) + np.asarray(slices.num_shrink)
    return int(made.sum() + NSS_EACH * made.size)


NSS_EACH = 2

METHODS: dict[str, Callable[[Problem, int, Counter], dict[str, Any]]] = {
    "dynesty": dynesty,
    "ultranest": ultranest,
    "nautilus": nautilus,
    "pocomc": pocomc,
    "pymc": pymc,
    "blackjax-smc": blackjax_smc,
    "blackjax-nss": blackjax_nss,
}

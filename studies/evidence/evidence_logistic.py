"""Logistic regression on scikit-learn's breast cancer data: annealz, BlackJAX's SMC and dynesty.

569 rows, 30 inputs of mean 0 and variance 1 and a constant, weights ~ N(0, 1). An evaluation is one of the
likelihood of all rows, with or without its gradient, of one set of weights.

SMC: adaptive tempering to an ESS of one half, HMC of ten leapfrog steps, a mass matrix of the variances of
the particles, whose step size is moved after every temperature towards an acceptance of 0.8.
"""

import json
import time
from functools import cache, partial
from pathlib import Path

import blackjax
import blackjax.smc.resampling
import dynesty
import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri
from sklearn.datasets import load_breast_cancer

import annealz

RESULTS = Path(__file__).parent / "results"
NUM_SEEDS, NUM_STEPS, NUM_CHAINS = 10, 600, 200
NUM_NESTED = 2  # slow
PARTICLES, MOVES, LEAPFROGS = 1000, 5, 10


def data() -> tuple[np.ndarray, np.ndarray]:
    """Inputs (rows, 31) and signs (rows,)."""
    x, y = load_breast_cancer(return_X_y=True)
    x = (x - x.mean(0)) / x.std(0)
    return np.concatenate([np.ones((len(x), 1)), x], axis=1), 2.0 * y - 1


INPUTS, SIGNS = data()
DIM = INPUTS.shape[1]
X, S = jnp.asarray(INPUTS, jnp.float32), jnp.asarray(SIGNS, jnp.float32)


def log_prior(w):
    return -0.5 * (w @ w) - DIM / 2 * np.log(2 * np.pi)


def log_likelihood(w):
    return -jax.nn.softplus(-S * (X @ w)).sum()


MODEL = annealz.LogDensity(lambda w: log_prior(w) + log_likelihood(w), DIM, "breast-cancer")


@cache
def base() -> annealz.GaussianBase:
    """The default one, whatever the seed; what it took is counted in every run."""
    return MODEL.choose_base()


def anneal(seed: int) -> dict:
    estimate = annealz.estimate_log_z(
        MODEL, base=base(), num_steps=NUM_STEPS, num_chains=NUM_CHAINS, seed=seed
    )
    assert estimate.evaluations is not None
    return {
        "log_z": estimate.log_z,
        "std_err": estimate.std_err,
        "status": estimate.status.value,
        "evaluations": sum(estimate.evaluations.values()),
    }


@partial(jax.jit, static_argnums=3)
def _temperature(key, state, parameters, moves: int):
    kernel = blackjax.smc.adaptive_tempered.build_kernel(
        log_prior,
        log_likelihood,
        blackjax.hmc.build_kernel(),
        blackjax.hmc.init,
        blackjax.smc.resampling.systematic,
        0.5,
    )
    return kernel(key, state, moves, parameters)


def smc(seed: int) -> dict:
    key = jax.random.key(seed)
    key, here = jax.random.split(key)
    state = blackjax.smc.tempered.init(jax.random.normal(here, (PARTICLES, DIM)))
    step, total, temperatures = 0.2, 0.0, 0
    while state.tempering_param < 1:
        key, here = jax.random.split(key)
        parameters = {
            "step_size": jnp.full(1, step),
            "inverse_mass_matrix": state.particles.var(0)[None],
            "num_integration_steps": jnp.full(1, LEAPFROGS),
        }
        state, info = _temperature(here, state, parameters, MOVES)
        total += float(info.log_likelihood_increment)
        step *= float(np.exp(info.update_info.acceptance_rate.mean() - 0.8))
        temperatures += 1
    evaluations = temperatures * PARTICLES * (MOVES * LEAPFROGS + 1)
    return {"log_z": total, "evaluations": evaluations, "temperatures": temperatures}


def nested(seed: int, sample: str = "auto") -> dict:
    def likelihood(w: np.ndarray) -> float:
        return float(-np.logaddexp(0, -SIGNS * (INPUTS @ w)).sum())

    sampler = dynesty.NestedSampler(
        likelihood, ndtri, DIM, nlive=500, sample=sample, rstate=np.random.default_rng(seed)
    )
    sampler.run_nested(print_progress=False, dlogz=0.1)
    results = sampler.results
    return {
        "log_z": float(results.logz[-1]),
        "std_err": float(results.logzerr[-1]),
        "evaluations": int(np.sum(results.ncall)),
    }


def main() -> None:
    out: dict[str, list] = {"annealz": [], "smc": [], "dynesty": [], "dynesty, rwalk": []}
    for name, method, seeds in (
        ("annealz", anneal, NUM_SEEDS),
        ("dynesty", nested, NUM_NESTED),
        ("dynesty, rwalk", partial(nested, sample="rwalk"), 3),
        ("smc", smc, NUM_SEEDS),
    ):
        for seed in range(seeds):
            began = time.monotonic()
            out[name].append({**method(seed), "seconds": round(time.monotonic() - began, 1)})
            print(name, out[name][-1], flush=True)
            (RESULTS / "logistic.json").write_text(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()

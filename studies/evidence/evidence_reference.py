"""References for problems without a closed form: importance sampling, checked by an unlike method.

    log Z = log mean_i L(x_i) pi(x_i) / q(x_i),    x_i ~ q

q is a multivariate t of 5 degrees of freedom at the mode of the posterior, of scale H^-1, H minus the
second derivatives there: heavier tails than the posterior, which is log-concave. The check is annealed
importance sampling from the Gaussian at the mode. In 900 dimensions the weights of q would vary too much:
there annealing from that Gaussian is the reference, and annealing from the prior the check. All are in
float64 and unbiased for Z, and none is a method of the table; errors are those of the weights.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

from problems_with_truth import Problem, problem

OUT = Path(__file__).parent / "results" / "reference.json"
NAMES = ("logistic-8", "logistic-25", "breast-cancer-31")


def mode(given: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The mode of likelihood times N(0, I), and minus the second derivatives there, by JAX in float64."""
    import jax
    import jax.numpy as jnp

    with jax.enable_x64(True):
        value = jax.jit(jax.value_and_grad(lambda x: 0.5 * (x @ x) - given.in_jax(x)))
        curvature = jax.jit(jax.hessian(lambda x: 0.5 * (x @ x) - given.in_jax(x)))
        start = np.zeros(given.dim)
        options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-8}

        def both(x):
            height, slope = value(jnp.asarray(x, jnp.float64))
            return float(height), np.asarray(slope, np.float64)

        top = minimize(both, start, jac=True, method="L-BFGS-B", options=options).x
        return top, np.asarray(curvature(jnp.asarray(top, jnp.float64)))


def by_importance(given: Problem, draws: int, seed: int, freedom: float = 5.0) -> dict:
    """log Z by draws of a multivariate t."""
    top, curvature = mode(given)
    dim, generator = given.dim, np.random.default_rng(seed)
    factor = np.linalg.inv(np.linalg.cholesky(curvature)).T  # of the covariance
    log_det = np.linalg.slogdet(curvature)[1] / 2
    constant = gammaln((freedom + dim) / 2) - gammaln(freedom / 2)
    constant += log_det - dim / 2 * np.log(freedom * np.pi)
    logs = []
    for _ in range(0, draws, 10_000):
        z = generator.normal(size=(10_000, dim))
        z /= np.sqrt(generator.chisquare(freedom, size=(10_000, 1)) / freedom)
        x = top + z @ factor.T
        log_q = constant - (freedom + dim) / 2 * np.log1p((z**2).sum(1) / freedom)
        log_prior = -0.5 * (x**2).sum(1) - dim / 2 * np.log(2 * np.pi)
        logs.append(given.on_host(x) + log_prior - log_q)
    weights = np.concatenate(logs)
    log_z = logsumexp(weights) - np.log(weights.size)
    share = np.exp(weights - log_z)
    return {
        "log_z": float(log_z),
        "std_err": float(share.std() / np.sqrt(weights.size)),
        "method": f"importance sampling, {weights.size:,} draws of a multivariate t",
    }


def by_annealing(given: Problem, chains: int, steps: int, seed: int, power: float = 1.0) -> dict:
    """log Z by annealing from the Gaussian at the mode, in its whitened variables."""
    top, curvature = mode(given)
    factor = np.linalg.inv(np.linalg.cholesky(curvature)).T
    return _anneal(given, top, factor, "the Gaussian at the mode", chains, steps, seed, power)


def by_prior(given: Problem, chains: int, steps: int, seed: int) -> dict:
    """log Z by annealing from the prior, betas rising with the fourth power."""
    top, factor = np.zeros(given.dim), np.eye(given.dim)
    return _anneal(given, top, factor, "the prior", chains, steps, seed, 4.0)


def _anneal(
    given: Problem,
    top: np.ndarray,
    factor: np.ndarray,
    base: str,
    chains: int,
    steps: int,
    seed: int,
    power: float,
    leapfrogs: int = 3,
) -> dict:
    """From N(top, factor factor^T), beta_k = (k / K)^power, by HMC in float64."""
    import jax
    import jax.numpy as jnp

    dim = given.dim
    with jax.enable_x64(True):
        scale, middle = jnp.asarray(factor), jnp.asarray(top)

        def ratio(z):  # log of posterior over Gaussian, both of z
            x = middle + scale @ z
            return given.in_jax(x) - 0.5 * (x @ x) + 0.5 * (z @ z)

        betas = np.linspace(0, 1, steps + 1) ** power

        @jax.jit
        def run(key):
            key, here = jax.random.split(key)
            z = jax.random.normal(here, (chains, dim))

            def step(carry, pair):
                key, z, log_w = carry
                before, after = pair
                log_w = log_w + (after - before) * jax.vmap(ratio)(z)
                key, one, two, three = jax.random.split(key, 4)

                def height(z):
                    return after * ratio(z) - 0.5 * (z @ z)

                both = jax.vmap(jax.value_and_grad(height))
                size = 0.25 * jax.random.uniform(three, (), minval=0.8, maxval=1.2)
                p = jax.random.normal(one, z.shape)
                top_z, slope = both(z)

                def leap(_, at):
                    z, p, _, slope = at
                    p = p + size / 2 * slope
                    z = z + size * p
                    value, slope = both(z)
                    return z, p + size / 2 * slope, value, slope

                moved, q, value, _ = jax.lax.fori_loop(0, leapfrogs, leap, (z, p, top_z, slope))
                gain = value - top_z + 0.5 * (p**2).sum(-1) - 0.5 * (q**2).sum(-1)
                take = jnp.log(jax.random.uniform(two, (chains,))) < gain
                return (key, jnp.where(take[:, None], moved, z), log_w), take.mean()

            pairs = (jnp.asarray(betas[:-1]), jnp.asarray(betas[1:]))
            (_, _, log_w), taken = jax.lax.scan(step, (key, z, jnp.zeros(chains)), pairs)
            return log_w, taken.mean()

        log_w, taken = run(jax.random.key(seed))
        log_w = np.asarray(log_w)
    constant = np.linalg.slogdet(factor)[1]  # those of N(0, I) of x and of z cancel
    log_z = logsumexp(log_w) - np.log(chains) + constant
    share = np.exp(log_w - logsumexp(log_w) + np.log(chains))
    return {
        "log_z": float(log_z),
        "std_err": float(share.std() / np.sqrt(chains)),
        "method": f"annealing from {base}, {chains:,} chains of {steps:,} steps",
        "acceptance": float(taken),
        "variance": float(log_w.var()),
    }


def main() -> None:
    done = json.loads(OUT.read_text()) if OUT.exists() else {}
    for name in sys.argv[1:] or (*NAMES, "cox-900"):
        began, given = time.process_time(), problem(name)
        if name == "cox-900":
            main_run = by_annealing(given, 100, 300, 0)
            check = by_prior(given, 100, 600, 1)
        else:
            main_run = by_importance(given, 400_000, 0)
            check = by_annealing(given, 400, 200, 1)
        gap = main_run["log_z"] - check["log_z"]
        joint = float(np.hypot(main_run["std_err"], check["std_err"]))
        done[name] = main_run | {"check": check, "gap": gap, "joint": joint}
        OUT.write_text(json.dumps(done, indent=1) + "\n")
        print(name, done[name], f"{time.process_time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()

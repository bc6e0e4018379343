"""Kernels at equal evaluations: a Gaussian of 100 dimensions and condition number 1000, standard base."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from scipy.stats import ortho_group

import annealz

DIM, CONDITION, NUM_CHAINS, NUM_SEEDS = 100, 1000.0, 100, 10
BUDGETS = (4000, 16_000)  # evaluations per chain
RESULTS = Path(__file__).parent / "results"
KERNELS = {
    "random walk": annealz.RandomWalk(),
    "MALA": annealz.MALA(),
    "HMC, 5 leapfrog steps": annealz.HMC(),
    "HAIS": annealz.HAIS(),
}


def problem() -> tuple[annealz.LogDensity, float]:
    """Variances from 1/1000 to 1, in directions of no coordinate."""
    axes = ortho_group.rvs(DIM, random_state=0)
    variances = np.logspace(-np.log10(CONDITION), 0, DIM)
    precision = jnp.asarray((axes / variances) @ axes.T, jnp.float32)
    exact = DIM / 2 * np.log(2 * np.pi) + np.log(variances).sum() / 2
    return annealz.LogDensity(lambda x: -0.5 * x @ precision @ x, DIM, "gaussian"), float(exact)


def main() -> None:
    model, exact = problem()
    rows = []
    for budget in BUDGETS:
        for name, kernel in KERNELS.items():
            each = kernel.evaluations
            assert each is not None
            for seed in range(NUM_SEEDS):
                estimate = annealz.estimate_log_z(
                    model,
                    base="standard",
                    kernel=kernel,
                    num_steps=budget // each,
                    num_chains=NUM_CHAINS,
                    seed=seed,
                )
                rows.append(
                    {
                        "kernel": name,
                        "budget": budget,
                        "seed": seed,
                        "error": estimate.log_z - exact,
                        "std_err": estimate.std_err,
                        "variance": float(np.var(estimate.log_weights, ddof=1)),
                        "ess": estimate.ess,
                        "status": estimate.status.value,
                        "evaluations": estimate.evaluations,
                    }
                )
            here = [row["error"] for row in rows[-NUM_SEEDS:]]
            print(f"{budget} {name}: rms error {np.sqrt(np.mean(np.square(here))):.3f}", flush=True)
            (RESULTS / "hais.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()

"""The critical 64 x 64 lattice by clusters (Swendsen-Wang) against Kaufman's log Z: 20 seeds.

Runs what `clusters.json` does not hold yet; `ising_runs.py` writes it into README.md.
"""

import json
import time
from pathlib import Path

import annealz
from annealz.core.storage.files import write_atomic
from annealz.models.exact_ising import CRITICAL_COUPLING

HERE = Path(__file__).parent
SIDE, NUM_STEPS, NUM_CHAINS, NUM_SEEDS = 64, 1500, 100, 20


def main() -> None:
    file = HERE / "clusters.json"
    rows = json.loads(file.read_text()) if file.exists() else []
    for seed in range(NUM_SEEDS):
        if seed not in {row["seed"] for row in rows}:
            rows.append(run(seed))
            write_atomic(file, json.dumps(rows, indent=0))


def run(seed: int) -> dict:
    """One estimate beside the exact value."""
    began = time.monotonic()
    model = annealz.Ising.square(SIDE, CRITICAL_COUPLING)
    result = annealz.estimate_log_z(
        model,
        kernel="clusters",
        resample=0.5,
        base="uniform",
        second_opinion=False,
        num_steps=NUM_STEPS,
        num_chains=NUM_CHAINS,
        seed=seed,
    )
    return {
        "side": SIDE,
        "coupling": CRITICAL_COUPLING,
        "seed": seed,
        "num_steps": NUM_STEPS,
        "num_chains": NUM_CHAINS,
        "exact": model.exact_log_z(),
        "log_z": result.log_z,
        "std_err": result.std_err,
        "interval": list(result.interval()),
        "ess": result.ess,
        "status": result.status.value,
        "seconds": time.monotonic() - began,
    }


if __name__ == "__main__":
    main()

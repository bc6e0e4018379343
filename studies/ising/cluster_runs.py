"""The critical 64 x 64 lattice by clusters (Swendsen-Wang) against Kaufman's log Z: 20 seeds.

Runs what `clusters.json` does not hold yet of the device at hand, 100 chains on a CPU and 400 on a GPU;
`ising_runs.py` writes it into README.md.
"""

import json
import time
from pathlib import Path

import annealz
from annealz.core.devices import device_name, platform
from annealz.io.files import write_atomic
from annealz.models.ising_lattice import CRITICAL_COUPLING

HERE = Path(__file__).parent
SIDE, NUM_STEPS, NUM_SEEDS = 64, 1500, 20


def main() -> None:
    file = HERE / "clusters.json"
    rows = json.loads(file.read_text()) if file.exists() else []
    for seed in range(NUM_SEEDS):
        if (seed, device()) not in {(row["seed"], row["device"]) for row in rows}:
            rows.append(run(seed))
            write_atomic(file, json.dumps(rows, indent=0))


def device() -> str:
    """What computes: CPU, or the last word of a GPU's name."""
    return "CPU" if platform() == "cpu" else device_name().split()[-1]


def run(seed: int) -> dict:
    """One estimate beside the exact value."""
    began, num_chains = time.monotonic(), 100 if platform() == "cpu" else 400
    model = annealz.Ising.square(SIDE, CRITICAL_COUPLING)
    result = annealz.estimate_log_z(
        model,
        kernel="clusters",
        resample=0.5,
        base="uniform",
        second_opinion=False,
        num_steps=NUM_STEPS,
        num_chains=num_chains,
        seed=seed,
    )
    return {
        "side": SIDE,
        "coupling": CRITICAL_COUPLING,
        "seed": seed,
        "num_steps": NUM_STEPS,
        "num_chains": num_chains,
        "exact": model.exact_log_z(),
        "log_z": result.log_z,
        "std_err": result.std_err,
        "interval": list(result.interval()),
        "ess": result.ess,
        "status": result.status.value,
        "seconds": time.monotonic() - began,
        "device": device(),
    }


if __name__ == "__main__":
    main()

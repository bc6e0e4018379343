"""Evidence with closed forms: 20 seeds of every problem, default base, kernel and schedule."""

import json
from pathlib import Path

import numpy as np

import annealz
from evidence_problems import PROBLEMS

NUM_SEEDS, NUM_STEPS, NUM_CHAINS = 20, 500, 200
RESULTS = Path(__file__).parent / "results"


def run(name: str) -> dict:
    """The seeds of one problem."""
    model, exact = PROBLEMS[name]()
    base = model.choose_base()  # the same for every seed
    rows = []
    for seed in range(NUM_SEEDS):
        estimate = annealz.estimate_log_z(
            model, base=base, num_steps=NUM_STEPS, num_chains=NUM_CHAINS, seed=seed
        )
        rows.append(
            {
                "log_z": estimate.log_z,
                "std_err": estimate.std_err,
                "interval": estimate.interval(),
                "status": estimate.status.value,
                "variance": float(np.var(estimate.log_weights)),
                "evaluations": estimate.evaluations,
            }
        )
    return {"dim": model.dim, "exact": exact, "base": base.name, "runs": rows}


def main() -> None:
    file = RESULTS / "closed.json"
    done = json.loads(file.read_text()) if file.exists() else {}
    for name in PROBLEMS:
        if name not in done:
            done[name] = run(name)
            file.write_text(json.dumps(done, indent=1))
            here = done[name]
            z = [(r["log_z"] - here["exact"]) / r["std_err"] for r in here["runs"]]
            print(f"{name}: mean z {np.mean(z):+.2f}, largest {np.abs(z).max():.2f}", flush=True)


if __name__ == "__main__":
    main()

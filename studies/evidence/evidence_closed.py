"""Evidence with closed forms: 20 seeds of every problem, everything by default."""

import json
from pathlib import Path

import numpy as np

import annealz
from evidence_problems import PROBLEMS

NUM_SEEDS = 20
RESULTS = Path(__file__).parent / "results"


def run(name: str) -> dict:
    """The seeds of one problem."""
    model, exact = PROBLEMS[name]()
    rows = []
    for seed in range(NUM_SEEDS):
        estimate = annealz.estimate_log_z(model, seed=seed)
        rows.append(
            {
                "log_z": estimate.log_z,
                "std_err": estimate.std_err,
                "interval": estimate.interval(),
                "status": estimate.status.value,
                "variance": float(np.var(estimate.log_weights)),
                "evaluations": estimate.evaluations,
                "base": estimate.base,
                "num_steps": estimate.num_steps,
                "num_chains": estimate.num_chains,
            }
        )
    return {"dim": model.dim, "exact": exact, "runs": rows}


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

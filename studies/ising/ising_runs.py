"""The Ising lattice up to 32 x 32 against Kaufman's log Z: 20 seeds at each of four couplings.

Runs what `results.json` does not hold yet, and writes the table of README.md. The coupling of the infinite
lattice's critical point is among them. Every run is the front door's with its default schedule.
"""

import json
import time
from pathlib import Path

import numpy as np

import annealz
from annealz.io.files import write_atomic
from annealz.models.ising_lattice import CRITICAL_COUPLING

HERE = Path(__file__).parent
STEPS = {8: 500, 16: 1000, 32: 4000}
COUPLINGS = (0.3, 0.4, CRITICAL_COUPLING, 0.5)
NUM_CHAINS = 256
NUM_SEEDS = 20
HEADER = (
    "| lattice | K | steps | exact log Z | mean error | mean std err | mean z | s.d. z | largest z | "
    "covered by 95 % | ok | median ESS |"
)
RULE = "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"


def main() -> None:
    file = HERE / "results.json"
    rows = json.loads(file.read_text()) if file.exists() else []
    done = {(row["side"], row["coupling"], row["seed"]) for row in rows}
    for side, steps in STEPS.items():
        for coupling in COUPLINGS:
            for seed in range(NUM_SEEDS):
                if (side, coupling, seed) not in done:
                    rows.append(run(side, coupling, steps, seed))
                    write_atomic(file, json.dumps(rows, indent=0))
    write_atomic(HERE / "README.md", page(rows))


def run(side: int, coupling: float, num_steps: int, seed: int) -> dict:
    """One estimate beside the exact value."""
    began = time.monotonic()
    model = annealz.Ising.square(side, coupling)
    options = {"base": "uniform", "second_opinion": False}  # what the page describes
    result = annealz.estimate_log_z(
        model, num_steps=num_steps, num_chains=NUM_CHAINS, seed=seed, **options
    )
    return {
        "side": side,
        "coupling": coupling,
        "seed": seed,
        "num_steps": num_steps,
        "exact": model.exact_log_z(),
        "log_z": result.log_z,
        "std_err": result.std_err,
        "interval": list(result.interval()),
        "ess": result.ess,
        "status": result.status.value,
        "seconds": time.monotonic() - began,
    }


def page(rows: list[dict]) -> str:
    """README.md."""
    lines = [
        "# The Ising lattice against Kaufman's solution",
        "",
        f"log Z of periodic square lattices, {NUM_SEEDS} seeds a line, {NUM_CHAINS} chains, the default",
        "schedule (mixing) with its pilot. z is the error in stated standard errors; exact values by",
        "`annealz.square_ising_log_z`. The coupling 0.4407 is critical. Lines of one lattice share their",
        "seeds, and so their random numbers: their z go together. Made by",
        "`python studies/ising/ising_runs.py`, which runs what results.json lacks.",
        "",
        HEADER,
        RULE,
    ]
    for side in STEPS:
        for coupling in COUPLINGS:
            here = [r for r in rows if (r["side"], r["coupling"]) == (side, coupling)]
            if here:
                lines.append(line(here))
    return "\n".join([*lines, *clusters()]) + "\n"


def clusters() -> list[str]:
    """What `cluster_runs.py` found, if it has run."""
    file = HERE / "clusters.json"
    rows = json.loads(file.read_text()) if file.exists() else []
    if not rows:
        return []
    groups = [[row for row in rows if row["device"] == name] for name in ("CPU", "H200")]
    lines = [
        "",
        "## Clusters at the critical point",
        "",
        'The same with `kernel="clusters"` (Swendsen and Wang), chains resampled in islands',
        "(`resample=0.5`). Made by `python studies/ising/cluster_runs.py`.",
    ]
    for group in filter(None, groups):
        where = group[0]["device"]
        seconds = np.median([row["seconds"] for row in group])
        lines += [
            "",
            f"{len(group)} seeds of {group[0]['num_chains']} chains, {where}, {seconds:.1f} s each:",
            "",
            HEADER,
            RULE,
            line(group),
        ]
    return lines


def line(rows: list[dict]) -> str:
    error = np.array([r["log_z"] - r["exact"] for r in rows])
    z = error / np.array([r["std_err"] for r in rows])
    inside = sum(r["interval"][0] <= r["exact"] <= r["interval"][1] for r in rows)
    cells = [
        f"{rows[0]['side']} × {rows[0]['side']}",
        f"{rows[0]['coupling']:.4f}",
        f"{rows[0]['num_steps']:,}",
        f"{rows[0]['exact']:.4f}",
        f"{error.mean():+.4f}",
        f"{np.mean([r['std_err'] for r in rows]):.4f}",
        f"{z.mean():+.2f}",
        f"{z.std(ddof=1):.2f}",
        f"{z[np.abs(z).argmax()]:+.2f}",
        f"{inside} of {len(rows)}",
        f"{sum(r['status'] == 'ok' for r in rows)} of {len(rows)}",
        f"{np.median([r['ess'] for r in rows]):.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()

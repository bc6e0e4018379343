"""The runs of this study: forward, reverse and resampled work, in files of excess over the exact value.

    python studies/two_sides/sides_runs.py [--out FOLDER] [--seconds S]

A cell is (system, schedule, K, side) and is one file. Its chains come in parts, each with random bits of
its own; a file is replaced after every part, and parts that it holds are not run again. What is kept, all
less the exact log Z_B / Z_A:

    forward, reverse    work of every chain, float32
    resampled           log of the mean weight of every island of 50, float64
    plain               the same of every 50 forward chains

with Var[log w] of every part

and of every part the CPU seconds that it took, which other programs on the machine disturb less than the
clock.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from annealz.core.random import derive_seed
from annealz.engine.anneal import anneal
from annealz.io.archive import load_archive, save_archive
from annealz.kernels.gibbs import BlockGibbs
from sides_statistics import log_means
from sides_systems import SEED, system

RESULTS = Path(__file__).parent / "results"
RESAMPLE = 0.5
ISLAND = 50  # chains


class Cell(NamedTuple):
    """Which runs; `num_parts` parts of `part_chains` chains."""

    system: str
    schedule: str
    num_steps: int
    side: str
    num_parts: int
    part_chains: int

    @property
    def name(self) -> str:
        words = (self.system, self.schedule, self.num_steps, self.side)
        return "-".join(map(str, words)).replace(" ", "-")

    def file(self, folder: Path) -> Path:
        return folder / f"{self.name}.npz"


def run_part(cell: Cell, part: int, schedule, draws: np.ndarray | None) -> dict[str, np.ndarray]:
    """The excess work of one part, and what it took."""
    it, began = system(cell.system), time.process_time()
    run = anneal(
        it.path,
        BlockGibbs(),
        schedule,
        num_chains=cell.part_chains,
        seed=derive_seed(SEED, *cell[:3]),
        purpose=f"{cell.side} {part}",
        observers={},
        record_every=cell.num_steps,
        start=draws,
        reverse=cell.side == "reverse",
        resample=RESAMPLE if cell.side == "resampled" else None,
    )
    took = time.process_time() - began
    excess, found = run.work - it.log_ratio, {}
    is_grouped = cell.side in ("resampled", "plain")
    excess = log_means(excess, ISLAND) if is_grouped else excess.astype(np.float32)
    if cell.side == "plain":
        found["variance"] = np.array([run.log_weights.var(ddof=1)])
    return found | {
        "excess": excess,
        "cpu_seconds": np.array([took]),
        "resamplings": np.array([run.num_resamplings]),
    }


def run_cell(cell: Cell, folder: Path, until: float) -> bool:
    """Run the parts that are missing, as long as there is time; whether all are there."""
    file, it = cell.file(folder), system(cell.system)
    arrays, record = load_archive(file) if file.exists() else ({}, {})
    done = arrays["cpu_seconds"].size if arrays else 0
    if done >= cell.num_parts:
        return True
    if time.monotonic() > until:
        return False
    schedule = it.schedule(cell.schedule, cell.num_steps)
    if record and record["schedule_digest"] != schedule.digest:
        raise ValueError(f"{file} was run over another schedule: remove it to run it again.")
    draws = None
    if cell.side == "reverse":
        draws = it.draws(cell.num_parts * cell.part_chains, derive_seed(SEED, *cell[:4], "draws"))
    for part in range(done, cell.num_parts):
        if time.monotonic() > until:
            return False
        mine = slice(part * cell.part_chains, (part + 1) * cell.part_chains)
        new = run_part(cell, part, schedule, None if draws is None else draws[mine])
        arrays = {k: np.concatenate([arrays[k], a]) if arrays else a for k, a in new.items()}
        save_archive(file, arrays, _record(cell, schedule))
        took = new["cpu_seconds"][0]
        print(f"{cell.name} {part + 1}/{cell.num_parts}: {took:.1f} s", file=sys.stderr, flush=True)
    return True


def _record(cell: Cell, schedule) -> dict:
    it = system(cell.system)
    return {
        "kind": "two sides",
        **cell._asdict(),
        "model_digest": it.model.digest,
        "log_z": it.log_z,
        "log_z0": float(it.path.log_z0),
        "schedule_digest": schedule.digest,
        "pilot_sweeps": schedule.provenance.get("pilot_sweeps", 0),
        "seed": SEED,
        "resample": RESAMPLE if cell.side == "resampled" else None,
    }


def load_cell(cell: Cell, folder: Path) -> dict[str, np.ndarray]:
    """What is there of a cell."""
    return load_archive(cell.file(folder))[0]


# --- which cells --------------------------------------------------------------------------------

SMALL = {
    "spins": 4,
    "rbm 5x7 1.0": 8,
    "rbm 4x6 2.0": 4,
    "rbm 8x10 3.0": 20,
    "rbm 12x30 1.0": 50,
    "rbm 20x50 0.5": 50,
    "rbm 15x40 1.5": 100,
    "modes 1.5": 10,
    "modes 3.0": 50,
}
"""Steps, by system."""
SMALL_CHAINS = 20_000

RESAMPLED_SMALL = (
    ("rbm 15x40 1.5", 15),
    ("rbm 12x30 1.0", 7),
    ("rbm 8x10 3.0", 4),
    ("rbm 15x40 1.5", 7),
    ("rbm 15x40 1.5", 4),
    ("rbm 12x30 1.0", 4),
    ("rbm 20x50 1.0", 8),
    ("rbm 15x40 1.5", 100),
    ("rbm 20x50 0.5", 50),
    ("rbm 8x10 3.0", 20),
)
"""(system, steps): Var[log w] above 4, then below 1."""
NUM_RUNS, RUN_CHAINS = 200, 1000

MNIST_STEPS, PART = 1000, 10_000
PAIRS = {
    ("mnist-cd25-20", "mixing"): 12,
    ("mnist-pcd-20", "mixing"): 6,
    ("mnist-cd25-20", "linear"): 6,
    ("mnist-pcd-20", "linear"): 6,
}
"""Forward parts. Of (b): 30 replicates of 2000 forward chains and of 1000 reverse ones."""
RESAMPLED_PARTS = {"mnist-cd25-20": 20, "mnist-pcd-20": 12}


def sandwich_cells() -> list[tuple[Cell, Cell]]:
    """Forward and reverse cells of every enumerable model."""
    small = [_both(name, "linear", steps, (1, 1), SMALL_CHAINS) for name, steps in SMALL.items()]
    return [*small, _both("mnist-cd1-20", "mixing", MNIST_STEPS, (1, 1), 5000), *pair_cells()]


def pair_cells() -> list[tuple[Cell, Cell]]:
    return [_both(*cell, MNIST_STEPS, (parts, 3), PART) for cell, parts in PAIRS.items()]


def resampled_cells() -> list[tuple[Cell, Cell]]:
    """Plain and resampled cells."""
    chains = NUM_RUNS * RUN_CHAINS
    small = [
        (
            Cell(name, "linear", steps, "plain", 1, chains),
            Cell(name, "linear", steps, "resampled", 1, chains),
        )
        for name, steps in RESAMPLED_SMALL
    ]
    large = [
        (
            Cell(name, "mixing", MNIST_STEPS, "forward", PAIRS[name, "mixing"], PART),
            Cell(name, "mixing", MNIST_STEPS, "resampled", parts, PART),
        )
        for name, parts in RESAMPLED_PARTS.items()
    ]
    return [*small, *large]


def _both(name: str, rule: str, num_steps: int, parts: tuple[int, int], size: int):
    return (
        Cell(name, rule, num_steps, "forward", parts[0], size),
        Cell(name, rule, num_steps, "reverse", parts[1], size),
    )


def all_cells() -> list[Cell]:
    """Each once, the quick ones first, the many parts of resampled ones last."""
    cells = [cell for pair in (*sandwich_cells(), *resampled_cells()) for cell in pair]
    return sorted(dict.fromkeys(cells), key=lambda c: (c.num_parts > 6, c.system[:5] == "mnist"))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--seconds", type=float, default=np.inf, help="stop after about so long")
    a = parser.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + a.seconds
    return 0 if all(run_cell(cell, a.out, until) for cell in all_cells()) else 1


if __name__ == "__main__":
    sys.exit(main())

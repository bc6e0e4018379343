"""Whether chains trapped in modes make Var[log w] where that of mixing is not the least.

    python studies/schedules/caught.py

One run of 1000 chains per cell. The states in which its chains end are put into eight clusters (k-means,
best of five starts), which know nothing of the weights. Printed, by cell: Var[log w]; the share of it that
lies between the clusters; the chains in clusters that hold less than a tenth of the weight their number
would give them, and the weight that these hold. Minutes on a CPU.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.cluster.vq import kmeans2

from annealz.engine.anneal import anneal
from annealz.kernels.gibbs import BlockGibbs
from annealz.schedules.rules import linear, mixing, sm08, varopt
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain
from race import NUM_CHAINS, Key, make_path, pilot_of, survey_cell, survey_once

__all__ = ["main", "split"]

CELLS = (("mnist-cd25-20", 1000), ("mnist-cd25-20", 10_000), ("mnist-cd25-500", 1000))
NUM_CLUSTERS = 8
SEED = 7


def split(log_weights: np.ndarray, labels: np.ndarray) -> tuple[float, float, float]:
    """Share of the variance between clusters; chains in clusters without weight; weight of these."""
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    between = chains = held = 0.0
    for label in np.unique(labels):
        mine = labels == label
        share = mine.mean()
        between += share * (log_weights[mine].mean() - log_weights.mean()) ** 2
        if weights[mine].sum() < share / 10:
            chains += share
            held += weights[mine].sum()
    return float(between / log_weights.var()), float(chains), float(held)


def clusters(states: np.ndarray) -> np.ndarray:
    """The label of every chain."""

    def one(seed: int) -> tuple[float, np.ndarray]:
        centres, labels = kmeans2(states, NUM_CLUSTERS, minit="++", rng=seed)
        return float(((states - centres[labels]) ** 2).sum()), labels

    return min((one(seed) for seed in range(5)), key=lambda found: found[0])[1]


def schedule_of(name: str, model: str, num_steps: int) -> Schedule:
    """As in the race, from the pilot of its first replicate."""
    key = Key(model, "base-rate", name, num_steps)
    steps = num_steps - -(-pilot_of(key)[0] // NUM_CHAINS)
    if name == "varopt":
        return varopt(survey_once(model, "base-rate", 0), steps)
    if name == "mixing":
        with TemporaryDirectory() as folder:
            return mixing(Terrain.load(survey_cell(key, 0, Path(folder) / "pilot.npz")), steps)
    return {"linear": linear, "sm08": sm08}[name](steps)


def main() -> None:
    print(
        "| model | K | schedule | Var[log w] | between clusters | chains without weight | their weight |"
    )
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: |")
    for model, num_steps in CELLS:
        path = make_path(model, "base-rate")
        for name in ("linear", "sm08", "varopt", "mixing"):
            schedule = schedule_of(name, model, num_steps)
            run = anneal(path, BlockGibbs(), schedule, num_chains=NUM_CHAINS, seed=SEED)
            labels = clusters(np.asarray(run.states, np.float64))
            between, chains, held = split(run.log_weights, labels)
            variance = run.log_weights.var()
            print(
                f"| {model} | {num_steps:,} | {name} | {variance:.2f} | {between:.0%} | {chains:.0%} "
                f"| {held:.1%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

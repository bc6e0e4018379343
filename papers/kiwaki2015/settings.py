"""What is run: models, bases, schedules, and the two presets."""

import dataclasses

__all__ = ["MODELS", "PRESETS", "SCHEDULES", "SIZES", "Preset", "model_label", "schedule_label"]

MODELS = (
    "mnist-pcd-20",
    "mnist-cd1-20",
    "mnist-cd25-20",
    "mnist-pcd-500",
    "mnist-cd1-500",
    "mnist-cd25-500",
)
SIZES = {20: MODELS[:3], 500: MODELS[3:]}
"""Models by their number of hidden units: the paper's tables 1 and 2."""

SCHEDULES = ("varopt", "varopt-0.009", "varopt-0.006", "varopt-0.003", "linear", "gms13", "sm08")


@dataclasses.dataclass(frozen=True)
class Preset:
    """One scale of the reproduction.

    Every cell (model, base, schedule, K) is one run of num_replicates x num_chains chains, cut into
    replicates of num_chains chains each. A (model, base) has one pilot, shared by all K and by all
    replicates, as in the paper.
    """

    models: tuple[str, ...]
    bases: tuple[str, ...]
    num_steps: tuple[int, ...]
    num_replicates: int
    knot_updates: int
    """Sweeps per knot of the pilot of gms13, a sixth of them burn-in."""
    num_chains: int = 1000
    pilot_steps: int = 1000
    pilot_chains: int = 100
    num_knots: int = 10
    knot_chains: int = 1000
    seed: int = 2015


PRESETS = {
    "quick": Preset(
        models=MODELS[:3],
        bases=("base-rate",),
        num_steps=(1000, 3162, 10_000),
        num_replicates=2,
        knot_updates=600,
    ),
    "full": Preset(
        models=MODELS,
        bases=("base-rate", "uniform"),
        num_steps=(1000, 3162, 10_000, 31_623, 100_000),
        num_replicates=5,
        knot_updates=6000,
    ),
}


def schedule_label(name: str) -> str:
    """The paper's name of a schedule."""
    return name.replace("varopt-", "VAROPT").upper()


def model_label(name: str) -> str:
    """The paper's name of a model."""
    _, algorithm, num_hidden = name.split("-")
    return f"{algorithm.upper()}({num_hidden})"

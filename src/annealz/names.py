"""What can be asked for by name: models, schedules, bases, layers, algorithms.

This module imports nothing of JAX: the command line says these names in its help and completes them.
"""

from pathlib import Path

__all__ = [
    "ALGORITHMS",
    "BASES",
    "DEFAULT_MODEL",
    "DEFAULT_SCHEDULE",
    "FITTED",
    "MARGINALS",
    "METHODS",
    "PILOTED",
    "SCHEDULE_NAMES",
    "packaged_models",
]

DEFAULT_MODEL = "mnist-pcd-20"
PILOTED = (
    "mixing",
    "gms13",
    "varopt",
    "varopt-0.009",
    "varopt-0.006",
    "varopt-0.003",
    "varopt-fixed-point",
)
SCHEDULE_NAMES = (PILOTED[0], "linear", "sm08", *PILOTED[1:])
DEFAULT_SCHEDULE = "mixing"
BASES = (
    "auto",
    "base-rate",
    "uniform",
    "visible-bias",
    "fitted",
)  # of models with a binary visible layer
FITTED = ("fitted", "fitted-product")  # what bases are called that pilots found
MARGINALS = ("visible", "hidden")
METHODS = ("annealing", "exchange")
ALGORITHMS = ("cd", "pcd")


def packaged_models() -> dict[str, Path]:
    """The files of the models that come with annealz, by name."""
    folder = Path(__file__).parent / "models" / "packaged"
    return {path.stem: path for path in sorted(folder.glob("*.npz"))}

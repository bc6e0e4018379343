"""What can be asked for by name: models, bases, layers, algorithms; schedules are in `io/schedules.py`.

This module imports nothing of JAX: the command line says these names in its help and completes them.
"""

from pathlib import Path

DEFAULT_MODEL = "mnist-pcd-20"
DEFAULT_SCHEDULE = "mixing"
# Bases of models with a binary visible layer, and what those are called that pilots found.
BASES = ("auto", "base-rate", "uniform", "visible-bias", "fitted")
FITTED = ("fitted", "fitted-product", "pilot", "mixture", "student", "laplace")
MARGINALS = ("visible", "hidden")
KERNELS = ("auto", "gibbs", "clusters", "gradient")
METHODS = ("annealing", "exchange", "nested")
ALGORITHMS = ("cd", "pcd")


def packaged_models() -> dict[str, Path]:
    """The files of the models that come with annealz, by name."""
    folder = Path(__file__).parents[1] / "models" / "packaged"
    return {path.stem: path for path in sorted(folder.glob("*.npz"))}

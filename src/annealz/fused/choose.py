"""Whether a run can be fused, and how."""

import jax

from annealz.fused.small import SmallSteps, fits
from annealz.kernels.gibbs import BlockGibbs
from annealz.observers import Slope
from annealz.paths.geometric import GeometricPath

__all__ = ["choose_fused"]


def choose_fused(path, kernel, observers, resampling) -> SmallSteps | None:
    """The fused steps of this run on this device; None where every step must be seen by XLA."""
    if jax.default_backend() != "gpu" or resampling is not None:
        return None
    if type(path) is not GeometricPath or type(kernel) is not BlockGibbs:
        return None
    if list(observers) != ["slope"] or type(observers["slope"]) is not Slope:
        return None
    return SmallSteps(path) if fits(path) else None

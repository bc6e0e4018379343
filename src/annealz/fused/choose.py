"""Whether a run can be fused, and how.

Fused steps are those of block Gibbs on a geometric path between a Bernoulli base and an RBM, on a GPU,
with nothing observed but the slope. Small models are fused for any number of chains. Larger ones are up to
as many chains as make it faster than XLA's products (measured, docs/design-notes.md). The variable
ANNEALZ_FUSED=0 leaves all steps to XLA.
"""

import os

from annealz.devices import local_devices
from annealz.fused.large import LargeSteps
from annealz.fused.large import fits as fits_large
from annealz.fused.small import SmallSteps
from annealz.fused.small import fits as fits_small
from annealz.kernels.gibbs import BlockGibbs
from annealz.observers import Slope
from annealz.paths.geometric import GeometricPath

__all__ = ["choose_fused"]

_MOST_CHAINS = 8192  # a block, of the larger models
_CAPABILITY = "9.0"  # of NVIDIA's GPUs, on which the fused steps were measured


def choose_fused(
    path, kernel, observers, resampling, num_chains: int
) -> SmallSteps | LargeSteps | None:
    """The fused steps of a block of this run on this device; None where XLA must take them."""
    device = local_devices()[0]
    if device.platform != "gpu" or os.environ.get("ANNEALZ_FUSED") == "0":
        return None
    if resampling is not None:
        return None
    if type(path) is not GeometricPath or type(kernel) is not BlockGibbs or path.offset is not None:
        return None
    if list(observers) != ["slope"] or type(observers["slope"]) is not Slope:
        return None
    if getattr(device, "compute_capability", None) != _CAPABILITY:
        return None
    if fits_small(path):
        return SmallSteps(path)
    if num_chains <= _MOST_CHAINS and fits_large(path, device.core_count):
        return LargeSteps(path, device.core_count)
    return None

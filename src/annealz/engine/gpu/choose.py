"""Whether a run can be fused, and how.

Fused steps are those of block Gibbs on a geometric path between a Bernoulli base and an RBM, on a GPU,
with nothing observed but the slope. Small models are run a way of their own; larger ones by groups of
programs where there are few chains, and with streaming weights where there are many (measured,
docs/design-notes.md). XLA takes all steps where programs cannot be compiled, or where the variable
ANNEALZ_FUSED is 0.

To bring the weights into the form of the fused steps takes as long as thousands of steps. The pilot and the
runs of an estimate share the arrays of a path, and so the last ones are kept.
"""

import os
from typing import Literal

import jax

from annealz.core.devices import local_devices
from annealz.core.recent import Recent
from annealz.engine.gpu import cuda
from annealz.engine.gpu.large import LargeSteps
from annealz.engine.gpu.large import fits as fits_large
from annealz.engine.gpu.small import SmallSteps
from annealz.engine.gpu.small import fits as fits_small
from annealz.engine.observers import Slope
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.geometric import GeometricPath

__all__ = ["choose_fused", "has_fused_steps"]

_FEW_CHAINS = 12_288  # per block, of the larger models: up to so many are run faster by groups
_OLDEST_JAX = (0, 10)  # whose Mosaic can do what streaming weights need
Kind = Literal["small", "large", "many"]
_steps = Recent(4)  # of the first path, and of those that a second opinion could take
_CAPABILITY = "9.0"  # of NVIDIA's GPUs, on which the fused steps were measured


def has_fused_steps() -> bool:
    """Whether this device is one that they were measured on, takes them, and they are not switched off."""
    device = local_devices()[0]
    if device.platform != "gpu" or os.environ.get("ANNEALZ_FUSED") == "0":
        return False
    return getattr(device, "compute_capability", None) == _CAPABILITY and cuda.is_usable()


def choose_fused(path, kernel, observers, resampling, num_chains: int):
    """The fused steps of a block of this run on this device; None where XLA must take them."""
    if resampling is not None:
        return None
    if type(path) is not GeometricPath or type(kernel) is not BlockGibbs or path.offset is not None:
        return None
    if list(observers) != ["slope"] or type(observers["slope"]) is not Slope:
        return None
    if not has_fused_steps():
        return None
    device = local_devices()[0]
    kind = _kind(path, num_chains, device.core_count)
    return None if kind is None else _prepared(kind, path, device.core_count)


def _kind(path: GeometricPath, num_chains: int, num_processors: int) -> Kind | None:
    if fits_small(path):
        return "small"
    if num_chains <= _FEW_CHAINS:
        return "large" if fits_large(path, num_processors) else None
    if jax.__version_info__ < _OLDEST_JAX:
        return None
    try:
        from annealz.engine.gpu.many import fits as fits_many  # Pallas takes a quarter of a second
    except ImportError:  # it is experimental
        return None
    return "many" if fits_many(path) else None


def _prepared(kind: Kind, path: GeometricPath, num_processors: int):
    def make():
        if kind == "small":
            return SmallSteps(path)
        if kind == "large":
            return LargeSteps(path, num_processors)
        from annealz.engine.gpu.many import ManySteps

        return ManySteps(path)

    return _steps.get([kind, *jax.tree.leaves(path)], make)

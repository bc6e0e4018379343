"""Whether a run can be fused, and how.

Fused steps are those of block Gibbs on a geometric path between a Bernoulli base and an RBM, and those of
Ising and Potts models on lattices and other graphs (`chain_steps.py`), on a GPU, with nothing observed but
the slope. Small RBMs are run a way of their own; larger ones by groups of
programs where there are few chains, and with streaming weights where there are many (measured,
docs/design-notes.md). XLA takes all steps where programs cannot be compiled, or where the variable
ANNEALZ_FUSED is 0.

To bring the weights into the form of the fused steps takes as long as thousands of steps. The pilot and the
runs of an estimate share the arrays of a path, and so the last ones are kept.
"""

import os

import jax

from annealz.core.devices import local_devices
from annealz.core.programs import Recent
from annealz.engine.gpu import cuda
from annealz.engine.gpu.chain_steps import ChainSteps
from annealz.engine.gpu.chunk import FusedSteps
from annealz.engine.gpu.large import LargeSteps
from annealz.engine.gpu.lattice import LatticeSteps
from annealz.engine.gpu.many import ManySteps
from annealz.engine.gpu.pairs import PairSteps
from annealz.engine.gpu.small import SmallSteps
from annealz.engine.gpu.tables import TableSteps
from annealz.engine.observers import Slope
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.geometric import GeometricPath
from annealz.paths.lattice import LatticePath
from annealz.paths.pairs import PairPath, PairTablePath

_KINDS = (SmallSteps, LargeSteps, ManySteps)
_BY_CHAIN: tuple[type[ChainSteps], ...] = (LatticeSteps, PairSteps, TableSteps)
_steps, _by_chain = Recent(4), Recent(4)  # of the first path, and of those of a second opinion
_MOST_HELD = 2**26  # bytes of a path whose steps are held: of others they are made again
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
    if list(observers) != ["slope"] or type(observers["slope"]) is not Slope:
        return None
    if type(path) is GeometricPath:
        return _of_layers(path, kernel, num_chains)
    if type(path) not in (LatticePath, PairPath, PairTablePath) or not has_fused_steps():
        return None
    arrays = jax.tree.leaves((path, kernel))
    if sum(getattr(array, "nbytes", 0) for array in arrays) > _MOST_HELD:
        return _of_chains(path, kernel)
    of = [type(path), type(kernel), *arrays]  # kernels without arrays differ in their type alone
    return _by_chain.get(of, lambda: _of_chains(path, kernel))


def _of_layers(path: GeometricPath, kernel, num_chains: int) -> FusedSteps | None:
    if type(kernel) is not BlockGibbs or path.offset is not None or not has_fused_steps():
        return None
    count = local_devices()[0].core_count
    kind = next((kind for kind in _KINDS if kind.fits(path, num_chains, count)), None)
    if kind is None:
        return None
    return _steps.get([kind.__name__, *jax.tree.leaves(path)], lambda: kind.of(path, count))


def _of_chains(path, kernel) -> ChainSteps | None:
    found = (kind.of(path, kernel) for kind in _BY_CHAIN)
    return next((steps for steps in found if steps is not None and steps.fits), None)

"""The bases of a density: one fitted to where its mass is, and a wide one for a second opinion.

    1   modes are found uphill from many starts (`modes.py`);
    2   populations are annealed from a base around the modes and from a far wider one, or from the prior
        where there is one (`modes.py`, `population.py`), and pooled in proportion to the mass that each
        found;
    3   bases are fitted to them and compared: Laplace's, one Gaussian, several, Student's t (`fitting.py`).

Where a coordinate sets the scales of others, so that chains do not enter a neck, all this is done again in
coordinates in which it is open (`necks.py`). Bases are then given back in the density's own
(`bases/warped.py`).

The second base is the wide one, or the prior. Where the population hardly had to be annealed from the
prior, that is the first and the fitted one the second.

What is found on the way that speaks against any annealing is in `findings.py`. Everything uses random
streams of its own and is charged.
"""

import dataclasses
import time

import numpy as np

from annealz.bases.abstract import AbstractBase
from annealz.bases.gaussian import AbstractFrameBase
from annealz.bases.warped import WarpedBase
from annealz.core.random import derive_seed
from annealz.diagnostics.findings import Finding
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.adaptation import AbstractTunedKernel, NoWeight
from annealz.models.log_density import LogDensity
from annealz.pilots.densities.evaluator import Evaluator
from annealz.pilots.densities.findings import improper_findings, other_findings
from annealz.pilots.densities.fitting import fitted_base
from annealz.pilots.densities.modes import Mode, find_modes, start_points, wide_bases
from annealz.pilots.densities.necks import Straightened, missed_neck, straightened
from annealz.pilots.densities.population import Population, Sample, explore

_BUDGET = 4_000  # sweeps of the population, where about twelve temperatures are enough
_EASY_TEMPERATURES = 2
_LOST = 1.0  # nats less than before: coordinates that do not suit the density
_CHAINS_FAR, _CHAINS_STRAIGHT = 20, 8  # times dim^2
_FEWEST, _MOST, _MOST_STRAIGHT = 51, 640, 384
_NEGLIGIBLE = 0.02  # of the mass that another population found
_ROUNDED = 16  # states at which the rounding of the density is measured


@dataclasses.dataclass(frozen=True)
class DensityBases:
    """The first and the second base, and what was found on the way."""

    first: AbstractBase
    second: AbstractBase
    second_kernel: AbstractTunedKernel | None  # tuned along the second path
    second_temperatures: int  # of equal difficulty, that a population needed along it
    findings: tuple[Finding, ...]
    reason: str
    rounding: float  # of one value of the density, in float32
    evaluations: int
    seconds: float = 0.0


def search_density(
    model: LogDensity, kernel: AbstractKernel, *, name: str = "auto", seed: int = 0
) -> DensityBases:
    """Bases of a density for kernels of this kind; `name` asks for a kind of base, or any with auto."""
    began = time.monotonic()
    if not isinstance(kernel, AbstractTunedKernel):
        kernel = model.kernel()
    seed = derive_seed(seed, "density")
    evaluator = Evaluator(model)
    found = _searched(evaluator, kernel, name, seed)
    if isinstance(found, Straightened):
        straight = _searched(evaluator.of(found.model), kernel, name, seed, found)
        if isinstance(straight, DensityBases):
            found = _in_own_coordinates(straight, found)
        else:  # less than was there before
            found = _searched(evaluator, kernel, name, seed, found)
    assert isinstance(found, DensityBases)
    return dataclasses.replace(found, seconds=time.monotonic() - began)


def least_evaluations(dim: int) -> int:
    """Return about how many evaluations a search takes at least.

    Measured of one Gaussian mode: 21, 23, 87, 125 and 158 thousand in 1, 2, 5, 10 and 20 dimensions.
    """
    return 12_000 + 170 * _num_far_chains(dim, is_straight=False)


def _num_far_chains(dim: int, is_straight: bool) -> int:
    """Return the chains of the population from the wide base or the prior."""
    share, most = (_CHAINS_STRAIGHT, _MOST_STRAIGHT) if is_straight else (_CHAINS_FAR, _MOST)
    return int(np.clip(share * dim**2 if dim > 2 else 0, _FEWEST, most))


def _searched(
    evaluator: Evaluator,
    kernel: AbstractTunedKernel,
    name: str,
    seed: int,
    neck: Straightened | None = None,
) -> DensityBases | Straightened:
    """Search bases of a density; or return it in other coordinates, where chains meet a neck in these.

    With a `neck` that is known, this is the straightened density, and what is known is given back where its
    pilots find less mass than those before; or it is the density that the neck is in.
    """
    model, generator = evaluator.model, np.random.default_rng(derive_seed(seed, "search"))
    is_straight = neck is not None and model is neck.model
    starts = start_points(evaluator, seed, is_straight)
    modes = find_modes(evaluator, starts) if model.is_differentiable else []
    if model.prior is not None:
        origins: tuple[AbstractBase, ...] = (model.prior,)
    else:
        origins = wide_bases(evaluator, _true(modes), starts, generator, is_straight)
    offset = None
    if _true(modes) and hasattr(origins[0], "offset"):  # near the largest value that is known
        offset = max(mode.value for mode in _true(modes))
    origins = tuple(origin.with_offset(offset) for origin in origins)
    found = _explored(evaluator, kernel.with_tuning(None), origins, seed, is_straight)
    wide, population = found[-1]
    populations = [one for _, one in found]
    if model.is_differentiable:
        again = np.concatenate([one.starts for one in populations])
        modes = find_modes(evaluator, again, modes)
    evaluator.spent["populations"] += sum(one.evaluations for one in populations)
    sample = _pooled([one.sample for one in populations])
    if neck is None and model.is_differentiable:
        places = np.array([mode.place for mode in modes]).reshape(-1, model.dim)
        necks = straightened(evaluator, sample, places, generator.spawn(1)[0])
        if necks is not None:
            return necks
    if neck is not None and is_straight and sample.log_z < neck.log_z - _LOST:
        return neck
    outside, rows, seen = evaluator, sample.rows[-1], modes
    if neck is not None and is_straight:  # of other coordinates it is not known how they go on
        outside, rows, seen = evaluator.of(neck.origin), neck.positions(rows), []
    findings = improper_findings(outside, rows, sample.values, seen, generator)
    kind = "auto" if name in ("wide", "prior") else name
    fitted = fitted_base(evaluator, _true(modes), sample, kind, generator, is_straight)
    findings += other_findings(evaluator, modes, sample, fitted, generator)
    if neck is not None:
        rows = neck.positions(sample.flat) if is_straight else sample.flat
        findings += missed_neck(neck, rows.reshape(sample.rows.shape))
    some = generator.permutation(len(sample.flat))[:_ROUNDED]
    rounding = evaluator.rounding(sample.flat[some])
    first, second = fitted.with_offset(offset), wide
    own_kernel, temperatures = population.kernel, len(population.adaptation.betas)
    is_easy = model.prior is not None and name == "auto" and temperatures <= _EASY_TEMPERATURES
    if name in ("wide", "prior") or is_easy:
        first, second, own_kernel, temperatures = second, first, None, 2
    reason = _reason(modes, populations, fitted)
    return DensityBases(
        first, second, own_kernel, temperatures, findings, reason, rounding, evaluator.evaluations
    )


def _in_own_coordinates(found: DensityBases, straight: Straightened) -> DensityBases:
    """Bases of a straightened density, as those of the density itself."""
    first, second = found.first, found.second
    for warp in reversed(straight.warps):
        assert isinstance(first, AbstractFrameBase)
        assert isinstance(second, AbstractFrameBase)
        first, second = WarpedBase(first, warp), WarpedBase(second, warp)
    reason = f"{found.reason}; in units of their scales, which depend on {straight.names}"
    return dataclasses.replace(found, first=first, second=second, reason=reason)


def _true(modes: list[Mode]) -> list[Mode]:
    return [mode for mode in modes if mode.is_mode]


def _reason(modes: list[Mode], populations: list[Population], fitted: AbstractBase) -> str:
    components = getattr(fitted, "num_components", 1)
    tail = getattr(fitted, "dof", 0)
    words = f"{components} {'component' if components == 1 else 'components'}"
    words += f" of Student's t, {tail} degrees" if tail else ""
    return (
        f"{words}, fitted to {sum(one.adaptation.starts for one in populations)} chains after "
        f"{' and '.join(str(len(one.adaptation.betas)) for one in populations)} temperatures; {len(modes)} "
        f"{'mode' if len(modes) == 1 else 'modes'} found uphill"
    )


def _explored(
    evaluator: Evaluator,
    kernel: AbstractTunedKernel,
    origins: tuple[AbstractBase, ...],
    seed: int,
    is_straight: bool,
) -> list[tuple[AbstractBase, Population]]:
    """A population from every origin, left out where the density is zero on all its chains.

    From the last one, the widest, with many chains in many dimensions: a mode half as wide as another has
    2^-dim of the chains of that one while they are hot. A straightened density was looked at before.
    """
    model = evaluator.model
    found: list[tuple[AbstractBase, Population]] = []
    many = _num_far_chains(model.dim, is_straight)
    last = len(origins) - 1
    for place, origin in enumerate(origins):
        path, own = kernel.extend(model.path(origin)), derive_seed(seed, "population", place)
        count = many if place == last else None
        try:
            one = explore(path, kernel, seed=own, budget=_BUDGET, num_chains=count)
            found.append((origin, one))
        except NoWeight as lost:
            assert kernel.evaluations is not None
            evaluator.spent["populations"] += kernel.evaluations * lost.sweeps + lost.starts
            if place == last and not found:
                raise
    return found


def _pooled(samples: list[Sample]) -> Sample:
    """Chains of all populations, of each in proportion to the mass that it found."""
    log_z = np.array([one.log_z for one in samples])
    shares = np.exp(log_z - log_z.max())
    shares = np.where(shares < _NEGLIGIBLE, 0.0, shares)
    rows, values = [], []
    for share, one in zip(shares, samples, strict=True):
        count = int(np.ceil(share * one.rows.shape[1]))
        rows.append(one.rows[:, :count])
        values.append(one.values[:, :count])
    log_mean_z = float(np.log(np.exp(log_z - log_z.max()).mean()) + log_z.max())
    return Sample(np.concatenate(rows, axis=1), np.concatenate(values, axis=1), log_mean_z)

"""The bases of a density: one fitted to where its mass is, and a wide one for a second opinion.

    1   modes are found uphill from many starts (`modes.py`);
    2   populations are annealed from a base around the modes and from a far wider one, or from the prior
        where there is one (`wide.py`, `population.py`), and pooled in proportion to the mass that each
        found;
    3   bases are fitted to them and compared: Laplace's, one Gaussian, several, Student's t (`fitting.py`).

Where a coordinate sets the scales of others, so that chains do not enter a neck, all this is done again in
coordinates in which it is open (`necks.py`). Bases are then given back in the density's own
(`bases/warped.py`).

The second base is the wide one, or the prior. Where the population hardly had to be annealed from the
prior, that is the first and the fitted one the second.

What is found that speaks against any annealing:

    improper        the density does not fall far out (`proper.py`)
    missed mode     a mode found uphill holds mass, by importance sampling around it, where no chain came;
                    unless chains of the run start there, and it is about as wide as one where chains came
    two kinds       chains at beta = 1 fall into two groups that differ by many nats and do not mix: a
                    narrow and a wide state of like mass, a transition of first order, which annealing
                    cannot follow

    missed neck     a neck holds mass by Laplace's approximation, where chains hardly came

Everything uses random streams of its own and is charged.
"""

import dataclasses
import time
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln, logsumexp

from annealz.bases.abstract import AbstractBase
from annealz.bases.frame import AbstractFrameBase
from annealz.bases.warped import WarpedBase
from annealz.core.arrays import on_device
from annealz.core.programs import Compiled
from annealz.core.random import Stream, derive_seed
from annealz.diagnostics.findings import Finding, Kind
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.adaptation import AbstractTunedKernel, NoWeight
from annealz.models.log_density import LogDensity
from annealz.pilots.densities.evaluator import Evaluator
from annealz.pilots.densities.fitting import fitted_base
from annealz.pilots.densities.modes import Mode, find_modes, start_points
from annealz.pilots.densities.necks import Straightened, missed_neck, straightened
from annealz.pilots.densities.population import Population, Sample, explore
from annealz.pilots.densities.proper import improper_direction
from annealz.pilots.densities.wide import FAR, FAR_STRAIGHT, WIDEST_STRAIGHT, wide_bases

_BUDGET = 4_000  # sweeps of the population, where about twelve temperatures are enough
_EASY_TEMPERATURES = 2
_LOST = 1.0  # nats less than before: coordinates that do not suit the density
_MISSED = 0.05  # of the mass
_VISITED = 0.15  # of what should be there
_PLACES = 1024  # draws of a base
_LOCAL_DRAWS = 64
_LOCAL_DOF = 4
_LEAST_CHAINS = 3
_CHAINS_FAR, _CHAINS_STRAIGHT = 20, 8  # times dim^2
_FEWEST, _MOST, _MOST_STRAIGHT = 51, 640, 384
_NEGLIGIBLE = 0.02  # of the mass that another population found
_HIGHEST = 4  # of the cooled chains, from which searches start
_LARGEST = 1e12  # log density
_ROUNDED = 16  # states at which the rounding of the density is measured
_RATIO = 5.0  # of the widths of two kinds of states, in every direction


@dataclasses.dataclass(frozen=True)
class DensityBases:
    """The first and the second base, and what was found on the way."""

    first: AbstractBase
    second: AbstractBase | None
    second_kernel: AbstractTunedKernel | None
    """Tuned along the second path."""
    second_temperatures: int
    """Of equal difficulty, that a population needed along it."""
    findings: tuple[Finding, ...]
    reason: str
    rounding: float
    """Of one value of the density, in float32."""
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
        inside = Evaluator(found.model, evaluator.evaluations)
        straight = _searched(inside, kernel, name, seed, found, evaluator)
        if isinstance(straight, DensityBases):
            found = _in_own_coordinates(straight, found)
        else:  # less than was there before
            evaluator.evaluations = inside.evaluations
            found = _searched(evaluator, kernel, name, seed, found)
    assert isinstance(found, DensityBases)
    return dataclasses.replace(found, seconds=time.monotonic() - began)


def _searched(
    evaluator: Evaluator,
    kernel: AbstractTunedKernel,
    name: str,
    seed: int,
    known: Straightened | None = None,
    own: Evaluator | None = None,
) -> DensityBases | Straightened:
    """Bases of a density; or the density in other coordinates, where chains meet a neck in these.

    What is `known` of a neck: with `own`, the density that the neck is in, this is the straightened one,
    and what is known is given back where its pilots find less mass than those before; else it is that one.
    """
    is_straight = own is not None
    model, generator = evaluator.model, np.random.default_rng(derive_seed(seed, "search"))
    starts = start_points(evaluator, seed, *((WIDEST_STRAIGHT,) if is_straight else ()))
    modes = find_modes(evaluator, starts) if model.is_differentiable else []
    origins: tuple[AbstractBase, ...] = (model.prior,) if model.prior is not None else ()
    far = FAR_STRAIGHT if is_straight else FAR
    origins = origins or wide_bases(evaluator, _true(modes), starts, generator, far)
    offset = _offset(modes, origins[0])
    origins = tuple(_with_offset(origin, offset) for origin in origins)
    found = _explored(evaluator, kernel.with_tuning(None), origins, seed, is_straight)
    wide, population = found[-1]
    populations = [one for _, one in found]
    if model.is_differentiable:
        again = [start for one in populations for start in (_highest(one), one.hot)]
        modes = find_modes(evaluator, np.concatenate(again), modes)
    evaluator.evaluations += sum(one.evaluations for one in populations)
    sample = _pooled(populations)
    if known is None and model.is_differentiable:
        places = np.array([mode.place for mode in modes]).reshape(-1, model.dim)
        necks = straightened(evaluator, sample, places, generator.spawn(1)[0])
        if necks is not None:
            return necks
    if is_straight and known is not None and sample.log_z < known.log_z - _LOST:
        return known
    if own is None or known is None:
        improper = _improper(evaluator, sample.rows[-1], modes, generator)
    else:  # in its own coordinates: of others it is not known how they go on
        before, rows = own.evaluations, known.positions(sample.rows[-1])
        improper = _improper(own, rows, [], generator)
        evaluator.evaluations += own.evaluations - before
    if improper and not _is_bounded(sample):
        raise ValueError(
            f"the log density of {model.name} grows without bound, to {sample.values.max():.3g} where the "
            "pilot came: it has no integral; check the function, its sign and its priors."
        )
    kind = "auto" if name in ("wide", "prior") else name
    fitted = fitted_base(evaluator, _true(modes), sample, kind, generator, is_straight)
    findings = (*improper, *_findings(evaluator, modes, sample, fitted, generator))
    neck = None if known is None else missed_neck(known, sample.rows, is_straight)
    findings = findings if neck is None else (*findings, neck)
    some = generator.permutation(len(sample.flat))[:_ROUNDED]
    rounding = evaluator.rounding(sample.flat[some])
    spent = evaluator.evaluations
    fitted = dataclasses.replace(_with_offset(fitted, offset), evaluations=spent)
    is_easy = model.prior is not None and name == "auto"
    is_easy = is_easy and len(population.adaptation.betas) <= _EASY_TEMPERATURES
    reason = _reason(modes, populations, fitted)
    if name in ("wide", "prior") or is_easy:
        return DensityBases(wide, fitted, None, 2, findings, reason, rounding, spent)
    return DensityBases(
        fitted,
        wide,
        population.kernel,
        len(population.adaptation.betas),
        findings,
        reason,
        rounding,
        spent,
    )


def _in_own_coordinates(found: DensityBases, straight: Straightened) -> DensityBases:
    """Bases of a straightened density, as those of the density itself."""
    first, second = found.first, found.second
    for warp in reversed(straight.warps):
        assert isinstance(first, AbstractFrameBase)
        assert second is None or isinstance(second, AbstractFrameBase)
        first = WarpedBase(first, warp)
        second = None if second is None else WarpedBase(second, warp)
    reason = f"{found.reason}; in units of their scales, which depend on {straight.names}"
    return dataclasses.replace(found, first=first, second=second, reason=reason)


def _true(modes: list[Mode]) -> list[Mode]:
    return [mode for mode in modes if mode.is_mode]


def _offset(modes: list[Mode], wide: AbstractBase) -> Any:
    """Near the largest value that is known, exact in float32; None where the base cannot carry one."""
    modes = _true(modes)
    if not modes or not hasattr(wide, "offset"):
        return None
    return on_device(np.float32(max(mode.value for mode in modes)))


def _with_offset(base: Any, offset: Any) -> Any:
    if offset is None or not hasattr(base, "offset"):
        return base
    return dataclasses.replace(base, offset=offset)


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


def _highest(population: Population) -> np.ndarray:
    """The highest of the cooled chains, some of them, and at random some of the others."""
    order = np.argsort(-population.cooled_values)
    return population.cooled[np.concatenate([order[:_HIGHEST], order[_HIGHEST :: len(order) // 4]])]


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
    share, most = (_CHAINS_STRAIGHT, _MOST_STRAIGHT) if is_straight else (_CHAINS_FAR, _MOST)
    many = int(np.clip(share * model.dim**2 if model.dim > 2 else 0, _FEWEST, most))
    last = len(origins) - 1
    tasks = [
        (kernel.extend(model.path(origin)), many if place == last else None)
        for place, origin in enumerate(origins)
    ]
    for place, (states, count) in enumerate(tasks):
        own = derive_seed(seed, "population", place)
        try:
            one = explore(states, kernel, seed=own, budget=_BUDGET, num_chains=count)
            found.append((origins[place], one))
        except NoWeight as lost:
            assert kernel.evaluations is not None
            evaluator.evaluations += kernel.evaluations * lost.sweeps + lost.starts
            if place == last and not found:
                raise
    return found


def _pooled(populations: list[Population]) -> Sample:
    """Chains of all populations, of each in proportion to the mass that it found."""
    log_z = np.array([one.log_z for one in populations])
    shares = np.exp(log_z - log_z.max())
    shares = np.where(shares < _NEGLIGIBLE, 0.0, shares)
    kept = [int(np.ceil(s * one.rows.shape[1])) for s, one in zip(shares, populations, strict=True)]
    rows = [one.rows[:, :count] for one, count in zip(populations, kept, strict=True)]
    values = [one.values[:, :count] for one, count in zip(populations, kept, strict=True)]
    log_mean_z = float(np.log(np.exp(log_z - log_z.max()).mean()) + log_z.max())
    return Sample(np.concatenate(rows, axis=1), np.concatenate(values, axis=1), log_mean_z)


def _is_bounded(population: Sample) -> bool:
    """Whether the chains' values are numbers that float32 holds well."""
    values = population.values
    return bool(np.isfinite(values).all() and values.max() < _LARGEST)


def _findings(
    evaluator: Evaluator,
    modes: list[Mode],
    population: Sample,
    base: Any,
    generator: np.random.Generator,
) -> tuple[Finding, ...]:
    """What speaks against annealing this density at all."""
    found: list[Finding] = []
    visited = [mode for mode in modes if mode.is_mode and _share_near(mode, population.some) > 0]
    starts = _places(base.unnamed(), Stream(int(generator.integers(2**31)), "places"), work=0)
    starts = np.asarray(starts, np.float64)
    for mode in modes:
        share = _missed_share(evaluator, mode, population, generator)
        is_held = any(mode.is_like(other) for other in visited)
        if share > 0 and not (is_held and _share_near(mode, starts) > _VISITED * share):
            place = _in_words(mode.place)
            found.append(Finding.of(Kind.MISSED_MODE, place=place, share=100 * share))
            break
    gap = _two_kinds(population)
    if gap > 0:
        found.append(Finding.of(Kind.TWO_KINDS, gap=gap))
    return tuple(found)


def _improper(
    evaluator: Evaluator, rows: np.ndarray, modes: list[Mode], generator: np.random.Generator
) -> tuple[Finding, ...]:
    """Whether the density falls far out."""
    direction = improper_direction(evaluator, rows, modes, generator)
    if direction is None:
        return ()
    words = _in_words(direction / np.linalg.norm(direction))
    return (Finding.of(Kind.IMPROPER, direction=words),)


@Compiled
def _places(base, stream):
    """Where chains start that are drawn from this base."""
    return base.sample(stream.at(0, jnp.arange(_PLACES)))


def _share_near(mode: Mode, rows: np.ndarray) -> float:
    """Of these rows, those that lie in a mode."""
    return float((mode.distance(rows) < _near(mode.place.size)).mean())


def _near(dim: int) -> float:
    """The squared distance from a mode, in its own units, that few of its states are beyond."""
    return dim + 4 * np.sqrt(2 * dim) + 9


def _missed_share(
    evaluator: Evaluator, mode: Mode, population: Sample, generator: np.random.Generator
) -> float:
    """The share of the mass around a mode where no chain came; 0 where there is none to speak of."""
    if not mode.is_mode or mode.evidence < population.log_z + np.log(_MISSED) - 1:
        return 0.0
    dim = mode.place.size
    near, visited = _near(dim), _share_near(mode, population.some)
    if visited > _VISITED:
        return 0.0
    normals = generator.normal(size=(_LOCAL_DRAWS, dim))
    squares = generator.chisquare(_LOCAL_DOF, size=(_LOCAL_DRAWS, 1))
    root = np.linalg.cholesky(mode.covariance)
    y = normals * np.sqrt(_LOCAL_DOF / squares)
    logs = evaluator.values(mode.place + y @ root.T)
    lengths = (y**2).sum(1)
    constant = gammaln((_LOCAL_DOF + dim) / 2) - gammaln(_LOCAL_DOF / 2)
    constant -= dim / 2 * np.log(_LOCAL_DOF * np.pi) + np.log(np.diag(root)).sum()
    density = constant - (_LOCAL_DOF + dim) / 2 * np.log1p(lengths / _LOCAL_DOF)
    weights = np.where(np.isfinite(logs) & (lengths < near), logs - density, -np.inf)
    mass = float(logsumexp(weights) - np.log(_LOCAL_DRAWS))
    total = np.logaddexp(mass, population.log_z)
    share = float(np.exp(mass - total))
    return share if share > _MISSED and visited < _VISITED * share else 0.0


def _two_kinds(population: Sample) -> float:
    """How many nats part two groups of chains that do not mix; 0 where there is one group."""
    dim = population.rows.shape[-1]
    means = np.sort(population.values.mean(0))
    gaps = np.diff(means)[_LEAST_CHAINS - 1 : 1 - _LEAST_CHAINS]
    if not gaps.size:
        return 0.0
    largest = float(gaps.max())
    within = float(np.median(population.values.std(0)))
    return largest if largest > max(dim * np.log(_RATIO), 4 * within, 4.0) else 0.0


def _in_words(x: np.ndarray) -> str:
    values = ", ".join(f"{value:.3g}" for value in x[:4])
    return f"({values}{', …' if x.size > 4 else ''})"

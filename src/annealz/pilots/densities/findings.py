"""What speaks against annealing a density, whatever the base.

    improper        the density does not fall far out
    missed mode     a mode found uphill holds mass, by importance sampling around it, where no chain came;
                    unless chains of the run start there, and it is about as wide as one where chains came
    two kinds       chains at beta = 1 fall into two groups that differ by many nats and do not mix: a
                    narrow and a wide state of like mass, a transition of first order, which annealing
                    cannot follow
    missed neck     a neck holds mass by Laplace's approximation, where chains hardly came (`necks.py`)

Can this density be normalised? A look far out says, along single directions and in all of them. Of a
density with a finite integral almost every conditional has one (Fubini): from a typical state x, along a
direction e,

    p(x + r e) r -> 0        as r grows

Where log p(x + r e) + log r does not fall over the last octaves, from most states and in one direction, the
density does not fall fast enough to be normalised. A density of several variables may be normalised along
every line and still have no integral. So the mass of whole shells is looked at too, x = c + r S u with u in
random directions, c and S S^T the median and the covariance of the states:

    mean over u of p(c + r S u) r^dim -> 0

Directions are the principal axes of the states, those in which a mode is flattest, and some coordinates.
States are those of a pilot at beta = 1: in a centred hierarchy, whose density is unbounded where all
effects agree, they are where its mass is, and there it falls.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln, logsumexp

from annealz.bases.gaussian import root_of
from annealz.core.programs import Compiled
from annealz.core.random import Stream
from annealz.diagnostics.findings import Finding, Kind
from annealz.pilots.densities.evaluator import Evaluator
from annealz.pilots.densities.modes import Mode
from annealz.pilots.densities.population import Sample

_NUM_STATES = 6
_NUM_AXES = 6
_OCTAVES = np.arange(0, 21, 2)
_LEAST_FALL = 0.2  # nats, over the last two octaves: of a tail that can be normalised
_SHARE = 0.5  # of the states
_NUM_RAYS = 32
_PLACES = 1024  # draws of a base
_MISSED = 0.05  # of the mass
_VISITED = 0.15  # of what should be there
_LOCAL_DRAWS = 64
_LOCAL_DOF = 4
_LEAST_CHAINS = 3
_LARGEST = 1e12  # log density
_RATIO = 5.0  # of the widths of two kinds of states, in every direction


def other_findings(
    evaluator: Evaluator,
    modes: list[Mode],
    population: Sample,
    base: Any,
    generator: np.random.Generator,
) -> tuple[Finding, ...]:
    """What speaks against annealing this density at all."""
    visited = [mode for mode in modes if mode.is_mode and _share_near(mode, population.some) > 0]
    starts = _places(base.unnamed(), Stream(int(generator.integers(2**31)), "places"), work=0)
    starts = np.asarray(starts, np.float64)
    for mode in modes:
        share = _missed_share(evaluator, mode, population, generator)
        is_held = any(mode.is_like(other) for other in visited)
        if share > 0 and not (is_held and _share_near(mode, starts) > _VISITED * share):
            place = _in_words(mode.place)
            missed = (Finding.of(Kind.MISSED_MODE, place=place, share=100 * share),)
            break
    else:
        missed = ()
    gap = _two_kinds(population)
    return (*missed, Finding.of(Kind.TWO_KINDS, gap=gap)) if gap > 0 else missed


def improper_findings(
    evaluator: Evaluator,
    rows: np.ndarray,
    values: np.ndarray,
    modes: list[Mode],
    generator: np.random.Generator,
) -> tuple[Finding, ...]:
    """Whether the density falls far out, by states and values of its pilot; unbounded, it is refused."""
    direction = improper_direction(evaluator, rows, modes, generator)
    if direction is None:
        return ()
    if not (np.isfinite(values).all() and values.max() < _LARGEST):
        raise ValueError(
            f"the log density of {evaluator.model.name} grows without bound, to {values.max():.3g} where "
            "the pilot came: it has no integral; check the function, its sign and its priors."
        )
    words = _in_words(direction / np.linalg.norm(direction))
    return (Finding.of(Kind.IMPROPER, direction=words),)


def improper_direction(
    evaluator: Evaluator,
    rows: np.ndarray,
    modes: Sequence[Mode],
    generator: np.random.Generator,
) -> np.ndarray | None:
    """A direction in which the density does not fall, or None."""
    dim = rows.shape[1]
    spread = np.atleast_2d(np.cov(rows.T)) + 1e-12 * np.eye(dim)
    values, axes = np.linalg.eigh(spread)
    order = np.argsort(-values)[: _NUM_AXES // 2]
    coordinates = generator.permutation(dim)[: _NUM_AXES - order.size]
    directions = [axes[:, i] * np.sqrt(values[i]) for i in order]
    directions += [np.eye(dim)[i] * np.sqrt(spread[i, i]) for i in coordinates]
    for mode in modes[:2]:
        flattest = np.linalg.eigh(mode.sharpness)[1][:, :2]
        directions += [axis * np.sqrt(axis @ spread @ axis) for axis in flattest.T]
    directions = np.array([sign * one for one in directions for sign in (-1, 1)])
    states = rows[generator.permutation(len(rows))[:_NUM_STATES]]
    radii = 2.0**_OCTAVES
    far = states[:, None, None] + radii[None, None, :, None] * directions[None, :, None]
    logs = evaluator.values(far.reshape(-1, dim)).reshape(far.shape[:3])  # (states, axes, radii)
    logs = np.where(np.isnan(logs), -np.inf, logs) + np.log(radii)
    with np.errstate(invalid="ignore"):
        fall = logs[:, :, -2] - logs[:, :, -1]
    keeps = np.isfinite(logs[:, :, -1]) & ~(fall > _LEAST_FALL)
    shares = keeps.mean(0)
    worst = int(np.argmax(shares))
    if shares[worst] > _SHARE:
        return directions[worst]
    return _improper_shells(evaluator, rows, spread, generator.spawn(1)[0])


def _improper_shells(
    evaluator: Evaluator, rows: np.ndarray, spread: np.ndarray, generator: np.random.Generator
) -> np.ndarray | None:
    """The highest ray, where the mass of shells does not fall; None where it does."""
    dim, radii = rows.shape[1], 2.0**_OCTAVES
    if dim == 1:
        return None  # a line is all there is
    centre = np.median(rows, axis=0)
    rays, logs = evaluator.values_along_rays(centre, root_of(spread), radii, _NUM_RAYS, generator)
    masses = np.logaddexp.reduce(logs, axis=1) + dim * np.log(radii)
    if not np.isfinite(masses[-1]) or masses[-2] - masses[-1] > _LEAST_FALL:
        return None
    return rays[int(np.argmax(logs[-1]))]


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

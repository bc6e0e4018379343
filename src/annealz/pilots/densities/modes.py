"""Modes of a density, found uphill from many starts, and how much mass each holds.

Starts are the origin, the model's own (draws of the prior among them), and draws around the origin at
scales from 1 to 64, which depend on the seed. From each a quasi-Newton search (L-BFGS, `uphill.py`) goes
uphill, until it has come to where a known mode's Gaussian is the density. At a mode m with H minus the
second derivatives,

    Laplace evidence    f(m) + dim/2 log 2 pi - log |H| / 2

A search that ends at a saddle, at an edge, or without curvature in some direction is not a mode: it is left
out where there are others. One that ends far beyond its starts with f still rising shows that f is not
bounded, which a proper density may be too (a scale that goes to zero with what it scales).

Around the modes lie bases that are wide enough to start from where nothing is known, Student's t:

    centre        the average of the modes
    covariance    4 times the average of their Laplace covariances, plus the spread of the modes
    width         by a look along rays: the mass between radii r and 2 r is about

                      M(r) = log mean over rays of p(centre + r S u) + dim log r

                  and the covariance is scaled up to the largest r whose M is within 5 nats of the best
    far           of another, wider one: 32^2 in every direction is added, so that modes lie inside that no
                  search found; parameters are usually given in units in which they are not larger

Where no gradient is known, or no mode is found, the centre is the best start and S the identity.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from annealz.bases.gaussian import root_of
from annealz.bases.gaussian_mixture import GaussianMixtureBase
from annealz.core.arrays import times
from annealz.core.random import derive_seed
from annealz.pilots.densities.evaluator import Evaluator
from annealz.pilots.densities.uphill import uphill

_SCALES = (1.0, 4.0, 16.0, 64.0)
_DRAWS = ((20, 384), (100, 96), (np.inf, 8))  # up to so many dimensions; in few for narrow modes
_MANY, _INSIDE = 64, 16  # points at every scale where no start has a density, and how many are kept
_MOST_MODES = 24
_RIVAL = 12.0  # nats
_FLATTEST = 1e-6  # curvature, of the sharpest
_SADDLE = 1e-3  # so much downwards, of the sharpest, is not a mode
_LIKE = 3.5  # of two widths
_RUNAWAY = 1e3  # times the largest start: no mode is there

_WIDE = 4.0  # times the Laplace covariance
_NUM_RAYS = 40
_OCTAVES = np.arange(-8, 13)
_WITHIN = 5.0  # nats
_DOF = 4
_FAR = 32.0
_FAR_STRAIGHT, _WIDEST_STRAIGHT = 1.0, 4.0  # where coordinates are in units of their spread


@dataclasses.dataclass(frozen=True)
class Mode:
    """A stationary point, and the Gaussian that fits there."""

    place: np.ndarray
    value: float
    evidence: float  # Laplace's, of the mass around it
    covariance: np.ndarray
    sharpness: np.ndarray  # its inverse
    is_mode: bool  # whether the density falls in every direction
    is_flat: bool  # whether it hardly changes in some direction, so that the evidence says nothing

    def is_same(self, place: np.ndarray, value: float) -> bool:
        """Whether a search that ended here found this mode again, and not a narrow one inside it."""
        return bool(self.distance(place[None])[0] < 1 and abs(value - self.value) < 1)

    def is_like(self, other: "Mode") -> bool:
        """Whether both have about the same width, by the volumes of their Gaussians."""
        logs = [np.linalg.slogdet(mode.covariance)[1] for mode in (self, other)]
        return bool(abs(logs[0] - logs[1]) < 2 * self.place.size * np.log(_LIKE))

    def leads_to(self, x: np.ndarray, value: float, gradient: np.ndarray) -> bool:
        """Whether the density at x is that of the Gaussian here, so that a search would end here."""
        if not self.is_mode:
            return False
        slope = self.sharpness @ (self.place - x)
        square = float((self.place - x) @ slope)
        if square > 2 * x.size + 4 or abs(value - self.value + square / 2) > 0.2 + square / 20:
            return False
        off = gradient - slope
        return bool(off @ self.covariance @ off < (1 + square) / 20)

    def distance(self, rows: np.ndarray) -> np.ndarray:
        """Squared, in its own units, of every row."""
        away = rows - self.place
        return np.einsum("ni,ni->n", times(away, self.sharpness), away)


def start_points(evaluator: Evaluator, seed: int, is_straight: bool = False) -> np.ndarray:
    """Where searches start: (points, dim), at scales from 1 to the widest."""
    widest = _WIDEST_STRAIGHT if is_straight else _SCALES[-1]
    model = evaluator.model
    generator = np.random.default_rng(derive_seed(seed, "starts"))
    count = next(count for most, count in _DRAWS if model.dim <= most)
    scales = widest ** generator.uniform(size=(count, 1))
    around = [scales * generator.normal(size=(count, model.dim))]
    own = [] if model.starts is None else [np.asarray(model.starts, np.float64)]
    starts = np.concatenate([np.zeros((1, model.dim)), *own, *around])
    if np.isfinite(evaluator.values(starts)).any():
        return starts
    many = [generator.normal(0, scale, (_MANY, model.dim)) for scale in (0.1, 0.5, *_SCALES)]
    points = np.concatenate([*many, *map(np.abs, many)])
    inside = points[np.isfinite(evaluator.values(points))]
    return np.concatenate([starts, inside[generator.permutation(len(inside))[:_INSIDE]]])


def find_modes(evaluator: Evaluator, starts: np.ndarray, known: Sequence[Mode] = ()) -> list[Mode]:
    """Distinct ones whose evidence is within 12 nats of the best place, best first.

    Where there is none, the places where searches ended, which are flat, saddles or of no account.
    """
    furthest = _RUNAWAY * max(1.0, float(np.abs(starts).max()))
    modes = list(known)

    def is_known(x: np.ndarray, value: float, gradient: np.ndarray) -> bool:
        return any(mode.leads_to(x, value, gradient) for mode in modes)

    for place, value in uphill(evaluator, starts, furthest, is_known):
        if any(mode.is_same(place, value) for mode in modes):
            continue
        mode = _mode_at(evaluator, place, value)
        if mode is None or sum(one.is_mode == mode.is_mode for one in modes) >= _MOST_MODES:
            continue
        modes.append(mode)
    best = max((mode.evidence for mode in modes if not mode.is_flat), default=np.inf)
    near = [mode for mode in modes if mode.is_mode and mode.evidence > best - _RIVAL]
    return sorted(near, key=lambda mode: -mode.evidence) if near else modes


def _mode_at(evaluator: Evaluator, place: np.ndarray, value: float) -> Mode | None:
    matrix = evaluator.hessian(place)
    if not np.isfinite(matrix).all():
        return None
    curvature, axes = np.linalg.eigh(-(matrix + matrix.T) / 2)
    largest = float(np.abs(curvature).max())
    is_mode = bool(curvature.min() > -_SADDLE * curvature.max()) and largest > 0
    is_flat = bool(np.abs(curvature).min() < _FLATTEST * largest) or largest < 1e-12
    curvature = np.maximum(np.abs(curvature), max(_FLATTEST * largest, 1e-12))
    evidence = value + len(place) / 2 * np.log(2 * np.pi) - np.log(curvature).sum() / 2
    covariance, sharpness = (axes / curvature) @ axes.T, (axes * curvature) @ axes.T
    is_mode &= not is_flat
    return Mode(place, value, float(evidence), covariance, sharpness, is_mode, is_flat)


def wide_bases(
    evaluator: Evaluator,
    modes: list[Mode],
    starts: np.ndarray,
    generator: np.random.Generator,
    is_straight: bool = False,
) -> tuple[GaussianMixtureBase, GaussianMixtureBase]:
    """Student's t of 4 degrees of freedom around what was found, and the far one, named wide."""
    dim = evaluator.model.dim
    if modes:
        places = np.stack([mode.place for mode in modes])
        centre = places.mean(0)
        covariance = _WIDE * np.mean([mode.covariance for mode in modes], axis=0)
        covariance = covariance + (places - centre).T @ (places - centre) / len(places)
    else:
        values = evaluator.values(starts)
        values = np.where(np.isfinite(values), values, -np.inf)
        if not np.isfinite(values).any():
            raise ValueError(
                f"the density of {evaluator.model.name} is zero, infinite or NaN at all {len(starts)} "
                "starts: give starts where it is finite, or a base."
            )
        centre, covariance = starts[int(np.argmax(values))], np.eye(dim)
    factor = _width(evaluator, centre, root_of(covariance), generator)
    covariance = (max(factor, 1.0) if modes else factor) ** 2 * covariance

    def base(covariance: np.ndarray, name: str) -> GaussianMixtureBase:
        return GaussianMixtureBase.from_moments(
            np.ones(1), centre[None], covariance[None], dof=_DOF, name=name
        )

    far = _FAR_STRAIGHT if is_straight else _FAR
    return base(covariance, "near"), base(covariance + far**2 * np.eye(dim), "wide")


def _width(evaluator: Evaluator, centre, root, generator: np.random.Generator) -> float:
    """The largest radius that counts, in units of the root of the dimension."""
    radii = 2.0**_OCTAVES
    _, logs = evaluator.values_along_rays(centre, root, radii, _NUM_RAYS, generator)
    logs = np.where(np.isfinite(logs), logs, -np.inf)
    with np.errstate(divide="ignore"):
        masses = logsumexp(logs, axis=1) + centre.size * np.log(radii)
    if not np.isfinite(masses).any():
        return 1.0
    return float(radii[np.flatnonzero(masses >= masses.max() - _WITHIN)[-1]])

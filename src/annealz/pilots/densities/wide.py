"""Bases that are wide enough to start from where nothing is known: Student's t around the modes found.

    centre        the average of the modes
    covariance    4 times the average of their Laplace covariances, plus the spread of the modes
    width         by a look along rays: the mass between radii r and 2 r is about

                      M(r) = log mean over rays of p(centre + r S u) + dim log r

                  and the covariance is scaled up to the largest r whose M is within 5 nats of the best
    far           of another, wider one: 32^2 in every direction is added, so that modes lie inside that no
                  search found; parameters are usually given in units in which they are not larger

Where no gradient is known, or no mode is found, the centre is the best start and S the identity.
"""

import numpy as np
from scipy.special import logsumexp

from annealz.bases.gaussian import root_of
from annealz.bases.gaussian_mixture import GaussianMixtureBase
from annealz.pilots.densities.evaluator import Evaluator
from annealz.pilots.densities.modes import Mode

_WIDE = 4.0  # times the Laplace covariance
_NUM_RAYS = 40
_OCTAVES = np.arange(-8, 13)
_WITHIN = 5.0  # nats
_DOF = 4
FAR = 32.0
FAR_STRAIGHT = 1.0
"""The same where coordinates are in units of their spread."""
WIDEST_STRAIGHT = 4.0
"""Scale of the starts of searches there."""


def wide_bases(
    evaluator: Evaluator,
    modes: list[Mode],
    starts: np.ndarray,
    generator: np.random.Generator,
    far: float = FAR,
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
    return float(radii[np.flatnonzero(masses > masses.max() - _WITHIN)[-1]])

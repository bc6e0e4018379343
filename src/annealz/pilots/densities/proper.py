"""Can this density be normalised? A look far out, along single directions and in all of them.

Of a density with a finite integral almost every conditional has one (Fubini): from a typical state x, along
a direction e,

    p(x + r e) r -> 0        as r grows

Where log p(x + r e) + log r does not fall over the last octaves, from most states and in one direction, the
density does not fall fast enough to be normalised. A density of several variables may be normalised along
every line and still have no integral. So the mass of whole shells is looked at too, x = c + r S u with u in
random directions, c and S S^T the median and the covariance of the states:

    mean over u of p(c + r S u) r^dim -> 0

Directions are the principal axes of the states, those
in which a mode is flattest, and some coordinates. States are those of a pilot at beta = 1: in a centred
hierarchy, whose density is unbounded where all effects agree, they are where its mass is, and there it
falls.
"""

from collections.abc import Sequence

import numpy as np

from annealz.bases.frame import root_of
from annealz.pilots.densities.evaluator import Evaluator
from annealz.pilots.densities.modes import Mode

_NUM_STATES = 6
_NUM_AXES = 6
_OCTAVES = np.arange(0, 21, 2)
_LEAST_FALL = 0.2  # nats, over the last two octaves: of a tail that can be normalised
_SHARE = 0.5  # of the states
_NUM_RAYS = 32


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
    dim = rows.shape[1]
    if dim == 1:
        return None  # a line is all there is
    rays = generator.normal(size=(_NUM_RAYS, dim))
    rays *= np.sqrt(dim) / np.linalg.norm(rays, axis=1, keepdims=True)
    rays = rays @ root_of(spread).T
    radii = 2.0**_OCTAVES
    far = np.median(rows, axis=0) + radii[:, None, None] * rays
    logs = evaluator.values(far.reshape(-1, dim)).reshape(far.shape[:2])  # (radii, rays)
    logs = np.where(np.isnan(logs), -np.inf, logs)
    masses = np.logaddexp.reduce(logs, axis=1) + dim * np.log(radii)
    if not np.isfinite(masses[-1]) or masses[-2] - masses[-1] > _LEAST_FALL:
        return None
    return rays[int(np.argmax(logs[-1]))]

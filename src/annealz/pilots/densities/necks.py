"""Necks: places where coordinates become narrow as one of them, t, changes, and where chains do not enter.

In a centred hierarchy, x_i ~ N(mu, e^2t), the effects x_i have no room where the scale e^t is small, and a
step that suits the rest is rejected there. Mass in the neck is missed, and weights do not show it.

Suspects are coordinates t of which the curvature of another one is a function, at some states of a pilot:

    log(-d^2 f / dx_i^2) / 2 = a + b t,    b sd(t) at least 0.2, and t explains 0.8 of its variance or more

Of a suspect the marginal density is found by Laplace's approximation of all others (`profile.py`), which
reaches into the neck. Two things are done with it:

1.  The density is given other coordinates (`bases/warped.py`), in which the others keep their scale:
    chains then go where they did not.
2.  The share of the mass below every t, and above it, is compared with that of the chains. A neck is
    missed where they have less than half of it, and it is too much for chance.
"""

import dataclasses
from collections.abc import Callable

import equinox as eqx
import numpy as np
from jaxtyping import Array
from scipy.special import bdtr, ndtr

from annealz.bases.warped import Warp, knots
from annealz.core.arrays import on_device
from annealz.diagnostics.findings import Finding, Kind
from annealz.models.functions import WarpedFunction
from annealz.models.log_density import LogDensity
from annealz.pilots.densities.evaluator import Evaluator
from annealz.pilots.densities.population import Sample
from annealz.pilots.densities.profile import Profile, profile

_STATES = 16
_STARTS = 8
_LEAST_SLOPE = 0.2  # of log curvature / 2, per standard deviation
_LEAST_EXPLAINED = 0.8  # of its variance
_MOST_SUSPECTS = 2
_MOST_DIM = 100
_LEAST_SPREAD = 0.3  # of the log scales, under the profile's shares
_NUM_KNOTS = 33
_FINER = 8  # points of the integral, for one of the profile
_SLOWEST = 0.05  # nats that log m falls by, from one point to the next beyond the profile
_NOTHING = 25.0  # nats
_LEAST_FALL = 3.0  # nats, at the ends of a profile
_HALF = 0.5
_LEAST_SHARE = 0.02
_CHANCE = 1e-3

_forward, _inverse = eqx.filter_jit(Warp.forward), eqx.filter_jit(Warp.inverse)


@dataclasses.dataclass(frozen=True)
class Straightened:
    """A density, the same in other coordinates, and what led to them."""

    origin: LogDensity
    model: LogDensity  # the same in the other coordinates
    warps: tuple[Warp, ...]  # from the density's own coordinates inwards
    profiles: tuple[Profile, ...]
    log_z: float  # what a pilot found before, rough

    @property
    def names(self) -> str:
        """The coordinates that others depend on."""
        return " and ".join(_name(self.model, along.coordinate) for along in self.profiles)

    def positions(self, rows: np.ndarray) -> np.ndarray:
        """Rows (points, dim) of this density, in the coordinates of the one that it comes from."""
        for warp in reversed(self.warps):
            rows = _moved(_forward, warp, rows)
        return rows


def suspects(
    evaluator: Evaluator, rows: np.ndarray, generator: np.random.Generator
) -> tuple[int, ...]:
    """Coordinates that set the scales of others, the strongest first."""
    dim = rows.shape[1]
    if not 2 <= dim <= _MOST_DIM:
        return ()
    x = rows[generator.permutation(len(rows))[:_STATES]]
    curvatures = -np.stack([np.diag(evaluator.hessian(one)) for one in x])  # (states, dim)
    is_clear = (curvatures > 0).all(0) & np.isfinite(curvatures).all(0)
    logs = np.log(np.where(is_clear, curvatures, 1.0)) / 2
    logs, t = logs - logs.mean(0), x - x.mean(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = logs.T @ t / (t**2).sum(0)  # (dim, suspects)
        explained = slopes**2 * (t**2).sum(0) / (logs**2).sum(0)[:, None]
        strength = np.abs(slopes) * rows.std(0)
    np.fill_diagonal(strength, 0.0)
    strength = np.where(explained >= _LEAST_EXPLAINED, strength, 0.0).max(0)
    order = np.argsort(-strength)[:_MOST_SUSPECTS]
    return tuple(int(j) for j in order if strength[j] >= _LEAST_SLOPE)


def straightened(
    evaluator: Evaluator, sample: Sample, places: np.ndarray, generator: np.random.Generator
) -> Straightened | None:
    """The density in coordinates in which no neck is known; None if the density has no neck.

    `places` (points, dim) are modes that were found: searches start there, and at some states, again.
    """
    model, rows = evaluator.model, sample.flat
    found = suspects(evaluator, rows, generator)
    starts = np.concatenate([places, rows[generator.permutation(len(rows))[:_STARTS]]])
    warps: list[Warp] = []
    profiles: list[Profile] = []
    for place, coordinate in enumerate(found):
        fixed = [*found[:place], *found[place + 1 :]]
        along = profile(evaluator.of(model), rows, coordinate, fixed)
        if along is None or not _is_neck(along):
            continue
        warp = _warp(along, model.dim)
        rows, starts = (_moved(_inverse, warp, x) for x in (rows, starts))
        inside = starts[np.isfinite(starts).all(1)]
        model = LogDensity(  # of u, which has no prior of its own
            WarpedFunction(model.fn, warp),
            model.dim,
            model.name,
            starts=inside if len(inside) else None,
            parameters=model.parameters,
            is_differentiable=model.is_differentiable,
        )
        warps.append(warp)
        profiles.append(along)
    if not warps:
        return None
    return Straightened(evaluator.model, model, tuple(warps), tuple(profiles), sample.log_z)


def missed_neck(found: Straightened, rows: np.ndarray) -> tuple[Finding, ...]:
    """Return what chains (sweeps, chains, dim) at beta = 1 miss of the mass of a neck, if anything.

    Their rows are positions of the density that the neck is in.
    """
    worst, most = (), 0.0
    count = max(rows.shape[1] // 2, 1)  # chains that were resampled are relatives
    for along in found.profiles:
        t = np.sort(rows[..., along.coordinate], axis=None)
        step = along.grid[1] - along.grid[0]
        below = np.cumsum(along.shares)[:-1]  # up to the middle between two points
        drawn = np.searchsorted(t, along.grid[:-1] + step / 2) / t.size
        for share, own, side in ((below, drawn, "below"), (1 - below, 1 - drawn, "above")):
            is_missed = (own < _HALF * share) & (share > _LEAST_SHARE)
            is_missed &= bdtr(np.ceil(own * count), count, share) < _CHANCE
            gap = np.where(is_missed, share - own, 0.0)
            k = int(np.argmax(gap))
            if gap[k] > most:
                most = float(gap[k])
                missed = Finding.of(
                    Kind.MISSED_NECK,
                    name=_name(found.model, along.coordinate),
                    side=side,
                    place=float(along.grid[k] + step / 2),
                    share=100 * float(share[k]),
                    own=100 * float(own[k]),
                )
                worst = (missed,)
    return worst


def _name(model: LogDensity, coordinate: int) -> str:
    """What a coordinate is called: x[j], or by the parameter that changes with it."""
    if model.parameters.names == ("x",):
        return f"x[{coordinate}]"
    both = np.zeros((2, model.dim))
    both[1, coordinate] = 1.0
    for name, values in model.parameters.constrain(both).items():
        first, second = np.asarray(values)
        if not np.array_equal(first, second):
            return f"coordinate {coordinate} ({name})"
    return f"coordinate {coordinate}"


def _is_neck(along: Profile) -> bool:
    """Whether it ends where little mass is left, and scales change over where the mass is."""
    if along.grid.size < 8 or along.logs.max() - max(along.logs[[0, -1]]) < _LEAST_FALL:
        return False
    logs = np.log(np.diagonal(along.roots, axis1=1, axis2=2))
    away = logs - along.shares @ logs
    return bool(np.sqrt(along.shares @ away**2).max() > _LEAST_SPREAD)


def _warp(along: Profile, dim: int) -> Warp:
    """In which t has a normal distribution, if it has that of the profile."""
    from scipy.interpolate import CubicSpline  # a third of a second

    u = knots(_NUM_KNOTS)
    t, logs = _longer(along)
    height = CubicSpline(t, logs)
    fine = np.linspace(t[0], t[-1], _FINER * t.size)
    masses = np.exp(height(fine) - logs.max())
    below = np.cumsum((masses[1:] + masses[:-1]) / 2)
    total = below[-1] * (fine[1] - fine[0])
    below = np.concatenate([[0.0], below / below[-1]])
    places = np.interp(ndtr(u), below, fine)
    log_slopes = -(u**2) / 2 - np.log(2 * np.pi) / 2 - (height(places) - logs.max() - np.log(total))
    diagonal = np.diagonal(along.roots, axis1=1, axis2=2)
    scales = np.exp(_between(along.grid, np.log(diagonal), places, is_line=True))
    lowers = _between(along.grid, along.roots / diagonal[:, None, :], places)
    return Warp.of(
        along.coordinate,
        dim,
        log_slopes,
        _between(along.grid, along.centres, places),
        lowers * scales[:, None, :],
        along.others,
        middle=float(places[_NUM_KNOTS // 2]),
    )


def _longer(along: Profile) -> tuple[np.ndarray, np.ndarray]:
    """The grid and log m, gone on as lines to where nothing is left."""
    step, top = along.grid[1] - along.grid[0], along.logs.max()
    grid, logs = [along.grid], [along.logs]
    for end, before, way in ((0, 1, -1), (-1, -2, 1)):
        fall = max(along.logs[before] - along.logs[end], _SLOWEST)
        count = int(np.ceil(max(_NOTHING - (top - along.logs[end]), 0) / fall))
        more = np.arange(1, count + 1)
        place = len(grid) if way > 0 else 0
        grid.insert(place, (along.grid[end] + way * step * more)[::way])
        logs.insert(place, (along.logs[end] - fall * more)[::way])
    return np.concatenate(grid), np.concatenate(logs)


def _between(grid: np.ndarray, values: np.ndarray, places: np.ndarray, is_line: bool = False):
    """Values on an even grid, linear between its points; beyond it constant, or lines."""
    place = (places - grid[0]) / (grid[1] - grid[0])
    low = np.clip(np.floor(place), 0, grid.size - 2).astype(int)
    share = place - low if is_line else np.clip(place - low, 0, 1)
    share = share.reshape(-1, *(1,) * (values.ndim - 1))
    return (1 - share) * values[low] + share * values[low + 1]


def _moved(move: Callable[[Warp, Array], Array], warp: Warp, rows: np.ndarray) -> np.ndarray:
    return np.asarray(move(warp, on_device(rows)), np.float64)

"""VAROPT: the schedule of least asymptotic variance (Kiwaki 2015).

Minimise J = ∫ (dbeta/dt)^2 g(beta) dt with beta(0) = 0, beta(1) = 1. The Euler-Lagrange equation

    beta'' + beta'^2 (log g)'(beta) / 2 = 0

has the first integral beta' √g(beta) = const, so that the time spent per beta is m = dt/dbeta ∝ √g and

    t(beta) = ∫_0^beta √g / ∫_0^1 √g,      J_min = (∫ √g)^2

which is inverted monotonically. With a speed limit dbeta/dt <= v the optimum is
m = max(√g / c, 1 / v), c such that ∫ m = 1.

Methods: "quadrature" is this closed form; "fixed_point" is the paper's own iteration
(`fixed_point.py`), which solves the same equation where it converges.
"""

import numpy as np

from annealz.schedules.decelerate import check_max_step, decelerate
from annealz.schedules.fixed_point import fixed_point
from annealz.schedules.increments import from_increments
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain
from annealz.schedules.time_density import clock, cross, normalised


def varopt(
    terrain: Terrain,
    num_steps: int,
    *,
    method: str = "quadrature",
    max_step: float | None = None,
    deceleration: str = "paper",
    width: float | None = None,
) -> Schedule:
    """The schedule that minimises J on this terrain.

    Parameters
    ----------
    method : quadrature or fixed_point
    max_step : largest step allowed, if any
    deceleration : how max_step is met: by the paper's Algorithm 3 ("paper") or optimally ("exact")
    width : of the smoothing of log g; chosen from the noise by default

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> betas = np.linspace(0, 1, 201)
    >>> terrain = annealz.Terrain(
    ...     betas, mean=betas, variance=(1 + 3 * betas) ** 2, ess=np.full(201, 1e6)
    ... )
    >>> schedule = annealz.varopt(terrain, 4)
    >>> schedule.betas.round(3).tolist()  # small steps where the slope varies most
    [0.0, 0.393, 0.639, 0.833, 1.0]
    >>> round(terrain.cost(schedule.betas) / terrain.least_cost, 2)
    1.01
    """
    if method not in ("quadrature", "fixed_point"):
        raise ValueError(f"method must be quadrature or fixed_point, got {method!r}.")
    if deceleration not in ("paper", "exact"):
        raise ValueError(f"deceleration must be paper or exact, got {deceleration!r}.")
    if method == "fixed_point" and max_step is not None and deceleration == "exact":
        raise ValueError("deceleration='exact' is a quadrature: it needs method='quadrature'.")
    if num_steps < 1:
        raise ValueError(f"num_steps must be at least 1, got {num_steps}.")
    if max_step is not None:
        check_max_step(max_step, num_steps)
    smooth = terrain.smoothed(width)
    times = np.linspace(0, 1, num_steps + 1)
    provenance = {**smooth.provenance, "method": method, "pilot_sweeps": terrain.sweeps}
    provenance["pilot_seconds"] = terrain.seconds
    exactly = max_step is not None and deceleration == "exact"
    if method == "fixed_point":
        betas, report = fixed_point(smooth, times)
        provenance |= report
    else:
        betas = _quadrature(smooth, times, num_steps * max_step if exactly and max_step else None)
    schedule = from_increments(np.diff(betas), "varopt", provenance)
    if max_step is not None:
        schedule = decelerate(schedule, max_step)  # changes nothing that is within the limit
        provenance |= {"max_step": max_step, "deceleration": deceleration}
    name = {"quadrature": "varopt", "fixed_point": "varopt-fixed-point"}[method]
    provenance |= {
        "cost": smooth.cost(schedule.betas),
        "linear_cost": smooth.linear_cost,
        "least_cost": smooth.least_cost,
        "predicted_gain": smooth.linear_cost / max(smooth.cost(schedule.betas), 1e-300),
    }
    suffix = "" if max_step is None else f"-{max_step:g}"
    return Schedule(schedule.betas, name + suffix, provenance, terrain)


def _quadrature(terrain: Terrain, times: np.ndarray, speed: float | None) -> np.ndarray:
    """beta at these times, for the time density max(√g / c, 1 / speed)."""
    grid, g = terrain.on_grid()
    if speed is None:
        return cross(grid, np.sqrt(g), times)
    dwell = _limited(normalised(grid, np.sqrt(g)), grid, speed)
    return np.interp(times, clock(grid, dwell), grid)  # chords never exceed the speed, splines may


def _limited(dwell: np.ndarray, grid: np.ndarray, speed: float) -> np.ndarray:
    """max(`dwell` / c, 1 / speed) with c >= 1 such that it integrates to 1."""

    def excess(log_c: float) -> float:
        return float(np.trapezoid(np.maximum(dwell * np.exp(-log_c), 1 / speed), grid)) - 1

    if excess(0.0) <= 0:
        return dwell
    high = 1.0
    while excess(high) > 0 and high < 64:
        high *= 2
    if excess(high) < 0:
        from scipy.optimize import brentq  # a third of a second

        high = float(np.asarray(brentq(excess, 0.0, high, xtol=1e-13)))
    return np.maximum(dwell * np.exp(-high), 1 / speed)

"""VAROPT: the schedule of least asymptotic variance (Kiwaki 2015).

Minimise J = ∫ (dbeta/dt)^2 g(beta) dt with beta(0) = 0, beta(1) = 1. The Euler-Lagrange equation

    beta'' + beta'^2 (log g)'(beta) / 2 = 0

has the first integral beta' √g(beta) = const, so that the time spent per beta is m = dt/dbeta ∝ √g and

    t(beta) = ∫_0^beta √g / ∫_0^1 √g,      J_min = (∫ √g)^2

which is inverted monotonically. With a speed limit dbeta/dt <= v the optimum is
m = max(√g / c, 1 / v), c such that ∫ m = 1.

Methods: "quadrature" is this closed form; "fixed_point" is the paper's own iteration (DESolve), which
solves the same equation where it converges. Each iteration puts the last beta(t) into the right-hand side f
of beta'' = -beta'^2 (log g)'(beta) / 2 and integrates twice,

    beta(t) <- t + F(t) - t F(1),     F(t) = ∫_0^t ∫_0^s f

with (log g)' the numerical derivative of the smoothed log g. The map contracts only while log g
varies little; where it does not, an error says so, and the quadrature solves the same equation.
"""

from typing import Any

import numpy as np

from annealz.schedules.decelerate import check_max_step, decelerate
from annealz.schedules.schedule import Schedule
from annealz.schedules.steps import clock, cross, even_times, from_increments, normalised
from annealz.schedules.terrain import Terrain

_NUM_TIMES = 4001  # of the fixed-point iteration
_MAX_ITERATIONS = 500
_TOLERANCE = 1e-9


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
    >>> terrain = annealz.Terrain(betas, betas, (1 + 3 * betas) ** 2, np.full(201, 1e6))
    >>> annealz.varopt(terrain, 4).betas.round(3).tolist()  # small steps where the slope varies most
    [0.0, 0.393, 0.639, 0.833, 1.0]
    """
    if method not in ("quadrature", "fixed_point"):
        raise ValueError(f"method must be quadrature or fixed_point, got {method!r}.")
    if deceleration not in ("paper", "exact"):
        raise ValueError(f"deceleration must be paper or exact, got {deceleration!r}.")
    if method == "fixed_point" and max_step is not None and deceleration == "exact":
        raise ValueError("deceleration='exact' is a quadrature: it needs method='quadrature'.")
    times = even_times(num_steps)
    if max_step is not None:
        check_max_step(max_step, num_steps)
    smooth = terrain.smoothed(width)
    provenance = {**smooth.provenance, "method": method, **terrain.spent}
    exactly = max_step is not None and deceleration == "exact"
    if method == "fixed_point":
        betas, report = _fixed_point(smooth, times)
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


def _fixed_point(terrain: Terrain, times: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
    """Return beta at these times, and the number of iterations with the residual they left."""
    from scipy.integrate import cumulative_trapezoid  # a third of a second

    grid, g = terrain.on_grid()
    derivative = np.gradient(np.log(g), grid)
    t = np.linspace(0, 1, _NUM_TIMES)
    beta, speed = t, np.ones_like(t)
    residual, iteration = np.inf, 0
    for iteration in range(1, _MAX_ITERATIONS + 1):
        force = -0.5 * speed**2 * np.interp(beta, grid, derivative)
        first = cumulative_trapezoid(force, t, initial=0)
        second = cumulative_trapezoid(first, t, initial=0)
        new = t + second - t * second[-1]
        speed = 1 + first - second[-1]
        residual = float(np.abs(new - beta).max())
        beta = new
        if not np.isfinite(residual) or np.abs(beta).max() > 1e3:
            break
        if residual < _TOLERANCE:
            if speed.min() <= 0:
                break
            return np.interp(times, t, beta), {"iterations": iteration, "residual": residual}
    spread = float(np.log10(g.max() / g.min()))
    raise ValueError(
        f"the fixed-point iteration does not converge on this terrain (g spans {spread:.1f} decades, "
        f"residual {residual:.1e} after {iteration} iterations): use method='quadrature', which solves "
        "the same equation."
    )

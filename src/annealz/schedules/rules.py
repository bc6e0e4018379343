"""The rules: schedules that need no pilot, and those that follow from a terrain.

LINEAR: beta_k = k / K.

SM08: the hand-made schedule of Salakhutdinov & Murray (2008).

500 equal steps on [0, 0.5], 4,000 on [0.5, 0.9] and 10,000 on [0.9, 1] at K = 14,500; another K
keeps these proportions. A segment that gets no step at a small K is merged into the next.

GMS13: steps shared out among the segments between knots (Grosse, Maddison & Salakhutdinov 2013).

    c_j = (b_{j+1} - b_j) (E_{b_{j+1}}[U] - E_{b_j}[U]),     steps of segment j ∝ √c_j, linear inside it

With many knots √c_j -> √(dE[U]/dbeta) dbeta. Where U does not depend on beta this derivative is g,
and the schedule tends to VAROPT: the two differ by the number of knots, not in their aim. With a
latent layer summed out, dE[U]/dbeta = g + E[dU/dbeta] >= g, and a difference remains.

MIXING: least variance for chains that remember.

With g tau instead of g (`terrain.py`), the optimum is crossed at constant speed in √(g tau):

    m = dt/dbeta ∝ √(g tau),      K Var[log w] -> (∫ √(g tau) dbeta)^2

For perfect transitions tau = 1, and this is VAROPT. It needs no largest step: where chains are slow, so is
the schedule. Where the pilot only bounded tau from below, a twentieth of the time is spread evenly, so
that no stretch depends on that bound alone.

VAROPT: the schedule of least asymptotic variance (Kiwaki 2015).

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

from annealz.schedules.schedule import Schedule
from annealz.schedules.steps import (
    check_max_step,
    clock,
    cross,
    decelerate,
    even_times,
    from_increments,
    normalised,
)
from annealz.schedules.terrain import Terrain

_SEGMENTS = ((500, 0.5), (4500, 0.9), (14500, 1.0))  # of SM08: cumulative steps, beta reached
_LEAST_SHARE = 1e-3  # of the mean: a segment whose noisy cost is zero or negative still gets steps
_EVEN_SHARE = 0.05  # of the time of MIXING, where tau is a bound
_NUM_TIMES = 4001  # of the fixed-point iteration of VAROPT
_MAX_ITERATIONS = 500
_TOLERANCE = 1e-9


def linear(num_steps: int) -> Schedule:
    """Equal steps.

    Examples
    --------
    >>> import annealz
    >>> annealz.linear(4).betas.tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    return Schedule(np.linspace(0.0, 1.0, num_steps + 1), "linear")


def sm08(num_steps: int) -> Schedule:
    """Slow at the end, in the proportions 500 : 4,000 : 10,000.

    Examples
    --------
    >>> import annealz
    >>> schedule = annealz.sm08(14_500)
    >>> schedule.betas[[500, 4500]].tolist()
    [0.5, 0.9]
    """
    pieces, reached, done = [np.zeros(1)], 0.0, 0
    for cumulative, end in _SEGMENTS:
        until = (2 * num_steps * cumulative + 14500) // (2 * 14500)  # rounded to nearest
        if until > done:
            pieces.append(np.linspace(reached, end, until - done + 1)[1:])
            reached, done = end, until
    return Schedule(np.concatenate(pieces), "sm08")


def gms13(terrain: Terrain, num_steps: int) -> Schedule:
    """The schedule of the means at the terrain's betas, taken as knots.

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> betas = np.linspace(0, 1, 5)
    >>> terrain = annealz.Terrain(betas, mean=betas**2, variance=2 * betas, ess=np.full(5, 100.0))
    >>> annealz.gms13(terrain, 10).betas.round(3).tolist()
    [0.0, 0.19, 0.325, 0.435, 0.535, 0.62, 0.705, 0.784, 0.856, 0.928, 1.0]
    """
    times = even_times(num_steps)
    knots, mean = terrain.betas, terrain.mean
    if knots[0] > 0:
        knots, mean = np.append(0.0, knots), np.append(mean[0], mean)
    if knots[-1] < 1:
        knots, mean = np.append(knots, 1.0), np.append(mean, mean[-1])
    widths = np.diff(knots)
    shares = np.sqrt(widths * np.maximum(np.diff(mean), 0))
    shares = np.maximum(shares, _LEAST_SHARE * (shares.sum() or 1.0) * widths)
    clock = np.concatenate([[0], np.cumsum(shares)])
    betas = np.interp(times, clock / clock[-1], knots)
    provenance = {**terrain.provenance, **terrain.spent}
    return from_increments(np.diff(betas), "gms13", provenance, terrain)


def mixing(terrain: Terrain, num_steps: int) -> Schedule:
    """The schedule of constant speed in √(g tau).

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> betas, flat = np.linspace(0, 1, 5), np.ones(5)
    >>> terrain = annealz.Terrain(betas, betas, variance=flat, ess=100 * flat, tau=1 + 9 * betas**4)
    >>> annealz.mixing(terrain, 4).betas.round(3).tolist()  # small steps where chains remember
    [0.0, 0.378, 0.667, 0.86, 1.0]
    """
    times = even_times(num_steps)
    grid, friction = terrain.on_grid(with_memory=True)
    is_bound = bool(np.any(terrain.tau_is_bound))
    dwell = normalised(grid, np.sqrt(friction))
    if is_bound:
        dwell = (1 - _EVEN_SHARE) * dwell + _EVEN_SHARE
    betas = cross(grid, dwell, times)
    provenance = {
        **terrain.provenance,
        **terrain.spent,
        "predicted_variance": float(np.trapezoid(friction / dwell, grid)) / num_steps,
        "tau_is_bound": is_bound,
        "largest_tau": float(np.max(np.asarray(terrain.tau))),
    }
    return from_increments(np.diff(betas), "mixing", provenance, terrain)


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
    >>> annealz.varopt(terrain, 4).betas.round(3).tolist()  # small steps where the slope varies
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
    speed = num_steps * max_step if max_step and deceleration == "exact" else None
    if method == "fixed_point":
        betas, report = _fixed_point(smooth, times)
        provenance |= report
    else:
        betas = _quadrature(smooth, times, speed)
    schedule = from_increments(np.diff(betas), "varopt", provenance)
    name = "varopt" if method == "quadrature" else "varopt-fixed-point"
    if max_step is not None:
        schedule = decelerate(schedule, max_step)  # changes nothing that is within the limit
        provenance |= {"max_step": max_step, "deceleration": deceleration}
        name += f"-{max_step:g}"
    provenance |= {
        "cost": smooth.cost(schedule.betas),
        "linear_cost": smooth.linear_cost,
        "least_cost": smooth.least_cost,
        "predicted_gain": smooth.linear_cost / max(smooth.cost(schedule.betas), 1e-300),
    }
    return Schedule(schedule.betas, name, provenance, terrain)


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

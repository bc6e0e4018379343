"""DESolve of Kiwaki (2015): the Euler-Lagrange equation by fixed-point iteration.

    beta'' = -beta'^2 (log g)'(beta) / 2,     beta(0) = 0, beta(1) = 1

Each iteration puts the last beta(t) into the right-hand side f and integrates twice,

    beta(t) <- t + F(t) - t F(1),     F(t) = ∫_0^t ∫_0^s f

with (log g)' the numerical derivative of the smoothed log g. The map contracts only while log g
varies little; where it does not, an error says so, and the quadrature solves the same equation.
"""

from typing import Any

import numpy as np

from annealz.schedules.terrain import Terrain

_NUM_TIMES = 4001
_MAX_ITERATIONS = 500
_TOLERANCE = 1e-9


def fixed_point(terrain: Terrain, times: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
    """beta at these times, and the number of iterations with the residual they left."""
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

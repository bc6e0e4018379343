"""log Z of the Ising model on a finite periodic square lattice without field (Kaufman 1949), in float64.

For m rows of n sites, K_h along rows and K_v along columns, all at least 0 (on even sides the sign does not
matter: turning over one colour changes it),

    Z = (2 sinh 2K_v)^(mn/2) / 2  ×  [ prod_r 2 cosh(m g_{2r+1} / 2) + prod_r 2 sinh(m g_{2r+1} / 2)
                                     + prod_r 2 cosh(m g_{2r} / 2)   + prod_r 2 sinh(m g_{2r} / 2) ]

    cosh g_l = (cosh 2K_v cosh 2K_h - sinh 2K_h cos(pi l / n)) / sinh 2K_v,     r = 0 .. n - 1

with g_l > 0, but g_0 = 2K_h + log tanh K_v, which changes its sign where the infinite lattice is critical:
sinh 2K_h sinh 2K_v = 1, K = log(1 + sqrt 2) / 2 = 0.4407 where both are equal.
"""

import math

import numpy as np

from annealz.core.numerics import log_sum

CRITICAL_COUPLING = math.log(1 + math.sqrt(2)) / 2


def square_ising_log_z(side: int | tuple[int, int], coupling: float | tuple[float, float]) -> float:
    """log Z of (height, width) spins, with the coupling along rows and along columns.

    Examples
    --------
    >>> import annealz
    >>> round(annealz.square_ising_log_z(2, 0.0), 4)  # 4 log 2
    2.7726
    >>> round(
    ...     annealz.square_ising_log_z((32, 32), 0.4406868) / 1024, 4
    ... )  # a spin, at the critical point
    0.9303
    """
    height, width = (side, side) if isinstance(side, int) else side
    along = (coupling, coupling) if isinstance(coupling, float | int) else coupling
    if min(height, width) < 2:
        raise ValueError(f"the lattice's sides must be at least 2, got {height} and {width}.")
    for name, length, value in (("row", width, along[0]), ("column", height, along[1])):
        if value < 0 and length % 2:
            raise ValueError(
                f"a negative coupling along a {name} needs an even number of sites there, got {length}."
            )
    horizontal, vertical = (abs(float(value)) for value in along)
    if vertical == 0:  # rows that know nothing of each other
        return height * _ring_log_z(width, horizontal)
    front = height * width / 2 * _log_2sinh(2 * vertical)
    terms = []
    for first in (1, 0):
        modes = _modes(width, horizontal, vertical, first)
        even = _log_2cosh(height * modes / 2).sum()
        odd = np.array([_log_2sinh(height * abs(mode) / 2) for mode in modes]).sum()
        terms += [(even, 1), (odd, np.sign(modes).prod())]
    largest = max(size for size, _ in terms)
    total = sum(sign * math.exp(size - largest) for size, sign in terms)
    return float(front - math.log(2) + largest + math.log(total))


def _modes(width: int, horizontal: float, vertical: float, first: int) -> np.ndarray:
    """g_l for l = first, first + 2, …"""
    order = 2 * np.arange(width) + first
    # cosh g - 1 without cancellation: cosh(2K* - 2K_h) - 1 + (1 - cos) sinh 2K_h / sinh 2K_v
    gap = 2 * horizontal + math.log(math.tanh(vertical))
    excess = 2 * np.sinh(gap / 2) ** 2 + (
        2
        * np.sin(np.pi * order / (2 * width)) ** 2
        * math.sinh(2 * horizontal)
        / math.sinh(2 * vertical)
    )
    modes = np.log1p(excess + np.sqrt(excess * (excess + 2)))
    if first == 0:
        modes[0] = gap
    return modes


def _ring_log_z(length: int, coupling: float) -> float:
    """(2 cosh K)^n + (2 sinh K)^n."""
    terms = [length * float(_log_2cosh(coupling)), length * _log_2sinh(coupling)]
    return log_sum(np.array(terms))


def _log_2cosh(x):
    return np.logaddexp(x, -x)


def _log_2sinh(x: float) -> float:
    return -math.inf if x == 0 else x + math.log(-math.expm1(-2 * x))

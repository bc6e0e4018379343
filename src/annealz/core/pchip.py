"""Monotone cubic interpolation (PCHIP: Fritsch & Butland, SIAM J. Sci. Stat. Comput. 5, 1984).

On [x_i, x_{i+1}], of width h_i and mean slope m_i, the cubic that has values y and slopes d at both ends:

    inside   1 / d_i = (w1 / m_{i-1} + w2 / m_i) / (w1 + w2),  w1 = 2 h_i + h_{i-1},  w2 = h_i + 2 h_{i-1}
             and 0 where m_{i-1} and m_i differ in sign, or one is 0
    ends     ((2 h_0 + h_1) m_0 - h_0 m_1) / (h_0 + h_1); 0 where its sign is not that of m_0, and at most
             3 m_0 where m_0 and m_1 differ in sign

Bit for bit that of SciPy, whose `interpolate` takes a third of a second to import: every command needs one
such curve, and nothing else from there.
"""

import numpy as np

__all__ = ["pchip"]


def pchip(x: np.ndarray, y: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The curve through (x, y), x ascending, at these places; beyond the ends its cubics go on."""
    x, y, at = (np.asarray(array, np.float64) for array in (x, y, at))
    width = np.diff(x)
    mean = np.diff(y) / width
    slopes = _slopes(width, mean)
    bend = (slopes[:-1] + slopes[1:] - 2 * mean) / width
    i = np.clip(np.searchsorted(x, at, side="right") - 1, 0, width.size - 1)
    s = at - x[i]
    square = s * s
    value = y[:-1][i] + slopes[:-1][i] * s
    value = value + ((mean - slopes[:-1]) / width - bend)[i] * square
    return value + (bend / width)[i] * (square * s)


def _slopes(width: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """d at all places."""
    if mean.size == 1:
        return np.repeat(mean, 2)
    is_flat = (np.sign(mean[1:]) != np.sign(mean[:-1])) | (mean[1:] == 0) | (mean[:-1] == 0)
    w1, w2 = 2 * width[1:] + width[:-1], width[1:] + 2 * width[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        harmonic = (w1 / mean[:-1] + w2 / mean[1:]) / (w1 + w2)
        inside = np.where(is_flat, 0.0, 1.0 / harmonic)
    first = _end(width[0], width[1], mean[0], mean[1])
    last = _end(width[-1], width[-2], mean[-1], mean[-2])
    return np.concatenate([[first], inside, [last]])


def _end(width0: float, width1: float, mean0: float, mean1: float) -> float:
    """d at an end, from the two intervals next to it."""
    slope = ((2 * width0 + width1) * mean0 - width0 * mean1) / (width0 + width1)
    if np.sign(slope) != np.sign(mean0):
        return 0.0
    is_wide = np.sign(mean0) != np.sign(mean1) and abs(slope) > 3 * abs(mean0)
    return 3 * mean0 if is_wide else slope

"""Weights as integers of three signed bytes, whose products with binary states are exact.

A row of the weights, of largest entry m, is held as 24-bit integers,

    W = s (2^16 t0 + 2^8 t1 + t2) + r,     s = m / (127 2^16),     |r| <= s / 2 = m 2^-23.99

so that r is at most about 1 % above the rounding of a float32 of the size of m; tensor cores
multiply bytes twice as fast as half-precision numbers. The order of summation changes nothing.
"""

import numpy as np

__all__ = ["BYTE_VALUES", "filled", "signed_bytes"]

BYTE_VALUES = (65536.0, 256.0, 1.0)
_LARGEST = 127 << 16


def signed_bytes(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Three signed bytes of every entry (3, rows, columns), and the scale of every row."""
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    scale = (np.where(largest > 0, largest, 1.0) / _LARGEST).astype(np.float32)
    raised = np.rint(matrix / scale.astype(np.float64)).astype(np.int32) + 0x808080
    terms = [
        ((raised >> shift).astype(np.uint8) ^ 0x80).view(np.int8) for shift in (16, 8, 0)
    ]  # each byte was 128 more than it is
    return np.stack(terms), scale[:, 0]


def filled(size: int, tile: int) -> int:
    """The next multiple."""
    return -(-size // tile) * tile

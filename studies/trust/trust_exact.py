"""Exact log Z of models that cannot be enumerated: RBMs of equal weights, and strips of a lattice.

An RBM whose weights, hidden and visible biases are J, a and b everywhere knows its visible units by the
number of those that are on,

    Z = sum_n C(D, n) exp(b n) (1 + exp(a + J n))^M

A lattice of short rows, of couplings and fields that may differ from place to place, is summed row by row:
a row of W units has q^W states, and between two rows stands a matrix of q^W x q^W (transfer matrix).

    log p*(x) = sum_neighbours J [x = x'] + sum_sites h[site, x]

All in float64, from the parameters in float32 that the model holds.
"""

import numpy as np
from scipy.special import comb

from annealz.core.numerics import log_sum
from annealz.models.rbm import RBM

__all__ = ["equal_log_terms", "equal_log_z", "ising_strip_log_z", "potts_strip_log_z"]


def equal_log_terms(model: RBM) -> np.ndarray:
    """log of the terms of Z above, n = 0 .. D."""
    weight, hidden, visible = (
        _only(array) for array in (model.weights, model.hidden_bias, model.visible_bias)
    )
    size = model.num_visible
    n = np.arange(size + 1)
    ways = np.log(comb(size, n))
    return ways + visible * n + model.num_hidden * np.logaddexp(0, hidden + weight * n)


def equal_log_z(model: RBM) -> float:
    """log Z of an RBM of equal weights."""
    return log_sum(equal_log_terms(model))


def potts_strip_log_z(along, down, fields) -> float:
    """log Z of a lattice of L rows of W units of q states.

    Parameters
    ----------
    along : (L, W) couplings to the next unit of the row, the last one to the first; (L, W - 1) without it
    down : (L, W) couplings to the next row, the last one to the first; (L - 1, W) without it
    fields : (L, W, q)
    """
    along, down, fields = (np.asarray(np.float32(a), np.float64) for a in (along, down, fields))
    length, width, num_states = fields.shape
    states = np.arange(num_states**width)[:, None] // num_states ** np.arange(width) % num_states
    same = (states == np.roll(states, -1, 1))[:, : along.shape[1]].astype(np.float64)
    agree = states[:, None, :] == states[None, :, :]
    log_z = 0.0
    product = np.ones((1, len(states))) if len(down) < length else np.eye(len(states))
    for row in range(length):
        energy = same @ along[row] + fields[row, np.arange(width), states].sum(-1)
        product = product * np.exp(energy - energy.max())
        log_z += energy.max()
        if row < len(down):
            between = agree @ down[row]
            product = product @ np.exp(between - between.max())
            log_z += between.max()
        scale = product.max()
        product = product / scale
        log_z += np.log(scale)
    total = product.sum() if len(down) < length else np.trace(product)
    return float(log_z + np.log(total))


def ising_strip_log_z(along, down, fields) -> float:
    """The same for spins of -1 and 1, J s s' = 2 J [s = s'] - J; fields are (L, W)."""
    along, down, fields = (np.asarray(np.float32(a), np.float64) for a in (along, down, fields))
    up_or_down = np.stack([-fields, fields], -1)
    log_z = potts_strip_log_z(2 * along, 2 * down, up_or_down)
    return log_z - float(along.sum() + down.sum())


def _only(array) -> float:
    values = np.unique(np.asarray(array, np.float64))
    if values.size != 1:
        raise ValueError(f"equal weights and biases are needed, got {values.size} values.")
    return float(values[0])

"""Exact log Z, marginals and samples of an RBM by enumerating its smaller layer, in float64.

With s the smaller layer (m units, bias c) and o the other (bias d, weights W from s to o),

    log p*(s) = c.s + sum_o softplus(f_o),   f = d + W^T s,      Z = sum over 2^m states of p*(s)

    sum_o softplus(f_o) = sum_o max(f_o, 0) + log prod_o (1 + exp(-|f_o|))

where the product of up to 1000 factors in (1, 2] cannot overflow, so that one logarithm serves a
whole group. States are numbered by their bits (unit i is bit i). They are visited in tiles that
share their high bits: a tile's fields are a precomputed table plus one vector.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.special import expit

from annealz.core.numerics import log_sum
from annealz.core.random import check_seed
from annealz.core.weights import draw_independent
from annealz.models.abstract import AbstractModel
from annealz.models.enumeration import MAX_UNITS, digits
from annealz.models.rbm import RBM

_TILE = 2**20  # fields held at a time, a worker
_GROUP = 1000

Progress = Callable[[float], None]


def exact_log_z(model: AbstractModel, progress: Progress | None = None) -> float:
    """log Z, exact to float64 rounding. `progress` is called with the fraction done of an RBM.

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> free = annealz.RBM(np.zeros((2, 3)), np.zeros(2), np.zeros(3))
    >>> round(annealz.exact_log_z(free), 4)  # 5 log 2
    3.4657
    """
    return model.exact_log_z(progress) if isinstance(model, RBM) else model.exact_log_z()


def log_probabilities(model: RBM, progress: Progress | None = None) -> np.ndarray:
    """log p(s) of every state of the smaller layer, in the order of its bits."""
    values = log_weights(model, progress)
    return values - log_sum(values)


def exact_marginals(model: RBM, progress: Progress | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(visible means, hidden means), exact.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> visible, hidden = annealz.exact_marginals(random_rbm(4, 6))
    >>> visible.round(3).tolist()
    [0.745, 0.859, 0.366, 0.619, 0.284, 0.829]
    """
    layers = _Layers(model)
    half = None if progress is None else (lambda done: progress(done / 2))
    probabilities = np.exp(log_probabilities(model, half))

    def tile_sums(tile: int) -> tuple[np.ndarray, np.ndarray]:
        start = tile * layers.tile_size
        weights = probabilities[start : start + layers.tile_size]
        return weights @ layers.states(start), weights @ expit(layers.fields(tile))

    small, other = np.zeros(layers.num_small), np.zeros(layers.num_other)
    rest = None if progress is None else (lambda done: progress(0.5 + done / 2))
    for tile_small, tile_other in _map(tile_sums, layers.num_tiles, rest):
        small += tile_small
        other += tile_other
    return (other, small) if layers.small_is_hidden else (small, other)


def exact_samples(
    model: RBM, num_samples: int, seed: int = 0, progress: Progress | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Independent draws (visible, hidden) from the model, float32 (num_samples, units).

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> visible, hidden = annealz.exact_samples(random_rbm(4, 6), 50, seed=1)
    >>> visible.shape, hidden.shape
    ((50, 6), (50, 4))
    """
    if num_samples < 1:
        raise ValueError(f"num_samples must be at least 1, got {num_samples}.")
    layers = _Layers(model)
    generator = np.random.default_rng(check_seed(seed))
    states = draw_independent(np.exp(log_probabilities(model, progress)), generator, num_samples)
    small = digits(states, layers.num_small, 2).astype(np.float32)
    other = np.empty((num_samples, layers.num_other), np.float32)
    rows = max(1, _TILE // layers.num_other)
    for start in range(0, num_samples, rows):
        fields = layers.other_bias + small[start : start + rows] @ layers.weights
        other[start : start + rows] = generator.random(fields.shape) < expit(fields)
    return (other, small) if layers.small_is_hidden else (small, other)


class _Layers:
    """The model seen from its smaller layer."""

    def __init__(self, model: RBM):
        if not isinstance(model, RBM):
            raise ValueError(f"exact enumeration is for RBMs, got {type(model).__name__}.")
        hidden, visible = model.num_hidden, model.num_visible
        self.small_is_hidden = hidden <= visible
        self.num_small, self.num_other = min(hidden, visible), max(hidden, visible)
        if self.num_small > MAX_UNITS:
            raise ValueError(
                f"exact enumeration takes a layer of at most {MAX_UNITS} units, and the smaller of "
                f"{hidden} hidden and {visible} visible units has {self.num_small}: it would sum "
                f"2^{self.num_small} = {2.0**self.num_small:.1e} states of {self.num_other} terms."
            )
        weights, hidden_bias, visible_bias = (
            np.asarray(a, np.float64)
            for a in (model.weights, model.hidden_bias, model.visible_bias)
        )
        if self.small_is_hidden:
            self.weights, self.small_bias, self.other_bias = weights, hidden_bias, visible_bias
        else:
            self.weights, self.small_bias, self.other_bias = weights.T, visible_bias, hidden_bias
        low = int(np.clip(np.log2(_TILE / self.num_other), 0, self.num_small))
        self.tile_size, self.num_tiles = 2**low, 2 ** (self.num_small - low)
        self._table = self.states(0) @ self.weights  # (tile, other)

    def states(self, start: int) -> np.ndarray:
        """States start .. start + tile_size - 1 as float64 bits (tile, small)."""
        numbers = np.arange(start, start + self.tile_size)
        return digits(numbers, self.num_small, 2).astype(np.float64)

    def fields(self, tile: int) -> np.ndarray:
        """f = d + W^T s of the states of a tile: (tile, other)."""
        high = digits(np.array([tile * self.tile_size]), self.num_small, 2)[0].astype(np.float64)
        return self._table + (self.other_bias + high @ self.weights)

    def log_weights(self, tile: int) -> np.ndarray:
        """log p*(s) of the states of a tile."""
        fields = self.fields(tile)
        total = self.states(tile * self.tile_size) @ self.small_bias
        total += np.maximum(fields, 0).sum(-1)
        np.abs(fields, out=fields)
        np.negative(fields, out=fields)
        np.exp(fields, out=fields)
        fields += 1
        for start in range(0, self.num_other, _GROUP):
            total += np.log(fields[:, start : start + _GROUP].prod(-1))
        return total


def log_weights(model: RBM, progress: Progress | None = None) -> np.ndarray:
    """log p*(s) of every state of the smaller layer, in the order of its bits."""
    layers = _Layers(model)
    out = np.empty(2**layers.num_small)
    for tile, values in enumerate(_map(layers.log_weights, layers.num_tiles, progress)):
        out[tile * layers.tile_size : (tile + 1) * layers.tile_size] = values
    return out


def _map(function, count: int, progress: Progress | None) -> Iterator:
    """function(0), function(1), … in order, computed by a few threads, a window at a time."""
    workers = os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        for start in range(0, count, 4 * workers):
            stop = min(start + 4 * workers, count)
            yield from pool.map(function, range(start, stop))
            if progress is not None:
                progress(stop / count)

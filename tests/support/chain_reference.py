"""A step of lattices, sparse graphs and tables of pairs in float64, with the engine's random bits."""

import abc
from typing import Any

import numpy as np

from annealz.paths.lattice import LatticePath
from annealz.paths.pairs import PairTablePath

__all__ = ["Reference"]


def _uniforms(bits, count: int, draw: int) -> np.ndarray:
    return np.asarray(bits.uniforms(count, draw), np.float64)


class Reference(abc.ABC):
    """States after a step, what it adds to log w, and the slope before its move."""

    @classmethod
    def of(cls, path: Any, kernel: Any) -> "Reference":
        return _Lattice(path) if type(path) is LatticePath else _Pairs(path, kernel)

    @abc.abstractmethod
    def increment(self, x: np.ndarray, betas: np.ndarray) -> np.ndarray: ...

    @abc.abstractmethod
    def step(self, bits, x, betas: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...


class _Lattice(Reference):
    def __init__(self, path: LatticePath):
        sites = path.num_units
        self.up = np.asarray(path.to_latent(np.eye(sites, dtype=np.float32)), np.float64)[:, :-1]
        self.down = np.asarray(path.to_state(np.eye(sites, dtype=np.float32)), np.float64)
        names = ("latent_bias", "latent_bias_change", "state_bias", "state_bias_change", "offset")
        self.a, self.da, self.c, self.dc, self.f = (
            np.asarray(getattr(path, name), np.float64) for name in names
        )

    def _fields(self, x):
        return x @ self.up + self.da, x @ self.dc + self.f

    def increment(self, x, betas):
        (fields, drive), (low, high) = self._fields(np.float64(x)), np.float64(betas)
        ends = (np.logaddexp(0, self.a + beta * fields).sum(1) for beta in (high, low))
        return (high - low) * drive + next(ends) - next(ends)

    def step(self, bits, x, betas):
        x, beta = np.asarray(x, np.float64), float(betas[1])
        fields, drive = self._fields(x)
        logits = self.a + beta * fields
        slope = drive + (fields / (1 + np.exp(-logits))).sum(1)
        h = _uniforms(bits, fields.shape[1], 0) * (1 + np.exp(-logits)) <= 1
        logits = self.c + beta * (h @ self.down + self.dc)
        after = _uniforms(bits, x.shape[1], 1) * (1 + np.exp(-logits)) <= 1
        return after.astype(np.float64), self.increment(x, betas), slope


class _Pairs(Reference):
    def __init__(self, path: Any, kernel: Any):
        self.start, self.change = (np.asarray(a, np.float64) for a in (path.start, path.change))
        self.units, self.states = self.start.shape
        self.offset, self.blocks = float(path.offset), np.asarray(kernel.blocks)
        order = np.broadcast_to(np.arange(self.units), (self.units, self.units))
        self.near = order if path.neighbours is None else np.asarray(path.neighbours)
        if type(path) is PairTablePath:
            self.tables = np.asarray(path.tables, np.float64)
        else:
            couplings = np.asarray(path.couplings, np.float64)
            self.tables = couplings[..., None, None] * np.eye(self.states)

    def _fields(self, x, unit: int) -> np.ndarray:
        """What the neighbours say of the states of a unit."""
        near = self.near[unit]
        return self.tables[unit][np.arange(near.size), x[:, near]].sum(1)

    def _energy(self, x):
        energy = np.full(len(x), self.offset)
        for unit in range(self.units):
            fields = self._fields(x, unit) / 2 + self.change[unit]
            energy += np.take_along_axis(fields, x[:, [unit]], 1)[:, 0]
        return energy

    def increment(self, x, betas):
        low, high = np.float64(betas)
        return (high - low) * self._energy(x.astype(int))

    def step(self, bits, x, betas):
        x = np.asarray(x).astype(int)
        slope, beta = self._energy(x), float(betas[1])
        low, high = np.float64(betas)
        for draw, sites in enumerate(self.blocks):
            uniforms, before = _uniforms(bits, sites.size, draw), x.copy()
            for place, unit in enumerate(sites):
                if unit >= self.units:
                    continue
                logits = self.start[unit] + beta * (self._fields(before, unit) + self.change[unit])
                sums = np.exp(logits - logits.max(1, keepdims=True)).cumsum(1)
                x[:, unit] = (uniforms[:, [place]] * sums[:, -1:] > sums[:, :-1]).sum(1)
        return x.astype(np.float64), (high - low) * slope, slope

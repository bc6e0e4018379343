"""The geometric path of units that are coupled in pairs, all of them annealed.

Units x_i of q states, an energy C(x) of pairs, fields h and those of the base b_A:

    log p*_beta(x) = (1-beta) sum_i b_A[i, x_i] + beta E(x)
    E(x)           = C(x) + sum_i h[i, x_i] + f

is linear in beta, so that U(x) = E(x) - sum_i b_A[i, x_i] at every beta and a log ratio is
(beta1 - beta0) U. Where pairs are coupled in the same state alone (`PairPath`), C and the logits of unit i
given all others are

    C(x)           = sum_{i<j} J_ij [x_i = x_j]
    (1-beta) b_A[i, k] + beta (h[i, k] + sum_j J_ij [x_j = k])

a sum over the neighbours alone where units have few of them, and a product with all couplings elsewhere.

With one number for every two states of a pair (`PairTablePath`) they are

    C(x) = sum_{i<j} J[i, x_i, j, x_j]
    (1-beta) b_A[i, a] + beta (h[i, a] + sum_j J[i, a, j, x_j])

Only pairs that are coupled are held: unit i has the neighbours n(i, d), d = 0 .. D - 1, and their tables

    T[i, d, b, a] = J[i, a, n(i, d), b]

filled up with zeros where a unit has fewer than D; where D is more than half of the units, all of them are
held in their order. The logits of a unit are the sum of D rows of q numbers that lie side by side, one for
each neighbour's state: they are looked up, and no product is formed. Where every pair is coupled a sweep
over L units so costs L^2 q additions: as many as to keep the fields of all units and to correct them after
each draw, without writing them to memory. A product with indicators of the states costs q times as many.
"""

import abc
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from annealz.core.arrays import on_device
from annealz.core.random import Bits
from annealz.core.units import AbstractStateUnits, SoftmaxUnits
from annealz.paths.abstract import AbstractPath

_SPARSE = 1 / 16  # of the units, coupled with one of them: up to there only these are held
_DENSE = 0.5  # of the units, coupled with one of them: from there on all tables are held


class AbstractUnitPath(AbstractPath):
    """A path over coupled units, all of them annealed; states are the numbers 0 .. q - 1, as floats."""

    base: eqx.AbstractVar[Any]
    start: eqx.AbstractVar[Any]
    """(units, states), the logits of the base."""
    change: eqx.AbstractVar[Any]
    """(units, states), the fields less those logits."""

    @property
    def num_states(self) -> int:
        return self.start.shape[1]

    @property
    def units(self) -> AbstractStateUnits:
        return SoftmaxUnits(self.num_states)

    @property
    def log_z0(self) -> float:
        return float(self.units.exact_log_z(np.asarray(self.start, np.float64).ravel()))

    def sample(self, bits: Bits):
        fields = jnp.broadcast_to(self.start.ravel(), (bits.num_chains, self.start.size))
        return self.units.sample(bits, fields, 0)

    @property
    def sweep_bytes(self) -> int:
        return 12 * self.start.size  # logits of all units, random numbers and sums: measured

    def store(self, x):
        return x.astype(jnp.uint8) if self.num_states <= 256 else x

    def restore(self, stored):
        return stored.astype(jnp.float32)

    def log_ratio(self, x, beta0, beta1):
        return (beta1 - beta0) * self.slope(x, beta0)

    def conditioned(self, bits: Bits, x, beta) -> Any:
        """The path given what a sweep draws before it touches the units, and as it is at this beta."""
        return self

    @abc.abstractmethod
    def site_logits(self, x, sites, beta) -> Float[Array, "chains sites states"]:
        """The logits of some units, given all others."""


class AbstractPairPath(AbstractUnitPath):
    """What all couplings of pairs have in common."""

    offset: eqx.AbstractVar[Any]
    """f, a constant of E."""

    def log_density(self, x, beta):
        return (self._hot(x) * self.start).sum((-2, -1)) + beta * self.slope(x, beta)

    @abc.abstractmethod
    def exact_energies(self, states: np.ndarray) -> np.ndarray:
        """E(x) of integer states (rows, units), in float64 on the host."""

    def _hot(self, x) -> Float[Array, "chains units states"]:
        return (x[..., None] == jnp.arange(self.num_states)).astype(jnp.float32)

    def _exact_fields(self) -> np.ndarray:
        """h, in float64."""
        return np.asarray(self.start, np.float64) + np.asarray(self.change, np.float64)


class PairPath(AbstractPairPath):
    """From independent units to units coupled where they agree.

    Parameters
    ----------
    base : the distribution at beta = 0
    start : (units, states), the logits of the base
    couplings : (units, units), symmetric, with nothing on the diagonal
    fields : (units, states)
    offset : f, a constant of E
    """

    base: Any
    start: Float[Array, "units states"]
    couplings: Float[Array, "units degree"]
    """With the neighbours, or with all units in order."""
    neighbours: Int[Array, "units degree"] | None
    change: Float[Array, "units states"]
    offset: Float[Array, ""]

    def __init__(self, base, start, couplings, fields, offset: float = 0.0):
        given = np.asarray(couplings, np.float32)
        near = neighbours_of(given != 0)
        if near.shape[1] <= _SPARSE * len(given):
            is_there, near = near < len(given), near * (near < len(given))
            given = np.where(is_there, np.take_along_axis(given, near, 1), 0)
            self.neighbours = on_device(near, np.int32)
        else:
            self.neighbours = None
        self.base, self.start, self.couplings = base, on_device(start), on_device(given)
        change = np.asarray(fields, np.float32) - np.asarray(start, np.float32)
        self.change, self.offset = on_device(change), on_device(offset)

    def slope(self, x, beta):
        hot = self._hot(x)
        if self.neighbours is None:
            halves = 0.5 * self._sums(hot, self.couplings)
            return (hot * (halves + self.change)).sum((-2, -1)) + self.offset
        agree = x[:, self.neighbours] == x[..., None]
        pairs = jnp.where(agree, self.couplings, 0).sum((-2, -1))
        return 0.5 * pairs + (hot * self.change).sum((-2, -1)) + self.offset

    def site_logits(self, x, sites, beta) -> Float[Array, "chains sites states"]:
        if self.neighbours is None:
            sums = self._sums(self._hot(x), self.couplings[:, sites])
        else:
            near = self._hot(x[:, self.neighbours[sites]])  # (chains, sites, degree, states)
            sums = (near * self.couplings[sites][..., None]).sum(2)
        return self.start[sites] + beta * (sums + self.change[sites])

    def exact_energies(self, states: np.ndarray) -> np.ndarray:
        couplings, fields = np.asarray(self.couplings, np.float64), self._exact_fields()
        energies = np.full(len(states), float(self.offset))
        energies += np.take_along_axis(fields, states.T, 1).sum(0)
        for unit, row in enumerate(couplings):
            others = states if self.neighbours is None else states[:, self.neighbours[unit]]
            energies += (others == states[:, [unit]]) @ row / 2
        return energies

    def _sums(self, hot, couplings):
        """sum_j J_ij [x_j = k], (chains, sites, states)."""
        highest = jax.lax.Precision.HIGHEST
        return jnp.einsum("cjk,js->csk", hot, couplings, precision=highest)


class PairTablePath(AbstractPairPath):
    """From independent units to units coupled by a table for every pair.

    Parameters
    ----------
    base : the distribution at beta = 0
    start : (units, states), the logits of the base
    tables : (units, degree, states of the neighbour, states)
    neighbours : (units, degree), or None where the degree is the number of units and they are in order
    change : (units, states), the fields less `start`
    offset : f, a constant of E
    """

    base: Any
    start: Float[Array, "units states"]
    tables: Float[Array, "units degree states states"]
    neighbours: Int[Array, "units degree"] | None
    change: Float[Array, "units states"]
    offset: Float[Array, ""]

    @classmethod
    def of_couplings(cls, base, start, couplings, fields) -> Self:
        """With couplings (units, states, units, states), symmetric, and fields (units, states)."""
        given = np.asarray(couplings)
        num_units, num_states = given.shape[:2]
        near = neighbours_of((given != 0).any((1, 3)))
        if near.shape[1] > _DENSE * num_units:
            tables, neighbours = np.moveaxis(given, 1, 3), None
        else:
            is_there, near = near < num_units, near * (near < num_units)
            tables = np.zeros((*near.shape, num_states, num_states), np.float32)
            for unit, (is_one, others) in enumerate(zip(is_there, near, strict=True)):
                tables[unit, is_one] = np.moveaxis(given[unit][:, others[is_one]], 0, -1)
            neighbours = on_device(near, np.int32)
        return cls(
            base=base,
            start=start,
            tables=on_device(tables),
            neighbours=neighbours,
            change=fields - start,
            offset=on_device(0.0),
        )

    def slope(self, x, beta):
        pairs = self._pairs_in_order(x) if self.neighbours is None else self._pairs(x)
        units, states = self.start.shape
        alone = jnp.take(
            self.change.reshape(-1), states * jnp.arange(units) + _whole(x), mode="clip"
        )
        return 0.5 * pairs + alone.sum(-1) + self.offset

    def site_logits(self, x, sites, beta) -> Float[Array, "chains sites states"]:
        tables = self.tables[sites]  # (sites, degree, states, states)
        near = x[:, None] if self.neighbours is None else x[:, self.neighbours[sites]]
        slots = jnp.arange(tables.shape[0] * tables.shape[1]).reshape(tables.shape[:2])
        rows = self.num_states * slots + _whole(near)  # (chains, sites, degree)
        found = jnp.take(tables.reshape(-1, self.num_states), rows, axis=0, mode="clip")
        return self.start[sites] + beta * (found.sum(2) + self.change[sites])

    def _pairs(self, x) -> Float[Array, " chains"]:
        """Twice C(x): all units at once, one neighbour after the other."""
        assert self.neighbours is not None
        units, states = self.start.shape
        near, here = self.neighbours, _whole(x).T  # (units, chains)
        first = states * jnp.arange(units)[:, None]

        def add(slot, total):
            rows = (first + here[near[:, slot]]) * states + here
            return total + jnp.take(self.tables[:, slot].reshape(-1), rows, mode="clip").sum(0)

        return jax.lax.fori_loop(0, near.shape[1], add, jnp.zeros(x.shape[0], self.tables.dtype))

    def _pairs_in_order(self, x) -> Float[Array, " chains"]:
        """The same where every unit is a neighbour: one unit after the other, all neighbours at once."""
        units, states = self.start.shape
        here = _whole(x)
        rows = (states * jnp.arange(units) + here) * states

        def add(unit, total):
            own = jax.lax.dynamic_slice_in_dim(here, unit, 1, axis=1)
            return total + jnp.take(self.tables[unit].reshape(-1), rows + own, mode="clip").sum(-1)

        return jax.lax.fori_loop(0, units, add, jnp.zeros(x.shape[0], self.tables.dtype))

    def exact_energies(self, states: np.ndarray) -> np.ndarray:
        fields, tables = self._exact_fields(), np.asarray(self.tables, np.float64)
        order = np.broadcast_to(np.arange(len(fields)), (len(fields),) * 2)
        neighbours = order if self.neighbours is None else np.asarray(self.neighbours)
        energies = np.full(len(states), float(self.offset))
        for unit, near in enumerate(neighbours):
            here = states[:, unit]
            energies += fields[unit, here]
            for slot, other in enumerate(near):
                energies += tables[unit, slot, states[:, other], here] / 2
        return energies


def neighbours_of(is_coupled: np.ndarray) -> np.ndarray:
    """(units, degree), the neighbours of every unit; filled up with the number of units."""
    count = len(is_coupled)
    degree = max(int(is_coupled.sum(1).max()), 1)
    numbered = np.where(is_coupled, np.arange(count), count)
    return np.sort(numbered, axis=1)[:, :degree]


def _whole(x):
    return x.astype(jnp.int32)

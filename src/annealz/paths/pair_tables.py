"""The geometric path of units that are coupled in pairs, with one number for every two states of a pair.

    C(x) = sum_{i<j} J[i, x_i, j, x_j]

in the notation of `pairs.py`. Given all others unit i has the logits

    (1-beta) b_A[i, a] + beta (h[i, a] + sum_j J[i, a, j, x_j])

Only pairs that are coupled are held: unit i has the neighbours n(i, d), d = 0 .. D - 1, and their tables

    T[i, d, b, a] = J[i, a, n(i, d), b]

filled up with zeros where a unit has fewer than D; where D is more than half of the units, all of them are
held in their order. The logits of a unit are the sum of D rows of q numbers that lie side by side, one for
each neighbour's state: they are looked up, and no product is formed. Where every pair is coupled a sweep
over L units so costs L^2 q additions: as many as to keep the fields of all units and to correct them after
each draw, without writing them to memory. A product with indicators of the states costs q times as many.
"""

from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from annealz.core.arrays import on_device
from annealz.paths.pairs import AbstractPairPath, neighbours_of

_DENSE = 0.5  # of the units, coupled with one of them: from there on all are held


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


def _whole(x):
    return x.astype(jnp.int32)

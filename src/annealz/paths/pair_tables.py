"""The geometric path of units that are coupled in pairs, with one number for every two states of a pair.

    C(x) = sum_{i<j} J[i, x_i, j, x_j]

in the notation of `pairs.py`. Given all others unit i has the logits

    (1-beta) b_A[i, a] + beta (h[i, a] + sum_j J[i, a, j, x_j])

Only pairs that are coupled are held: unit i has the neighbours n(i, d), d = 0 .. D - 1, and their tables

    T[i, d, b, a] = J[i, a, n(i, d), b]

filled up with zeros where a unit has fewer than D. The logits of a unit are the sum of D rows of q numbers
that lie side by side, one for each neighbour's state: they are looked up, and no product is formed. Where
every pair is coupled a sweep over L units so costs L^2 q additions, as much as to keep the fields of all
units and to correct them after each draw, without writing them to memory; a product with indicators of the
states costs q times as many (`docs/design-notes.md`).
"""

from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from annealz.core.arrays import on_device
from annealz.paths.pairs import AbstractPairPath

__all__ = ["PairTablePath"]


class PairTablePath(AbstractPairPath):
    """From independent units to units coupled by a table for every pair.

    Parameters
    ----------
    base : the distribution at beta = 0
    start : (units, states), the logits of the base
    tables : (units, degree, states of the neighbour, states)
    neighbours : (units, degree)
    change : (units, states), the fields less `start`
    offset : f, a constant of E
    """

    base: Any
    start: Float[Array, "units states"]
    tables: Float[Array, "units degree states states"]
    neighbours: Int[Array, "units degree"]
    change: Float[Array, "units states"]
    offset: Float[Array, ""]

    @classmethod
    def of_couplings(cls, base, start, couplings, fields) -> Self:
        """With couplings (units, states, units, states), symmetric, and fields (units, states)."""
        given = np.asarray(couplings)
        is_coupled = (given != 0).any((1, 3))
        degree = max(int(is_coupled.sum(1).max()), 1)
        num_units, num_states = given.shape[:2]
        neighbours = np.zeros((num_units, degree), np.int32)
        tables = np.zeros((num_units, degree, num_states, num_states), np.float32)
        for unit in range(num_units):
            near = np.flatnonzero(is_coupled[unit])
            neighbours[unit, : near.size] = near
            tables[unit, : near.size] = np.moveaxis(given[unit][:, near], 0, -1)
        change = fields - start
        return cls(
            base, start, on_device(tables), on_device(neighbours, np.int32), change, on_device(0.0)
        )

    def slope(self, x, beta):
        units, states = self.start.shape
        rows = x.T.astype(jnp.int32)  # (units, chains)
        first = states * jnp.arange(units)[:, None]

        def add(slot, total):
            near = rows[self.neighbours[:, slot]]
            table = self.tables[:, slot].reshape(-1)
            pairs = jnp.take(table, (first + near) * states + rows, mode="clip")
            return total + pairs.sum(0)

        nothing = jnp.zeros(x.shape[0], self.tables.dtype)
        pairs = jax.lax.fori_loop(0, self.tables.shape[1], add, nothing)  # each from both sides
        alone = jnp.take(self.change.reshape(-1), first + rows, mode="clip").sum(0)
        return 0.5 * pairs + alone + self.offset

    def site_logits(self, x, sites, beta) -> Float[Array, "chains sites states"]:
        near = self.neighbours[sites]
        tables = self.tables[sites].reshape(-1, self.num_states)
        first = self.num_states * jnp.arange(near.size)
        rows = first + x[:, near.reshape(-1)].astype(jnp.int32)  # (chains, sites * degree)
        found = jnp.take(tables, rows, axis=0, mode="clip")
        sums = found.reshape(x.shape[0], *near.shape, self.num_states).sum(2)
        return self.start[sites] + beta * (sums + self.change[sites])

    def exact_energies(self, states: np.ndarray) -> np.ndarray:
        fields, tables = self._exact_fields(), np.asarray(self.tables, np.float64)
        neighbours = np.asarray(self.neighbours)
        energies = np.full(len(states), float(self.offset))
        for unit, near in enumerate(neighbours):
            here = states[:, unit]
            energies += fields[unit, here]
            for slot, other in enumerate(near):
                energies += tables[unit, slot, states[:, other], here] / 2
        return energies

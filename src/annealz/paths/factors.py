"""The geometric path of a factor graph, all variables annealed.

Variables x_i of up to q states, factors T_f over some of them, fields h (factors of one variable) and those
of the base b_A:

    log p*_beta(x) = c + (1-beta) sum_i b_A[i, x_i] + beta E(x)
    E(x)           = sum_f log T_f(x_f) + sum_i h[i, x_i]     each table less its largest entry; c their sum

is linear in beta, so that a log ratio is (beta1 - beta0) U(x) with U(x) = E(x) - sum_i b_A[i, x_i]. Given
all others variable i has the logits

    (1-beta) b_A[i, k] + beta (h[i, k] + sum_{f of i} log T_f(x_f with x_i = k))

Zeros. Were log 0 = -inf at every beta > 0, chains would start where they may not be and could not move. So
below beta = 1 a zero counts as e^-20 of the smallest other entry of its table (`SOFT_ZERO`): all states can
be reached, and p*_beta is positive. At beta = 1 zeros are zeros: the last increment is -1e18, no weight,
where x has a zero factor, and a sweep draws no such state, except from one that is surrounded by them.
Z-hat stays unbiased, for what it ends at is the model itself.

All tables lie one after the other in one vector, and an entry is found by offset + sum of strides times
states: one program for all shapes of tables.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from annealz.core.arrays import on_device
from annealz.core.mixed_units import NEVER, MixedUnits
from annealz.core.random import Bits
from annealz.core.units import AbstractStateUnits
from annealz.io.reading import check_memory
from annealz.paths.pairs import AbstractUnitPath
from annealz.paths.tempered import ZERO_DENSITY

SOFT_ZERO = 20.0  # nats below the smallest entry of a table, where its zeros are before beta = 1
_HARD_ZERO = -1e9  # log of a zero at beta = 1: a sweep leaves it for anything else that there is
_MISSING = -1e15  # of a state that a variable lacks, below any number of zeros


class FactorTables(eqx.Module):
    """Factors of two and more variables, ready to be looked up.

    A variable has as many slots as the one with the most factors; a slot without a factor points at an
    entry of 0 with strides of 0.
    """

    soft: Float[Array, " entries"]
    zeros: Float[Array, " entries"] | None
    """1 where an entry is zero, else 0; None where there are none."""
    offsets: Int[Array, " factors"]
    scopes: Int[Array, "factors members"]
    strides: Int[Array, "factors members"]
    slot_counts: Int[Array, " units"]
    slot_offsets: Int[Array, "units slots"]
    slot_strides: Int[Array, "units slots"]
    """Of the variable itself."""
    other_units: Int[Array, "units slots others"]
    other_strides: Int[Array, "units slots others"]

    def __init__(self, num_units: int, factors: list[tuple[tuple[int, ...], np.ndarray]]):
        """`factors` as (scope, log table) with the largest entry of each table 0; -inf for zeros."""
        widest = max((len(scope) for scope, _ in factors), default=1)
        offsets, scopes, strides = [], [], []
        entries = 1  # the first is the 0 of empty slots
        slots: list[list[tuple[int, int]]] = [[] for _ in range(num_units)]
        for f, (scope, table) in enumerate(factors):
            offsets.append(entries)
            entries += table.size
            fill = [0] * (widest - len(scope))
            scopes.append([*scope, *fill])
            steps = [int(np.prod(table.shape[axis + 1 :])) for axis in range(table.ndim)]
            strides.append([*steps, *fill])
            for axis, unit in enumerate(scope):
                slots[unit].append((f, axis))
        logs = np.concatenate([[0.0], *(table.ravel() for _, table in factors)])
        self.soft = on_device(np.concatenate([[0.0], *(_softened(t).ravel() for _, t in factors)]))
        has_zeros = bool((logs == -np.inf).any())
        self.zeros = on_device(logs == -np.inf) if has_zeros else None
        self.offsets = on_device(np.array(offsets, np.int64), np.int32)
        shape = (len(factors), widest)
        self.scopes = on_device(np.array(scopes, np.int64).reshape(shape), np.int32)
        self.strides = on_device(np.array(strides, np.int64).reshape(shape), np.int32)
        most = max(max(map(len, slots)), 1)
        what = f"a graph of {num_units:,} variables, one of them in {most:,} factors,"
        check_memory(16 * num_units * most * widest, what, "split that variable")
        own = np.zeros((2, num_units, most), np.int64)
        others = np.zeros((2, num_units, most, max(widest - 1, 1)), np.int64)
        for unit, held in enumerate(slots):
            for slot, (f, axis) in enumerate(held):
                own[:, unit, slot] = offsets[f], strides[f][axis]
                for row, values in enumerate((scopes[f], strides[f])):
                    rest = values[:axis] + values[axis + 1 :]
                    others[row, unit, slot, : len(rest)] = rest
        self.slot_counts = on_device(np.array([len(held) for held in slots]), np.int32)
        self.slot_offsets, self.slot_strides = (on_device(part, np.int32) for part in own)
        self.other_units, self.other_strides = (on_device(part, np.int32) for part in others)

    def energy(self, x, values) -> Float[Array, " chains"]:
        """sum_f log T_f(x_f), of these values of the entries."""
        places = self.offsets
        for member in range(self.scopes.shape[1]):
            states = x[:, self.scopes[:, member]].astype(jnp.int32)
            places = places + self.strides[:, member] * states
        return values[places].sum(-1)

    def is_blocked(self, x) -> Array:
        """Whether a state has a zero factor."""
        assert self.zeros is not None
        return self.energy(x, self.zeros) > 0

    def site_energies(self, x, sites, num_states: int) -> Float[Array, "chains sites states"]:
        """The energies of the factors of some units, for every state of these."""

        def add(slot, total):
            places = self.slot_offsets[sites, slot]
            for other in range(self.other_units.shape[2]):
                states = x[:, self.other_units[sites, slot, other]].astype(jnp.int32)
                places = places + self.other_strides[sites, slot, other] * states
            steps = self.slot_strides[sites, slot][:, None] * jnp.arange(num_states)
            return total + self.soft[places[..., None] + steps]

        zeros = jnp.zeros((x.shape[0], sites.shape[0], num_states), jnp.float32)
        return jax.lax.fori_loop(0, self.slot_counts[sites].max(), add, zeros)


class FactorPath(AbstractUnitPath):
    """From independent variables to a factor graph; states are the numbers 0 .. q - 1, as floats.

    Parameters
    ----------
    base : the distribution at beta = 0
    start : (units, states), the logits of the base, -1e4 where a variable lacks the state
    fields : (units, states), the factors of one variable
    tables : the others
    allowed : (units, states), which states the variables have
    constant : c
    """

    base: Any
    start: Float[Array, "units states"]
    change: Float[Array, "units states"]
    tables: FactorTables
    allowed: Bool[Array, "units states"] | None
    """None where all variables have all states."""
    constant: Float[np.ndarray, ""]

    def __init__(self, base, start, fields, tables: FactorTables, allowed, constant: float):
        start, fields = (
            np.where(allowed, part, NEVER).astype(np.float32) for part in (start, fields)
        )
        self.base, self.tables = base, tables
        self.constant = np.asarray(constant, np.float64)
        self.start, self.change = on_device(start), on_device(fields - start)
        self.allowed = None if np.all(allowed) else on_device(allowed, bool)

    @property
    def units(self) -> AbstractStateUnits:
        if self.allowed is None:
            return super().units
        return MixedUnits(allowed=self.allowed, num_states=self.num_states)

    @property
    def log_z0(self) -> float:
        return super().log_z0 + float(self.constant)

    def log_density(self, x, beta):
        start = self._picked(x, self.start) + self.constant + beta * self.slope(x, beta)
        if self.tables.zeros is None:
            return start
        return start + jnp.where(self.tables.is_blocked(x) & (beta >= 1), ZERO_DENSITY, 0)

    def log_ratio(self, x, beta0, beta1):
        ratio = super().log_ratio(x, beta0, beta1)
        if self.tables.zeros is None:
            return ratio
        is_last = (jnp.asarray(beta1) >= 1) & (jnp.asarray(beta0) < 1)
        is_zero = jax.lax.cond(
            is_last, lambda x: self.tables.is_blocked(x), lambda x: jnp.zeros(len(x), bool), x
        )
        return ratio + jnp.where(is_zero, ZERO_DENSITY, 0)

    def slope(self, x, beta):
        return self.tables.energy(x, self.tables.soft) + self._picked(x, self.change)

    def conditioned(self, bits: Bits, x, beta) -> "FactorPath":
        """The path with the zeros that this beta has."""
        soft, zeros = self.tables.soft, self.tables.zeros
        if zeros is None:
            return self
        values = jnp.where((zeros > 0) & (beta >= 1), _HARD_ZERO, soft)
        return eqx.tree_at(lambda path: path.tables.soft, self, values)

    def site_logits(self, x, sites, beta) -> Float[Array, "chains sites states"]:
        energies = self.tables.site_energies(x, sites, self.num_states)
        logits = self.start[sites] + beta * (energies + self.change[sites])
        if self.allowed is None:
            return logits
        return jnp.where(self.allowed[sites], logits, _MISSING)

    def _picked(self, x, fields) -> Float[Array, " chains"]:
        return jnp.take_along_axis(fields, x.astype(jnp.int32).T, axis=1).sum(0)


def _softened(table: np.ndarray) -> np.ndarray:
    """The log table with zeros e^-20 of its smallest other entry."""
    is_zero = table == -np.inf
    if not is_zero.any():
        return table
    return np.where(is_zero, table[~is_zero].min() - SOFT_ZERO, table)

"""log Z of a factor graph by contraction: factors are multiplied in pairs, variables summed out on the way.

    Z = sum_x prod_f T_f(x_f)

The order decides the cost. Orders of elimination (fewest new pairs, smallest table, along the graph) and
opt_einsum's random greedy paths are compared by what they would take before any table is made; the cheapest
that fits into memory is used. Tables are float64, scaled by their largest entry; where their entries span
more than 150 decades the contraction is repeated with logarithms, so that nothing underflows.
"""

import dataclasses
import heapq
import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from annealz.io.reading import size_text

Scope: TypeAlias = tuple[int, ...]
Tables: TypeAlias = list[tuple[Scope, np.ndarray]]
"""Factors, as (scope, log table)."""
Factors: TypeAlias = tuple[tuple[int, ...], Tables]
"""The number of states of every variable, and the factors."""

MAX_BYTES, MAX_PRODUCTS = 2 * 2**30, 2.0**37
_CHEAP_BYTES, _CHEAP_PRODUCTS = 64 * 2**20, 2.0**25  # about a second
_CHEAP_FACTORS, _CHEAP_VARIABLES = 20_000, 1000  # beyond, the search for an order takes longer
_COPIES = 4  # of the largest table, that one step holds
_SAFE = 1e-150  # positive entries from here on keep their products above underflow
_LEAST = 1e-280  # a sum from here on has lost nothing to underflow
_SEARCH_SECONDS = 5.0
_THICK = 64  # neighbours of every variable: far beyond what any table holds
_ROWS = 2**20  # numbers at a time, where sums are repeated with logarithms


@dataclasses.dataclass(frozen=True)
class Plan:
    """An order of contraction and what it takes."""

    pairs: tuple[tuple[int, int], ...]
    """Which two are multiplied; a result has the next free number."""
    products: float
    """Multiplications."""
    largest: float
    """Numbers of the largest table."""

    @property
    def num_bytes(self) -> float:
        """Of memory, about."""
        return _COPIES * 8 * self.largest

    def fits(self, max_bytes: float, max_products: float) -> bool:
        """Whether it stays within these limits."""
        return self.num_bytes <= max_bytes and self.products <= max_products


def contracted_log_z(
    factors: Factors, *, max_bytes: float = MAX_BYTES, max_products: float = MAX_PRODUCTS
) -> float:
    """Return log Z; a ValueError where it would take more than these limits."""
    num_states, tables = factors[0], absorbed(factors[1])
    scopes = [scope for scope, _ in tables]
    least = _least_log2(num_states, scopes)
    if least > math.log2(max_bytes / 8):
        raise ValueError(
            f"exact contraction would take tables of 2^{least:.0f} numbers or more, and at most "
            f"{size_text(max_bytes)} is allowed."
        )
    plan = plan_contraction(num_states, scopes, is_thorough=True)
    if not plan.fits(max_bytes, max_products):
        raise ValueError(
            f"exact contraction would take {size_text(plan.num_bytes)} and {plan.products:.1e} products, "
            f"and at most {size_text(max_bytes)} and {max_products:.1e} are allowed."
        )
    return contract(num_states, tables, plan)


def contracted_log_z_if_cheap(factors: Factors | None) -> float | None:
    """log Z of a graph so small or so thin that contracting it takes less than a second, else None."""
    if factors is None or len(factors[1]) > _CHEAP_FACTORS:
        return None
    num_states, tables = factors[0], absorbed(factors[1])
    scopes = [scope for scope, _ in tables]
    if len({v for scope in scopes if len(scope) > 1 for v in scope}) > _CHEAP_VARIABLES:
        return None
    if _least_log2(num_states, scopes) > math.log2(_CHEAP_BYTES / 8 / _COPIES):
        return None
    plan = plan_contraction(num_states, scopes)
    if not plan.fits(_CHEAP_BYTES, _CHEAP_PRODUCTS):
        return None
    return contract(num_states, tables, plan)


def absorbed(factors: Tables) -> Tables:
    """The same product with every factor multiplied into one that has all of its variables."""
    ordered = sorted(factors, key=lambda factor: -len(factor[0]))
    kept: Tables = []
    holders: dict[int, list[int]] = {}
    for scope, table in ordered:
        homes = [set(holders.get(v, ())) for v in scope]
        home = min(set.intersection(*homes), default=None) if homes else (0 if kept else None)
        if home is None:
            for v in scope:
                holders.setdefault(v, []).append(len(kept))
            kept.append((scope, np.asarray(table, np.float64)))
            continue
        wide, held = kept[home]
        kept[home] = wide, held + _aligned(table, scope, wide)
    return kept


def plan_contraction(
    num_states: Sequence[int], scopes: Sequence[Scope], *, is_thorough: bool = False
) -> Plan:
    """The cheapest order that was found; nothing is multiplied yet.

    With `is_thorough` opt_einsum looks for a better one too, for some seconds, where that may pay.
    """
    sizes = [math.log2(count) for count in num_states]
    orders = [_by_rule(sizes, scopes, with_fill) for with_fill in (True, False)]
    orders += [_along_graph(len(sizes), scopes), list(range(len(sizes)))]
    plans = [_plan(_pairs_of(order, sizes, scopes), sizes, scopes) for order in orders]
    best = min(plans, key=lambda plan: (plan.products, plan.largest))
    if is_thorough and not best.fits(_CHEAP_BYTES, _CHEAP_PRODUCTS) and len(scopes) > 2:
        best = min(best, _searched(num_states, sizes, scopes), key=lambda plan: plan.products)
    return best


def contract(num_states: Sequence[int], tables: Tables, plan: Plan) -> float:
    """log Z by this plan, which was made for these scopes; -inf where every state has a zero factor."""
    try:
        return _run(_Scaled(tables), tables, plan, num_states)
    except _OutOfRange:
        return _run(_Logarithms(tables), tables, plan, num_states)


# --- orders ---


def neighbours(number: int, scopes: Sequence[Scope]) -> list[set[int]]:
    """Return the variables that share a factor with each variable."""
    near: list[set[int]] = [set() for _ in range(number)]
    for scope in scopes:
        for v in scope:
            near[v].update(scope)
    for v, others in enumerate(near):
        others.discard(v)
    return near


def _least_log2(num_states: Sequence[int], scopes: Sequence[Scope]) -> float:
    """A bound from below on log2 of the largest table: the variable with the fewest neighbours, of the
    part of the graph where that is most.
    """
    near = neighbours(len(num_states), scopes)
    least = math.log2(min(num_states, default=1))
    degrees, bound = [len(others) for others in near], 0
    queue, gone = [(degree, v) for v, degree in enumerate(degrees)], set()
    heapq.heapify(queue)
    while queue and bound <= _THICK and len(near) - len(gone) > bound:
        degree, v = heapq.heappop(queue)
        if v in gone or degree != degrees[v]:
            continue
        bound = max(bound, degree)
        gone.add(v)
        for other in near[v] - gone:
            degrees[other] -= 1
            heapq.heappush(queue, (degrees[other], other))
    return bound * least


def _by_rule(sizes: Sequence[float], scopes: Sequence[Scope], with_fill: bool) -> list[int]:
    """Next the variable that joins the fewest unjoined pairs, or makes the smallest table."""
    near = neighbours(len(sizes), scopes)

    def size(v: int) -> float:
        return sum(sizes[other] for other in near[v])

    def price(v: int) -> tuple[float, float]:
        if not with_fill:
            return size(v), 0.0
        others = near[v]
        missing = sum(len(others) - 1 - len(near[other] & others) for other in others)
        return missing, size(v)

    prices = [price(v) for v in range(len(sizes))]
    queue, order, gone = [(cost, v) for v, cost in enumerate(prices)], [], set()
    heapq.heapify(queue)
    while queue:
        cost, v = heapq.heappop(queue)
        if v in gone or cost != prices[v]:
            continue
        others, changed = near[v], set(near[v])
        for other in others:
            near[other] |= others
            near[other] -= {v, other}
        if with_fill:
            for other in others:
                changed |= near[other]
        order.append(v)
        gone.add(v)
        for other in changed - gone:
            prices[other] = price(other)
            heapq.heappush(queue, (prices[other], other))
    return order


def _along_graph(number: int, scopes: Sequence[Scope]) -> list[int]:
    """From one end of the graph to the other (Cuthill and McKee), which suits lattices."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    near = neighbours(number, scopes)
    rows = [v for v, others in enumerate(near) for _ in others]
    columns = [other for others in near for other in others]
    graph = coo_array((np.ones(len(rows)), (rows, columns)), shape=(number, number)).tocsr()
    return [int(v) for v in reverse_cuthill_mckee(graph, symmetric_mode=True)]


def _pairs_of(
    order: Sequence[int], sizes: Sequence[float], scopes: Sequence[Scope]
) -> list[tuple[int, int]]:
    """All that hold a variable are multiplied, the smallest first, before the next one's turn."""
    held = {i: frozenset(scope) for i, scope in enumerate(scopes)}
    places: dict[int, set[int]] = {}
    for i, scope in held.items():
        for v in scope:
            places.setdefault(v, set()).add(i)
    pairs, free = [], len(scopes)
    for v in order:
        while len(places.get(v, ())) > 1:
            first, second = sorted(places[v], key=lambda i: (sum(sizes[u] for u in held[i]), i))[:2]
            pairs.append((first, second))
            union = held.pop(first) | held.pop(second)
            for u in union:
                places[u] -= {first, second}
            union = frozenset(u for u in union if places[u])  # the others are summed out
            held[free] = union
            for u in union:
                places[u].add(free)
            free += 1
        for i in places.pop(v, ()):
            held[i] = held[i] - {v}
    rest = list(held)  # scalars
    while len(rest) > 1:
        pairs.append((rest.pop(), rest.pop()))
        rest.append(free)
        free += 1
    return pairs


def _searched(num_states: Sequence[int], sizes: Sequence[float], scopes: Sequence[Scope]) -> Plan:
    """By random greedy contraction."""
    from opt_einsum.path_random import RandomGreedy
    from opt_einsum.paths import linear_to_ssa

    inputs = [frozenset(map(str, scope)) for scope in scopes]
    lengths = {str(v): count for v, count in enumerate(num_states)}
    search = RandomGreedy(max_repeats=64, max_time=_SEARCH_SECONDS, minimize="flops")
    path = search(inputs, frozenset(), lengths)
    pairs = [pair for pair in linear_to_ssa(path) if len(pair) == 2]
    return _plan(pairs, sizes, scopes)


def _plan(pairs: Sequence[Sequence[int]], sizes: Sequence[float], scopes: Sequence[Scope]) -> Plan:
    """What these take."""
    products = largest = 0.0
    for _, scope, joint, result in _steps(pairs, scopes):
        products += 2.0 ** min(sum(sizes[v] for v in joint), 1000)
        largest = max(
            largest, *(2.0 ** min(sum(sizes[v] for v in one), 1000) for one in (scope, result))
        )
    for scope in scopes:
        largest = max(largest, 2.0 ** min(sum(sizes[v] for v in scope), 1000))
    return Plan(tuple((int(a), int(b)) for a, b in pairs), products, round(largest, 3))


def _steps(pairs: Sequence[Sequence[int]], scopes: Sequence[Scope]):
    """((first, second), first scope, all variables of both, those that remain) of every pair."""
    counts: dict[int, int] = {}
    held: dict[int, Scope] = {}
    for i, scope in enumerate(scopes):
        held[i] = scope
        for v in scope:
            counts[v] = counts.get(v, 0) + 1
    free = len(scopes)
    for first, second in pairs:
        one, two = held.pop(first), held.pop(second)
        joint = (*one, *(v for v in two if v not in one))
        both = set(one) & set(two)
        result = tuple(v for v in joint if counts[v] > (2 if v in both else 1))
        for v in joint:
            counts[v] -= (2 if v in both else 1) - (v in result)
        held[free] = result
        free += 1
        yield (first, second), one, joint, result


# --- tables ---


class _OutOfRange(Exception):
    """Scaled tables would lose small entries."""


class _Scaled:
    """Tables as numbers, the largest of each 1, and the logarithm of what was divided by."""

    def __init__(self, tables: Tables):
        self.log_scale = 0.0
        self.tables = {i: self._scaled_log(table) for i, (_, table) in enumerate(tables)}

    def _scaled_log(self, table: np.ndarray) -> np.ndarray:
        largest = table.max(initial=-np.inf)
        if largest == -np.inf:
            self.log_scale = -np.inf
            return np.zeros(table.shape)
        self.log_scale += float(largest)
        values = np.exp(table - largest)
        if (values[table > -np.inf] < _SAFE).any():
            raise _OutOfRange
        return values

    def scaled(self, values: np.ndarray) -> np.ndarray:
        largest = values.max(initial=0.0)
        if largest == 0:
            self.log_scale = -np.inf
            return values
        self.log_scale += math.log(largest)
        values = values / largest
        if values.min(initial=1.0) < _SAFE and (values[values > 0] < _SAFE).any():
            raise _OutOfRange
        return values

    def summed(self, table: np.ndarray, axes: Scope) -> np.ndarray:
        return self.scaled(table.sum(axes))

    def multiply(self, one: np.ndarray, two: np.ndarray) -> np.ndarray:
        """(batch, left, sum) and (batch, sum, right) to (batch, left, right)."""
        if one.shape[2] == 1:
            return self.scaled(one * two)
        return self.scaled(np.matmul(one, two))

    def total(self, table: np.ndarray) -> float:
        with np.errstate(divide="ignore"):
            return self.log_scale + float(np.log(table.sum()))


class _Logarithms:
    """Tables as logarithms."""

    def __init__(self, tables: Tables):
        self.tables = {i: np.asarray(table, np.float64) for i, (_, table) in enumerate(tables)}

    def summed(self, table: np.ndarray, axes: Scope) -> np.ndarray:
        return np.logaddexp.reduce(table, axis=axes) if axes else table

    def multiply(self, one: np.ndarray, two: np.ndarray) -> np.ndarray:
        if one.shape[2] == 1:
            return one + two
        high_one, high_two = _highest(one, 2), _highest(two, 1)
        sums = np.matmul(np.exp(one - high_one), np.exp(two - high_two))
        is_lost = sums < _LEAST
        with np.errstate(divide="ignore"):
            logs = np.log(sums) + high_one + high_two
        batch, left, right = np.nonzero(is_lost)
        rows = max(1, _ROWS // one.shape[2])
        for start in range(0, batch.size, rows):
            b, i, j = (part[start : start + rows] for part in (batch, left, right))
            logs[b, i, j] = np.logaddexp.reduce(one[b, i] + two[b, :, j], axis=1)
        return logs

    def total(self, table: np.ndarray) -> float:
        return float(np.logaddexp.reduce(table, axis=None))


def _highest(table: np.ndarray, axis: int) -> np.ndarray:
    largest = table.max(axis, keepdims=True)
    return np.where(np.isfinite(largest), largest, 0.0)


def _run(
    held: _Scaled | _Logarithms, tables: Tables, plan: Plan, num_states: Sequence[int]
) -> float:
    scopes = [scope for scope, _ in tables]
    where = dict(enumerate(scopes))
    free = len(scopes)
    for (first, second), _, _, result in _steps(plan.pairs, scopes):
        one, two = where.pop(first), where.pop(second)
        table_one, table_two = held.tables.pop(first), held.tables.pop(second)
        kept = set(result)
        one, table_one = _without(held, one, table_one, kept | set(two))
        two, table_two = _without(held, two, table_two, kept | set(one))
        batch = [v for v in one if v in two and v in kept]
        inner = [v for v in one if v in two and v not in kept]
        left = [v for v in one if v not in two]
        right = [v for v in two if v not in one]
        lengths = [math.prod(num_states[v] for v in part) for part in (batch, left, inner, right)]
        matrix_one = _ordered(table_one, one, (*batch, *left, *inner))
        matrix_two = _ordered(table_two, two, (*batch, *inner, *right))
        product = held.multiply(
            matrix_one.reshape(lengths[0], lengths[1], lengths[2]),
            matrix_two.reshape(lengths[0], lengths[2], lengths[3]),
        )
        where[free] = (*batch, *left, *right)
        held.tables[free] = product.reshape([num_states[v] for v in where[free]])
        free += 1
    used = {v for scope in scopes for v in scope}
    unused = sum(math.log(count) for v, count in enumerate(num_states) if v not in used)
    if not where:
        return unused
    [last] = where  # scalars are multiplied too
    return held.total(held.tables[last]) + unused


def _without(held, scope: Scope, table: np.ndarray, kept: set[int]) -> tuple[Scope, np.ndarray]:
    """The table with the variables summed out that nothing else holds."""
    axes = tuple(axis for axis, v in enumerate(scope) if v not in kept)
    if not axes:
        return scope, table
    return tuple(v for v in scope if v in kept), held.summed(table, axes)


def _ordered(table: np.ndarray, scope: Scope, wanted: Sequence[int]) -> np.ndarray:
    return table.transpose([scope.index(v) for v in wanted])


def _aligned(table: np.ndarray, scope: Scope, wide: Scope) -> np.ndarray:
    """The table with axes of length one where `wide` has other variables."""
    table = np.asarray(table, np.float64)
    order = [v for v in wide if v in scope]
    table = _ordered(table, scope, order)
    lengths = iter(table.shape)
    return table.reshape([next(lengths) if v in scope else 1 for v in wide])

"""Loopy belief propagation on a factor graph, and Bethe's approximation of log Z.

    m_{f -> i}(k) = sum over x_f with x_i = k of T_f(x_f) prod_{j != i} m_{j -> f}(x_j)
    m_{i -> f}(k) = prod_{g != f} m_{g -> i}(k)
    log Z         ~ sum_f log z_f + sum_i log z_i - sum_{f, i} log z_{f i}

with z the normalisers of the beliefs of factors, variables and of the products of the two messages along an
edge. Exact on trees. Messages are damped by a half and sent in turn until none changes by 1e-6.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

__all__ = ["bethe_log_z"]

_DAMPING, _TOLERANCE, _MOST_ROUNDS = 0.5, 1e-6, 1000


def bethe_log_z(
    num_states: Sequence[int], factors: Sequence[tuple[tuple[int, ...], np.ndarray]]
) -> tuple[float, bool]:
    """log Z by Bethe's formula, and whether the messages have converged."""
    to_unit = {
        (f, v): np.zeros(num_states[v]) for f, (scope, _) in enumerate(factors) for v in scope
    }
    sums = [np.zeros(count) for count in num_states]
    has_converged = False
    for _ in range(_MOST_ROUNDS):
        change = 0.0
        for f, (scope, table) in enumerate(factors):
            incoming = [_normal(sums[v] - to_unit[f, v]) for v in scope]
            joint = _joint(table, incoming)
            for axis, v in enumerate(scope):
                rest = tuple(other for other in range(len(scope)) if other != axis)
                with np.errstate(invalid="ignore"):
                    message = np.asarray(logsumexp(joint, axis=rest)) - incoming[axis]
                message = _normal(np.where(np.isfinite(message), message, _NONE))
                old = to_unit[f, v]
                new = _DAMPING * old + (1 - _DAMPING) * message
                sums[v] += new - old
                to_unit[f, v] = new
                change = max(change, float(np.abs(np.exp(message) - np.exp(_normal(old))).max()))
        if change < _TOLERANCE:
            has_converged = True
            break
    total = 0.0
    for f, (scope, table) in enumerate(factors):
        incoming = [_normal(sums[v] - to_unit[f, v]) for v in scope]
        total += float(logsumexp(_joint(table, incoming)))
        for v, into in zip(scope, incoming, strict=True):
            total -= float(logsumexp(into + _normal(to_unit[f, v])))
    held = [[_normal(to_unit[f, v]) for f, (scope, _) in enumerate(factors) if v in scope]
            for v in range(len(num_states))]  # fmt: skip
    total += sum(float(logsumexp(np.sum(one, axis=0))) if one else np.log(num_states[v])
                 for v, one in enumerate(held))  # fmt: skip
    return total, has_converged


_NONE = -700.0  # a message of a zero


def _normal(message: np.ndarray) -> np.ndarray:
    return message - logsumexp(message)


def _joint(table: np.ndarray, incoming: Sequence[np.ndarray]) -> np.ndarray:
    joint = np.array(table, float)
    for axis, message in enumerate(incoming):
        shape = [1] * joint.ndim
        shape[axis] = -1
        joint = joint + message.reshape(shape)
    return joint

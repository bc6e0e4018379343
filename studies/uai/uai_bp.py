"""Loopy belief propagation on a factor graph, and Bethe's approximation of log Z.

    m_{f -> i}(k) = sum over x_f with x_i = k of T_f(x_f) prod_{j != i} m_{j -> f}(x_j)
    m_{i -> f}(k) = prod_{g != f} m_{g -> i}(k)
    log Z         ~ sum_f log z_f + sum_i log z_i - sum_{f, i} log z_{f i}

with z the normalisers of the beliefs of factors, of variables, and of the products of the two messages
along an edge. Exact on trees. All messages are sent at once, damped by a half, until none changes by 1e-6.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

__all__ = ["bethe_log_z"]

_DAMPING, _TOLERANCE, _MOST_ROUNDS = 0.5, 1e-6, 2000
_NONE = -700.0  # log of a message that is zero


class _Group:
    """Factors of one shape of table."""

    def __init__(self, scopes: list[tuple[int, ...]], tables: list[np.ndarray]):
        self.scopes = np.array(scopes)  # (factors, axes)
        self.tables = np.maximum(np.stack(tables), _NONE)  # (factors, states ...)
        self.messages = [np.zeros((len(scopes), count)) for count in self.tables.shape[1:]]

    def incoming(self, sums: np.ndarray) -> list[np.ndarray]:
        """From variables to factors, axis by axis."""
        return [
            _normal(sums[self.scopes[:, axis], : old.shape[1]] - old)
            for axis, old in enumerate(self.messages)
        ]

    def joint(self, incoming: Sequence[np.ndarray]) -> np.ndarray:
        joint = self.tables
        for axis, message in enumerate(incoming):
            shape = [len(message)] + [1] * (joint.ndim - 1)
            shape[axis + 1] = -1
            joint = joint + message.reshape(shape)
        return joint

    def send(self, sums: np.ndarray) -> float:
        """New messages to the variables; the largest change."""
        incoming, change = self.incoming(sums), 0.0
        joint = self.joint(incoming)
        for axis, old in enumerate(self.messages):
            rest = tuple(other for other in range(1, joint.ndim) if other != axis + 1)
            message = np.asarray(logsumexp(joint, axis=rest)) if rest else joint
            message = _normal(np.maximum(message - incoming[axis], _NONE))
            change = max(change, float(np.abs(np.exp(message) - np.exp(old)).max()))
            self.messages[axis] = _normal(_DAMPING * old + (1 - _DAMPING) * message)
        return change


def bethe_log_z(
    num_states: Sequence[int], factors: Sequence[tuple[tuple[int, ...], np.ndarray]]
) -> tuple[float, bool]:
    """log Z by Bethe's formula, and whether the messages have converged."""
    shapes = sorted({table.shape for _, table in factors if table.ndim})
    groups = []
    for shape in shapes:
        chosen = [factor for factor in factors if factor[1].shape == shape]
        groups.append(_Group([scope for scope, _ in chosen], [table for _, table in chosen]))
    states = np.arange(max(num_states)) < np.array(num_states)[:, None]
    has_converged = False
    for _ in range(_MOST_ROUNDS):
        sums = _sums(groups, states)
        if max(group.send(sums) for group in groups) < _TOLERANCE:
            has_converged = True
            break
    sums = _sums(groups, states)
    total = sum(float(table) for _, table in factors if not table.ndim)
    total += _normalisers(np.where(states, sums, -np.inf))
    for group in groups:
        incoming = group.incoming(sums)
        joint = group.joint(incoming).reshape(len(group.scopes), -1)
        total += _normalisers(joint)
        for into, back in zip(incoming, group.messages, strict=True):
            total -= _normalisers(into + back)
    return total, has_converged


def _normalisers(logs: np.ndarray) -> float:
    """The sum over rows of the logarithms of their sums."""
    return float(np.asarray(logsumexp(logs, axis=1)).sum())


def _sums(groups: Sequence[_Group], states: np.ndarray) -> np.ndarray:
    """Of all messages to every variable, (variables, states)."""
    sums = np.zeros(states.shape)
    for group in groups:
        for axis, message in enumerate(group.messages):
            np.add.at(sums[:, : message.shape[1]], group.scopes[:, axis], message)
    return sums


def _normal(messages: np.ndarray) -> np.ndarray:
    return messages - logsumexp(messages, axis=1, keepdims=True)

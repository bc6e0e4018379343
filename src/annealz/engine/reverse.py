"""Reverse annealing: from draws of the target down the same frozen schedule.

Forward, v_0 ~ p_0, then v_k ~ T_{beta_k}(. | v_{k-1}). The time reversal of the whole path is

    v_K ~ p_1
    for k = K..1:
        v_{k-1} ~ R_{beta_k}(. | v_k)                                      log w = 0 before k = K
        log w += log p*_{beta_{k-1}}(v_{k-1}) - log p*_{beta_k}(v_{k-1})

where R_beta is the reversal of T_beta: p_beta(x) T_beta(y | x) = p_beta(y) R_beta(x | y). On one path
the two weights are each other's inverse, and with P and Q the laws of forward and reverse paths

    P(v) w(v) / Q(v) = Z_B / Z_A            w the forward weight, 1 / w the reverse one

so that E_Q[1/w] = Z_A / Z_B, E_P[log w] <= log Z_B / Z_A <= E_Q[log w], and the two samples of log w
may be joined (BAR). The first and the bounds hold for any kernel that leaves p_beta invariant, the
last for its reversal alone. All of it holds for exact draws from p_1; from approximate draws the upper
side is approximate.

The engine takes the first move, at beta = 1, as part of the start. What is left has the shape of the
forward loop (increment from beta_k to beta_{k-1}, then move at beta_{k-1}) and its cost. The move that
this adds at beta = 0 touches no weight.
"""

import numpy as np

from annealz.engine.blocks import states_like
from annealz.paths.abstract import AbstractPath

__all__ = ["check_start"]


def check_start(path: AbstractPath, start, num_chains: int, name: str = "start") -> np.ndarray:
    """The states to start from, as the path holds them; a ValueError names what is wrong."""
    like = states_like(path, num_chains)
    x = np.asarray(start)
    if x.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {x.dtype}.")
    if x.shape != like.shape:
        raise ValueError(
            f"{name} must hold one state of the path for each of num_chains = {num_chains} chains, an "
            f"array of shape {like.shape}, got shape {x.shape}: give as many draws as chains."
        )
    binary = path.is_binary
    wrong = ~np.isin(x, (0, 1)) if binary else ~np.isfinite(x)
    if wrong.any():
        raise ValueError(
            f"{name} must hold {'zeros and ones' if binary else 'finite numbers'}, got "
            f"{x[wrong][0]} ({int(wrong.sum())} of {x.size} values): give draws from the model."
        )
    return x.astype(like.dtype)

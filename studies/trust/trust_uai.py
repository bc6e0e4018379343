"""Pairwise binary Markov networks in the format of the UAI competitions, as RBMs.

A file lists the variables, the scopes of the factors, and their tables, the last variable of a scope
running fastest. With l the logarithm of a table of two variables x and y,

    l(x, y) = l00 + (l10 - l00) x + (l01 - l00) y + (l11 - l10 - l01 + l00) x y

so that a network whose variables have two colours, no factor joining two of one colour, is an RBM and a
constant. `NAME.uai.PR` holds log10 Z.
"""

from pathlib import Path

import numpy as np

from annealz.kernels.colours import two_colours
from annealz.models.rbm import RBM

__all__ = ["read_reference", "read_uai"]


def read_uai(path: Path) -> tuple[RBM, float]:
    """The RBM of a file, and the constant by which log Z of the network is more."""
    words = iter(path.read_text("utf-8").split())
    if next(words) != "MARKOV":
        raise ValueError(f"{path.name} must be a Markov network.")
    sizes = [int(next(words)) for _ in range(int(next(words)))]
    if set(sizes) != {2}:
        raise ValueError(f"{path.name} must have variables of two states.")
    scopes = []
    for _ in range(int(next(words))):
        scopes.append([int(next(words)) for _ in range(int(next(words)))])
    biases, couplings, constant = np.zeros(len(sizes)), np.zeros((len(sizes),) * 2), 0.0
    for scope in scopes:
        table = np.array([float(next(words)) for _ in range(int(next(words)))])
        if len(scope) not in (1, 2) or table.size != 2 ** len(scope) or (table <= 0).any():
            raise ValueError(f"{path.name} must have positive factors of one or two variables.")
        table = np.log(table)
        constant += table[0]
        if len(scope) == 1:
            biases[scope[0]] += table[1] - table[0]
            continue
        x, y = scope
        biases[y] += table[1] - table[0]
        biases[x] += table[2] - table[0]
        couplings[x, y] += table[3] - table[2] - table[1] + table[0]
    couplings = couplings + couplings.T
    colours = two_colours(couplings != 0)
    if colours is None:
        raise ValueError(f"{path.name} has no two colours, so that it is not an RBM.")
    visible, hidden = np.flatnonzero(colours == 0), np.flatnonzero(colours == 1)
    return RBM(couplings[np.ix_(hidden, visible)], biases[hidden], biases[visible]), constant


def read_reference(path: Path) -> float:
    """log Z of the network, from the file of log10 Z beside it."""
    return float(path.with_name(path.name + ".PR").read_text("utf-8").split()[-1]) * np.log(10)

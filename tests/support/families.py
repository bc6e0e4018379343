"""One small model of every family, and the energies of all its states by brute force."""

import functools

import numpy as np
from scipy import stats

import annealz
from annealz.models.abstract import AbstractModel

RNG = np.random.default_rng(7)


def symmetric(size: int, scale: float) -> np.ndarray:
    upper = np.triu(RNG.normal(0, scale, (size, size)), 1)
    return upper + upper.T


def normal(*shape: int, scale: float = 0.6) -> np.ndarray:
    return RNG.normal(0.1, scale, shape)


def tables(size: int, states: int, pairs, scale: float = 0.8) -> np.ndarray:
    """Couplings (units, states, units, states) of these pairs."""
    couplings = np.zeros((size, states, size, states))
    for i, j in pairs:
        couplings[i, :, j] = RNG.normal(0.1, scale, (states, states))
        couplings[j, :, i] = couplings[i, :, j].T
    return couplings


MODELS: dict[str, AbstractModel] = {
    "boltzmann": annealz.Ising(symmetric(7, 0.5), normal(7)),
    "open lattice": annealz.Ising.square((3, 3), 0.4, 0.2, is_periodic=False),
    "odd lattice": annealz.Ising.square(3, (0.3, -0.2), 0.1),
    "lattice": annealz.Ising.square((4, 2), (0.3, 0.5), 0.1),
    "potts": annealz.Potts(symmetric(5, 0.9), 3, normal(5, 3)),
    "potts lattice": annealz.Potts.square((2, 4), 3, 0.7),
    "dbm": annealz.DBM([normal(3, 4), normal(2, 3)], [normal(4), normal(3), normal(2)]),
    "deeper dbm": annealz.DBM(
        [normal(3, 4), normal(2, 3), normal(2, 2)], [normal(4), normal(3), normal(2), normal(2)]
    ),
    "gaussian": annealz.GaussianRBM(normal(3, 4), normal(3), normal(4), RNG.uniform(0.5, 2, 4)),
    "softmax": annealz.SoftmaxRBM(normal(3, 4, 3), normal(3), normal(4, 3)),
    # units of one to three neighbours and of none
    "full potts": annealz.Potts(
        tables(6, 3, ((0, 1), (0, 2), (1, 2), (2, 3), (3, 4))), fields=normal(6, 3)
    ),
}


def grid(*sizes: int) -> np.ndarray:
    """Every combination of states of units with these numbers of states, (states, units)."""
    return np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), -1).reshape(-1, len(sizes))


def arrays(values) -> list[np.ndarray]:
    return [np.asarray(value, np.float64) for value in values]


@functools.cache
def joint(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All joint states of a discrete model, and log p* of each, by brute force."""
    model = MODELS[name]
    if isinstance(model, annealz.SquareIsing):
        (across, down), field = np.float64(model.couplings), float(model.field)
        states = grid(*[2] * model.num_units)
        spins = (2 * states - 1).reshape(-1, model.height, model.width)
        energy = across * (spins * np.roll(spins, 1, 2)).sum((1, 2))
        energy += down * (spins * np.roll(spins, 1, 1)).sum((1, 2))
        return states, energy + field * spins.sum((1, 2))
    if isinstance(model, annealz.Ising):
        couplings, fields = arrays((model.couplings, model.fields))
        states = grid(*[2] * model.num_units)
        spins = 2 * states - 1
        return states, np.einsum("si,ij,sj->s", spins, couplings, spins) / 2 + spins @ fields
    if isinstance(model, annealz.Potts):
        couplings, fields = arrays((model.couplings, model.fields))
        states = grid(*[model.num_states] * model.num_units)
        each = np.arange(model.num_units)
        local = fields[each, states].sum(-1)
        if couplings.ndim == 4:
            hot = np.eye(model.num_states)[states]
            return states, np.einsum("sia,iajb,sjb->s", hot, couplings, hot) / 2 + local
        same = states[:, :, None] == states[:, None, :]
        return states, (same * couplings).sum((1, 2)) / 2 + local
    if isinstance(model, annealz.DBM):
        sizes = [len(bias) for bias in model.biases]
        states = grid(*[2] * sum(sizes))
        layers = np.split(states, np.cumsum(sizes)[:-1], axis=1)
        energy = sum(x @ b for x, b in zip(layers, arrays(model.biases), strict=True))
        for lower, upper, weights in zip(layers, layers[1:], arrays(model.weights), strict=False):
            energy = energy + ((upper @ weights) * lower).sum(-1)
        return states, energy
    assert isinstance(model, annealz.SoftmaxRBM)
    weights, hidden_bias, visible_bias = arrays(
        (model.weights, model.hidden_bias, model.visible_bias)
    )
    states = grid(*[model.num_states] * model.num_visible, *[2] * model.num_hidden)
    visible, hidden = np.split(states, [model.num_visible], axis=1)
    each = np.arange(model.num_visible)
    energy = visible_bias[each, visible].sum(-1) + hidden @ hidden_bias
    for i in range(model.num_hidden):
        energy = energy + hidden[:, i] * weights[i][each, visible].sum(-1)
    return states, energy


def annealed_columns(name: str, marginal: str) -> np.ndarray:
    """Which columns of the joint states are annealed, in the order of the path's states."""
    model = MODELS[name]
    if isinstance(model, annealz.SquareIsing):
        rows, columns = np.divmod(np.arange(model.num_units), model.width)
        return np.flatnonzero((rows + columns) % 2 == 0)
    if isinstance(model, annealz.Ising):
        layers = model.layers
        return np.arange(model.num_units) if layers is None else layers[0]
    if isinstance(model, annealz.Potts):
        return np.arange(model.num_units)
    if isinstance(model, annealz.DBM):
        sizes = [len(bias) for bias in model.biases]
        pieces = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
        return np.concatenate(pieces[0 if marginal == "visible" else 1 :: 2])
    assert isinstance(model, annealz.SoftmaxRBM)
    both = np.arange(model.num_visible + model.num_hidden)
    return both[: model.num_visible] if marginal == "visible" else both[model.num_visible :]


def chi_square(states: np.ndarray, drawn: np.ndarray, law: np.ndarray) -> float:
    """p-value of draws against the law of these states; rare states are taken together."""
    sizes = tuple(states.max(0).astype(int) + 1)
    known, seen = (np.ravel_multi_index(rows.astype(int).T, sizes) for rows in (states, drawn))
    order = np.argsort(known)
    counts = np.bincount(order[np.searchsorted(known[order], seen)], minlength=len(states))
    assert np.isin(seen, known).all()
    expected = law * len(drawn)
    rare = expected < 10
    seen = np.append(counts[~rare], counts[rare].sum())
    hoped = np.append(expected[~rare], expected[rare].sum())
    kept = hoped > 0
    return stats.chisquare(seen[kept], hoped[kept] * seen.sum() / hoped[kept].sum()).pvalue

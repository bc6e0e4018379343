"""The problems of the trust study: models whose log Z is known exactly.

    TUNING     rules of the status may be chosen by looking at these
    TESTING    looked at once the rules are settled: other kinds, sizes and strengths, not only other seeds

Exact values: enumeration of the smaller layer or of all states; a closed form (equal weights, Kaufman's
solution of the square lattice); the transfer matrix (`trust_exact.py`); or what a packaged file records,
which is an enumeration as well. DBN_11 (tuning), DBN_12 and DBN_14 (testing) are files of the UAI 2014
competition that are not part of this repository: `--uai FOLDER` says where they are.

Weights J between all units, a_i = -J D / 2, b_j = -J M / 2 are symmetric under the exchange of zeros and
ones: two phases of equal mass. `tilt` makes the phase of ones e^tilt times as heavy, by the hidden biases:
the visible bias points to the light phase.
"""

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np

from annealz.models.abstract import AbstractModel
from annealz.models.dbm import DBM
from annealz.models.exact import exact_log_z
from annealz.models.formats.load import load_binary
from annealz.models.ising import Ising
from annealz.models.ising_lattice import CRITICAL_COUPLING
from annealz.models.layered import GaussianRBM, SoftmaxRBM
from annealz.models.potts import Potts
from annealz.models.rbm import RBM
from trust_exact import equal_log_z, ising_strip_log_z, potts_strip_log_z
from trust_uai import read_uai

__all__ = [
    "PROBLEMS",
    "SETS",
    "TESTING",
    "TUNING",
    "Problem",
    "ferromagnet",
    "potts_strip",
    "set_of",
]

Built = tuple[AbstractModel, float]
"""A model and its log Z."""

_TRAINED = Path(__file__).parent / "trained"


@dataclasses.dataclass(frozen=True)
class Problem:
    """One row of the table."""

    name: str
    what: str
    make: Callable[..., Built]
    how: str = "enumeration"
    """Where the exact value comes from."""
    file: str | None = None
    """A file outside of the repository that it needs."""
    is_discrete: bool = True

    def is_at_hand(self, uai: Path | None = None) -> bool:
        """Whether it can be built."""
        return self.file is None or (uai is not None and (uai / self.file).is_file())

    def build(self, uai: Path | None = None) -> Built:
        """The model and its log Z; `uai` is the folder of the file that it may need."""
        if self.file is None:
            return self.make()
        if uai is None:
            raise ValueError(f"{self.name} needs {self.file}: give its folder by --uai.")
        return self.make(uai / self.file)


# --- RBMs ---


def _enumerated(model: AbstractModel) -> Built:
    return model, exact_log_z(model)


def _packaged(name: str, *, has_means: bool) -> Built:
    model, record = load_binary(name)
    if not has_means:
        model = RBM(model.weights, model.hidden_bias, model.visible_bias)
    return model, record["exact_log_z"]


def _trained(name: str) -> Built:
    with np.load(_TRAINED / f"{name}.npz") as arrays:
        names = ("weights", "hidden_bias", "visible_bias")
        return _enumerated(RBM(*(arrays[name] for name in names)))


def _network(path: Path) -> Built:
    return _enumerated(read_uai(path)[0])


def ferromagnet(num_hidden: int, num_visible: int, coupling: float, tilt: float = 0.0) -> Built:
    """Two phases, the one of ones e^tilt times as heavy."""
    model = RBM(
        np.full((num_hidden, num_visible), coupling),
        np.full(num_hidden, -coupling * num_visible / 2 + tilt / num_hidden),
        np.full(num_visible, -coupling * num_hidden / 2),
    )
    return model, equal_log_z(model)


def _threshold(
    num_hidden: int, num_visible: int, coupling: float, threshold: float, visible_bias: float
) -> Built:
    """Hidden units that come on together, where more than `threshold` visible units are on."""
    model = RBM(
        np.full((num_hidden, num_visible), coupling),
        np.full(num_hidden, -coupling * threshold),
        np.full(num_visible, visible_bias),
    )
    return model, equal_log_z(model)


def _spins(couplings: np.ndarray, hidden_field: np.ndarray) -> Built:
    """The RBM of spins of -1 and 1, as units of 0 and 1."""
    return _enumerated(
        RBM(
            4 * couplings,
            2 * hidden_field - 2 * couplings.sum(1),
            -2 * couplings.sum(0),
        )
    )


def _mattis(num_hidden: int, num_visible: int, coupling: float, tilt: float, seed: int) -> Built:
    """A ferromagnet in disguise: a random pattern and its negative, the former e^tilt times as heavy."""
    generator = np.random.default_rng(seed)
    hidden, visible = (generator.choice([-1.0, 1.0], n) for n in (num_hidden, num_visible))
    couplings = coupling * np.outer(hidden, visible)
    return _spins(couplings, hidden_field=hidden * tilt / 2 / num_hidden)


def _hopfield(
    copies: int, num_visible: int, patterns: int, weight: float, seed: int, mean: float = 0.0
) -> Built:
    """Patterns of zeros and ones, each held by several hidden units of weights ± `weight`."""
    generator = np.random.default_rng(seed)
    signs = np.where(generator.random((patterns, num_visible)) < (1 + mean) / 2, 1.0, -1.0)
    weights = np.repeat(weight * signs, copies, axis=0)
    return _enumerated(RBM(weights, -weights.sum(1) / 2, -weights.sum(0) / 2))


def _glass(num_hidden: int, num_visible: int, scale: float, seed: int) -> Built:
    """Weights and biases from a normal distribution."""
    generator = np.random.default_rng(seed)
    shape = num_hidden, num_visible
    weights = generator.normal(0, scale, shape)
    return _enumerated(
        RBM(
            weights,
            -weights.sum(1) / 2 + generator.normal(0, scale, num_hidden),
            -weights.sum(0) / 2 + generator.normal(0, scale, num_visible),
        )
    )


def _sparse(num_hidden: int, num_visible: int, degree: int, weight: float, seed: int) -> Built:
    """`degree` weights of ± `weight` a hidden unit, no other; biases that balance them, and noise."""
    generator = np.random.default_rng(seed)
    weights = np.zeros((num_hidden, num_visible))
    for row in weights:
        chosen = generator.choice(num_visible, degree, replace=False)
        row[chosen] = weight * generator.choice([-1.0, 1.0], degree)
    return _enumerated(
        RBM(
            weights,
            -weights.sum(1) / 2 + generator.normal(0, 0.5, num_hidden),
            -weights.sum(0) / 2 + generator.normal(0, 0.5, num_visible),
        )
    )


def _dark(
    num_hidden: int,
    num_visible: int,
    width: int,
    weight: float,
    bias: float,
    away: float,
    seed: int,
) -> Built:
    """Strokes: a hidden unit lights some visible ones, which are dark by themselves, as in pictures.

    It dims the others by `away`, and is on or off alike where no other one is on.
    """
    generator = np.random.default_rng(seed)
    weights = generator.normal(-away, 0.2, (num_hidden, num_visible))
    starts = np.linspace(0, num_visible - width, num_hidden).astype(int)
    for row, start in zip(weights, starts, strict=True):
        row[start : start + width] += weight
    visible = generator.normal(bias, 0.3, num_visible)
    lit = np.logaddexp(0, weights + visible) - np.logaddexp(0, visible)
    return _enumerated(RBM(weights, -lit.sum(1), visible))


def _dbm(sizes: tuple[int, ...], scale: float, seed: int) -> Built:
    """Random weights; biases that balance them."""
    generator = np.random.default_rng(seed)
    weights = [
        generator.normal(0, scale, (upper, lower)) for lower, upper in itertools.pairwise(sizes)
    ]
    biases = [generator.normal(0, 0.3, size) for size in sizes]
    for level, matrix in enumerate(weights):
        biases[level] = biases[level] - matrix.sum(0) / 2
        biases[level + 1] = biases[level + 1] - matrix.sum(1) / 2
    return _enumerated(DBM(weights, biases))


def _softmax(
    copies: int, num_visible: int, num_states: int, patterns: int, weight: float, seed: int
) -> Built:
    """Patterns of states, each held by several hidden units."""
    generator = np.random.default_rng(seed)
    states = generator.integers(num_states, size=(patterns, num_visible))
    hot = weight * (states[..., None] == np.arange(num_states))
    weights = np.repeat(hot, copies, axis=0)
    biases = generator.normal(0, 0.2, (num_visible, num_states))
    bias = np.full(patterns * copies, -weight * num_visible / 2)
    return _enumerated(SoftmaxRBM(weights, bias, biases))


def _gaussian(
    num_hidden: int, num_visible: int, scale: float, seed: int, *, is_even: bool = False
) -> Built:
    """Hidden units that move the mean by several widths; `is_even`: symmetric under their exchange."""
    generator = np.random.default_rng(seed)
    weights = generator.normal(0, scale, (num_hidden, num_visible))
    pairs = weights @ weights.T
    energies = pairs.sum(1) if is_even else np.diagonal(pairs)
    hidden = -0.5 * energies + generator.normal(0, 0.5, num_hidden)
    return _enumerated(GaussianRBM(weights, hidden, np.zeros(num_visible), 0.7))


# --- lattices and graphs ---


def _ising(side: int, coupling: float) -> Built:
    return _enumerated(Ising.square(side, coupling))


def _ising_in_field(side: int, coupling: float, field: float) -> Built:
    sites = np.ones((side, side))
    log_z = ising_strip_log_z(coupling * sites, coupling * sites, field * sites)
    return Ising.square(side, coupling, field), log_z


def _random_bonds(side: int, coupling: float, seed: int) -> Built:
    """Bonds of ± K on a lattice with free ends."""
    generator = np.random.default_rng(seed)
    along = coupling * generator.choice([-1.0, 1.0], (side, side - 1))
    down = coupling * generator.choice([-1.0, 1.0], (side - 1, side))
    sites = np.arange(side**2).reshape(side, side)
    couplings = np.zeros((side**2, side**2))
    couplings[sites[:, :-1], sites[:, 1:]] = along
    couplings[sites[:-1], sites[1:]] = down
    log_z = ising_strip_log_z(along, down, np.zeros((side, side)))
    return Ising(couplings + couplings.T), log_z


def _sherrington_kirkpatrick(size: int, beta: float, seed: int, field: float = 0.0) -> Built:
    generator = np.random.default_rng(seed)
    upper = np.triu(generator.normal(0, beta / np.sqrt(size), (size, size)), 1)
    return _enumerated(Ising(upper + upper.T, np.full(size, field)))


def _random_graph(size: int, degree: float, coupling: float, seed: int) -> Built:
    """Bonds of ± K between few pairs, drawn at random (Viana and Bray)."""
    generator = np.random.default_rng(seed)
    bonds = coupling * generator.choice([-1.0, 1.0], (size, size))
    upper = np.triu(bonds * (generator.random((size, size)) < degree / size), 1)
    return _enumerated(Ising(upper + upper.T))


def potts_strip(height: int, width: int, num_states: int, coupling: float) -> Built:
    """A periodic lattice."""
    sites = np.ones((height, width))
    fields = np.zeros((height, width, num_states))
    log_z = potts_strip_log_z(coupling * sites, coupling * sites, fields)
    return Potts.square((height, width), num_states, coupling), log_z


def _potts_in_field(
    height: int, width: int, num_states: int, coupling: float, tilt: float
) -> Built:
    """The last state is favoured by `tilt` in all."""
    model = Potts.square((height, width), num_states, coupling)
    fields = np.zeros((height, width, num_states))
    fields[..., -1] = tilt / (height * width)
    sites = np.ones((height, width))
    log_z = potts_strip_log_z(coupling * sites, coupling * sites, fields)
    return Potts(model.couplings, num_states, fields.reshape(-1, num_states)), log_z


def _critical(num_states: int) -> float:
    """Where the infinite Potts lattice orders."""
    return float(np.log1p(np.sqrt(num_states)))


_EQUAL, _KAUFMAN, _TRANSFER, _RECORDED = (
    "closed form, equal weights",
    "closed form, Kaufman",
    "transfer matrix",
    "enumeration, recorded",
)

TUNING = (
    Problem(
        "cd1-20-stripped",
        "mnist-cd1-20, means taken away",
        lambda: _packaged("mnist-cd1-20", has_means=False),
        _RECORDED,
    ),
    Problem(
        "cd25-20-stripped",
        "mnist-cd25-20, means taken away",
        lambda: _packaged("mnist-cd25-20", has_means=False),
        _RECORDED,
    ),
    Problem(
        "pcd-20-stripped",
        "mnist-pcd-20, means taken away",
        lambda: _packaged("mnist-pcd-20", has_means=False),
        _RECORDED,
    ),
    Problem("dbn-11", "UAI 2014 DBN_11, an RBM 20×20", _network, file="DBN_11.uai"),
    Problem("dbn-14", "UAI 2014 DBN_14, an RBM 20×20", _network, file="DBN_14.uai"),
    Problem("bars-cd1", "trained: bars and stripes 5×5, CD1, 12×25", lambda: _trained("bars-cd1")),
    Problem(
        "ferro-20x25-even",
        "two equal phases, J = 0.4",
        lambda: ferromagnet(20, 25, 0.4),
        _EQUAL,
    ),
    Problem(
        "ferro-30x40-tilted",
        "two phases, 0.07 : 0.93, J = 0.3, visible bias towards the light one",
        lambda: ferromagnet(30, 40, 0.3, 2.6),
        _EQUAL,
    ),
    Problem(
        "threshold-10x20",
        "0.4 of the mass near zeros, 0.6 at all ones, next to nothing between",
        lambda: _threshold(10, 20, 1.0, 15.0, -2.4),
        _EQUAL,
    ),
    Problem(
        "hopfield-20x60",
        "4 patterns of 60, held 5 times by weights ± 0.5",
        lambda: _hopfield(5, 60, 4, 0.5, seed=11),
    ),
    Problem("glass-16x40", "normal weights of width 3", lambda: _glass(16, 40, 3.0, seed=12)),
    Problem("glass-14x80", "normal weights of width 2", lambda: _glass(14, 80, 2.0, seed=35)),
    Problem("glass-20x30", "normal weights of width 6", lambda: _glass(20, 30, 6.0, seed=34)),
    Problem("weak-12x30", "normal weights of width 0.5", lambda: _glass(12, 30, 0.5, seed=13)),
    Problem("sparse-18x40", "4 weights of ± 5 per row", lambda: _sparse(18, 40, 4, 5.0, seed=14)),
    Problem(
        "dark-16x100",
        "visible biases of −3, strokes of 12",
        lambda: _dark(16, 100, 12, 5.0, -3.0, 0.5, seed=15),
    ),
    Problem(
        "ising-8-critical",
        "periodic 8×8, at the transition",
        lambda: _ising(8, CRITICAL_COUPLING),
        _KAUFMAN,
    ),
    Problem("ising-8-cold", "periodic 8×8, K = 0.5", lambda: _ising(8, 0.5), _KAUFMAN),
    Problem(
        "sk-20", "Sherrington-Kirkpatrick, 20 spins, β = 2", lambda: _sherrington_kirkpatrick(20, 2.0, 16)
    ),
    Problem(
        "potts-3-critical",
        "periodic 4×4, q = 3, at the transition",
        lambda: potts_strip(4, 4, 3, _critical(3)),
        _TRANSFER,
    ),
    Problem(
        "dbm-30-12-8",
        "layers of 30, 12, 8, normal weights of width 1.5",
        lambda: _dbm((30, 12, 8), 1.5, 17),
    ),
    Problem(
        "softmax-12x20x4",
        "3 patterns of 20 units of 4 states, held 4 times",
        lambda: _softmax(4, 20, 4, 3, 1.0, seed=18),
    ),
    Problem(
        "gaussian-8x10",
        "real visible units, modes several widths apart",
        lambda: _gaussian(8, 10, 1.0, seed=19),
        is_discrete=False,
    ),
)  # fmt: skip

TESTING = (
    *(
        Problem(
            f"{name}-20-means",
            f"mnist-{name}-20 as it is packaged, with the means of its data",
            lambda name=name: _packaged(f"mnist-{name}-20", has_means=True),
            _RECORDED,
        )
        for name in ("pcd", "cd1", "cd25")
    ),
    Problem("dbn-12", "UAI 2014 DBN_12, an RBM 21×21", _network, file="DBN_12.uai"),
    Problem(
        "digits-pcd", "trained: digits 8×8, PCD, 18×64", lambda: _trained("digits-pcd")
    ),
    Problem(
        "digits-cd1", "trained: digits 8×8, CD1, 14×64", lambda: _trained("digits-cd1")
    ),
    Problem(
        "ferro-30x40-even",
        "two equal phases, J = 0.2",
        lambda: ferromagnet(30, 40, 0.2),
        _EQUAL,
    ),
    Problem(
        "ferro-10x12-tilted",
        "two phases, 0.3 : 0.7, J = 1, visible bias towards the light one",
        lambda: ferromagnet(10, 12, 1.0, 0.85),
        _EQUAL,
    ),
    Problem(
        "ferro-12x80-against",
        "two phases, 0.95 : 0.05, J = 0.5, visible bias towards the heavy one",
        lambda: ferromagnet(12, 80, 0.5, -3.0),
        _EQUAL,
    ),
    Problem(
        "mattis-15x50",
        "a random pattern and its negative, 0.2 : 0.8",
        lambda: _mattis(15, 50, 0.12, 1.4, seed=31),
    ),
    Problem(
        "threshold-8x30",
        "0.3 of the mass at 9 of 30 units on, 0.7 at 28, little between",
        lambda: _threshold(8, 30, 0.5, 21.0, -0.87),
        _EQUAL,
    ),
    Problem(
        "hopfield-24x40",
        "2 patterns of 40 with few ones, held 12 times by weights ± 0.4",
        lambda: _hopfield(12, 40, 2, 0.4, seed=32, mean=-0.6),
    ),
    Problem(
        "hopfield-18x90",
        "9 patterns of 90, held twice by weights ± 1",
        lambda: _hopfield(2, 90, 9, 1.0, seed=33),
    ),
    Problem("glass-15x70", "normal weights of width 2.5", lambda: _glass(15, 70, 2.5, seed=47)),
    Problem("glass-18x24", "normal weights of width 1.5", lambda: _glass(18, 24, 1.5, seed=48)),
    Problem("sparse-20x60", "3 weights of ± 8 per row", lambda: _sparse(20, 60, 3, 8.0, seed=36)),
    Problem("sparse-16x24", "6 weights of ± 3 per row", lambda: _sparse(16, 24, 6, 3.0, seed=37)),
    Problem(
        "dark-18x160",
        "visible biases of −4, strokes of 16",
        lambda: _dark(18, 160, 16, 6.0, -4.0, 0.6, seed=38),
    ),
    Problem(
        "ising-16-critical",
        "periodic 16×16, at the transition",
        lambda: _ising(16, CRITICAL_COUPLING),
        _KAUFMAN,
    ),
    Problem("ising-16-cold", "periodic 16×16, K = 0.6", lambda: _ising(16, 0.6), _KAUFMAN),
    Problem(
        "ising-8-field",
        "periodic 8×8, K = 0.5, field 0.02",
        lambda: _ising_in_field(8, 0.5, 0.02),
        _TRANSFER,
    ),
    Problem(
        "bonds-8", "free 8×8, bonds ± 1.5", lambda: _random_bonds(8, 1.5, seed=39), _TRANSFER
    ),
    Problem(
        "sk-18-field",
        "Sherrington-Kirkpatrick, 18 spins, β = 3.5, field 0.3",
        lambda: _sherrington_kirkpatrick(18, 3.5, 40, field=0.3),
    ),
    Problem(
        "graph-20", "20 spins, 3 bonds of ± 2 each", lambda: _random_graph(20, 3.0, 2.0, seed=41)
    ),
    Problem(
        "potts-3-cold",
        "periodic 5×4, q = 3, K = 1.3",
        lambda: potts_strip(5, 4, 3, 1.3),
        _TRANSFER,
    ),
    Problem(
        "potts-5-critical",
        "periodic 8×4, q = 5, at the transition",
        lambda: potts_strip(8, 4, 5, _critical(5)),
        _TRANSFER,
    ),
    Problem(
        "potts-8-cold",
        "periodic 8×3, q = 8, K = 1.7, one state favoured by 2 nats",
        lambda: _potts_in_field(8, 3, 8, 1.7, 2.0),
        _TRANSFER,
    ),
    Problem(
        "dbm-16-14-12-6",
        "layers of 16, 14, 12, 6, normal weights of width 2",
        lambda: _dbm((16, 14, 12, 6), 2.0, 42),
    ),
    Problem(
        "dbm-60-16-20",
        "layers of 60, 16, 20, normal weights of width 0.8",
        lambda: _dbm((60, 16, 20), 0.8, 43),
    ),
    Problem(
        "softmax-15x30x6",
        "5 patterns of 30 units of 6 states, held 3 times",
        lambda: _softmax(3, 30, 6, 5, 1.2, seed=44),
    ),
    Problem(
        "gaussian-12x6",
        "real visible units, more modes, nearer to each other",
        lambda: _gaussian(12, 6, 0.8, seed=45, is_even=True),
        is_discrete=False,
    ),
)  # fmt: skip

FERROMAGNETS = tuple(
    Problem(
        f"grid-{coupling:g}-{tilt:g}",
        f"30×40, J = {coupling:g}, the phase of ones e^{tilt:g} times as heavy",
        lambda coupling=coupling, tilt=tilt: ferromagnet(30, 40, coupling, tilt),
        _EQUAL,
    )
    for coupling in (0.15, 0.17, 0.18, 0.2, 0.22)
    for tilt in (0, 1)
)
"""Of the transition and beyond; run from one side and from two."""

SETS = {"tuning": TUNING, "testing": TESTING, "ferromagnets": FERROMAGNETS}
PROBLEMS = {problem.name: problem for chosen in SETS.values() for problem in chosen}


def set_of(name: str) -> str:
    """The set that a problem belongs to."""
    return next(word for word, chosen in SETS.items() if PROBLEMS[name] in chosen)

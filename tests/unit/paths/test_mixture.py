"""Mixtures of products and the paths from them: against enumeration, one family after the other.

Densities are written down a second time from the joint energies of `test_families.py`. Transition matrices
are enumerated by running the kernels on draws whose outcomes are prescribed, in float64.
"""

import itertools
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp, softmax

import annealz
from annealz.bases.mixture import COMPONENT_DRAW, MixtureBase
from annealz.core.random import Stream
from annealz.core.units import GaussianUnits, SoftmaxUnits
from annealz.io.serialise import restore, store
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.exact import exact_log_z
from annealz.paths.mixture import MixtureLayerPath, MixturePairPath, _Components
from annealz.testing import check_kernel, check_path, log_joint, random_rbm
from support.families import MODELS, annealed_columns, chi_square, grid, joint
from support.runs import stop_in
from support.structure import products_of_a_step
from support.systems import exact_in_float32
from support.values import log_density, log_ratio, slope

ALPHA = 1e-6
MEANS = np.array([[0.1, 0.2, 0.7, 0.4], [0.9, 0.6, 0.3, 0.8], [0.5, 0.9, 0.1, 0.2]])
WEIGHTS = np.array([0.2, 0.5, 0.3])
RNG = np.random.default_rng(3)
FREQUENCIES = softmax(RNG.normal(0, 1, (3, 3, 4)), -1)  # 3 components, 3 units, 4 states
BASES = {
    "binary": MixtureBase.from_means(MEANS, WEIGHTS),
    "categorical": MixtureBase.from_means(FREQUENCIES, WEIGHTS),
}
STATES = {"binary": grid(2, 2, 2, 2), "categorical": grid(4, 4, 4)}

kinds = pytest.mark.parametrize("kind", BASES)


# --- the base --------------------------------------------------------------------------------


def law_of(kind: str) -> np.ndarray:
    """The probability of every state, unit by unit, with nothing of the library."""
    states = STATES[kind]
    total = np.zeros(len(states))
    for k, weight in enumerate(WEIGHTS):
        law = np.full(len(states), weight)
        for i, value in enumerate(states.T):
            if kind == "binary":
                law *= np.where(value == 1, MEANS[k, i], 1 - MEANS[k, i])
            else:
                law *= FREQUENCIES[k, i, value]
        total += law
    return total


@kinds
def test_the_density_is_that_of_the_mixture(kind: str):
    density_of = jax.jit(lambda x: BASES[kind].log_density(x))
    density = np.float64(density_of(np.float32(STATES[kind])))
    np.testing.assert_allclose(density, np.log(law_of(kind)), atol=5e-6)
    assert logsumexp(density) == pytest.approx(0, abs=1e-6)
    assert BASES[kind].log_z == 0


@eqx.filter_jit
def sample(base: MixtureBase, bits):
    return base.sample(bits)


@eqx.filter_jit
def shared_sample(base: MixtureBase, bits):
    """Mutant: the component and the first unit are drawn with the same random words."""
    units = SoftmaxUnits(base.num_components)
    logits = jnp.broadcast_to(base.log_weights, (bits.num_chains, base.num_components))
    component = units.encode(units.sample(bits, logits, 0))
    return base.units.sample(bits, component @ base.logits, 0)


@kinds
def test_draws_have_the_law(kind: str, seed: int):
    bits = Stream(seed, "mixture").at(0, jnp.arange(50_000))
    drawn = np.asarray(sample(BASES[kind], bits))
    assert chi_square(STATES[kind], drawn, law_of(kind)) > ALPHA
    wrong = {"binary": 1 - MEANS, "categorical": FREQUENCIES[:, ::-1]}[kind]  # mutant
    other = sample(MixtureBase.from_means(wrong, WEIGHTS), bits)
    assert chi_square(STATES[kind], np.asarray(other), law_of(kind)) < ALPHA


def test_components_are_drawn_apart_from_units(seed: int):
    base = MixtureBase.from_means([[0.3, 0.3], [0.7, 0.7]])
    bits = Stream(seed, "mixture").at(0, jnp.arange(50_000))
    law = np.array([0.29, 0.21, 0.21, 0.29])
    assert chi_square(grid(2, 2), np.asarray(sample(base, bits)), law) > ALPHA
    assert chi_square(grid(2, 2), np.asarray(shared_sample(base, bits)), law) < ALPHA


def test_what_a_base_tells_of_itself():
    binary, categorical = BASES["binary"], BASES["categorical"]
    assert (binary.num_components, binary.num_units, binary.name) == (3, 4, "mixture")
    assert (categorical.num_components, categorical.num_units) == (3, 3)
    np.testing.assert_allclose(binary.means, MEANS, atol=1e-6)
    np.testing.assert_allclose(categorical.means, FREQUENCIES, atol=1e-6)
    np.testing.assert_allclose(binary.weights, WEIGHTS, atol=1e-6)
    np.testing.assert_allclose(MixtureBase.from_means(MEANS).weights, 1 / 3, atol=1e-6)
    assert binary.digest != MixtureBase.from_means(MEANS).digest


WRONG = {
    "sum": ((MEANS, [0.2, 0.5, 0.2]), "positive and sum to one, got .* the sum 0.9: divide"),
    "negative": ((MEANS, [-0.2, 0.7, 0.5]), "positive and sum to one, got the least -0.2"),
    "nan weight": ((MEANS, [np.nan, 0.7, 0.3]), "positive and sum to one, got the least nan"),
    "number": ((MEANS, [0.5, 0.5]), r"3 components needs 3 weights, got shape \(2,\)"),
    "words": ((MEANS, ["a", "b", "c"]), "needs 3 weights, got something else"),
    "zero": ((np.where(MEANS < 0.2, 0, MEANS), None), "strictly between 0 and 1, got 0 in component 0"),
    "one": (([[0.5, 0.5], [0.5, 1.0]], None), r"got 1 in component 1 \(1 of 4\)"),
    "nan": (([[0.5, np.nan]], None), "strictly between 0 and 1, got nan"),
    "vector": (([0.5, 0.5], None), r"\(components, units\).* got shape \(2,\)"),
    "nothing": ((np.zeros((0, 3)), None), r"got shape \(0, 3\): components must all have the same"),
    "ragged": (([[0.5, 0.5], [0.5]], None), "rows of unequal size: components must all have the same"),
    "ragged states": (([[[0.5, 0.5], [0.2, 0.3, 0.5]]], None), "rows of unequal size"),
    "frequencies": ((0.9 * FREQUENCIES, None), "frequencies of every unit .* sum to one, got 0.9"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_mixture_is_refused_in_a_sentence(case: str):
    given, words = WRONG[case]
    with pytest.raises(ValueError, match=words) as caught:
        MixtureBase.from_means(*given)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def gaussian_mixture(scale=None, size: int = 4) -> MixtureBase:
    """Over the visible units of the Gaussian RBM of `test_families.py`."""
    units = GaussianUnits(MODELS["gaussian"].scale if scale is None else jnp.full(size, scale))
    return MixtureBase.of_units(units, [[0.5] * size, [-1.0] * size], [0.3, 0.7])


def binary(num_units: int) -> MixtureBase:
    return MixtureBase.from_means([[0.3] * num_units, [0.7] * num_units])


def categorical(num_units: int, num_states: int) -> MixtureBase:
    rows = softmax(np.arange(2 * num_states).reshape(2, 1, num_states) % 3, -1)
    return MixtureBase.from_means(np.repeat(rows, num_units, 1))


MISFITS = {
    "rbm visible": (random_rbm(3, 5), "visible", binary(3), "the 5 units that .* over 3 Bernoulli"),
    "rbm hidden": (random_rbm(3, 5), "hidden", binary(5), "the 3 units that .* over 5 Bernoulli"),
    "rbm one component": (
        random_rbm(3, 5), "hidden", MixtureBase.from_means([[0.5] * 5]), "the 3 units .* over 5",
    ),
    "rbm states": (random_rbm(3, 4), "visible", categorical(2, 2), "over 2 Softmax units of 2"),
    "dbm": (MODELS["dbm"], "hidden", binary(4), "the 3 units that are annealed, got one over 4"),
    "two colours": (MODELS["open lattice"], "visible", binary(9), "the 4 units .* over 9"),
    "no two colours": (
        MODELS["boltzmann"], "visible", binary(7), "the 7 units of 2 states .* over 7 Bernoulli",
    ),
    "square": (MODELS["lattice"], "visible", binary(8), "the 4 units .* over 8 Bernoulli"),
    "potts": (MODELS["potts"], "visible", categorical(4, 3), "5 units of 3 states .* over 4"),
    "potts states": (  # as many fields, of other units
        annealz.Potts(np.zeros((3, 3)), 2), "visible", categorical(2, 3),
        "the 3 units of 2 states that are annealed, got one over 2 Softmax units of 3 states",
    ),
    "softmax": (MODELS["softmax"], "visible", binary(12), "4 units of 3 states .* over 12 Bern"),
    "softmax hidden": (MODELS["softmax"], "hidden", categorical(4, 3), "the 3 units that are .* 4"),
    "gaussian": (MODELS["gaussian"], "visible", binary(4), "the 4 units .* over 4 Bernoulli"),
    "gaussian size": (MODELS["gaussian"], "visible", gaussian_mixture(1, 3), "the 4 units .* over 3"),
    "gaussian scale": (
        MODELS["gaussian"], "visible", gaussian_mixture(0.123), "4 units of the model's scale",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MISFITS)
def test_a_mixture_over_other_units_is_refused(case: str):
    model, marginal, base, words = MISFITS[case]
    with pytest.raises(ValueError, match=words) as caught:
        model.path(model.choose_base(base), marginal)
    assert str(caught.value).startswith(f"a mixture base of {model.name} must be over the ")


# --- the paths: densities --------------------------------------------------------------------

RBM = random_rbm(3, 4, scale=1.2, seed=1)
FAMILIES = {
    "rbm": [("rbm", "visible"), ("rbm", "hidden")],
    **{
        name: [(name, marginal) for marginal in MODELS[name].marginals]
        for name in ("boltzmann", "open lattice", "lattice", "potts", "dbm", "softmax")
    },
}
CASES = [case for cases in FAMILIES.values() for case in cases]
families = pytest.mark.parametrize(("name", "marginal"), CASES)
BETAS = np.array([0.0, 1e-4, 0.3, 0.8, 1.0])
STEPS = [(0.3, 0.3001), (0.3, 0.35), (0.1, 0.9), (0.9, 0.2), (0.0, 1.0)]


def model_of(name: str):
    return RBM if name == "rbm" else MODELS[name]


def energies_of(name: str, marginal: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Joint energies, the annealed units' states, and which of these each joint state has."""
    if name == "rbm":
        table = log_joint(RBM)  # (hidden, visible), the states of binary_states
        num_hidden, num_visible = (size.bit_length() - 1 for size in table.shape)
        hidden, visible = np.divmod(np.arange(table.size), table.shape[1])
        number, index = (num_visible, visible) if marginal == "visible" else (num_hidden, hidden)
        return table.ravel(), np.arange(2**number)[:, None] >> np.arange(number) & 1, index
    states, energies = joint(name)
    kept = states[:, annealed_columns(name, marginal)]
    unique, index = np.unique(kept, axis=0, return_inverse=True)
    return energies, unique, index.ravel()


def mixture_for(name: str, marginal: str, num_components: int = 3) -> MixtureBase:
    """Some mixture without symmetry over the units that are annealed."""
    generator = np.random.default_rng(len(name))
    model = model_of(name)
    _, states, _ = energies_of(name, marginal)
    size = states.shape[1]
    shares = softmax(generator.normal(0, 1, num_components))
    flat = model.path(model.flat_base(), marginal)
    units = flat.units if hasattr(flat, "units") else flat.state_units
    if isinstance(units, SoftmaxUnits):
        logits = generator.normal(0, 1, (num_components, size, units.num_states))
        return MixtureBase.from_means(softmax(logits, -1), shares)
    return MixtureBase.from_means(generator.uniform(0.05, 0.95, (num_components, size)), shares)


def encoded(base: MixtureBase, states: np.ndarray) -> np.ndarray:
    if not isinstance(base.units, SoftmaxUnits):
        return states.astype(float)
    return np.eye(base.units.num_states)[states].reshape(len(states), -1)


def log_density_at(name: str, marginal: str, base: MixtureBase, beta: float) -> np.ndarray:
    """log p*_beta of every state of the annealed units, by the header of `paths/mixture.py`, float64."""
    energies, states, index = energies_of(name, marginal)
    flat = np.array([logsumexp(beta * energies[index == i]) for i in range(len(states))])
    logits = np.float64(base.logits)
    states_each = base.units.num_states if isinstance(base.units, SoftmaxUnits) else 1
    if states_each > 1:
        apart = logits.reshape(len(logits), -1, states_each)
        free = np.asarray(logsumexp(apart, axis=-1)).sum(-1)
    else:
        free = np.logaddexp(0, logits).sum(-1)
    terms = np.log(base.weights) + encoded(base, states) @ logits.T - free
    return flat + logsumexp((1 - beta) * terms, axis=1) - beta * np.log(len(logits))


@eqx.filter_jit
def values_of(path, x, betas, low, high):
    """Densities and slopes at all betas, ratios over all steps."""
    return (
        jax.lax.map(lambda beta: path.log_density(x, beta), betas),
        jax.lax.map(lambda beta: path.slope(x, beta), betas),
        jax.lax.map(lambda pair: path.log_ratio(x, *pair), (low, high)),
    )


def evaluated(path, states: np.ndarray) -> tuple[np.ndarray, ...]:
    numbers = (jnp.asarray(a, jnp.float32) for a in (states, BETAS, *zip(*STEPS, strict=True)))
    return tuple(np.float64(a) for a in values_of(path, *numbers))


@families
def test_densities_slopes_and_ratios_by_enumeration(name: str, marginal: str):
    """At 0 it sums to Z_A, at 1 it is the model, and the ratios keep their digits."""
    base, model = mixture_for(name, marginal), model_of(name)
    path = model.path(base, marginal)
    assert isinstance(path, MixtureLayerPath | MixturePairPath)
    states = energies_of(name, marginal)[1]
    density, slopes, ratio = evaluated(path, states)

    def truth(beta: float) -> np.ndarray:
        return log_density_at(name, marginal, base, float(np.float32(beta)))

    np.testing.assert_allclose(density, [truth(beta) for beta in BETAS], atol=5e-5)
    assert logsumexp(density[0]) == pytest.approx(path.log_z0, abs=2e-5)
    assert logsumexp(density[-1]) == pytest.approx(exact_log_z(model), abs=2e-5)
    h = 1e-5
    around = [[log_density_at(name, marginal, base, b + d) for d in (h, -h)] for b in BETAS]
    derivative = [(above - below) / (2 * h) for above, below in around]
    np.testing.assert_allclose(slopes, derivative, atol=2e-4)
    for (low, high), value in zip(STEPS, ratio, strict=True):
        step = abs(float(np.float32(high)) - float(np.float32(low)))
        np.testing.assert_allclose(value / step, (truth(high) - truth(low)) / step, atol=1e-4)


def test_a_difference_of_densities_would_lose_the_digits():
    """Mutant: what log_ratio must never be."""
    base = mixture_for("rbm", "visible")
    path, states = RBM.path(base), energies_of("rbm", "visible")[1].astype(np.float32)
    low, high = np.float32(0.9), np.float32(0.90001)
    truth = log_density_at("rbm", "visible", base, float(high))
    truth = truth - log_density_at("rbm", "visible", base, float(low))
    plain = log_density(path, states, high) - log_density(path, states, low)
    good = log_ratio(path, states, low, high)
    step = float(high) - float(low)
    assert np.abs(plain - truth).max() / step > 1e-3
    assert np.abs(good - truth).max() / step < 1e-4


class WrongSign(_Components):
    """Mutant: -(1 - beta) l."""

    def terms(self, encoded):
        return -super().terms(encoded)


class WithoutNumber(_Components):
    """Mutant: the target is not shared out among the components."""

    @property
    def log_number(self) -> float:
        return 0.0


def mutated(path, kind: type[_Components]):
    """The same path with other components; draws of the components stay right."""
    wrong = kind(path.base)
    return eqx.tree_at(lambda p: p.components, path, wrong, is_leaf=lambda a: a is path.components)


@pytest.mark.parametrize("kind", [WrongSign, WithoutNumber])
def test_mutants_break_the_ends(kind: type[_Components]):
    for name, marginal in (("rbm", "visible"), ("potts", "visible")):
        path = mutated(model_of(name).path(mixture_for(name, marginal), marginal), kind)
        states = np.float32(energies_of(name, marginal)[1])
        sums = [float(logsumexp(log_density(path, states, beta))) for beta in (0.0, 1.0)]
        start, end = abs(sums[0] - path.log_z0), abs(sums[1] - exact_log_z(model_of(name)))
        assert max(start, end) > 0.1


@pytest.mark.parametrize("marginal", ["visible", "hidden"])
def test_real_units_by_the_integral(marginal: str):
    """One visible unit: the integral over its values, or the sum over the hidden states."""
    model = annealz.GaussianRBM([[0.7], [-1.1]], [0.2, -0.4], [0.5], 0.8)
    if marginal == "visible":
        base = MixtureBase.of_units(model.units, [[1.5], [-2.0]], [0.3, 0.7])
        x = np.linspace(-12, 12, 4001)
        volume = np.log(x[1] - x[0])
    else:
        base, volume = MixtureBase.from_means([[0.2, 0.9], [0.6, 0.3]], [0.3, 0.7]), 0.0
        x = grid(2, 2)
    path = model.path(base, marginal)
    density, slopes, ratio = evaluated(path, x.reshape(len(x), -1))
    assert logsumexp(density[0]) + volume == pytest.approx(path.log_z0, abs=2e-5)
    assert logsumexp(density[-1]) + volume == pytest.approx(model.exact_log_z(), abs=2e-5)
    some = np.abs(x).reshape(len(x), -1).max(1) < 3
    near = next(i for i, step in enumerate(STEPS) if step == (0.3, 0.35))
    middle = (slopes[2] + slope(path, np.float32(x.reshape(len(x), -1)), 0.35)) / 2 * 0.05
    np.testing.assert_allclose(ratio[near][some], middle[some], atol=2e-3)
    np.testing.assert_allclose(ratio[-1][some], (density[-1] - density[0])[some], atol=1e-4)


@pytest.mark.slow
@families
def test_paths_keep_their_promises(name: str, marginal: str):
    check_path(model_of(name).path(mixture_for(name, marginal), marginal))


# --- the paths: kernels ----------------------------------------------------------------------


class Scripted:
    """Draws with prescribed outcomes, one row a script; what comes out is their probability."""

    def __init__(self, outcomes: dict[int, np.ndarray], counted: dict[int, int] | None = None):
        self.outcomes, self.counted = outcomes, counted or {}
        self.num_chains = len(next(iter(outcomes.values())))
        self.log_probability = np.zeros(self.num_chains)

    def bernoulli(self, logits, draw: int):
        outcome = self.outcomes[int(draw)]
        surprise = np.logaddexp(0, np.where(outcome == 1, -1, 1) * np.float64(logits))
        self.log_probability = self.log_probability - surprise.sum(-1)
        return jnp.asarray(outcome)

    def choose(self, fields, draw: int):
        """Of fields (chains, units, states); the filling of a colour is not counted."""
        draw, fields = int(draw), np.float64(fields)
        outcome = self.outcomes[draw]
        log_law = fields - logsumexp(fields, axis=-1, keepdims=True)
        taken = np.take_along_axis(log_law, outcome[..., None].astype(int), -1)[..., 0]
        number = self.counted.get(draw, taken.shape[1])
        self.log_probability = self.log_probability + taken[:, :number].sum(-1)
        return jnp.asarray(outcome)


def scripted_sample(self, bits, fields, draw):
    return bits.choose(np.asarray(fields).reshape(bits.num_chains, -1, self.num_states), draw)


@pytest.fixture
def scripts_for_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SoftmaxUnits, "sample", scripted_sample)


def in_float64(path):
    """The same path in float64, with constants that are exact there; call it with x64 enabled."""
    wide = jax.tree.map(lambda a: jax.device_put(np.asarray(a, np.float64)), path)
    base = wide.base
    shares = np.float64(base.log_weights) - logsumexp(np.float64(base.log_weights))
    exact = jax.device_put(shares - base.units.exact_log_z(np.float64(base.logits)))
    return eqx.tree_at(lambda p: p.components.constants, wide, exact)


def tiny_softmax() -> annealz.SoftmaxRBM:
    weights, bias = RNG.normal(0, 1, (2, 2, 3)), RNG.normal(0, 1, (2, 3))
    return annealz.SoftmaxRBM(weights, [0.3, -0.4], bias)


def tiny_potts(num_states: int) -> annealz.Potts:
    """A triangle and one unit more: three colours, one of them of two units."""
    couplings = np.zeros((4, 4))
    for (i, j), value in {(0, 1): 0.7, (0, 2): -0.5, (1, 2): 0.4, (2, 3): 0.9}.items():
        couplings[i, j] = couplings[j, i] = value
    return annealz.Potts(couplings, num_states, RNG.normal(0, 0.5, (4, num_states)))


TINY_RBM = exact_in_float32(random_rbm(2, 3, scale=1.5, seed=5))
TINY = {
    "rbm": (TINY_RBM, "visible"),
    "rbm hidden": (TINY_RBM, "hidden"),
    "chain": (annealz.Ising([[0, 0.5, 0], [0.5, 0, -0.75], [0, -0.75, 0]], [0.25, -0.5, 0.5]), ""),
    "lattice": (annealz.SquareIsing(2, (0.25, 0.5), 0.125), ""),
    "softmax": (tiny_softmax(), "visible"),
    "softmax hidden": (tiny_softmax(), "hidden"),
    "potts": (tiny_potts(2), ""),
}
QUICK = ("rbm", "softmax hidden", "potts")
tiny = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in TINY]
)


def tiny_path(name: str, num_components: int = 2):
    model, marginal = TINY[name]
    marginal = marginal or model.marginals[0]
    flat = model.path(model.flat_base(), marginal)
    is_pair = not hasattr(flat, "state_units")
    units = flat.units if is_pair else flat.state_units
    generator = np.random.default_rng(7)
    number = flat.start.size if is_pair else flat.state_bias.shape[0]
    logits = generator.normal(0, 1, (num_components, number))
    shares = np.linspace(1, 2, num_components) / np.linspace(1, 2, num_components).sum()
    return model.path(MixtureBase.of_units(units, logits, shares), marginal), model.kernel()


def sizes_of(units, fields: int) -> tuple[int, ...]:
    if isinstance(units, SoftmaxUnits):
        return (units.num_states,) * (fields // units.num_states)
    return (2,) * fields


def states_of(path) -> np.ndarray:
    if isinstance(path, MixturePairPath):
        return grid(*sizes_of(path.units, path.flat.start.size))
    return grid(*sizes_of(path.flat.state_units, path.flat.state_bias.shape[0]))


def all_pairs(*lists: np.ndarray) -> list[np.ndarray]:
    """Every combination of rows of these, the first slowest."""
    index = np.array(list(itertools.product(*(range(len(a)) for a in lists))))
    return [np.float64(a[index[:, i]]) for i, a in enumerate(lists)]


def transition_matrix(kernel, path, beta: float) -> np.ndarray:
    """T[x, y] = p(y | x) of one step, by running the kernel over all scripts, in float64."""
    states, components = states_of(path), np.arange(path.base.num_components)[:, None]
    counted: dict[int, int] = {}
    if isinstance(path, MixturePairPath):
        x, component, y = all_pairs(states, components, states)
        latent = np.zeros((1, 1))
        outcomes = {COMPONENT_DRAW: component}
        for colour, sites in enumerate(np.asarray(kernel.blocks)):
            inside = np.minimum(sites, states.shape[1] - 1)
            outcomes[colour] = y[:, inside]
            counted[colour] = int((sites < states.shape[1]).sum())
    else:
        latent = grid(*sizes_of(path.flat.latent_units, path.flat.latent_bias.shape[0]))
        x, hidden, component, y = all_pairs(states, latent, components, states)
        outcomes = {0: hidden, COMPONENT_DRAW: component, 1: y}
    bits = Scripted(outcomes, counted)
    with jax.enable_x64(True), jax.disable_jit():
        moved = kernel.step(bits, jnp.asarray(x), in_float64(path), beta)
        np.testing.assert_array_equal(moved, y)
    chances = np.exp(bits.log_probability).reshape(len(states), -1, len(states))
    return chances.sum(1)


def log_law(path, beta: float) -> np.ndarray:
    states = np.float64(states_of(path))
    with jax.enable_x64(True):
        return log_density(in_float64(path), states, beta)


@tiny
@pytest.mark.usefixtures("scripts_for_states")
def test_kernels_leave_the_law_exactly_where_it_is(name: str):
    """p T = p; and the reversal: p(x) T(y | x) = p(y) R(x | y)."""
    path, kernel = tiny_path(name)
    for beta in (0.0, 0.6):  # and 1 is the model's own
        matrix, back = (transition_matrix(k, path, beta) for k in (kernel, kernel.reversed()))
        density = log_law(path, beta)
        law = np.exp(density - logsumexp(density))
        np.testing.assert_allclose(matrix.sum(1), 1, atol=1e-12)
        np.testing.assert_allclose(law @ matrix, law, atol=1e-12)
        np.testing.assert_allclose(law[:, None] * matrix, (law[:, None] * back).T, atol=1e-12)


class ForgetfulGibbs(annealz.ColourGibbs):
    """Mutant: a sweep as if there were no mixture."""

    def step(self, bits, x, path, beta):
        return super().step(bits, x, path.flat, beta)


@pytest.mark.usefixtures("scripts_for_states")
def test_mutants_of_the_sweep_move_the_law():
    """Mutants: a sweep that forgets the component, and a reversal in the same order."""
    path, kernel = tiny_path("potts")
    density = log_law(path, 0.6)
    law = np.exp(density - logsumexp(density))
    wrong = transition_matrix(ForgetfulGibbs(kernel.blocks), path, 0.6)
    wrong = wrong / wrong.sum(1, keepdims=True)
    assert np.abs(law @ wrong - law).max() > 1e-3
    matrix = transition_matrix(kernel, path, 0.6)
    flow = law[:, None] * matrix
    assert np.abs(flow - flow.T).max() > 1e-4


def first_law(path) -> np.ndarray:
    """The law of path.sample, over all scripts."""
    states, components = states_of(path), np.arange(path.base.num_components)[:, None]
    component, x = all_pairs(components, states)
    bits = Scripted({COMPONENT_DRAW: component, 0: x})
    with jax.disable_jit():
        np.testing.assert_array_equal(path.sample(bits), x)
    return np.exp(bits.log_probability).reshape(-1, len(states)).sum(0)


def expected_weight(path, kernel, betas) -> float:
    """E[w] in float64: the law of the state, reweighted and moved step by step."""
    with jax.enable_x64(True):
        wide = in_float64(path)
        law, states = first_law(wide), np.float64(states_of(path))
        for low, high in itertools.pairwise(betas):
            law = law * np.exp(log_ratio(wide, states, low, high))
            law = law @ transition_matrix(kernel, path, high)
    return float(law.sum())


@tiny
@pytest.mark.usefixtures("scripts_for_states")
def test_the_expected_weight_is_the_ratio_of_z(name: str):
    """Few, uneven steps, far from mixing: unbiased all the same."""
    path, kernel = tiny_path(name)
    log_ratio = logsumexp(log_law(path, 1.0)) - path.log_z0
    weight = expected_weight(path, kernel, [0.0, 0.3125, 0.8125, 1.0])
    assert weight == pytest.approx(np.exp(log_ratio), rel=1e-10)
    assert log_ratio + path.log_z0 == pytest.approx(exact_log_z(TINY[name][0]), abs=1e-5)


@pytest.mark.usefixtures("scripts_for_states")
@pytest.mark.parametrize("kind", [WrongSign, WithoutNumber])
def test_mutants_break_the_expected_weight(kind: type[_Components]):
    path, kernel = tiny_path("rbm")
    ratio = np.exp(exact_log_z(TINY_RBM) - path.log_z0)
    weight = expected_weight(mutated(path, kind), kernel, [0.0, 0.3125, 0.8125, 1.0])
    assert abs(weight / ratio - 1) > 0.02


@pytest.mark.parametrize("marginal", ["visible", pytest.param("hidden", marks=pytest.mark.slow)])
def test_real_units_keep_their_law(marginal: str):
    """z-tests from exact draws: invariance and reversal."""
    model = MODELS["gaussian"]
    base = gaussian_mixture() if marginal == "visible" else binary(3)
    path = model.path(base, marginal)
    draws = model.exact_draws(4000, 1, marginal)
    done = check_kernel(model.kernel(), path, draws=draws, betas=(0.2, 1.0), num_chains=4000)
    assert 1.0 in done


def test_real_draws_have_the_moments(seed: int):
    base = gaussian_mixture()
    drawn = np.float64(sample(base, Stream(seed, "mixture").at(0, jnp.arange(40_000))))
    scale = np.float64(MODELS["gaussian"].scale)
    for unit in range(4):
        places = (drawn[:, unit, None] - base.means[:, unit]) / scale[unit]
        uniforms = stats.norm.cdf(places) @ base.weights
        assert stats.kstest(uniforms, "uniform", method="asymp").pvalue > ALPHA


def test_one_component_of_an_rbm_is_the_plain_path():
    """The same densities and draws as from the product, and the faster path."""
    means = [0.2, 0.7, 0.4, 0.9]
    for marginal, size in (("visible", 4), ("hidden", 3)):
        base = MixtureBase.from_means([means[:size]])
        path = RBM.path(base, marginal)
        assert isinstance(path, annealz.GeometricPath)
        states = energies_of("rbm", marginal)[1]
        end = logsumexp(log_density(path, np.float32(states), 1.0))
        assert end == pytest.approx(exact_log_z(RBM), abs=1e-5)
        start = log_density(path, np.float32(states), 0.0)
        law = np.exp(start - path.log_z0)
        assert law.sum() == pytest.approx(1, abs=1e-5)
        np.testing.assert_allclose(law @ states, means[:size], atol=1e-5)


def test_a_step_is_four_products():
    """Two of the model, and two with a side of the number of components."""
    path = random_rbm(24, 100, 0.5).path(binary(100))
    assert products_of_a_step(path, BlockGibbs(), record=True) == 4


# --- runs from a mixture ---------------------------------------------------------------------


@pytest.mark.parametrize("name", [pytest.param("rbm", marks=pytest.mark.slow), "potts"])
def test_a_run_from_a_mixture_is_stored_and_resumed(name: str, tmp_path: Path, seed: int):
    model = RBM if name == "rbm" else TINY["potts"][0]
    base = BASES["binary"] if name == "rbm" else categorical(4, 2)
    options = {"base": base, "schedule": "linear", "num_steps": 60, "num_chains": 100, "seed": seed}
    options["second_opinion"] = False
    whole = annealz.estimate_log_z(model, **options)
    assert whole.base == "mixture"
    with pytest.raises(KeyboardInterrupt):
        annealz.estimate_log_z(
            model, out=tmp_path / "r", chunk_steps=10, on_progress=stop_in("run"), **options
        )
    again = annealz.resume(tmp_path / "r")
    np.testing.assert_array_equal(again.log_weights, whole.log_weights)
    stored = again.problem.path.base
    assert isinstance(stored, MixtureBase)
    assert stored.digest == base.digest
    z = (whole.log_z - exact_log_z(model)) / whole.std_err
    assert abs(z) < stats.norm.isf(ALPHA / 2)


@pytest.mark.parametrize("base", [*BASES.values(), gaussian_mixture()])
def test_a_mixture_is_written_and_read(base: MixtureBase):
    kept = store(base)
    assert kept is not None
    again = restore(*kept)
    assert isinstance(again, MixtureBase)
    assert again.digest == base.digest
    assert (again.name, again.num_units) == (base.name, base.num_units)

"""Contraction against enumeration, Kaufman's values, and closed forms; its cost is known beforehand."""

import numpy as np
import pytest
from scipy.special import logsumexp

import annealz
from annealz.models.contraction import (
    contracted_log_z,
    contracted_log_z_if_cheap,
    plan_contraction,
)
from annealz.testing import random_rbm
from support.families import MODELS, grid, joint


def random_factors(seed: int, scale: float = 1.0, zeros: float = 0.0):
    """Seven variables of two to four states, factors of one to four of them."""
    generator = np.random.default_rng(seed)
    num_states = tuple(generator.integers(2, 5, 7).tolist())
    factors = []
    for arity, count in ((1, 5), (2, 6), (3, 3), (4, 1)):
        for _ in range(count):
            scope = tuple(generator.choice(7, arity, replace=False).tolist())
            table = generator.normal(0, scale, [num_states[v] for v in scope])
            table[generator.random(table.shape) < zeros] = -np.inf
            factors.append((scope, table))
    return num_states, factors


def enumerated(num_states, factors) -> float:
    states = grid(*num_states)
    energies = sum(table[tuple(states[:, v] for v in scope)] for scope, table in factors)
    return float(logsumexp(energies))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("scale", "zeros"), [(1.0, 0.0), (1.0, 0.1), (200.0, 0.0), (200.0, 0.1)])
def test_equals_enumeration(seed, scale, zeros):
    """Also where tables span hundreds of decades, and where factors are zero."""
    factors = random_factors(seed, scale, zeros)
    wanted = enumerated(*factors)
    found = contracted_log_z(factors)
    assert found == wanted or abs(found - wanted) <= 1e-9 * max(abs(wanted), 1)


def test_small_entries_that_decide_are_kept():
    """Each table alone would lose e^-900 beside 1, and only their product is the answer."""
    one, two = np.array([0.0, -900.0]), np.array([-2000.0, 0.0])
    ring = [((0,), one), ((0, 1), np.zeros((2, 2))), ((1, 2), np.diag([0.0, 0.0])), ((0,), two)]
    assert contracted_log_z(((2, 2, 2), ring)) == pytest.approx(-900 + 2 * np.log(2), abs=1e-9)
    chain = [
        ((0, 1), np.array([[0.0, -900.0], [-900.0, -900.0]])),
        ((1, 2), np.array([[-5000.0] * 2, [0.0] * 2])),
    ]
    assert contracted_log_z(((2, 2, 2), chain)) == pytest.approx(-900 + 2 * np.log(2), abs=1e-9)


def test_no_state_has_weight():
    equal, unequal = (
        np.array([[0.0, -np.inf], [-np.inf, 0.0]]),
        np.array([[-np.inf, 0.0], [0.0, -np.inf]]),
    )
    assert contracted_log_z(((2, 2), [((0, 1), equal), ((1, 0), unequal)])) == -np.inf


def test_parts_that_are_apart_and_variables_without_factors():
    table = np.log([[1.0, 2.0], [3.0, 4.0]])
    factors = [((0, 1), table), ((3, 4), table), ((), np.array(0.5))]
    assert contracted_log_z(((2, 2, 3, 2, 2), factors)) == pytest.approx(np.log(10 * 10 * 3) + 0.5)
    assert contracted_log_z(((5,), [])) == pytest.approx(np.log(5))


@pytest.mark.parametrize(
    "name", ["boltzmann", "open lattice", "odd lattice", "lattice", "potts", "potts lattice"]
)
def test_models_as_factor_graphs(name):
    factors = MODELS[name].factors()
    assert factors is not None
    wanted = float(logsumexp(joint(name)[1]))
    assert contracted_log_z(factors) == pytest.approx(wanted, rel=1e-9)
    assert annealz.exact_log_z(MODELS[name]) == pytest.approx(wanted, abs=1e-5)


def test_an_rbm_as_a_factor_graph():
    model = random_rbm(4, 6)
    assert contracted_log_z(model.factors()) == pytest.approx(annealz.exact_log_z(model), rel=1e-9)


@pytest.mark.parametrize(
    ("side", "coupling"), [((4, 4), 0.3), ((6, 6), 0.4406868), ((8, 6), 0.7), ((2, 40), 0.5)]
)
def test_kaufman(side, coupling):
    model = annealz.SquareIsing(side, coupling)
    wanted = annealz.square_ising_log_z(side, float(model.couplings[0]))
    assert contracted_log_z(model.factors()) == pytest.approx(wanted, rel=1e-9)


def test_what_enumeration_cannot_reach_is_known():
    """Strips of lattices are thin however long they are; a sparse RBM too."""
    strip = annealz.Ising.square((4, 16), 0.4, is_periodic=False)
    assert strip.exact_log_z_if_cheap() == pytest.approx(annealz.exact_log_z(strip))
    assert annealz.Ising.square(8, 0.3, 0.1).exact_log_z_if_cheap() is not None
    assert annealz.Potts.square((4, 8), 3, 0.5).exact_log_z_if_cheap() is not None
    weights = np.eye(40) * 0.5 + np.roll(np.eye(40), 1, 0) * 0.3
    ring = annealz.RBM(weights, np.full(40, 0.1), np.full(40, -0.2))
    assert ring.exact_log_z_if_cheap() == pytest.approx(annealz.exact_log_z(ring))


def test_dense_models_are_left_alone():
    assert random_rbm(30, 30).exact_log_z_if_cheap() is None
    upper = np.triu(np.ones((60, 60)), 1)
    assert annealz.Ising(0.01 * (upper + upper.T)).exact_log_z_if_cheap() is None
    with pytest.raises(
        ValueError, match=r"tables of 2\^59 numbers or more, and at most 2 GiB is allowed"
    ):
        annealz.exact_log_z(annealz.Ising(0.01 * (upper + upper.T)))


def test_cost_is_known_before_anything_is_made():
    lattice = annealz.SquareIsing(10, 0.4).factors()
    plan = plan_contraction(lattice[0], [scope for scope, _ in lattice[1]])
    assert plan.largest <= 2**21
    assert plan.fits(plan.num_bytes, plan.products)
    assert not plan.fits(plan.num_bytes - 1, plan.products)
    with pytest.raises(ValueError, match="at most 1 KiB"):
        contracted_log_z(lattice, max_bytes=1024)
    assert contracted_log_z_if_cheap(None) is None

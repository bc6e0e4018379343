"""Necks of centred hierarchies: seen, entered in other coordinates, and named where chains miss them."""

import jax.numpy as jnp
import numpy as np
import pytest

import annealz
from annealz.bases.warped import WarpedBase
from annealz.diagnostics.findings import Kind
from annealz.diagnostics.status import Status
from annealz.pilots.densities import search
from annealz.pilots.densities.evaluator import Evaluator
from annealz.pilots.densities.necks import missed_neck, straightened, suspects
from annealz.pilots.densities.population import Sample
from annealz.pilots.densities.profile import profile
from support.counted import Counted

ERROR, EFFECTS = 1.5, np.array([0.9, -1.1, 0.3, 1.6])


def groups(x):
    """x = (log scale t, four effects): effects N(0, e^2t), data N(effect, 1.5^2), scale half-normal(2)."""
    t, effects = x[0], x[1:]
    prior = 0.5 * np.log(2 / np.pi) - np.log(2.0) - 0.5 * (jnp.exp(t) / 2) ** 2 + t
    law = -0.5 * jnp.exp(-2 * t) * (effects @ effects) - 4 * (t + 0.5 * np.log(2 * np.pi))
    return prior + law - 0.5 * jnp.sum(((EFFECTS - effects) / ERROR) ** 2)


def log_marginal(t):
    """Of t, in closed form."""
    variance = np.exp(2 * t) + ERROR**2
    prior = 0.5 * np.log(2 / np.pi) - np.log(2.0) - 0.5 * (np.exp(t) / 2) ** 2 + t
    data = -0.5 * (EFFECTS[:, None] ** 2 / variance).sum(0) - 2 * np.log(variance)
    return prior + data + 4 * np.log(ERROR)


GRID = np.linspace(-30, 5, 20_001)
LOG_Z = float(np.log(np.exp(log_marginal(GRID)).sum() * (GRID[1] - GRID[0])))
GROUPS = annealz.LogDensity(groups, dim=5, name="groups")


def exact_rows(count: int, seed: int = 0) -> np.ndarray:
    """Draws of the density."""
    generator = np.random.default_rng(seed)
    shares = np.exp(log_marginal(GRID))
    t = generator.choice(GRID, count, p=shares / shares.sum())
    precision = np.exp(-2 * t) + ERROR**-2
    means = EFFECTS / ERROR**2 / precision[:, None]
    effects = means + generator.normal(size=(count, 4)) / np.sqrt(precision)[:, None]
    return np.column_stack([t, effects])


def sample_of(rows: np.ndarray) -> Sample:
    return Sample(rows.reshape(4, -1, 5), np.zeros((4, len(rows) // 4)), LOG_Z)


def test_the_profile_is_the_marginal_density():
    evaluator = Evaluator(GROUPS)
    along = profile(evaluator, exact_rows(400), 0)
    assert along is not None
    np.testing.assert_allclose(along.logs, log_marginal(along.grid), atol=0.02)
    log_z = np.logaddexp.reduce(along.logs) + np.log(along.grid[1] - along.grid[0])
    assert abs(log_z - LOG_Z) < 0.02
    assert along.grid[0] < -7  # far into the neck
    assert evaluator.evaluations < 2_000


def test_a_fixed_coordinate_is_left_out():
    rows = exact_rows(400)
    along = profile(Evaluator(GROUPS), rows, 0, fixed=[2])
    assert along is not None
    assert along.others.tolist() == [1, 3, 4]
    assert along.centres.shape[1] == 3


def correlated(x):
    return -0.5 * (x[0] ** 2 + 3 * (x[1] - 2 * x[0]) ** 2 + x[2] ** 2)


def regression(x):
    inputs = jnp.asarray(np.random.default_rng(1).normal(size=(30, 3)), jnp.float32)
    return -jnp.sum(jnp.logaddexp(0.0, -inputs @ x)) - 0.5 * (x @ x)


@pytest.mark.parametrize(
    "fn",
    [
        correlated,
        regression,
        lambda x: -2.5 * jnp.log1p(x @ x),
        lambda x: -jnp.sum((x**2 - 1) ** 2),
    ],
    ids=["gaussian", "logistic", "student", "wells"],
)
def test_others_are_no_suspects(fn):
    rows = np.random.default_rng(0).normal(size=(300, 3))
    evaluator = Evaluator(annealz.LogDensity(fn, dim=3))
    assert suspects(evaluator, rows, np.random.default_rng(1)) == ()
    assert evaluator.evaluations <= 16 * 3


def test_straightened_it_is_nearly_normal():
    """Found from draws that lack the neck: plain importance sampling then gives log Z."""
    rows = exact_rows(800)
    rows = rows[rows[:, 0] > -0.5][:400]
    evaluator = Evaluator(GROUPS)
    assert suspects(evaluator, rows, np.random.default_rng(0)) == (0,)
    found = straightened(evaluator, sample_of(rows), np.zeros((0, 5)), np.random.default_rng(0))
    assert found is not None
    assert found.names == "x[0]"
    u = np.random.default_rng(2).normal(size=(2_000, 5)).astype(np.float32)
    logs = (
        np.float64(Evaluator(found.model).values(u)) + 0.5 * (u**2).sum(1) + 2.5 * np.log(2 * np.pi)
    )
    assert logs.std() < 0.1
    assert abs(np.log(np.exp(logs).mean()) - LOG_Z) < 0.01
    t = found.positions(u)[:, 0]  # has the marginal law
    below = np.exp(log_marginal(GRID[GRID < -2])).sum() / np.exp(log_marginal(GRID)).sum()
    assert abs((t < -2).mean() - below) < 0.03


def test_a_neck_without_chains_is_named():
    rows = exact_rows(4_000)
    found = straightened(
        Evaluator(GROUPS), sample_of(rows), np.zeros((0, 5)), np.random.default_rng(0)
    )
    assert found is not None
    whole = rows[: 4 * 250].reshape(4, 250, 5)
    assert missed_neck(found, whole) == ()
    cut = rows[rows[:, 0] > -1.0][:1_000].reshape(4, 250, 5)
    (finding,) = missed_neck(found, cut)
    assert finding.kind is Kind.MISSED_NECK
    assert "below x[0] = " in finding.what
    assert finding.kind.is_fatal


def straight_groups():
    rows = exact_rows(400)
    found = straightened(
        Evaluator(GROUPS), sample_of(rows), np.zeros((0, 5)), np.random.default_rng(0)
    )
    assert found is not None
    return found


def bases(first, spent: int) -> search.DensityBases:
    return search.DensityBases(first, first, None, 2, (), "why", 0.0, spent)


def test_bases_come_back_in_the_coordinates_of_the_density(monkeypatch):
    necks, asked = straight_groups(), []

    def searched(evaluator, kernel, name, seed, neck=None):
        asked.append((evaluator.model, neck))
        evaluator.spent["values"] += 1000
        if neck is None:
            return necks
        return bases(annealz.GaussianBase.standard(5), evaluator.evaluations)

    monkeypatch.setattr(search, "_searched", searched)
    found = search.search_density(GROUPS, GROUPS.kernel())
    assert [one[0] for one in asked] == [GROUPS, necks.model]
    assert isinstance(found.first, WarpedBase)
    assert isinstance(found.second, WarpedBase)
    assert found.evaluations == 2000  # of both searches
    assert "depend on x[0]" in found.reason
    z = np.random.default_rng(0).normal(size=(50, 5)).astype(np.float32)
    slopes = GROUPS.path(found.first).slope(z, 0.0)  # the weights of plain importance sampling
    assert np.std(slopes) < 0.1
    assert abs(found.first.log_z + np.mean(slopes) - LOG_Z) < 0.05


def test_coordinates_that_lose_mass_are_given_up(monkeypatch):
    necks, asked = straight_groups(), []

    def searched(evaluator, kernel, name, seed, neck=None):
        asked.append((evaluator.model, neck))
        evaluator.spent["values"] += 1000
        if neck is None or evaluator.model is neck.model:
            return necks
        return bases(annealz.GaussianBase.standard(5), evaluator.evaluations)

    monkeypatch.setattr(search, "_searched", searched)
    found = search.search_density(GROUPS, GROUPS.kernel())
    assert asked == [(GROUPS, None), (necks.model, necks), (GROUPS, necks)]
    assert isinstance(found.first, annealz.GaussianBase)
    assert found.evaluations == 3000


def test_a_run_of_a_centred_hierarchy():
    fn = Counted(groups)
    estimate = annealz.estimate_log_z(
        annealz.LogDensity(fn, dim=5),
        schedule="linear",
        num_steps=50,
        num_chains=200,
        second_opinion=False,
        seed=1,
    )
    assert isinstance(estimate.problem.path.base, WarpedBase)
    assert sum(estimate.evaluations.values()) == fn.since()  # in both coordinates, and the profile
    assert estimate.status is Status.OK
    assert abs(estimate.log_z - LOG_Z) < 4 * estimate.std_err < 0.1
    below = np.exp(log_marginal(GRID[GRID < -2])).sum() / np.exp(log_marginal(GRID)).sum()
    share, std_err = estimate.expectation(lambda values: values["x"][:, 0] < -2.0)
    assert abs(share - below) < 4 * std_err


def test_a_hierarchy_without_data_is_not_called_improper():
    """Far out in other coordinates nothing is known of it: the check is made in its own."""

    def prior(x):
        def normal(y, mean, scale):
            return -0.5 * ((y - mean) / scale) ** 2 - jnp.log(scale) - 0.5 * jnp.log(2 * jnp.pi)

        others = jnp.sum(normal(x[2:], x[0], jnp.exp(x[1])))
        return normal(x[0], 0.0, 5.0) + normal(x[1], 0.0, 1.0) + others

    model = annealz.LogDensity(prior, 10)
    found = search.search_density(model, model.kernel(), seed=0)
    assert isinstance(found.first, WarpedBase)
    assert Kind.IMPROPER not in [finding.kind for finding in found.findings]

"""The study of evidence: the truths of its problems, the counts of its peers, and its page."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import evidence_page
import peer_methods
from annealz.testing import assert_within_mc_error
from evidence_peers import by_run
from hard import outcome, summary
from hard_problems import HARD, Hard
from page_peers import interval_score
from peer_plan import Plan
from problems_with_truth import NAMES, Problem, problem

# --- truths -----------------------------------------------------------------------------------


def _exact(given: Problem) -> float:
    assert given.truth is not None
    return given.truth


def _log_volume(given: Problem) -> float:
    assert given.low is not None
    assert given.high is not None
    return float(np.log(given.high - given.low).sum())


def _inside(given: Problem, x: np.ndarray) -> np.ndarray:
    assert given.low is not None
    assert given.high is not None
    return np.all((x > given.low) & (x < given.high), 1)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("eggbox", 235.856),
        ("two-blobs", -6.679),
        ("shells-2", -1.75),
        ("shells-10", -14.59),
        ("shells-30", -60.13),
        ("many-well-32", 164.695675 - 32 * np.log(12)),
        ("spike-background-10", -11.53388),
    ],
)
def test_published_values(name, published):
    digits = 5e-3 if abs(published - round(published, 2)) < 1e-9 else 5e-4
    assert abs(_exact(problem(name)) - published) < digits


@pytest.mark.parametrize("name", ["two-blobs", "shells-2"])
def test_two_dimensions_by_a_grid(name):
    given = problem(name)
    middles = (np.arange(4000) + 0.5) / 4000
    grid = given.transform(np.stack(np.meshgrid(middles, middles), -1))
    assert logsumexp(given.on_host(grid)) - np.log(middles.size**2) == pytest.approx(given.truth)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("spike-slab-5", [(1.0, 0.0, 0.1), (100.0, 0.031, 0.01)]),
        ("spike-slab-10", [(1.0, 0.0, 0.1), (100.0, 0.031, 0.01)]),
        ("modes-5", [(0.5, 0.0, 1.0), (0.5, np.array([20.0, 0, 0, 0, 0]), 0.5)]),
    ],
)
def test_mixtures_are_normalised(name, parts):
    """L = sum of w N(m, s^2 I) on a box that holds all of it, so Z = sum of w over the volume."""
    given, generator = problem(name), np.random.default_rng(0)
    for _, mean, scale in parts:
        x = mean + scale * generator.normal(size=(20, given.dim))
        each = [w * stats.norm.pdf(x, m, s).prod(1) for w, m, s in parts]
        assert np.allclose(given.on_host(x), np.log(np.sum(each, 0)))
        assert _inside(given, x).all()
    volume = _log_volume(given)
    assert given.truth == pytest.approx(np.log(sum(w for w, _, _ in parts)) - volume, abs=1e-4)


@pytest.mark.parametrize("name", ["gaussian-50", "hierarchy-11"])
def test_conjugate_problems_by_their_posterior(name):
    """log L + log prior - log posterior is log Z at every point; the posterior from derivatives of L."""
    given = problem(name)
    with jax.enable_x64(True):
        zero = jnp.zeros(given.dim, jnp.float64)
        slope, hessian = jax.grad(given.in_jax)(zero), jax.hessian(given.in_jax)(zero)
    precision = np.eye(given.dim) - np.asarray(hessian)
    mean, log_det = np.linalg.solve(precision, np.asarray(slope)), np.linalg.slogdet(precision)[1]
    for x in np.random.default_rng(1).normal(size=(3, given.dim)):
        square = (x - mean) @ precision @ (x - mean)
        log_posterior = 0.5 * (log_det - square - given.dim * np.log(2 * np.pi))
        log_z = given.on_host(x) + stats.norm.logpdf(x).sum() - log_posterior
        assert log_z == pytest.approx(given.truth, abs=1e-6)


def test_the_funnel_by_its_own_draws(seed):
    given, generator = problem("funnel-10"), np.random.default_rng(seed)
    v = 3 * generator.normal(size=(400_000, 1))
    x = np.concatenate([v, np.exp(v / 2) * generator.normal(size=(400_000, 9))], 1)
    of_rest = stats.norm.logpdf(x[:9, 1:], 0, np.exp(x[:9, :1] / 2)).sum(1)
    assert np.allclose(given.on_host(x[:9]), stats.norm.logpdf(x[:9, 0], 0, 3) + of_rest)
    inside = _inside(given, x)
    share = np.exp(_exact(given) + _log_volume(given))
    assert_within_mc_error(inside.mean(), share, inside.std() / np.sqrt(inside.size))


def test_wells_side_by_side():
    given = problem("wells-10")
    x = np.linspace(-6, 6, 40_001)
    line = given.on_host(x[:, None] * np.eye(10)[0]) - 0.9 * given.on_host(np.zeros(10))
    total = logsumexp(line) + np.log(x[1] - x[0])
    assert given.truth == pytest.approx(10 * (total - np.log(12)), abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_both_forms_of_a_likelihood_agree(name):
    given = problem(name)
    u = np.random.default_rng(2).uniform(0.2, 0.8, (3, given.dim))
    with jax.enable_x64(True):
        there = jax.vmap(lambda u: given.in_jax(given.transform_in_jax(u)))(jnp.asarray(u))
    assert np.allclose(given.on_host(given.transform(u)), np.asarray(there), rtol=1e-9)
    assert given.truth is not None


@pytest.mark.parametrize(
    "hard",
    [h for h in HARD if h.dim <= 2 and h.kind in ("modes", "bounded")],
    ids=lambda h: f"{h.set}-{h.name}",
)
def test_hard_densities_by_a_grid(hard: Hard):
    edges = [(-45.0, 45.0)] * hard.dim
    if hard.kind == "bounded":
        ends = {
            "gamma-beta": [(0.0, 80.0), (0.0, 1.0)],
            "exponential": [(0.0, 4.0)],
            "beta-normal": [(0.0, 1.0), (-15.0, 25.0)],
            "gamma-normal": [(0.0, 15.0), (-35.0, 30.0)],
            "gamma-2": [(0.0, 300.0)],
            "uniform": [(-10.0, 10.0)],
        }
        edges = ends.get(hard.name, [(0.0, 40.0)])
    count = 200_000 if hard.dim == 1 else 1500
    axes = [low + (high - low) * (np.arange(count) + 0.5) / count for low, high in edges]
    grid = np.stack(np.meshgrid(*axes), -1).reshape(-1, hard.dim)
    with jax.enable_x64(True):
        logs = np.asarray(jax.jit(jax.vmap(hard.fn))(jnp.asarray(grid)))
    cell = sum(np.log((high - low) / count) for low, high in edges)
    assert float(logsumexp(logs)) + cell == pytest.approx(hard.truth, abs=2e-3)


# --- runs -------------------------------------------------------------------------------------


def test_outcomes():
    row = {"problem": "modes-1", "set": "tuning", "truth": 0.0, "std_err": 0.01, "status": "ok"}
    row |= {"seed": 0, "evaluations": 10, "seconds": 1.0}
    assert outcome(row | {"log_z": -0.69}) == "ok and wrong"
    assert outcome(row | {"log_z": -0.045}) == "ok and right"  # 4.5 errors, and next to nothing
    assert outcome(row | {"log_z": 0.69, "status": "unreliable"}) == "unreliable and wrong"
    assert outcome(row | {"log_z": 3.0, "truth": np.inf}) == "ok and wrong"  # no number is right
    assert outcome({"status": "refused", "truth": np.inf}) == "refused"
    assert "ok and wrong: 1 of 1" in summary([row | {"log_z": -0.69}])


def test_evaluations_of_the_methods_in_jax_are_those_made():
    """A callback counts: a batch at a time, so nested sampling replaces one point at a time here."""
    made = 0

    def count():
        nonlocal made
        made += 1

    def likelihood(x, xp):
        jax.debug.callback(count)
        return -0.5 * xp.sum(((x - 0.3) / 0.2) ** 2, -1)

    given = Problem("toy", 2, likelihood, None, "")
    counter = peer_methods.Counter(given)
    peer_methods.blackjax_smc(given, 0, counter, particles=20)
    jax.effects_barrier()
    assert counter.calls == 20 * made
    counter, made = peer_methods.Counter(given), 0
    peer_methods.blackjax_nss(given, 0, counter, live=30, delete=1)
    jax.effects_barrier()
    assert counter.calls == made - 1 + 30  # the first points are one batch


def test_the_interval_score():
    assert interval_score(1.0, 2.0, 1.5) == pytest.approx(1.0)
    assert interval_score(1.0, 2.0, 2.25) == pytest.approx(1.0 + 40 * 0.25)


def test_the_page_is_that_of_the_committed_results():
    assert (evidence_page.HERE / "README.md").read_text() == evidence_page.page()


# --- the runs of peers that are missing -------------------------------------------------------

_CELLS = ["eggbox", "two-blobs"]


def _row(name: str, seed: int, status: str = "done", seconds: float = 10.0) -> dict:
    row = {"method": "dynesty", "problem": name, "seed": seed, "status": status}
    return row | {"seconds": seconds, "limit": seconds}


def _plan(rows: list[dict], limit: float = 100.0, workers: int = 2) -> Plan:
    return Plan(rows, _CELLS, ["dynesty"], limit, workers)


def test_plan_runs_first_seeds_before_others():
    plan = _plan([_row("eggbox", 0)])
    assert plan.take(100.0) == ("dynesty", "two-blobs", 0)
    assert plan.take(100.0) == ("dynesty", "eggbox", 1)


def test_plan_waits_for_the_first_seed_and_gives_up_where_it_was_cut():
    plan = _plan([*(_row("eggbox", seed) for seed in range(3))])
    first = plan.take(100.0)
    assert first == ("dynesty", "two-blobs", 0)
    assert plan.take(90.0) is None
    assert plan.waits
    plan.end(first, _row("two-blobs", 0, "time limit", 100.0))
    assert plan.take(80.0) is None
    assert not plan.waits


def test_plan_begins_nothing_that_would_be_cut():
    plan = _plan([_row("eggbox", 0, seconds=50.0), _row("two-blobs", 0, seconds=20.0)])
    assert plan.take(55.0) == ("dynesty", "two-blobs", 1)
    assert plan.take(20.0) is None


@pytest.mark.parametrize(("limit", "again"), [(100.0, True), (50.0, False)])
def test_what_a_shorter_limit_had_cut_is_run_again(limit, again):
    rows = [_row("eggbox", 0, "time limit", 50.0), *(_row("two-blobs", s) for s in range(3))]
    assert (_plan(rows, limit).take(1000.0) is not None) == again


def test_a_number_stays_when_a_later_run_was_cut():
    done, cut = _row("eggbox", 0), _row("eggbox", 0, "time limit", 500.0)
    for rows in ([done, cut], [cut, done]):
        assert by_run(rows) == {("dynesty", "eggbox", 0): done}

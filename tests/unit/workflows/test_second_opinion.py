"""The second opinion: two numbers compared, ends of second chains probed, what the front door says."""

import dataclasses
import json
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import annealz
from annealz.core.weights import flattened, log_mean, resample
from annealz.diagnostics.diagnostics import judge
from annealz.diagnostics.findings import Kind
from annealz.diagnostics.status import Status, stated_interval, stated_std_err
from annealz.methods.annealing.estimate import Estimate
from annealz.methods.annealing.second_opinion import Probe, probed_chains
from annealz.paths.tempered import ZERO_DENSITY
from annealz.testing import assert_within_mc_error, random_rbm
from support.opinions import AGREES, GOOD, HIGHER, LOWER, opinion, pieces, weights
from support.systems import EXACT, FERROMAGNET

SIZE = {"num_steps": 200, "num_chains": 100}


BAD = judge(weights(5.0, 60.0))


# --- two numbers -----------------------------------------------------------------------------


def test_estimates_that_agree():
    found = opinion(7.01)
    assert (found.base, found.confirms, found.is_higher, found.missed) == (
        "uniform",
        True,
        False,
        0,
    )
    assert found.log_z == pytest.approx(7.0)
    assert found.difference == pytest.approx(-0.01)
    assert found.difference_std_err == pytest.approx(np.hypot(0.01, GOOD.std_err))
    assert found.findings == {}
    low, high = found.interval()
    assert low < 7 < high


def test_a_second_one_that_is_higher():
    found = opinion(6.9)
    assert (found.confirms, found.is_higher) == (False, True)
    assert [*found.findings] == [Kind.SECOND_IS_HIGHER]
    said = found.findings[Kind.SECOND_IS_HIGHER].what
    for words in ("from the uniform base, is higher by 0.1 ±", "7.0000 where the first is 6.9000"):
        assert words in said


def test_a_second_one_that_is_higher_and_unreliable_contradicts_all_the_same():
    """It is a lower bound, and a lower bound above the first says that the first is too low."""
    assert BAD.status is Status.UNRELIABLE
    assert opinion(7 - 4 * BAD.std_err, second=BAD).is_higher


def test_a_second_one_that_is_lower():
    found = opinion(7.1)
    assert [*found.findings] == [Kind.SECOND_IS_LOWER]
    assert (found.confirms, found.is_higher) == (False, False)


def test_a_lower_bound_contradicts_nothing_above_it():
    found = opinion(700.0, second=BAD)
    assert (found.confirms, found.findings) == (True, {})


def test_the_limits_are_two_and_a_half_and_three_errors():
    noise = float(np.hypot(0.03, GOOD.std_err))
    for errors, confirms in ((2.4, True), (2.6, False), (-2.9, True), (-3.1, False)):
        assert opinion(7 - errors * noise, 0.03).confirms == confirms


def test_unknown_errors_contradict_nothing():
    for first in (0.0, 700.0):
        found = opinion(first, np.inf)
        assert (found.confirms, found.difference_std_err) == (True, np.inf)
    told = opinion(7.0, np.inf).to_dict()
    assert told["difference_std_err"] is None
    json.dumps(told, allow_nan=False)


def test_rounding_contradicts_nothing():
    exact = judge(np.full(100, 5.0))
    assert exact.std_err == 0
    assert opinion(7.005, 0.0, exact).confirms
    assert opinion(6.995, 0.0, exact).confirms
    assert not opinion(6.98, 0.0, exact).confirms


def test_as_json_values():
    told = opinion(6.9).to_dict()
    keys = "base log_z std_err status difference difference_std_err missed confirms"
    assert [*told] == keys.split()
    assert (told["confirms"], told["status"], told["base"]) == (False, "ok", "uniform")


# --- where second chains ended ---------------------------------------------------------------

NUM_PAIRS = 400
FIRST, SECOND = 500, 200
D = 3.0


def probe_of(generator, variance: float, mass: float = 0.0, second_variance: float = 0.5) -> Probe:
    """Work that obeys Crooks's theorem, but for a mode of this mass in which no first chain ends.

    A tenth of the second chains ends there, so that their weights are larger.
    """
    s = np.sqrt(variance)
    first = generator.normal(D + np.log1p(-mass) - variance / 2, s, FIRST)
    share = 0.1 if mass else 0.0
    is_there = generator.random(SECOND) < share
    tilt = np.log(mass / share) if mass else 0.0
    rest = np.log((1 - mass) / (1 - share))
    log_weights = D + np.where(is_there, tilt, rest) - second_variance / 2
    log_weights = log_weights + generator.normal(0, np.sqrt(second_variance), SECOND)
    run = SimpleNamespace(
        num_chains=SECOND, log_weights=log_weights, seed=int(generator.integers(2**32))
    )
    chains, log_chances = probed_chains(run)  # type: ignore
    back = generator.normal(D + variance / 2, s, chains.size) + np.where(is_there[chains], 9.0, 0.0)
    return Probe(first, log_mean(first), back, log_weights[chains] - log_chances)


@pytest.mark.parametrize("size", [20, 50, 100])
def test_no_way_back_starts_where_the_density_is_zero(size: int):
    log_weights = np.random.default_rng(0).normal(size=size)
    log_weights[::7] = ZERO_DENSITY
    run = SimpleNamespace(num_chains=size, log_weights=log_weights, seed=1)
    chains, log_chances = probed_chains(run)  # type: ignore
    assert (log_weights[chains] > ZERO_DENSITY / 2).all()
    assert np.isfinite(log_chances).all()


@pytest.mark.parametrize("variance", [0.1, 1.0, 2.0])
def test_right_work_raises_no_alarm(variance: float, seed: int):
    generator = np.random.default_rng(seed)
    missed = [probe_of(generator, variance).missed for _ in range(NUM_PAIRS)]
    alarms = sum(one > 0.05 for one in missed)
    assert stats.binom.sf(alarms - 1, NUM_PAIRS, 0.01) > 1e-6
    assert alarms <= 0.01 * NUM_PAIRS


@pytest.mark.parametrize("variance", [0.1, 1.0, 2.0])
def test_a_missing_mode_is_seen(variance: float, seed: int):
    generator = np.random.default_rng(seed)
    seen = sum(probe_of(generator, variance, 0.3).missed > 0.05 for _ in range(NUM_PAIRS))
    assert seen >= 0.95 * NUM_PAIRS


@pytest.mark.parametrize("second_variance", [0.0, 2.0])
def test_the_missed_mass_is_unbiased_under_flattened_chances(second_variance: float, seed: int):
    """With the first mean weight known to be all of Z: any other chances, the same mass."""
    generator = np.random.default_rng(seed)
    missed = []
    for _ in range(NUM_PAIRS):
        probe = dataclasses.replace(probe_of(generator, 0.5, 0.2, second_variance), log_ratio=D)
        beyond = probe.reverse_work > probe.reach
        missed.append(np.exp(probe.log_masses[beyond] - D).sum() / beyond.size)
        if beyond.sum() >= 3 and missed[-1] < 1:
            assert probe.missed == pytest.approx(missed[-1], rel=1e-9)
    error = np.std(missed, ddof=1) / np.sqrt(NUM_PAIRS)
    assert_within_mc_error(np.mean(missed), 0.2, error)
    if not second_variance:
        return  # weights that are even enough: taken as they are
    naive = []  # mutant: as if every chain had been taken with the chance of its weight
    for _ in range(NUM_PAIRS):
        probe = probe_of(generator, 0.5, 0.2, second_variance)
        naive.append((probe.reverse_work > probe.reach).mean())
    with pytest.raises(AssertionError, match="z = "):
        assert_within_mc_error(np.mean(naive), 0.2, np.std(naive) / np.sqrt(NUM_PAIRS) + 1e-12)


def test_too_few_states_tell_nothing():
    work = np.zeros(100)
    for number, missed in ((2, 0.0), (3, 0.03)):
        back = np.where(np.arange(100) < number, 50.0, 0.0)
        assert Probe(work, 0.0, back, np.zeros(100)).missed == pytest.approx(missed)


def test_all_of_the_mass_is_the_most_that_can_be_missed():
    assert Probe(np.zeros(50), 0.0, np.full(50, 9.0), np.full(50, 40.0)).missed == 1.0


def test_a_missed_region_is_a_finding():
    back = np.where(np.arange(100) < 30, 50.0, 0.0)
    found = opinion(7.0, probe=Probe(np.zeros(100), 0.0, back, np.zeros(100)))
    assert [*found.findings] == [Kind.MISSED_REGION]
    assert "23 % of the mass" in found.findings[Kind.MISSED_REGION].what
    assert not found.confirms
    assert not found.is_higher  # so that the first log Z stays


def test_chains_left_behind_do_not_widen_the_reach():
    """They carry nothing: a reach that they widened would never be left."""
    work = np.where(np.arange(100) < 20, -300.0, 0.0)
    assert Probe(work, log_mean(work), work, work).reach == pytest.approx(1.0, abs=0.3)


def test_flattened_chances():
    heavy = weights(0.0, 9.0, 200)
    chances = flattened(heavy, 100)
    assert chances.sum() == pytest.approx(1)
    assert 1 / (chances**2).sum() == pytest.approx(100, rel=1e-3)
    np.testing.assert_array_equal(np.argsort(chances), np.argsort(heavy))
    light = weights(0.0, 0.01, 200)
    np.testing.assert_allclose(flattened(light, 100), np.exp(light) / np.exp(light).sum())


def test_systematic_draws_take_every_chain_about_as_often_as_due(seed: int):
    log_weights = weights(0.0, 1.0, 50)
    due = 200 * np.exp(log_weights) / np.exp(log_weights).sum()
    generator = np.random.default_rng(seed)
    counts = np.array(
        [np.bincount(resample(log_weights, generator, 200), minlength=50) for _ in range(500)]
    )
    assert (np.abs(counts - due) < 1).all()
    error = counts.std(0, ddof=1) / np.sqrt(500)
    some = error > 0
    assert_within_mc_error(counts.mean(0)[some], due[some], error[some])


# --- no evidence lifts another's verdict -----------------------------------------------------


def test_all_evidence_must_agree():
    """Every combination of what the weights, the second opinion and the exact value say."""
    for first, first_ok in ((weights(5.0), True), (weights(5.0, 60.0), False)):
        for second in (None, AGREES, HIGHER, LOWER):
            for exact in (None, 7.0, 8.0, 3.0):
                found = pieces(first, second, exact_log_z=exact)
                errors = 4 * found.std_err
                fits = exact is None or abs(found.log_z - exact) <= errors
                confirmed = second is None or second.confirms
                is_ok = first_ok and confirmed and fits
                assert (found.status is Status.OK) == is_ok, (first_ok, second, exact)
                assert (Kind.CONTRADICTS_EXACT in found.findings) == (not fits)


def test_the_higher_one_is_reported_with_its_own_error():
    found = pieces(weights(4.0), HIGHER)
    assert (found.first_log_z, found.log_z) == (pytest.approx(6.0), pytest.approx(7.0))
    assert found.std_err == stated_std_err(HIGHER.std_err)
    assert found.interval() == stated_interval(found.log_z, HIGHER.interval(), 0.95)
    for second in (AGREES, LOWER, None):
        assert pieces(weights(4.0), second).log_z == pytest.approx(6.0)


def test_what_the_rows_say():
    bound = opinion(7.25, second=BAD)
    ends = {
        "from uniform: agrees": AGREES,
        "from uniform: contradicts": HIGHER,
        ": contradicts": LOWER,
        "from uniform: uncertain, 0.2500 lower, no contradiction": bound,
    }
    for words, one in ends.items():
        assert one.in_words.endswith(words)
    assert pieces().status_in_words == "ok, without a second opinion"


# --- the front door --------------------------------------------------------------------------


# g is 0 at some knots of this path, which has no place on a logarithmic axis
no_room = pytest.mark.filterwarnings("ignore:constrained_layout not applied:UserWarning")


@pytest.fixture(scope="module")
def alone() -> Estimate:
    """From the visible bias, without a second opinion: half of the mass is missed."""
    return annealz.estimate_log_z(FERROMAGNET, base="visible-bias", second_opinion=False, **SIZE)


@pytest.fixture(scope="module")
def doubted() -> Estimate:
    """The same with a second opinion, where the exact value is not known."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("annealz.models.rbm.RBM.exact_log_z_if_cheap", lambda _: None)
        return annealz.estimate_log_z(FERROMAGNET, base="visible-bias", **SIZE)


def test_the_exact_value_contradicts_what_looks_perfect(alone: Estimate):
    assert alone.judgement.status is Status.OK
    assert alone.ess > 90
    assert alone.log_z < EXACT - 0.5
    assert alone.status is Status.UNRELIABLE
    assert [*alone.findings] == [Kind.CONTRADICTS_EXACT]


def test_without_a_second_opinion_the_status_says_so(alone: Estimate):
    assert alone.second_opinion is None
    assert dict(alone.rows())["status"] == "unreliable, without a second opinion"
    assert "second_opinion" not in alone.to_dict()
    assert "second" not in alone.sweeps


def test_a_second_base_contradicts_what_looks_perfect(doubted: Estimate, alone: Estimate):
    assert doubted.exact_log_z is None
    np.testing.assert_array_equal(doubted.log_weights, alone.log_weights)
    assert doubted.judgement.status is Status.OK
    assert doubted.status is Status.UNRELIABLE
    assert {Kind.SECOND_IS_HIGHER, Kind.MISSED_REGION} <= {*doubted.findings}
    found = doubted.second_opinion
    assert found is not None
    assert found.base == "uniform"
    assert doubted.log_z == found.log_z > doubted.first_log_z == alone.log_z
    assert_within_mc_error(doubted.log_z, EXACT, doubted.std_err)
    assert doubted.status_in_words == "unreliable"


def test_a_second_opinion_in_json(doubted: Estimate):
    told = json.loads(json.dumps(doubted.to_dict(), allow_nan=False))
    assert told["second_opinion"]["base"] == "uniform"
    assert told["second_opinion"]["confirms"] is False
    assert told["second_opinion"]["log_z"] == told["log_z"]
    assert told["sweeps"]["second"] > 100 * 200  # second chains, and some of them back
    runs = doubted.runs
    assert runs.second is not None
    assert runs.probe is not None
    assert told["sweeps"]["second"] == runs.second.sweeps + runs.probe.sweeps


@no_room
@pytest.mark.parametrize("which", ["alone", "doubted"])
def test_no_page_shows_it_as_ok(which: str, request):
    from annealz.views.report import render_report

    page = render_report(request.getfixturevalue(which))
    assert 'class="status unreliable"' in page
    assert 'class="status ok"' not in page
    assert "✓" not in page


def _breaks_far_out(x):
    """A density whose value is NaN where only chains of a far wider base go."""
    inside = -0.5 * jnp.sum(x**2)
    return jnp.where(jnp.sum(jnp.abs(x)) > 14.0, jnp.nan, inside)


def test_a_second_opinion_that_fails_is_a_finding_and_the_number_stays(tmp_path):
    from annealz.methods.annealing import method

    model, options = random_rbm(6, 8), {"num_steps": 40, "num_chains": 100}
    sound = annealz.estimate_log_z(model, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(method, "run_second", _fails)
        first = annealz.estimate_log_z(model, out=tmp_path / "run", **options)
    assert first.log_z == sound.first_log_z
    assert first.std_err == sound.first_std_err
    assert first.status is Status.UNRELIABLE
    assert first.second_opinion is None
    assert any("the second opinion could not be computed" in words for words in first.messages)
    assert any("3 of 10 log weights became NaN" in words for words in first.messages)
    again = annealz.resume(tmp_path / "run")
    assert (again.log_z, again.messages) == (first.log_z, first.messages)


def _fails(*_):
    raise ValueError("3 of 10 log weights became NaN.")


def test_nan_where_only_second_chains_go_does_not_destroy_the_estimate():
    model = annealz.LogDensity(_breaks_far_out, 2, starts=np.zeros((1, 2)))
    estimate = annealz.estimate_log_z(model, seed=1)
    assert_within_mc_error(estimate.first_log_z, np.log(2 * np.pi), estimate.first_std_err)
    assert Kind.FAILED_CHECK in estimate.findings
    assert estimate.status is Status.UNRELIABLE

"""Bases found by pilots: what is chosen, what it costs, and that it changes no bit of the run.

The model is a ferromagnetic RBM with two phases of equal mass, all units off and all units on. From its
visible bias no chain reaches the second phase.
"""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import annealz
from annealz.bases.fit_mixture import fit_mixture
from annealz.bases.mixture import MixtureBase
from annealz.core.random import derive_seed
from annealz.core.units import BernoulliUnits, SoftmaxUnits
from annealz.methods.exchange import exchange as exchange_module
from annealz.methods.problem import choose_problem
from annealz.models.exact import exact_log_z
from annealz.pilots import base_search
from annealz.pilots.base_search import (
    BaseChoice,
    BaseSearch,
    Scout,
    _first,
    _second,
    second_chains,
    units_of,
)
from annealz.testing import GaussianPath, assert_within_mc_error
from support.families import MODELS
from support.runs import stop_in
from support.systems import EXACT, FERROMAGNET

SIZE = {"num_steps": 200, "num_chains": 100}


def without_seconds(result: annealz.Estimate) -> dict:
    return {name: value for name, value in result.to_dict().items() if name != "seconds"}


def check_same(one: annealz.Estimate, two: annealz.Estimate) -> None:
    """To the last bit."""
    assert without_seconds(one) == without_seconds(two)
    for first, second in zip(one.runs, two.runs, strict=True):
        assert (first is None) == (second is None)
        if first is not None and second is not None:
            np.testing.assert_array_equal(first.log_weights, second.log_weights)
            np.testing.assert_array_equal(first.states, second.states)


def test_after_the_deadline_no_further_base_is_tried(monkeypatch):
    kernel = choose_problem(FERROMAGNET).kernel
    given = (FERROMAGNET, "visible", kernel)
    found = BaseSearch(*given, **SIZE, deadline=0.0).both()
    assert found.is_cut
    assert found.first is not None
    assert [one.name for one in found.tried] == [found.first.name] == ["uniform"]
    assert found.second is None
    fitted = BaseSearch(*given, **SIZE, deadline=0.0).both(is_fitted=True)
    assert fitted.tried[0].name == "uniform"
    assert fitted.first is fitted.tried[-1]
    assert fitted.second is not None
    none = BaseSearch(*given, **SIZE, deadline=0.0).second(FERROMAGNET.flat_base())
    assert none.is_cut
    assert (none.second, none.cost.sweeps, none.tried) == (None, 0, ())


@pytest.fixture(scope="module")
def scouts() -> list[Scout]:
    """All that the search of the next fixture tried, the rough fit included."""
    return []


@pytest.fixture(scope="module")
def choice(scouts: list[Scout]) -> BaseChoice:
    whole = BaseSearch.scout

    def scout(self, *given, **options):
        scouts.append(whole(self, *given, **options))
        return scouts[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseSearch, "scout", scout)
        return BaseSearch(FERROMAGNET, "visible", FERROMAGNET.kernel(), seed=3, **SIZE).both()


@pytest.fixture(scope="module")
def estimate() -> annealz.Estimate:
    return annealz.estimate_log_z(FERROMAGNET, seed=3, **SIZE)


def scout_of(choice: BaseChoice, name: str) -> Scout:
    return next(one for one in choice.tried if one.name == name)


# --- what is found ---------------------------------------------------------------------------


def test_the_base_found_holds_both_phases(choice: BaseChoice):
    missing = scout_of(choice, "visible-bias")
    assert missing.log_z < EXACT - 0.5  # one phase of two, and its weights look perfect
    assert missing.std_err < 0.05
    first = choice.first
    assert first is not None
    assert first.run is not None
    assert first.name == "fitted"
    assert isinstance(first.base, MixtureBase)
    assert_within_mc_error(first.log_z, EXACT, first.std_err)
    ends = first.run.states.mean(1)
    assert min((ends < 0.5).mean(), (ends > 0.5).mean()) > 0.2


def test_the_second_base_is_another_one(choice: BaseChoice):
    assert choice.first is not None
    assert choice.second is not None
    assert choice.second.base.digest != choice.first.base.digest
    assert choice.second.name == "uniform"  # which finds both phases
    assert_within_mc_error(choice.second.log_z, EXACT, choice.second.std_err)
    names = ["uniform", "visible-bias", "fitted", "fitted-product"]
    assert [one.name for one in choice.tried] == names


def test_the_reason_in_words(choice: BaseChoice):
    assert choice.reason is not None
    assert choice.reason.startswith("fitted: predicted K Var[log w] ")
    for words in ("log Z of the pilot", "; the others uniform ", ", visible-bias "):
        assert words in choice.reason
    assert dataclasses.replace(choice, first=None).reason is None
    assert choice.first is not None
    alone = dataclasses.replace(choice, tried=(choice.first,))
    assert alone.reason is not None
    assert "others" not in alone.reason


def test_every_sweep_of_a_pilot_is_charged(choice: BaseChoice, scouts: list[Scout]):
    names = ["uniform", "visible-bias", "fitted", "fitted", "fitted-product"]
    assert [one.name for one in scouts] == names
    assert choice.cost.sweeps == sum(one.spent.sweeps for one in scouts)
    for one in scouts:
        assert one.run is not None
        assert one.spent.sweeps == one.terrain.sweeps + one.run.sweeps
    assert choice.cost.seconds > 0


def test_replicas_are_exchanged_where_sweeps_allow_charged_and_fitted_to(monkeypatch):
    runs, fits = [], []
    real_exchange, real_fit = exchange_module.exchange, base_search.fit_mixture

    def exchanging(*args, **options):
        runs.append(real_exchange(*args, **options))
        return runs[-1]

    def fitting(units, states, weights, **options):
        fits.append((states, weights))
        return real_fit(units, states, weights, **options)

    monkeypatch.setattr(exchange_module, "exchange", exchanging)
    monkeypatch.setattr(base_search, "fit_mixture", fitting)
    kernel, least = FERROMAGNET.kernel(), base_search._LEAST_EXCHANGE
    replicas = base_search._NUM_RUNGS * base_search._NUM_ENSEMBLES
    enough = int(np.ceil(least * replicas / base_search._PILOT_SHARE / 100))
    short = BaseSearch(FERROMAGNET, "visible", kernel, num_steps=100, num_chains=100).both()
    assert not runs
    fits.clear()
    found = BaseSearch(FERROMAGNET, "visible", kernel, num_steps=enough, num_chains=100).both()
    assert [run.sweeps for run in runs] == [least * replicas]
    assert found.cost.sweeps > sum(one.spent.sweeps for one in found.tried) + runs[0].sweeps
    assert short.cost.sweeps < runs[0].sweeps
    drawn = runs[0].draws
    for states, weights in fits:  # each fit sees the draws, with a part of the weight
        at = np.flatnonzero((states[:, None] == drawn[:1]).all(-1).all(-1))
        assert at.size
        assert weights[at].sum() > 0
    on = drawn.mean(1) > 0.5
    assert 0.2 < on.mean() < 0.8  # both phases


def test_pilots_have_streams_of_their_own(scouts: list[Scout], estimate: annealz.Estimate):
    runs = [one.run for one in scouts] + [run for run in estimate.runs if run is not None]
    streams = {(run.seed, run.purpose) for run in runs if run is not None}
    assert len(streams) == len(runs)
    words = ("uniform", "visible-bias", "rough", "fitted", "product")
    assert {seed for seed, purpose in streams if purpose == "pilot"} == {
        derive_seed(3, "base", word) for word in words
    }
    assert {purpose for seed, purpose in streams if seed == 3} == {"anneal", "second", "probe"}


# --- the rule --------------------------------------------------------------------------------


def imagined(log_z: float, cost: float, std_err: float = 0.01) -> Scout:
    """A scout of which only these numbers count."""

    class Imagined(Scout):
        @property
        def cost(self) -> float:
            return cost

    nothing = object()
    return Imagined(nothing, nothing, nothing, log_z, std_err)  # type: ignore[arg-type]  # stands for all


def test_an_easy_named_base_comes_first():
    flat, other = imagined(5.0, 25.0), imagined(5.0, 10.0)
    mixture, product = imagined(5.0, 1.0), imagined(5.0, 2.0)
    assert (
        _first([flat, other], [mixture, product], 100) is flat
    )  # below 0.3 K, and the flatter one
    assert _first([imagined(5.0, 35.0), other], [mixture, product], 100) is other
    assert (
        _first([imagined(4.0, 1.0)], [mixture, product], 100) is mixture
    )  # what misses is not taken
    assert _first([], [mixture, product], 100) is mixture


def test_then_the_mixture_and_then_the_cheapest():
    hard, low = imagined(5.0, 900.0), imagined(3.0, 1.0)
    mixture, product = imagined(5.0, 45.0), imagined(4.99, 30.0)
    assert _first([hard, low], [mixture, product], 100) is mixture  # below K / 2
    dear = imagined(5.0, 80.0)
    assert _first([hard, low], [dear, product], 100) is product
    wide = imagined(5.0, 60.0)
    assert _first([wide], [dear, imagined(5.0, 70.0)], 100) is not wide  # not clearly cheaper
    cheap = imagined(5.0, 100.0)
    assert _first([cheap], [imagined(5.0, 900.0)], 100) is cheap  # clearly


def test_the_second_is_unlike_the_first_and_finds_the_mass():
    flat, low = imagined(5.0, 25.0), imagined(3.0, 1.0)
    mixture, product = imagined(5.0, 1.0), imagined(5.0, 2.0)
    assert _second(flat, [flat, low], [mixture, product], 100) is mixture
    assert _second(mixture, [flat, low], [mixture, product], 100) is flat
    assert _second(mixture, [low], [mixture, product], 100) is product  # the named one misses
    assert _second(mixture, [low, imagined(3.5, 9.0)], [mixture], 100) is not low  # the larger one
    assert _second(mixture, [], [mixture], 100) is None


def test_a_wide_error_excuses_a_low_log_z():
    unsure, best = imagined(3.0, 1.0, 1.0), imagined(5.0, 900.0)
    assert _first([unsure], [best], 100) is unsure
    assert _first([imagined(3.0, 1.0)], [best], 100) is best
    # but not one that a third, sure pilot shows to miss something
    low, vague, sure = imagined(4.0, 1.0, 0.1), imagined(5.0, 900.0, 1.0), imagined(5.0, 950.0)
    assert _first([low], [vague, sure], 100) is vague


def test_a_tenth_of_the_chains_but_enough_to_be_judged():
    assert [second_chains(n) for n in (10, 100, 1000, 4000)] == [10, 100, 100, 400]
    assert [second_chains(n, True) % 2 for n in (100, 1000)] == [0, 0]


def test_the_kind_of_the_annealed_units():
    means = MixtureBase.from_means(np.repeat([[0.3], [0.6]], 12, 1))
    assert isinstance(units_of(FERROMAGNET.path(means)), BernoulliUnits)
    potts = MODELS["potts"]
    assert isinstance(units_of(potts.path(potts.choose_base())), SoftmaxUnits)
    with pytest.raises(ValueError, match="no base can be fitted to the states of a GaussianPath"):
        units_of(GaussianPath(1.0, 2.0))


# --- the front door --------------------------------------------------------------------------


def test_the_front_door_takes_what_was_found(choice: BaseChoice, estimate: annealz.Estimate):
    assert choice.first is not None
    assert estimate.base == "fitted"
    assert estimate.plan.base_digest == choice.first.base.digest
    assert estimate.plan.base_reason == estimate.to_dict()["base_reason"] == choice.reason
    assert estimate.second_opinion is not None
    assert estimate.second_opinion.base == "uniform"
    assert estimate.status is annealz.Status.OK
    assert_within_mc_error(estimate.log_z, EXACT, estimate.std_err)


def test_pilots_are_charged_and_enter_no_weight(choice: BaseChoice, estimate: annealz.Estimate):
    """The run is that from the same base, given by hand."""
    assert choice.first is not None
    problem = choose_problem(FERROMAGNET)
    assert problem.wanted_base is not None
    ready = problem.prepared(3, 200, 100, second_opinion=True)
    assert (ready.cost.sweeps, ready.wanted_base) == (choice.cost.sweeps, None)
    assert ready.second is not None
    assert ready.second.path.base.digest == choice.second.base.digest  # type: ignore[union-attr]  # found above
    schedule = estimate.schedule.provenance["pilot_sweeps"]
    assert estimate.sweeps["pilot"] == choice.cost.sweeps + schedule
    assert choose_problem(FERROMAGNET).prepared(3, 200, 100).second is None
    alone = annealz.estimate_log_z(
        FERROMAGNET, base=choice.first.base, second_opinion=False, seed=3, **SIZE
    )
    np.testing.assert_array_equal(alone.log_weights, estimate.log_weights)
    assert alone.sweeps["pilot"] == schedule


def test_fitted_is_asked_for_by_name(estimate: annealz.Estimate):
    problem = choose_problem(FERROMAGNET, base="fitted")
    assert problem.wanted_base is not None
    known = dataclasses.replace(FERROMAGNET, visible_means=np.full(12, 0.5, np.float32))
    assert choose_problem(known).wanted_base is None  # a base rate is known
    assert choose_problem(known, base="fitted").wanted_base == "fitted"
    assert choose_problem(FERROMAGNET, base="uniform").wanted_base is None
    again = annealz.estimate_log_z(FERROMAGNET, base="fitted", seed=3, **SIZE)
    check_same(again, estimate)


def test_a_given_base_gets_a_second_one():
    given = FERROMAGNET.choose_base("visible-bias")
    options = {"seed": 3, **SIZE}
    found = BaseSearch(FERROMAGNET, "visible", FERROMAGNET.kernel(), **options).second(given)
    assert (found.first, found.reason) == (None, None)
    assert found.second is not None
    assert found.second.name == "uniform"
    assert found.cost.sweeps == sum(one.spent.sweeps for one in found.tried)


@pytest.mark.slow
def test_where_no_other_base_is_named_one_is_fitted():
    """A Potts model without fields names the uniform base alone."""
    model = annealz.Potts.square((2, 4), 3, 0.7)
    assert [*model.named_bases()] == ["uniform"]
    found = BaseSearch(model, "visible", model.kernel(), **SIZE).second(model.flat_base())
    assert found.second is not None
    assert found.second.name == "fitted"
    assert found.cost.sweeps > sum(
        one.spent.sweeps for one in found.tried
    )  # and the pilot it was fitted to


class Ring(annealz.AbstractModel):
    """A model that names no bases."""

    name: str = "ring"

    def log_density(self, x):
        return -0.5 * (x**2).sum(-1)

    def base(self):
        return annealz.GaussianBase.standard(2)

    def kernel(self):
        return annealz.RandomWalk(step_size=0.5)


def test_models_without_named_bases_are_left_alone():
    problem = choose_problem(Ring())
    assert Ring().named_bases() == {}
    assert problem.wanted_base is None
    with pytest.raises(
        ValueError, match="base must be one of auto, or a base itself, got 'fitted'"
    ):
        choose_problem(Ring(), base="fitted")
    ready = dataclasses.replace(problem, kernel=annealz.BlockGibbs())  # which takes no tuning
    ready = ready.prepared(0, 10, 10, second_opinion=True)
    assert (ready.second, ready.base_reason, ready.cost.sweeps) == (None, None, 0)


def test_a_given_path_is_left_alone():
    path = FERROMAGNET.path(FERROMAGNET.flat_base())
    ready = choose_problem(FERROMAGNET, path=path).prepared(0, 10, 10, second_opinion=True)
    assert (ready.second, ready.cost.sweeps) == (None, 0)


# --- the same bits however it is run ---------------------------------------------------------


def test_chunks_change_no_bit(estimate: annealz.Estimate):
    check_same(annealz.estimate_log_z(FERROMAGNET, seed=3, chunk_steps=7, **SIZE), estimate)


@pytest.mark.parametrize("stage", ["second", "probe"])
def test_a_run_stopped_in_its_second_opinion_goes_on(
    stage: str, tmp_path: Path, estimate: annealz.Estimate
):
    with pytest.raises(KeyboardInterrupt):
        annealz.estimate_log_z(
            FERROMAGNET,
            seed=3,
            out=tmp_path / "r",
            chunk_steps=10,
            on_progress=stop_in(stage),
            **SIZE,
        )
    files = {file.name for file in (tmp_path / "r").iterdir()}
    assert "part-forward-1.npz" in files
    assert ("part-second.npz" in files) == (stage == "probe")
    seen = []
    again = annealz.resume(tmp_path / "r", on_progress=seen.append)
    done = {now.stage for now in seen if now.step > 0}  # more than begun
    assert done == ({"second", "probe"} if stage == "second" else {"probe"})
    check_same(again, estimate)
    check_same(annealz.resume(tmp_path / "r"), estimate)  # and read once more


def test_a_run_stopped_as_its_probe_begins_goes_on(tmp_path: Path, estimate: annealz.Estimate):
    with pytest.raises(KeyboardInterrupt):
        annealz.estimate_log_z(
            FERROMAGNET, seed=3, out=tmp_path / "r", on_progress=stop_in("probe", 0), **SIZE
        )
    check_same(annealz.resume(tmp_path / "r"), estimate)


# --- every family ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_family_from_a_base_that_was_found(name: str, seed: int):
    model = MODELS[name]
    found = annealz.estimate_log_z(model, seed=seed, **SIZE)
    assert found.judgement.status is annealz.Status.OK, found.messages
    assert_within_mc_error(found.first_log_z, exact_log_z(model), found.first_std_err)
    second = found.second_opinion  # of ten models one in twenty contradicts by chance
    assert second is not None
    assert_within_mc_error(second.difference, 0, second.difference_std_err)
    assert second.missed < 0.05


@pytest.mark.parametrize(
    ("model", "marginal", "num_units", "kind"),
    [
        (FERROMAGNET, "visible", 12, annealz.BernoulliBase),
        (FERROMAGNET, "hidden", 10, MixtureBase),
        (MODELS["boltzmann"], "visible", None, MixtureBase),  # its units have two states
    ],
)
def test_a_fitted_product_is_a_plain_base_where_there_is_one(model, marginal, num_units, kind):
    """So its programs are those of the named bases; the density is that of the mixture."""
    num_units = num_units or model.flat_base().num_units
    draws = np.random.default_rng(0).integers(0, 2, (60, num_units)).astype(np.float32)
    searcher = BaseSearch(model, marginal, model.kernel(), 0, 100, 10)
    base = searcher.fitted([base_search._Found(draws, np.zeros(60))], "product", most=1)
    assert isinstance(base, kind)
    assert base.name == "fitted-product"
    units = units_of(searcher.path(model.flat_base()))
    mixture = fit_mixture(units, draws, np.full(60, 1 / 60), most=1)
    expected = mixture.log_density(draws)
    np.testing.assert_allclose(base.log_density(draws) - base.log_z, expected, atol=1e-4)

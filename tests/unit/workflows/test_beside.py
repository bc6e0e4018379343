"""Surveys side by side: the same numbers as one after the other, and only where they may."""

import threading

import numpy as np
import pytest

import annealz
from annealz.kernels.gibbs import BlockGibbs
from annealz.kernels.hais import HAIS
from annealz.methods.annealing import ahead
from annealz.pilots import base_search, beside, survey_mixing
from annealz.testing import default_seed

OPTIONS = {"base": "uniform", "num_steps": 400, "num_chains": 100}


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads that go up a path, in the order in which they begin."""
    names, walk = [], survey_mixing._Walk.pass_up

    def pass_up(self, *given):
        names.append(threading.current_thread().name)
        return walk(self, *given)

    monkeypatch.setattr(survey_mixing._Walk, "pass_up", pass_up)
    return names


@pytest.fixture
def beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU."""
    for module in (ahead, base_search):
        monkeypatch.setattr(module, "may_go_beside", lambda kernel, budget, *of: True)


def estimate(**options) -> annealz.Estimate:
    weights = np.random.default_rng(5).normal(0, 0.4, (4, 12))
    model = annealz.RBM(weights, np.zeros(4), np.full(12, -0.5))
    return annealz.estimate_log_z(model, seed=default_seed(), **OPTIONS | options)


def test_no_bit_depends_on_it(threads, request: pytest.FixtureRequest):
    alone = estimate()
    assert set(threads) == {"MainThread"}
    threads.clear()
    request.getfixturevalue("beside_others")
    together = estimate()
    assert any(name.startswith("annealz-ahead") for name in threads)
    assert together.log_z == alone.log_z
    assert together.sweeps == alone.sweeps
    assert np.array_equal(together.schedule.betas, alone.schedule.betas)
    assert together.second_opinion is not None
    assert alone.second_opinion is not None
    assert together.second_opinion.log_z == alone.second_opinion.log_z


def test_seconds_are_counted_once(beside_others, monkeypatch: pytest.MonkeyPatch):
    """Those of a survey that went beside are the ones that were waited for: of one that is done, none."""
    made = ahead.Ahead.terrain
    survey, seen = ahead.survey_mixing, []

    def long(*given, **options):
        return survey_of_an_hour(survey(*given, **options))

    def survey_of_an_hour(terrain):
        object.__setattr__(terrain, "seconds", 3600.0)
        return terrain

    def waited(self):
        terrain = made(self)
        seen.append(terrain.seconds)
        return terrain

    monkeypatch.setattr(ahead, "survey_mixing", long)
    monkeypatch.setattr(ahead.Ahead, "terrain", waited)
    estimate()
    assert 0 <= seen[0] < 3600


def test_what_a_survey_refuses_is_refused(beside_others, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_, **__):
        raise ValueError("the path has a hole.")

    monkeypatch.setattr(ahead, "survey_mixing", refuse)
    with pytest.raises(ValueError, match="the path has a hole"):
        estimate()


def test_only_short_ones_of_layers_on_a_gpu(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(beside, "platform", lambda: "cpu")
    assert not beside.may_go_beside(BlockGibbs(), 1000)
    monkeypatch.setattr(beside, "platform", lambda: "gpu")
    assert beside.may_go_beside(BlockGibbs(), 1000)
    assert not beside.may_go_beside(BlockGibbs(), 10**8)
    assert not beside.may_go_beside(HAIS(), 1000)


def test_functions_of_users_are_called_by_one_thread(monkeypatch: pytest.MonkeyPatch):
    class Own(annealz.RBM):
        pass

    monkeypatch.setattr(beside, "platform", lambda: "gpu")
    ours, weights = annealz.BernoulliBase.uniform(3), np.zeros((2, 3))
    arrays = weights, np.zeros(2), np.zeros(3)
    assert beside.may_go_beside(BlockGibbs(), 1000, annealz.RBM(*arrays), ours)
    assert not beside.may_go_beside(BlockGibbs(), 1000, Own(*arrays), ours)


def test_a_time_limit_keeps_them_in_order(threads, beside_others):
    estimate(max_seconds=60.0)
    assert set(threads) == {"MainThread"}


def test_candidates_go_beside_each_other(threads, beside_others):
    """A base of one's own leaves two to try, each in a thread."""
    base = annealz.BernoulliBase.from_means(np.full(12, 0.3))
    assert estimate(base=base).second_opinion is not None
    assert len({name for name in threads if not name.startswith("annealz-ahead")}) == 2
    assert "MainThread" not in threads

"""What is compiled ahead: the programs that the stages take, each once, and nothing of users."""

import dataclasses
import threading

import numpy as np
import pytest

import annealz
from annealz.core import compilers
from annealz.engine.observers import Slope
from annealz.engine.work import Work
from annealz.methods.annealing import ahead
from annealz.testing import default_seed, random_rbm
from support.compiled_programs import count_compiled

AHEAD = "annealz-ahead"
OPTIONS = {"base": "uniform", "num_steps": 3000, "num_chains": 1000}  # a pilot wider than scouts


def estimate(model, **options) -> annealz.Estimate:
    return annealz.estimate_log_z(model, seed=default_seed(), **OPTIONS | options)


def all_weights(result: annealz.Estimate) -> list[np.ndarray]:
    return [run.log_weights for run in result.runs if run is not None]


@pytest.fixture
def afresh(monkeypatch: pytest.MonkeyPatch) -> set:
    monkeypatch.setattr(compilers, "_asked", asked := set())
    return asked


def test_a_stage_compiles_nothing_itself(afresh):
    """But the first, whose programs nothing could hide; a later call asks for nothing."""
    model, stages = random_rbm(3, 19, 0.2), []  # of a size that no other test compiles
    with count_compiled("MainThread") as own, count_compiled(AHEAD) as others:
        result = estimate(model, on_progress=lambda now: stages.append((now.stage, len(own))))
    assert [run is not None for run in result.runs] == [True, False, True, True]
    programs = sorted(name for name in others if "lambda" not in name)
    survey = ["jit(_at_first)", "jit(_plain)", "jit(sample)"]
    runs = 3 * ["jit(advance)"] + 2 * ["jit(start)"] + ["jit(start_reverse)"]
    assert programs == sorted(survey + runs)  # pilot; run, second opinion and way back
    pilot = next(count for stage, count in stages if stage == "pilot")
    assert pilot == len(own) <= 4  # of the scouts
    assert len(afresh) == 4
    with count_compiled() as more:
        estimate(random_rbm(3, 19, 0.1))
    assert (more, len(afresh)) == ([], 4)


def test_no_bit_depends_on_it(afresh, monkeypatch: pytest.MonkeyPatch):
    model = random_rbm(3, 17, 0.2)
    given = estimate(model)
    monkeypatch.setattr(ahead, "_is_foreseen", lambda *_: False)
    alone = estimate(model)
    assert all(map(np.array_equal, all_weights(given), all_weights(alone)))
    assert given.log_z == alone.log_z


def test_a_stage_makes_what_could_not_be_made(afresh, monkeypatch: pytest.MonkeyPatch):
    def fail(*_):
        raise RuntimeError("no")

    model = random_rbm(3, 17, 0.2)
    given = estimate(model)
    afresh.clear()
    monkeypatch.setattr(Work, "traced_start", fail)
    assert all(map(np.array_equal, all_weights(given), all_weights(estimate(model))))
    assert len(afresh) == 4


DENSITY = {"num_steps": 40, "num_chains": 60}


def curved(scale: float) -> annealz.LogDensity:
    return annealz.LogDensity(lambda x: -scale * (x**2).sum() - 0.1 * (x**4).sum(), dim=7)


def test_populations_and_runs_of_a_density_compile_nothing_themselves(
    afresh, monkeypatch: pytest.MonkeyPatch
):
    """They are traced before the first of them, and compiled in threads; later ones ask for nothing.

    What was asked for is known by its hash, which keeps no function of a user; and no bit depends on it.
    """
    density, stages = curved(1.5), []
    with count_compiled("MainThread") as own, count_compiled(AHEAD) as others:
        result = annealz.estimate_log_z(
            density, **DENSITY, on_progress=lambda now: stages.append((now.stage, len(own)))
        )
    assert [run is not None for run in result.runs] == [True, False, True, True]
    populations = 2 * ["jit(sample)", "jit(_tune)", "jit(_at_one)", "jit(_cooled)"]
    runs = 3 * ["jit(advance)"] + 2 * ["jit(start)"] + ["jit(start_reverse)"]
    assert sorted(others) == sorted(populations + runs)
    before = next(count for stage, count in stages if stage == "run")
    assert not set(runs) & set(own[before:])
    assert not {"jit(_at_one)", "jit(_cooled)"} & set(own)
    assert len(afresh) == 5
    assert all(type(key) is int for key in afresh)
    with count_compiled(AHEAD) as more:
        annealz.estimate_log_z(density, **DENSITY, seed=1)
    assert (more, len(afresh)) == ([], 5)
    monkeypatch.setattr(compilers, "_is_new", lambda _: False)
    alone = annealz.estimate_log_z(curved(1.5), **DENSITY)
    assert all(map(np.array_equal, all_weights(result), all_weights(alone)))


def test_programs_of_unlike_runs_are_told_apart():
    path = annealz.GeometricPath(annealz.BernoulliBase.uniform(6), random_rbm(4, 6))
    given = (path, annealz.BlockGibbs(), {"slope": Slope()}, annealz.linear(100), 100, 0, "", 1)
    work = Work(*given)
    same = {"seed": 1, "purpose": "other", "schedule": annealz.linear(120)}
    assert dataclasses.replace(work, **same).program_key == work.program_key
    for unlike in ({"is_reverse": True}, {"num_chains": 300}, {"resample": 0.5}, {"every": 10}):
        is_equal = dataclasses.replace(work, **unlike).program_key == work.program_key
        assert is_equal == ("every" in unlike), unlike  # rounds are a GPU's


def test_tracing_and_waiting_are_charged(afresh, monkeypatch: pytest.MonkeyPatch):
    wait = compilers.Compilers.wait
    monkeypatch.setattr(compilers.Compilers, "wait", lambda *given: wait(*given) + 1000)
    result = estimate(random_rbm(3, 17, 0.2))
    runs = [run for run in result.runs if run is not None]
    assert [round(run.seconds, -3) for run in runs] == 3 * [1000]
    assert result.seconds > 3000


def test_a_kernel_of_a_user_is_traced_by_one_thread(afresh):
    threads = set()

    class Own(annealz.BlockGibbs):
        def step(self, *given):
            threads.add(threading.current_thread().name)
            return super().step(*given)

    estimate(random_rbm(3, 17, 0.2), kernel=Own())
    assert threads == {"MainThread"}


def test_functions_of_users_are_called_by_one_thread(afresh):
    threads = set()

    def on(v):
        threads.add(threading.current_thread())
        return v

    small = {"num_steps": 100, "num_chains": 100}
    estimate(random_rbm(4, 6), observe={"on": on}, **small)
    density = annealz.LogDensity(lambda x: -0.5 * (on(x) ** 2).sum(), dim=2)
    annealz.estimate_log_z(density, num_steps=50, num_chains=50, seed=default_seed())
    assert {thread.name.startswith(AHEAD) for thread in threads} == {False}


def test_not_where_the_length_is_not_known_before(afresh):
    small = {"base": "uniform", "num_chains": 100}
    annealz.estimate_log_z(random_rbm(4, 6), num_steps=100, max_seconds=60.0, **small)
    assert not afresh

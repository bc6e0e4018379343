"""A time limit and a function of the host: refused at once where pilots alone take longer."""

import time

import numpy as np
import pytest

import annealz
from annealz.core.errors import InputError


def slow(seconds: float, calls: list[int]):
    def function(x) -> float:
        calls.append(1)
        time.sleep(seconds)
        return float(-0.5 * np.square(np.asarray(x)).sum())

    return function


@pytest.mark.parametrize("milliseconds", [1, 10, 100])
def test_a_limit_that_pilots_exceed_is_refused_at_once_with_the_time_that_is_needed(milliseconds):
    calls: list[int] = []
    model = annealz.LogDensity(slow(milliseconds / 1000, calls), 2, "slow")
    with pytest.raises(InputError, match="pilots of slow take about 20,670 evaluations") as error:
        annealz.estimate_log_z(model, max_seconds=5)
    assert error.value.parameter == "max_seconds"
    needed = float(error.value.requirement.rpartition(" ")[2])
    assert needed > 20 * milliseconds  # 1.5 times the evaluations
    assert len(calls) < 10


def test_a_discrete_function_is_timed_too():
    calls: list[int] = []
    model = annealz.DiscreteDensity(slow(0.002, calls), 14, 2, "slow")
    with pytest.raises(InputError, match="pilots of slow take"):
        annealz.estimate_log_z(model, max_seconds=5)
    assert len(calls) < 100


def test_slow_pilots_are_announced_before_they_begin():
    class Stop(Exception):
        pass

    def stop(ahead) -> None:
        assert len(calls) < 10
        raise Stop(str(ahead))

    calls: list[int] = []
    model = annealz.LogDensity(slow(0.01, calls), 2, "slow")
    with pytest.raises(Stop, match="pilots of slow take about 20,670 evaluations of 1"):
        annealz.estimate_log_z(model, on_forecast=stop)


def test_a_quick_function_is_neither_refused_nor_announced(monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(annealz.LogDensity, "seconds_per_evaluation", lambda _: 1e-5)
    model = annealz.LogDensity(slow(0.0, []), 1, "quick")
    options = {"base": "standard", "num_chains": 50, "num_steps": 10}
    estimate = annealz.estimate_log_z(model, max_seconds=60, on_forecast=said.append, **options)
    assert abs(estimate.log_z - 0.5 * np.log(2 * np.pi)) < 6 * estimate.std_err
    assert not said

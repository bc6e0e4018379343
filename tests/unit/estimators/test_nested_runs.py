"""What speaks against runs of nested sampling: each finding from made runs, and none without reason."""

import dataclasses

import numpy as np
import pytest

from annealz.diagnostics.findings import Kind, Remedy
from annealz.diagnostics.nested import judge_nested
from annealz.methods.nested.result import Ending, NestedRun


def a_run(shift: float = 0.0, **changes) -> NestedRun:
    """100 draws of the prior with likelihoods e^shift: log Z is the shift, its error is tiny."""
    deaths = shift + 0.5 * np.linspace(-1, 1, 100)
    run = NestedRun(
        x=np.zeros((100, 2), np.float32),
        deaths=deaths,
        births=np.full(100, np.nan),
        num_live=100,
        ending=Ending.DONE,
        top=-np.inf,
        share_left=0.0,
        evaluations=1000,
        num_slices=10_000,
        num_failed=0,
        num_nan=0,
        seconds=0.0,
    )
    return dataclasses.replace(run, **changes)


def judged(*runs: NestedRun):
    return judge_nested(runs, num_inner_steps=10, limit=5000)


def test_runs_that_agree_are_ok():
    found = judged(a_run(), a_run(0.01), a_run(-0.01))
    assert not found.findings
    assert found.std_err == found.merged.std_err
    assert not judged(a_run()).findings  # one run has nothing to contradict it


def test_runs_that_disagree_are_not():
    found = judged(a_run(), a_run(), a_run(1.0))
    assert [*found.findings] == [Kind.RUNS_DISAGREE]
    assert found.findings[Kind.RUNS_DISAGREE].remedy == Remedy(num_live=600, num_inner_steps=20)
    assert found.findings[Kind.RUNS_DISAGREE].numbers["spread"] == pytest.approx(1, abs=0.01)


def test_the_error_grows_with_the_spread_of_the_runs():
    error = judged(a_run()).std_err
    near = judged(a_run(-1.5 * error), a_run(), a_run(1.5 * error))  # Q = 4.5, the median is 1.39
    assert not near.findings
    assert near.std_err / near.merged.std_err == pytest.approx(1.8, rel=0.1)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"ending": Ending.OUT_OF_EVALUATIONS, "share_left": 0.5}, Kind.OUT_OF_EVALUATIONS),
        ({"ending": Ending.UNRESOLVED}, Kind.STILL_RISING),
        ({"top": 3.0}, Kind.UNREACHED_PEAK),
        ({"num_failed": 100}, Kind.FAILED_SLICES),
        ({"num_nan": 1}, Kind.NAN_LIKELIHOOD),
    ],
)
def test_a_run_that_went_wrong_is_fatal(changes, kind: Kind):
    found = judged(a_run(), a_run(**changes))
    assert [*found.findings] == [kind]
    assert kind.is_fatal


def test_a_plateau_and_a_few_failed_slices_are_not():
    assert not judged(a_run(ending=Ending.PLATEAU), a_run(num_failed=1)).findings

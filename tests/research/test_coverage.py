"""Do the intervals mean what they say: the study's page, its problems, and a smaller form of it."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from annealz.models.exact import exact_log_z, exact_samples
from annealz.testing import log_joint
from cases import AGAIN, CASES, two_modes
from cover import judge_all, run_case
from coverage_verdicts import Outcome, summarise, write_page
from support.places import ROOT

BY_NAME = {case.name: case for case in CASES}


FOLDER = ROOT / "studies" / "coverage"


def test_the_page_is_that_of_the_committed_results(tmp_path: Path):
    for name in ("README.md", "coverage.csv"):
        shutil.copy(FOLDER / name, tmp_path)
    found, again = (
        [Outcome.load(FOLDER / "results" / f"{case.name}.npz") for case in cases]
        for cases in (CASES, AGAIN)
    )
    write_page(tmp_path, found, again)
    for name in ("README.md", "coverage.csv"):
        assert (tmp_path / name).read_text() == (FOLDER / name).read_text()


def test_the_modes_are_as_said():
    """d = 3: all ones e^3 times as heavy as all zeros, and next to nothing between."""
    model = two_modes(0.8)
    visible, _ = exact_samples(model, 20_000, 0)
    heavy = visible.mean(1) > 0.5
    expected = 1 / (1 + np.exp(-3))
    assert abs(heavy.mean() - expected) < 5 * np.sqrt(expected * (1 - expected) / 20_000)
    assert (np.abs(visible.mean(1) - 0.5) < 0.1).mean() < 0.01
    small = two_modes(0.8, num_hidden=3, num_visible=4)
    assert exact_log_z(small) == pytest.approx(np.logaddexp.reduce(log_joint(small), axis=None))


SMALL = ("rbm-medium", "rbm-strong", "gaussian", "rbm-glass", "rbm-barrier")
NUM_SEEDS = 60


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    found = {}
    for name in SMALL:
        target, weights = run_case(BY_NAME[name], NUM_SEEDS, 20)
        found[name] = judge_all(BY_NAME[name], target, weights)
    return found


@pytest.mark.slow
class TestSmallerForm:
    """Sixty seeds of the cheap models; `make coverage` shows the whole study."""

    @pytest.mark.parametrize("name", ["rbm-medium", "rbm-strong", "gaussian"])
    def test_ok_runs_cover(self, outcomes: dict[str, Outcome], name: str):
        """A true coverage of 0.92 gives so few hits once in a thousand."""
        covered = summarise(outcomes[name]).covered
        assert covered.size >= NUM_SEEDS // 3
        assert covered.hits >= stats.binom.ppf(1e-3, covered.size, 0.92)

    @pytest.mark.parametrize("name", ["rbm-glass", "rbm-barrier"])
    def test_runs_that_are_far_off_are_not_ok(self, outcomes: dict[str, Outcome], name: str):
        warned = summarise(outcomes[name]).warned
        assert warned.size >= 5
        assert warned.hits >= stats.binom.ppf(1e-3, warned.size, 0.9)

    @pytest.mark.parametrize("name", SMALL)
    def test_two_sides_cover(self, outcomes: dict[str, Outcome], name: str):
        covered = summarise(outcomes[name]).bar_covered
        assert covered.size == 0 or covered.hits >= stats.binom.ppf(1e-3, covered.size, 0.92)

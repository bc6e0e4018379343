"""Do the intervals mean what they say: the study's statistics, and a smaller form of it."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from annealz.models.exact import exact_log_z, exact_samples
from annealz.testing import log_joint
from cases import CASES, two_modes
from cover import judge_all, run_case
from coverage_verdicts import (
    COLUMNS,
    Outcome,
    Share,
    as_csv,
    coverage_table,
    far_table,
    fill,
    messages_table,
    summarise,
    two_sided_table,
    verdicts,
    write_page,
)

FACTS = {
    "name": "made-up",
    "what": "numbers",
    "num_steps": 100,
    "num_chains": 50,
    "schedule": "linear",
    "is_hard": True,
    "log_z": 1.5,
    "seed": 0,
}


def made_up(errors, half=0.2, is_ok=True, bar=None, **facts) -> Outcome:
    """Runs with these errors and intervals of this half width."""
    errors = np.asarray(errors, float)
    columns = {
        "error": errors,
        "std_err": half / 2,
        "low": errors - half,
        "high": errors + half,
        "low_68": errors - half / 2,
        "high_68": errors + half / 2,
        "ess": 40.0,
        "variance": 1.0,
        "pareto_k": 0.3,
        "is_ok": is_ok,
    }
    if bar is not None:
        bar = np.asarray(bar, float)
        columns |= {"bar_error": bar, "bar_std_err": 0.1, "bar_low": bar - 0.2, "bar_high": bar + 0.2,
                    "bar_is_ok": True}  # fmt: skip
    rows = [np.broadcast_to(columns.get(name, np.nan), errors.shape) for name in COLUMNS]
    return Outcome(np.array(rows, float).T, [["WIDE_WEIGHTS"]] * errors.size, FACTS | facts)


class TestShare:
    def test_clopper_pearson(self):
        low, high = Share(190, 200).interval()
        assert stats.binom.sf(189, 200, low) == pytest.approx(0.025)
        assert stats.binom.cdf(190, 200, high) == pytest.approx(0.025)

    def test_at_the_ends(self):
        assert Share(0, 10).interval()[0] == 0
        assert Share(10, 10).interval()[1] == 1
        assert str(Share(0, 0)) == Share(0, 0).with_interval == "–"


class TestSummary:
    def test_counts(self):
        errors = [0.0, 0.15, -0.3, 0.3, -2.0, -2.0]
        is_ok = [True, True, True, True, True, False]
        found = summarise(made_up(errors, is_ok=is_ok))
        assert (found.ok.hits, found.ok.size) == (5, 6)
        assert (found.covered.hits, found.covered.size) == (2, 5)
        assert found.covered_68.hits == 1
        assert found.covered_all.size == 6
        assert found.missed_low == 2
        assert (found.warned.hits, found.warned.size) == (1, 2)
        assert found.bias == pytest.approx(np.mean(errors))
        assert found.rms == pytest.approx(np.sqrt(np.mean(np.square(errors))))

    def test_no_ok_run_has_no_coverage(self):
        found = summarise(made_up([0.0, 0.1], is_ok=False))
        assert found.is_calibrated is None
        assert found.is_warned is None

    @pytest.mark.parametrize(
        ("hits", "holds"), [(91, False), (92, True), (95, True), (98, True), (99, False)]
    )
    def test_bounds_are_literal(self, hits: int, holds: bool):
        found = summarise(made_up([0.0] * hits + [0.5] * (100 - hits)))
        assert found.is_calibrated is holds

    @pytest.mark.parametrize(("warned", "holds"), [(89, False), (90, True)])
    def test_warning_bound_is_literal(self, warned: int, holds: bool):
        is_ok = np.arange(100) >= warned
        assert summarise(made_up([-3.0] * 100, is_ok=is_ok)).is_warned is holds

    def test_two_sides(self):
        found = summarise(made_up([-3.0, -3.0, 0.0], bar=[0.1, np.nan, 1.3]))
        assert (found.bar_ok.hits, found.bar_ok.size) == (2, 2)
        assert (found.bar_covered.hits, found.bar_covered.size) == (1, 2)
        assert (found.caught.hits, found.caught.size) == (1, 1)


class TestPage:
    def test_one_bad_model_breaks_the_verdict(self):
        good, bad = made_up([0.0] * 95 + [0.5] * 5, name="good"), made_up([0.5] * 10, name="bad")
        both = [good, bad]
        assert "**does not hold**" in verdicts(both, [summarise(o) for o in both])
        assert "bad (0.0 % of 10)" in verdicts(both, [summarise(o) for o in both])
        alone = verdicts([good], [summarise(good)])
        assert alone.count("**holds**") == 2

    def test_silent_failures_break_the_verdict(self):
        outcome = made_up([-3.0] * 10, name="silent")
        text = verdicts([outcome], [summarise(outcome)])
        assert "silent (0.0 % of 10)" in text
        assert "**holds**" not in text

    def test_tables_have_a_row_a_model(self):
        outcomes = [made_up([0.0, -2.0], bar=[0.0, 0.1], name=name) for name in ("a", "b")]
        summaries = [summarise(o) for o in outcomes]
        for table in (coverage_table, far_table, two_sided_table):
            lines = table(outcomes, summaries).splitlines()
            assert len({line.count("|") for line in lines}) == 1
            assert len(lines) == 4
        assert "| a | 2 |" in messages_table(outcomes)
        header, *rows = as_csv(outcomes, summaries).splitlines()
        assert len(rows) == 2
        assert all(row.count(",") == header.count(",") for row in rows)

    def test_blocks_are_filled_and_the_rest_is_kept(self, tmp_path: Path):
        page = tmp_path / "README.md"
        page.write_text("by hand\n<!-- begin far -->\nstale\n<!-- end far -->\n")
        write_page(tmp_path, [made_up([0.0, -2.0])])
        text = page.read_text()
        assert text.startswith("by hand\n<!-- begin far -->")
        assert "stale" not in text
        assert "made-up" in text
        assert fill(text, {}) == text

    def test_results_come_back(self, tmp_path: Path):
        outcome = made_up([0.0, -2.0], bar=[0.0, np.nan])
        outcome.save(tmp_path / "a.npz")
        again = Outcome.load(tmp_path / "a.npz")
        np.testing.assert_array_equal(again.rows, outcome.rows)
        assert (again.messages, again.facts) == (outcome.messages, outcome.facts)


BY_NAME = {case.name: case for case in CASES}


class TestRuns:
    def test_an_interrupted_study_goes_on_to_the_same_numbers(self, tmp_path: Path):
        case, file = BY_NAME["rbm-easy"], tmp_path / "weights.npz"
        target, whole = run_case(case, 4, 2)
        run_case(case, 2, 0, file)
        _, resumed = run_case(case, 4, 2, file)
        np.testing.assert_array_equal(whole.forward, resumed.forward)
        np.testing.assert_array_equal(whole.reverse, resumed.reverse)
        outcome = judge_all(case, target, whole)
        assert outcome.rows.shape == (4, len(COLUMNS))
        assert np.isfinite(outcome["bar_error"]).tolist() == [True, True, False, False]
        assert (np.abs(outcome["error"]) < 6 * outcome["std_err"]).all()

    def test_weights_of_other_settings_are_refused(self, tmp_path: Path):
        file = tmp_path / "weights.npz"
        run_case(BY_NAME["rbm-easy"], 1, 0, file)
        with pytest.raises(ValueError, match="other settings"):
            run_case(BY_NAME["gaussian"], 1, 0, file)

    def test_the_modes_are_as_said(self):
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

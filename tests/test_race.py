"""The race of schedules: its batch engine, its cells, its statistics and its committed page."""

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest

import caught
import charts
import race
import significance
import standings
import verdicts
from annealz.anneal import anneal
from annealz.bases.choose import choose_base
from annealz.estimators import effective_sample_size, log_mean
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.rbm import RBM
from annealz.paths.geometric import GeometricPath
from annealz.schedules.linear import linear
from annealz.schedules.schedule import Schedule
from annealz.schedules.sm08 import sm08
from batch import anneal_batch
from outcome import MEASURES, Outcome
from race import COLUMNS, MODELS, SCHEDULES, Key
from significance import holm, larger_p, mean_ratio

FOLDER = Path(__file__).parents[1] / "studies" / "schedules"


@pytest.fixture(scope="module")
def path() -> GeometricPath:
    generator = np.random.default_rng(0)
    rbm = RBM(generator.normal(size=(4, 6)), generator.normal(size=4), generator.normal(size=6))
    return GeometricPath(choose_base(rbm, "uniform", None), rbm)


def _outcome(num_replicates: int = 20, seed: int = 0) -> Outcome:
    """Made-up results of all cells: every schedule alike."""
    generator = np.random.default_rng(seed)
    exact = {name: 100.0 if name.endswith("-20") else None for name in MODELS}
    record = {"exact_log_z": exact, "device": "none", "jax": "0", "seed": 0, "num_chains": 1000}
    cells, curves = {}, {}
    for key in race.wanted(MODELS, race.NUM_STEPS):
        log_weights = 100 + generator.normal(-0.125, 0.5, (num_replicates, 1000))
        cells[key] = np.array([_row(w) for w in log_weights])
        if key.num_steps == max(race.NUM_STEPS):
            curves[key] = np.tile(np.linspace(0, 1, 101), (num_replicates, 1))
    return Outcome({**record, "num_replicates": num_replicates}, cells, curves)


def _row(w: np.ndarray) -> list[float]:
    return [log_mean(w), effective_sample_size(w), w.mean(), w.var()]


@pytest.fixture(scope="module")
def alike() -> Outcome:
    return _outcome()


class TestBatch:
    def test_same_bits_as_the_engine(self, path):
        schedules = [linear(700), sm08(700)]
        betas = np.stack([schedule.betas for schedule in schedules])
        found = anneal_batch(path, BlockGibbs(), betas, num_chains=16, seed=3, purpose="race")
        # rows of a batch are chains 0-15 and 16-31 of one run
        for row, schedule in enumerate(schedules):
            run = anneal(path, BlockGibbs(), schedule, num_chains=32, seed=3, purpose="race")
            np.testing.assert_array_equal(found[row], run.log_weights[16 * row : 16 * (row + 1)])


class TestCells:
    def test_cost_is_that_of_the_cell(self):
        for key in race.wanted(MODELS, race.NUM_STEPS):
            pilot, scale = race.pilot_of(key)
            assert 0 <= pilot <= 0.12 * key.num_steps * race.NUM_CHAINS
            assert scale == 1.0 or key.schedule == "gms13"

    def test_every_schedule_runs(self, path, monkeypatch, tmp_path):
        monkeypatch.setattr(race, "make_path", lambda *_: path)
        race.survey_once.cache_clear()
        try:
            for name in SCHEDULES:
                key = Key("small", "uniform", name, 1000)
                files = [
                    _Done(race.survey_cell(key, r, tmp_path / f"{r}.npz"))
                    for r in range(2)
                    if name == "mixing"
                ]
                betas = race.schedules_of(key, path, 2, files)
                sweeps = race.pilot_of(key)[0] + (betas.shape[1] - 1) * race.NUM_CHAINS
                assert key.num_steps * race.NUM_CHAINS - race.NUM_CHAINS < sweeps
                assert sweeps <= key.num_steps * race.NUM_CHAINS
                for row in betas:
                    Schedule(row)  # refuses what is none
            monkeypatch.setattr(race, "NUM_CHAINS", 40)
            rows = race.run_cell(key, path, betas)
            assert rows.shape == (2, len(COLUMNS))
            assert np.isfinite(rows).all()
        finally:
            race.survey_once.cache_clear()


class _Done:
    """A future whose result is there."""

    def __init__(self, value):
        self._value = value

    def result(self):
        return self._value


@pytest.fixture
def few_permutations(monkeypatch):
    monkeypatch.setattr(significance, "_NUM_PERMUTATIONS", 10_000)


@pytest.mark.usefixtures("few_permutations")
class TestSignificance:
    def test_level_is_kept_on_skewed_samples(self):
        generator = np.random.default_rng(1)
        squares = generator.normal(size=(2, 400, 20)) ** 2
        p = np.array([larger_p(x, y[None])[0] for x, y in zip(*squares, strict=True)])
        assert 5 <= (p < 0.05).sum() <= 38  # of 400, five standard deviations about 20

    def test_direction_and_power(self):
        generator = np.random.default_rng(2)
        x, y = generator.normal(2, 1, 20), generator.normal(0, 1, 20)
        assert larger_p(x, y[None])[0] < 1e-3
        assert larger_p(y, x[None])[0] > 0.999
        assert larger_p(np.ones(20), np.ones((1, 20)))[0] == 1.0

    def test_holm(self):
        np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03])), [0.03, 0.06, 0.06])
        np.testing.assert_allclose(holm(np.array([0.9, 0.8])), [1.0, 1.0])

    def test_ratio_covers(self):
        generator = np.random.default_rng(3)
        ratios = [
            mean_ratio(generator.normal(1, 0.1, 20), generator.normal(2, 0.3, 20))
            for _ in range(400)
        ]
        covered = sum(r.low <= 0.5 <= r.high for r in ratios)
        assert 358 <= covered <= 398  # five standard deviations about 380


@pytest.mark.usefixtures("few_permutations")
class TestVerdicts:
    @pytest.mark.parametrize("measure", MEASURES)
    def test_equal_schedules_are_not_worse(self, alike, measure):
        found = verdicts.compare(alike, measure)
        assert len(found) == (9 if measure == "mse" else 18)
        assert all(c.p_all > 0.001 for c in found)  # the best of seven is picked; this is not

    @pytest.mark.parametrize(
        ("measure", "column", "change"),
        [
            ("mse", "log_z", 0.2),
            ("dissipation", "mean", -0.2),
            ("variance", "variance", 0.1),
            ("ess", "ess", -100),
        ],
    )
    def test_a_planted_worse_cell_is_found(self, measure, column, change):
        outcome, key = _outcome(), Key("mnist-cd1-20", "base-rate", "mixing", 10_000)
        outcome.cells[key][:, COLUMNS.index(column)] += change
        found = verdicts.compare(outcome, measure)
        assert [c.key for c in found if c.p_all < 0.05] == [key]
        assert key in [c.key for c in found if c.is_worse]
        if measure == "variance":
            told = verdicts.blocks(outcome)
            assert "**Does not hold**" in told["verdicts"].splitlines()[0]
            assert "CD1(20) K = 10,000" in told["worse"]

    def test_ratios_are_judged(self):
        outcome = _outcome()
        for model in ("mnist-cd25-20", "mnist-pcd-500", "mnist-cd25-500"):
            outcome.cells[Key(model, "base-rate", "mixing", 100_000)][:, 3] *= 0.4
        lines = verdicts.blocks(outcome)["verdicts"].splitlines()
        assert "**Holds**" in lines[1]
        assert "**Does not hold on CD25(20), PCD(500), CD25(500)**" in lines[2]
        outcome.cells[Key("mnist-cd25-500", "base-rate", "mixing", 100_000)][:, 3] *= 2
        assert "**Does not hold**" in verdicts.blocks(outcome)["verdicts"].splitlines()[1]

    def test_collapse_of_mixing_would_be_told(self):
        outcome = _outcome()
        for name in ("varopt", "mixing"):
            outcome.cells[Key("mnist-pcd-20", "uniform", name, 10_000)][:, 1] = 5.0
        lines = verdicts.blocks(outcome)["uniform-verdict"].splitlines()
        assert all("**does not hold**" in line for line in lines[:2])


class TestOutcome:
    def test_reference_is_the_mean_of_z(self, alike):
        truth = alike.truth("mnist-pcd-500")
        assert not truth.is_exact
        assert abs(truth.log_z - 100) < 5 * truth.std_err < 0.02
        assert alike.truth("mnist-pcd-20") == (100.0, 0.0, True)

    def test_csv_of_one_cell(self, alike):
        rows = list(csv.DictReader(io.StringIO(standings.standings_csv(alike))))
        assert len(rows) == len(alike.cells)
        row, (key, values) = rows[0], next(iter(alike.cells.items()))
        assert row["schedule"] == key.schedule
        errors = values[:, 0] - 100
        expected = {
            "mse": (errors**2).mean(),
            "mse_std_err": (errors**2).std(ddof=1) / np.sqrt(20),
            "bias": errors.mean(),
            "dissipation": 100 - values[:, 2].mean(),
            "variance": values[:, 3].mean(),
            "ess": values[:, 1].mean(),
        }
        for name, value in expected.items():
            assert float(row[name]) == pytest.approx(value, rel=1e-4), name

    def test_charts_are_drawn(self, alike):
        figures = charts.draw_charts(alike)
        assert figures
        for figure in figures.values():
            assert all(axes.has_data() for axes in figure.axes if axes.get_visible())
            figure.savefig(io.BytesIO(), dpi=20)


def test_split_of_the_variance_by_clusters():
    log_weights = np.concatenate([np.full(60, -9.0), np.zeros(40)])
    between, chains, held = caught.split(log_weights, np.repeat([0, 1], [60, 40]))
    assert between == pytest.approx(1)
    assert chains == pytest.approx(0.6)
    assert held < 1e-3
    assert caught.split(log_weights, np.arange(100) % 2)[0] < 0.1


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return Outcome.load(FOLDER / "results" / "results.npz")


class TestCommitted:
    def test_is_complete(self, outcome):
        assert set(outcome.cells) == set(race.wanted(MODELS, race.NUM_STEPS))
        for rows in outcome.cells.values():
            assert rows.shape == (race.NUM_REPLICATES, len(COLUMNS))
            assert np.isfinite(rows).all()

    def test_standings_and_page_are_of_the_results(self, outcome):
        text = (FOLDER / "results" / "standings.csv").read_text("utf-8")
        assert text == standings.standings_csv(outcome)
        page = (FOLDER / "README.md").read_text("utf-8")
        assert standings.fill(page, verdicts.blocks(outcome)) == page

    def test_links_of_the_page_lead_somewhere(self):
        page = (FOLDER / "README.md").read_text("utf-8")
        links = [x for x in re.findall(r"\]\(([^)#]+)\)", page) if "://" not in x]
        assert links
        for link in links:
            assert (FOLDER / link).exists(), link

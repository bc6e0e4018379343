"""The race of schedules: its batch engine, its cells and its committed page."""

import re

import numpy as np
import pytest

import race
import standings
import verdicts
from annealz.engine.anneal import anneal
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.rbm import RBM
from annealz.paths.geometric import GeometricPath
from annealz.schedules.rules import linear, sm08
from batch import anneal_batch
from outcome import Outcome
from race import COLUMNS, MODELS
from support.places import ROOT

FOLDER = ROOT / "studies" / "schedules"


@pytest.fixture(scope="module")
def path() -> GeometricPath:
    generator = np.random.default_rng(0)
    rbm = RBM(generator.normal(size=(4, 6)), generator.normal(size=4), generator.normal(size=6))
    return GeometricPath(rbm.choose_base("uniform"), rbm)


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

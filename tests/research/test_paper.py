"""The reproduction of Kiwaki (2015): its raw file, tables and page."""

import re

import numpy as np
import pytest

import page
import tables
from results import Results
from settings import PRESETS, SCHEDULES
from support.places import ROOT

FOLDER = ROOT / "papers" / "kiwaki2015"


FULL = FOLDER / "full"
needs_full = pytest.mark.skipif(not (FULL / "runs.npz").exists(), reason="no full run yet")


@pytest.fixture(scope="module")
def full() -> Results:
    return Results.load(FULL / "runs.npz")


@needs_full
class TestCommitted:
    def test_is_complete(self, full):
        preset = PRESETS["full"]
        assert len(full.cells) == (
            len(preset.models) * len(preset.bases) * len(SCHEDULES) * len(preset.num_steps)
        )
        for cell in full.cells.values():
            assert len(cell.rows) == preset.num_replicates >= 5
            assert np.isfinite(cell["log_z"]).all()

    def test_tables_are_of_the_raw_file(self, full):
        for name, sheet in tables.sheets(full).items():
            assert (FULL / "tables" / f"{name}.csv").read_text("utf-8") == sheet.csv(), name
            if name != "runs":
                assert (FULL / "tables" / f"{name}.md").read_text("utf-8") == sheet.markdown(), name

    def test_page_is_of_the_raw_file(self, full):
        text = (FOLDER / "README.md").read_text("utf-8")
        blocks = page.blocks(full, FULL)
        assert page.fill(text, blocks) == text
        assert set(re.findall(r"<!-- begin ([\w-]+) -->", text)) <= set(blocks)

    def test_links_of_the_page_lead_somewhere(self):
        text = (FOLDER / "README.md").read_text("utf-8")
        links = [x for x in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in x]
        assert links
        for link in links:
            assert (FOLDER / link).exists(), link

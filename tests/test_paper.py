"""The reproduction of Kiwaki (2015): the sweep, its raw file, tables, figures and page."""

import csv
import dataclasses
import io
import re
from pathlib import Path

import numpy as np
import pytest

import figures
import page
import tables
from annealz.diagnostics import judge
from annealz.estimators import delta_std_err, effective_sample_size, log_mean
from annealz.formats.npz import save_rbm
from annealz.models.rbm import RBM
from pooled import pool
from published import PUBLISHED
from results import COLUMNS, Cell, Key, Results
from settings import MODELS, PRESETS, SCHEDULES, SIZES, Preset, model_label
from sheet import Column, Sheet
from sweep import sweep

FOLDER = Path(__file__).parents[1] / "papers" / "kiwaki2015"


def _rbm(seed: int = 0) -> RBM:
    generator = np.random.default_rng(seed)
    return RBM(generator.normal(size=(3, 5)), generator.normal(size=3), generator.normal(size=5))


@pytest.fixture
def preset(tmp_path) -> Preset:
    file = tmp_path / "small.npz"
    save_rbm(file, _rbm())
    return Preset(
        models=(str(file),),
        bases=("uniform",),
        num_steps=(340, 400),  # from 334 on a largest step of 0.003 reaches 1
        num_replicates=2,
        knot_updates=12,
        num_chains=30,
        pilot_steps=40,
        pilot_chains=20,
        num_knots=3,
        knot_chains=20,
    )


def _results(num_replicates: int = 3, num_chains: int = 200, bases=("base-rate", "uniform")):
    """Made-up results of all models, and the log weights that they were made of."""
    generator = np.random.default_rng(1)
    record = {
        "settings": {"num_chains": num_chains, "bases": list(bases)},
        "versions": {"annealz": "0", "device": "none"},
        "models": {
            name: {"digest": f"{name:>064}", "exact_log_z": 100.0 if name in SIZES[20] else None}
            for name in MODELS
        },
    }
    results, weights = Results(record, {}, {}), {}
    for model in MODELS:
        for base in bases:
            betas = np.linspace(0, 1, 50)
            results.set_curve("terrain", model, base, values=np.stack([betas, 1 + betas]))
            for schedule in SCHEDULES:
                results.set_curve("schedule", model, base, schedule, values=betas)
                for num_steps in (1000, 10_000):
                    key = Key(model, base, schedule, num_steps)
                    logs = generator.normal(0, 0.5, (num_replicates, num_chains))
                    weights[key] = 100 + logs - 0.125
                    rows = [_row(replicate) for replicate in weights[key]]
                    trace = np.stack([betas[1:], 1 - betas[1:]]).astype(np.float32)
                    results.cells[key] = Cell(np.array(rows), trace, 1.0)
    return results, weights


def _row(log_weights: np.ndarray) -> list[float]:
    judged = judge(log_weights)
    low, high = judged.interval()
    numbers = {
        "log_z": judged.log_mean,
        "std_err": judged.std_err,
        "low": low,
        "high": high,
        "ess": judged.ess,
        "mean": log_weights.mean(),
        "variance": judged.variance,
        "pareto_k": judged.pareto_k,
        "is_ok": judged.status.value == "ok",
    }
    return [float(numbers[name]) for name in COLUMNS]


def _rows(sheet: Sheet) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(sheet.csv())))


def _same(left: Results, right: Results) -> None:
    assert left.record == right.record
    assert left.cells.keys() == right.cells.keys()
    for key, cell in left.cells.items():
        np.testing.assert_array_equal(cell.rows, right.cells[key].rows)
        np.testing.assert_array_equal(cell.trace, right.cells[key].trace)
    assert left.curves.keys() == right.curves.keys()
    for name, values in left.curves.items():
        np.testing.assert_array_equal(values, right.curves[name])


def _interrupt_after(num_cells: int):
    """A reporter that is interrupted in the cell after these."""
    labels = set()

    def report(label, _):
        labels.add(label)
        if len(labels) > num_cells:
            raise KeyboardInterrupt

    return report


class TestResults:
    def test_round_trip(self, tmp_path):
        results, _ = _results()
        results.save(tmp_path / "runs.npz")
        loaded = Results.load(tmp_path / "runs.npz")
        _same(results, loaded)
        assert next(iter(loaded.cells.values())).seconds == 1.0

    def test_round_trip_of_nothing(self, tmp_path):
        Results({"settings": {}}, {}, {}).save(tmp_path / "runs.npz")
        assert Results.load(tmp_path / "runs.npz").cells == {}


class TestSweep:
    def test_interrupted_and_continued_gives_the_same(self, preset, tmp_path):
        whole = sweep(preset, tmp_path / "whole.npz")
        assert len(whole.cells) == len(SCHEDULES) * len(preset.num_steps)
        for cell in whole.cells.values():
            assert cell.rows.shape == (preset.num_replicates, len(COLUMNS))
            assert np.isfinite(cell["log_z"]).all()

        with pytest.raises(KeyboardInterrupt):
            sweep(preset, tmp_path / "parts.npz", _interrupt_after(4))
        assert len(Results.load(tmp_path / "parts.npz").cells) == 4
        continued = set()
        parts = sweep(preset, tmp_path / "parts.npz", lambda label, _: continued.add(label))
        assert len(continued) == len(whole.cells) - 4
        reloaded = Results.load(tmp_path / "whole.npz")  # its record as JSON keeps it
        _same(dataclasses.replace(reloaded, cells=whole.cells), parts)

        def fail(label, _):
            raise AssertionError(f"{label} was run again")

        _same(sweep(preset, tmp_path / "parts.npz", fail), parts)

        other = dataclasses.replace(preset, seed=1)
        with pytest.raises(ValueError, match="other settings"):
            sweep(other, tmp_path / "parts.npz")

    def test_another_model_of_the_same_name_is_refused(self, preset, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            sweep(preset, tmp_path / "runs.npz", _interrupt_after(1))
        save_rbm(preset.models[0], _rbm(seed=1))
        with pytest.raises(ValueError, match="another"):
            sweep(preset, tmp_path / "runs.npz")


class TestPooled:
    def test_is_one_run_of_all_chains(self):
        results, weights = _results()
        for key in list(results.cells)[:20]:
            pooled, all_weights = pool(results.cells[key], results.num_chains), weights[key].ravel()
            assert pooled.log_z == pytest.approx(log_mean(all_weights), abs=1e-12)
            assert pooled.std_err == pytest.approx(delta_std_err(all_weights), rel=1e-9)

    def test_one_replicate_is_itself(self):
        results, _ = _results(num_replicates=1)
        cell = next(iter(results.cells.values()))
        pooled = pool(cell, results.num_chains)
        assert pooled.log_z == pytest.approx(cell["log_z"][0])
        assert pooled.std_err == pytest.approx(cell["std_err"][0])


class TestTables:
    def test_estimates_of_one_cell(self):
        results, weights = _results()
        sheets = tables.sheets(results)
        row = _rows(sheets["table-1-base-rate"])[8]
        key = Key("mnist-cd1-20", "base-rate", "varopt-0.009", 10_000)
        assert (row["model"], row["schedule"]) == ("CD1(20)", "VAROPT0.009")
        logs = weights[key]
        ess = [effective_sample_size(replicate) for replicate in logs]
        expected = {
            "log_z": np.log(np.exp(logs).mean()),
            "std_err": np.exp(logs).std() / np.exp(logs).mean() / np.sqrt(logs.size),
            "off": np.log(np.exp(logs).mean()) - 100,
            "ess_median": sorted(ess)[1],
            "ess_min": min(ess),
            "ess_max": max(ess),
            "variance": np.mean([replicate.var() for replicate in logs]),
            "paper_log_z": PUBLISHED["mnist-cd1-20", "varopt-0.009"].log_z,
            "paper_ess": 814,
        }
        for name, value in expected.items():
            assert float(row[name]) == pytest.approx(value, abs=6e-4), name
        assert "paper_ess" not in _rows(sheets["table-1-uniform"])[0]
        assert "off" not in _rows(sheets["table-2-base-rate"])[0]

    def test_order_is_the_papers(self):
        rows = _rows(tables.sheets(_results()[0])["table-2-base-rate"])
        assert [row["model"] for row in rows[:: len(SCHEDULES)]] == list(
            map(model_label, SIZES[500])
        )
        assert [row["schedule"] for row in rows[:3]] == ["VAROPT", "VAROPT0.009", "VAROPT0.006"]

    def test_agreement_counts(self):
        results, _ = _results(num_replicates=4)
        key = Key("mnist-pcd-20", "base-rate", "varopt", 10_000)
        rows = np.zeros((4, len(COLUMNS)))
        for name, values in {
            "log_z": [100.1, 99.9, 100.5, 99.0],
            "std_err": [0.1, 0.05, 0.1, 0.1],
            "low": [99.9, 99.8, 100.3, 98.8],
            "high": [100.3, 99.99, 100.7, 101.0],
            "ess": [50] * 4,
            "is_ok": [1, 1, 0, 0],
        }.items():
            rows[:, COLUMNS.index(name)] = values
        results.cells[key] = dataclasses.replace(results.cells[key], rows=rows)
        row = _rows(tables.agreement(results, "base-rate"))[0]
        assert row["num_ok"] == "2"
        assert row["num_covered_ok"] == "1"
        assert float(row["largest_z_ok"]) == pytest.approx(2.0)
        assert row["num_covered_not_ok"] == "1"
        assert float(row["largest_z_not_ok"]) == pytest.approx(10.0)

    def test_coverage_adds_up_the_agreement(self):
        results, _ = _results()
        fine, coarse = (_rows(f(results, "uniform")) for f in (tables.agreement, tables.coverage))
        assert [row["num_steps"] for row in coarse] == ["1000", "10000"]
        for name in ("num_replicates", "num_ok", "num_covered_ok", "num_covered_not_ok"):
            assert sum(int(row[name]) for row in fine) == int(coarse[-1][name])

    def test_runs_hold_every_replicate(self):
        results, _ = _results()
        rows = _rows(tables.runs(results))
        assert len(rows) == 3 * len(results.cells)
        cell = results.cells[Key("mnist-pcd-500", "uniform", "sm08", 1000)]
        found = [
            r for r in rows if list(r.values())[:4] == ["mnist-pcd-500", "uniform", "sm08", "1000"]
        ]
        assert [float(r["log_z"]) for r in found] == pytest.approx(list(cell["log_z"]), abs=1e-6)

    def test_sheet_formats(self):
        columns = (Column("x", "x", "+.1f", ".3f"), Column("y", ""), Column("", "both", "s"))
        sheet = Sheet(columns, [(-0.04, "a", "0 of 1"), (float("nan"), None, "1")])
        assert sheet.csv() == "x,y\n-0.040,a\n,\n"
        assert sheet.markdown() == "| x | both |\n| ---: | ---: |\n| −0.0 | 0 of 1 |\n| – | 1 |\n"


class TestFigures:
    @pytest.mark.parametrize("num_replicates", [1, 3])
    def test_draws_what_is_there(self, num_replicates):
        results, _ = _results(num_replicates, bases=("base-rate",))
        for key in list(results.cells)[:3]:
            results.cells[key].rows[0] = np.nan
        results.cells[key].rows[:] = np.inf
        drawn = dict(figures.draw(results, "base-rate"))
        for figure in drawn.values():
            figure.savefig(io.BytesIO(), dpi=20)
        assert {"schedules", "terrain", "log-z-20", "log-z-500", "ess-20", "ess-500"} < set(drawn)
        assert {"error-20", "ess-along", "ess-beginning"} < set(drawn)
        assert "error-500" not in drawn


class TestPage:
    def test_fills_blocks_and_nothing_else(self):
        text = (
            "a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n<!-- begin y -->\nkept\n<!-- end y -->\n"
        )
        filled = page.fill(text, {"x": "new\n"})
        assert filled == text.replace("old\n", "\nnew\n\n")
        assert page.fill(filled, {"x": "new\n"}) == filled


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

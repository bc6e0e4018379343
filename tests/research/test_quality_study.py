"""Quality before and after a change: pairs of seeds, their tests, and the committed page."""

import json

import numpy as np
import pytest

import quality_page
import quality_runs
from quality_page import LEVEL, Study, blocks
from quality_pairs import Pairs, log_ratio, worse_p
from quality_runs import CELLS, SCHEDULES, TRUSTED
from race import Key
from significance import holm
from standings import fill

VERSIONS = {"jax": "0", "device": "cpu"}


def race_rows(key: Key, seed: int, factor: float = 1.0) -> list[dict]:
    """Replicates whose Var[log w] is about 2 `factor`."""
    generator = np.random.default_rng([seed, *map(ord, str(key))])
    return [
        {
            **key._asdict(),
            "index": index,
            "log_z": 200 + 0.1 * generator.normal(),
            "ess": 200 * np.exp(0.2 * generator.normal()) / factor,
            "variance": 2 * factor * np.exp(0.1 * generator.normal()),
            "commit": "c0ffee",
            "versions": VERSIONS,
        }
        for index in range(20)
    ]


def trust_rows(name: str, seed: int, error: float = 0.0) -> list[dict]:
    """Runs of a stated error of 0.01, the first off by `error`."""
    generator = np.random.default_rng([seed, *map(ord, name)])
    rows = []
    for index in range(6):
        off = error if error and not index else 0.01 * generator.normal()
        estimate = {"log_z": 5 + off, "std_err": 0.01, "interval": [4.98 + off, 5.02 + off]}
        rows.append(
            {"problem": name, "index": index, "exact": 5.0, "error": off, "status": "ok"}
            | {"estimate": estimate, "versions": VERSIONS}
        )
    return rows


def write(file, seed: int, factor: float = 1.0, error: float = 0.0):
    keys = [Key(m, "base-rate", s, k) for m, k in CELLS for s in SCHEDULES]
    rows = [row for key in keys for row in race_rows(key, seed, factor)]
    rows += [row for name in TRUSTED for row in trust_rows(name, seed, error)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_a_larger_loss_is_seen_and_a_smaller_one_is_not():
    before, noise = np.random.default_rng(0).normal(size=(2, 12))
    assert worse_p(before, before + 0.5 + 0.1 * noise) == pytest.approx(2**-12)  # of all signs
    assert worse_p(before, before - 0.5 + 0.1 * noise) == 1.0
    assert worse_p(before, before) == 1.0
    assert worse_p(before[:1], before[:1] + 1) == 0.5
    assert worse_p(before[:2], before[:2] + 1) == 0.25


def test_p_is_level_without_a_difference():
    draws = np.random.default_rng(1).normal(size=(200, 2, 8))
    p = np.array([worse_p(*pair) for pair in draws])
    assert abs((p <= 0.1).mean() - 0.1) < 4 * np.sqrt(0.09 / len(p))


def test_an_error_that_became_unknown_is_worse():
    before = np.full(8, 0.1)
    after = np.full(8, np.inf)
    assert worse_p(np.log(before), np.log(after)) == pytest.approx(2**-8)
    assert worse_p(np.log(after), np.log(before)) == 1.0


def test_ratio_of_pairs():
    before = np.array([1.0, 2.0, 4.0])
    assert log_ratio(before, 1.5 * before) == pytest.approx((1.5, 1.5, 1.5))
    assert str(log_ratio(before, before)) == "1"
    low, high = log_ratio(before, before * [1.0, 1.2, 1.4])[1:]
    assert low < 1.2 < high


def test_pairs_are_of_one_seed_and_one_device():
    rows = [{"index": i, "versions": VERSIONS} for i in range(3)]
    assert Pairs.match(rows, rows[1:]).before == rows[1:]
    with pytest.raises(ValueError, match="run both on one machine"):
        Pairs.match(rows, [rows[0] | {"versions": {"jax": "0", "device": "gpu"}}])


def test_same_runs_are_no_worse(tmp_path):
    file = write(tmp_path / "before.jsonl", 1)
    study = Study(file, file)
    assert [finding.p for finding in study.findings()] == [1.0] * (3 * 16 + 2 * 10)
    assert [finding.p for finding in study.together()] == [1.0] * 6
    assert all(pairs.num_same(quality_page._log_z) == pairs.size for pairs in study.race.values())
    assert blocks(study)["verdict"].count("**none**") == 2


def test_a_larger_variance_is_worse_and_other_seeds_are_not(tmp_path):
    before = write(tmp_path / "before.jsonl", 1)
    same = blocks(Study(before, write(tmp_path / "a.jsonl", 2)))["verdict"]
    assert same.count("**none**") == 2
    worse = blocks(Study(before, write(tmp_path / "b.jsonl", 2, factor=1.2)))["verdict"]
    assert "*Worse over all of them*: **Var[log w] (Holm's p" in worse
    assert "Var[log w] of mnist-pcd-500|base-rate|mixing|10000 (Holm's p" in worse


def test_what_no_cell_shows_all_of_them_do(tmp_path):
    before = write(tmp_path / "before.jsonl", 1)
    study = Study(before, write(tmp_path / "after.jsonl", 2, factor=1.03))
    assert holm(np.array([finding.p for finding in study.findings()])).min() > LEVEL
    assert "*Worse over all of them*: **Var[log w]" in blocks(study)["verdict"]


def test_ok_and_wrong_is_counted(tmp_path):
    before = write(tmp_path / "before.jsonl", 1)
    after = write(tmp_path / "after.jsonl", 2, error=0.2)
    assert [total.ok_wrong for total in Study(before, after).totals()] == [0, len(TRUSTED)]


def test_replicates_are_run_once_and_alike(tmp_path):
    key = Key("mnist-pcd-20", "base-rate", "linear", 20)
    for _ in range(2):
        assert quality_runs.run_all(tmp_path, [key], [], 2, np.inf, "c0ffee")
    (file,) = tmp_path.iterdir()
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["index"] for row in rows] == [0, 1]
    assert rows[0]["log_z"] != rows[1]["log_z"]
    assert quality_runs.run_replicate(key, 1)["log_z"] == rows[1]["log_z"]


def test_the_committed_page_is_that_of_the_committed_results():
    results = quality_page.HERE / "results"
    text = (quality_page.HERE / "README.md").read_text("utf-8")
    study = Study(results / "before.jsonl", results / "after.jsonl")
    assert fill(text, blocks(study)) == text

"""The study of two sides and resampling: its statistics, its files, and smaller forms of its claims."""

import time
from pathlib import Path

import numpy as np
import pytest

import sides_mutants
from annealz.testing import assert_within_mc_error
from sides_page import CHECKS, LIMIT, page
from sides_runs import ISLAND, RESULTS, Cell, all_cells, load_cell, run_cell
from sides_statistics import (
    bar_errors,
    check_pair,
    cut_mse_ratio,
    island_coverage,
    island_z,
    log_means,
    mean_z,
    mse_ratio,
    shuffled,
)
from test_bar import gaussian_work


def refusals(forward: np.ndarray, reverse: np.ndarray) -> set[str]:
    checks = check_pair(forward, reverse)
    return {name for name, check in CHECKS.items() if check(checks)[1]}


# --- statistics -------------------------------------------------------------------------------


def test_small_sets_by_hand():
    mean, std_err, z = mean_z([1.0, 2.0, 3.0], 1.0)
    assert (mean, std_err, z) == pytest.approx((2, 1 / np.sqrt(3), np.sqrt(3)))
    rows = log_means(np.log([1.0, 3.0, 4.0, 6.0]) + 800, 2)
    np.testing.assert_allclose(rows, np.log([2.0, 5.0]) + 800)


def test_a_right_pair_passes_every_check(seed):
    forward, reverse = gaussian_work(np.random.default_rng(seed), 4000, 4000, 1.0)
    assert refusals(forward, reverse) == set()
    found = check_pair(forward, reverse)
    assert_within_mc_error(found.lower, -0.5, found.lower_std_err)
    assert_within_mc_error(found.upper, 0.5, found.upper_std_err)
    assert found.encloses(LIMIT)


def test_wrong_pairs_are_refused(seed):
    """Sides exchanged, both forward, and a reverse side that was shifted up."""
    generator = np.random.default_rng(seed)
    forward, reverse = gaussian_work(generator, 4000, 4000, 1.0)
    again, _ = gaussian_work(generator, 4000, 4000, 1.0)
    assert {"reverse mean ≥ exact", "gap ≥ 0"} <= refusals(reverse, forward)
    assert {"reverse mean ≥ exact", "Crooks z"} <= refusals(forward, again)
    shifted = refusals(forward, reverse + 0.5)
    assert {"Crooks z", "half moments"} <= shifted
    assert "reverse mean ≥ exact" not in shifted


@pytest.mark.parametrize("are_paired", [True, False])
def test_the_interval_of_a_ratio_covers(are_paired, seed):
    """Of 200, the truth 1/4 is in 168 and more with p > 1 - 1e-4 if the share is 0.93."""
    generator = np.random.default_rng(seed)
    hits = 0
    for _ in range(200):
        both = generator.normal(size=60)
        one = 0.5 * (0.6 * both + 0.8 * generator.normal(size=60)) if are_paired else None
        one = 0.5 * generator.normal(size=60) if one is None else one
        ratio = mse_ratio(one, both, are_paired=are_paired)
        hits += ratio.low <= 0.25 <= ratio.high
    assert hits >= 168


def test_ratios_have_verdicts():
    errors = np.linspace(0.5, 1.5, 30)
    assert mse_ratio(errors, 3 * errors, are_paired=True).verdict == "lower"
    assert mse_ratio(3 * errors, errors, are_paired=True).verdict == "higher"
    same = mse_ratio(errors, errors, are_paired=True)
    assert (same.value, same.verdict) == (1, "no difference shown")
    with pytest.raises(ValueError, match="30 and 29"):
        mse_ratio(errors, errors[1:], are_paired=True)


def test_random_cuts_give_the_ratio_of_variances(seed):
    """Log-normal groups of s = 0.1 and 0.2, in runs of 20: about 1/4, with less noise than runs."""
    generator = np.random.default_rng(seed)
    one, two = (generator.normal(-(s**2) / 2, s, 2000) for s in (0.1, 0.2))
    cut = cut_mse_ratio(one, two, 20)
    assert cut.low < 0.25 < cut.high
    assert cut.first == pytest.approx(0.1**2 / 20, rel=0.2)
    runs = mse_ratio(log_means(one, 20), log_means(two, 20), are_paired=False)
    assert cut.high - cut.low < 0.6 * (runs.high - runs.low)


def test_coverage_is_counted():
    rows = np.array(
        [np.linspace(-1, 1, 20) * 0.1, np.linspace(-1, 1, 20) * 0.1 - 1, [5.0] + [0.0] * 19]
    )
    found = island_coverage(rows)
    assert (found.hits, found.total, found.ok_hits, found.ok_total) == (1, 3, 1, 2)
    assert (found.too_low, found.students) == (1, 1)
    z = island_z(rows)
    assert z[1] < -4
    assert abs(z[0]) < 1
    low, high = found.binomial()
    assert low < 0.5 < high


def test_shuffles_keep_every_island():
    islands = np.arange(45.0)
    rows = shuffled(islands, 20, 3)
    assert rows.shape == (6, 20)
    for order in rows.reshape(3, 40):
        assert np.unique(order).size == 40


# --- files ------------------------------------------------------------------------------------

FAR = float("inf")


@pytest.mark.parametrize("side", ["forward", "reverse", "resampled", "plain"])
def test_an_interrupted_cell_goes_on(tmp_path: Path, side: str):
    """Nothing in no time; one part, and then the other, are both; what is there is not run again."""
    whole = Cell("rbm 4x6 2.0", "linear", 4, side, 2, 1000)
    assert not run_cell(whole, tmp_path, time.monotonic() - 1)
    assert not whole.file(tmp_path).exists()
    first = whole._replace(num_parts=1)
    if side != "reverse":  # its draws are of the whole cell
        assert run_cell(first, tmp_path, FAR)
        before = load_cell(whole, tmp_path)["excess"]
        assert run_cell(whole, tmp_path, FAR)
        np.testing.assert_array_equal(load_cell(whole, tmp_path)["excess"][: before.size], before)
    assert run_cell(whole, tmp_path, FAR)
    found = load_cell(whole, tmp_path)
    grouped = side in ("resampled", "plain")
    assert found["excess"].size == (2000 // ISLAND if grouped else 2000)
    assert found["cpu_seconds"].size == 2
    stamp = whole.file(tmp_path).stat().st_mtime_ns
    assert run_cell(whole, tmp_path, FAR)
    assert whole.file(tmp_path).stat().st_mtime_ns == stamp


def test_cells_are_files_of_their_own():
    names = [cell.name for cell in all_cells()]
    assert len(names) == len(set(names))


@pytest.mark.slow
def test_the_page_is_that_of_the_results():
    assert (RESULTS.parent / "README.md").read_text() == page(RESULTS)


# --- smaller forms of the claims --------------------------------------------------------------


def excess(folder: Path, side: str, chains: int, *cell) -> np.ndarray:
    cell = Cell(*cell, side, 1, chains)
    assert run_cell(cell, folder, FAR)
    return load_cell(cell, folder)["excess"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "steps"),
    [("spins", 4), ("rbm 8x10 3.0", 20), ("modes 3.0", 50), ("rbm 12x30 1.0", 50)],
)
def test_bounds(tmp_path: Path, name: str, steps: int):
    sides = [excess(tmp_path, s, 4000, name, "linear", steps) for s in ("forward", "reverse")]
    assert refusals(*sides) == set()
    assert check_pair(*sides).lower_z < -LIMIT
    assert check_pair(*sides).upper_z > LIMIT


@pytest.mark.slow
def test_which_check_tells_a_mutant(seed):
    found = {name: refusals(*works) for name, works in sides_mutants.pairs(2**14, seed).items()}
    bound = "reverse mean ≥ exact"
    assert found["none"] == set()
    assert found["unreversed"] == {"half moments", "Crooks z", "BAR = exact"}
    for name in ("wrong sign", "forward twice"):
        assert {bound, "Crooks z"} <= found[name]
    assert "mean w_R = Z_A/Z_B" in found["not invariant"]
    assert bound not in found["not invariant"]


@pytest.mark.slow
def test_bar_has_less_error_at_equal_sweeps(tmp_path: Path):
    """40 replicates of 500 forward chains, or 250 and 250; Var[log w] is 5.7."""
    cell = "rbm 15x40 1.5", "linear", 15
    forward = excess(tmp_path, "forward", 20_000, *cell).reshape(40, 500)
    reverse = excess(tmp_path, "reverse", 10_000, *cell).reshape(40, 250)
    joined = bar_errors(forward[:, :250], reverse)
    assert mse_ratio(joined, log_means(forward, 500), are_paired=True).verdict == "lower"


@pytest.mark.slow
def test_resampling_is_unbiased_and_lowers_the_error(tmp_path: Path):
    """200 runs of 200 chains in islands of 50; not where Var[log w] is 0.6."""
    ratios = {}
    for name, steps in (("rbm 15x40 1.5", 15), ("rbm 8x10 3.0", 20)):
        islands = excess(tmp_path, "resampled", 40_000, name, "linear", steps)
        plain = excess(tmp_path, "plain", 40_000, name, "linear", steps)
        mean, std_err, _ = mean_z(np.exp(islands), 1)
        assert_within_mc_error(mean, 1.0, std_err)
        ratios[steps] = mse_ratio(log_means(islands, 4), log_means(plain, 4), are_paired=False)
    assert ratios[15].verdict == "lower"
    assert 0.5 < ratios[20].value < 2

"""The study of two sides and resampling: its page, and smaller forms of its claims."""

from pathlib import Path

import numpy as np
import pytest

import sides_mutants
from annealz.testing import assert_within_mc_error
from sides_page import CHECKS, LIMIT, page
from sides_runs import RESULTS, Cell, all_cells, load_cell, run_cell
from sides_statistics import (
    bar_errors,
    check_pair,
    log_means,
    mean_z,
    mse_ratio,
)


def refusals(forward: np.ndarray, reverse: np.ndarray) -> set[str]:
    checks = check_pair(forward, reverse)
    return {name for name, check in CHECKS.items() if check(checks)[1]}


FAR = float("inf")


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

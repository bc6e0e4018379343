"""Calibration on a real model, over many seeds (minutes)."""

import numpy as np
import pytest

import annealz

pytestmark = pytest.mark.slow
RUN = {"num_steps": 10_000, "num_chains": 1000, "second_opinion": False}


def test_errors_of_the_linear_schedule_are_calibrated():
    """z = (log Z - exact) / std_err over 20 seeds."""
    runs = [
        annealz.estimate_log_z("mnist-cd25-20", schedule="linear", seed=seed, **RUN)
        for seed in range(20)
    ]
    z = np.array([(run.log_z - run.exact_log_z) / run.std_err for run in runs])
    print(f"z: mean {z.mean():+.2f}, s.d. {z.std(ddof=1):.2f}, largest {np.abs(z).max():.2f}")
    assert abs(z.mean()) < 0.7
    assert np.abs(z).max() < 4


def test_varopt_leaves_the_mean_weight_unbiased():
    """mean of Z-hat / Z over 30 seeds, each with a pilot of its own."""
    runs = [
        annealz.estimate_log_z("mnist-cd25-20", schedule="varopt", seed=seed, **RUN)
        for seed in range(30)
    ]
    ratios = np.exp([run.log_z - run.exact_log_z for run in runs])
    z = (ratios.mean() - 1) / (ratios.std(ddof=1) / np.sqrt(ratios.size))
    print(f"mean of Z-hat / Z: {ratios.mean():.4f}, z = {z:+.2f}")
    assert abs(z) < 4.9  # alpha 1e-6

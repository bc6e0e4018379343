"""What a wanted standard error takes: foretold, and kept."""

import numpy as np
import pytest

import annealz
from annealz.cli.main import _status
from annealz.formats import save_rbm
from annealz.testing import random_rbm

MODEL = random_rbm(6, 9, 0.8, seed=4)
SETTINGS = {"schedule": "linear", "num_steps": 20, "num_chains": 200}


def test_the_forecast_is_what_is_run(seed: int):
    seen = []
    result = annealz.estimate_log_z(
        MODEL, target_std_err=0.01, seed=seed, on_forecast=seen.append, **SETTINGS
    )
    (ahead,) = seen
    assert (ahead.num_steps, ahead.num_chains) == (20, result.num_chains)
    assert ahead.sweeps == result.sweeps["main"]
    assert ahead.sizing.sweeps == result.sweeps["pilot"]
    assert ahead.seconds > 0
    assert f"{ahead.num_chains:,} chains of 20 steps" in str(ahead)


def test_the_wanted_error_is_met_over_many_seeds():
    """Errors against the exact value have the wanted size, and a target twice as small costs four times."""
    exact = annealz.exact_log_z(MODEL)
    runs = [
        annealz.estimate_log_z(MODEL, target_std_err=0.02, seed=seed, **SETTINGS)
        for seed in range(30)
    ]
    error = np.sqrt(np.mean([(run.log_z - exact) ** 2 for run in runs]))
    assert error < 0.02 * 1.35  # 30 seeds tell it to 13 %
    assert np.mean([run.std_err <= 0.02 for run in runs]) > 0.8
    half = [
        annealz.estimate_log_z(MODEL, target_std_err=0.01, seed=seed, **SETTINGS).num_chains
        for seed in range(10)
    ]
    assert np.mean(half) / np.mean([run.num_chains for run in runs[:10]]) == pytest.approx(
        4, rel=0.02
    )


def test_the_command_line_foretells_on_stderr(capsys, tmp_path):
    save_rbm(tmp_path / "m.npz", MODEL, {})
    words = ["estimate", str(tmp_path / "m.npz"), "--steps", "20", "--target-std-err", "0.05"]
    assert _status([*words, "--json"]) == 0
    assert "chains of 20 steps should reach" in capsys.readouterr().err
    assert _status([*words, "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    assert _status([*words[:-1], "0.0000001"]) == 2
    assert "out of reach" in capsys.readouterr().err

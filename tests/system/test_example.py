"""The example package: a model and a kernel of its own get everything, by the public interface alone."""

import numpy as np
import pytest

import annealz
from annealz.testing import assert_within_mc_error, check_kernel, check_model
from phi_four import Checkerboard, PhiFour
from support.places import ROOT

SOURCE = ROOT / "examples" / "phi_four" / "__init__.py"
MODEL = PhiFour(sites=8, strength=0.3)
OPTIONS = {"num_steps": 300, "num_chains": 300}


@pytest.fixture(scope="module")
def exact() -> float:
    """log Z by the transfer matrix on a fine grid: the trace of its power."""
    grid, step = np.linspace(-4, 4, 401, retstep=True)
    weight = -(grid**2) / 2 - MODEL.strength * grid**4
    matrix = np.exp(np.outer(grid, grid) + (weight[:, None] + weight) / 2) * step
    return float(np.log(np.linalg.eigvalsh(matrix) ** MODEL.sites @ np.ones(len(grid))))


def test_it_has_at_most_40_lines_and_only_public_names():
    text = SOURCE.read_text()
    assert len(text.splitlines()) <= 40
    assert "annealz._" not in text
    assert "from annealz" not in text


@pytest.mark.usefixtures("optimised")
def test_it_keeps_its_promises(seed):
    check_model(MODEL, seed=seed)


class Wrong(Checkerboard):
    """Says that it is its own reversal."""

    def reversed(self):
        return self


@pytest.mark.slow
def test_a_wrong_reversal_would_be_seen(seed):
    with pytest.raises(AssertionError, match="not its reversal"):
        check_kernel(Wrong(), MODEL.path(MODEL.base()), betas=[0.5], num_chains=100_000, seed=seed)


@pytest.mark.parametrize("schedule", ["mixing", "linear", "sm08", "varopt", "varopt-0.009"])
def test_every_schedule(schedule, exact, seed):
    estimate = annealz.estimate_log_z(MODEL, schedule=schedule, seed=seed, **OPTIONS)
    assert_within_mc_error(estimate.log_z, exact, estimate.std_err)


def test_the_schedule_with_knots_too(exact, seed, monkeypatch):
    monkeypatch.setattr("annealz.pilots.plan._num_updates", lambda pilot_scale: 24)
    estimate = annealz.estimate_log_z(MODEL, schedule="gms13", seed=seed, **OPTIONS)
    assert_within_mc_error(estimate.log_z, exact, estimate.std_err)


def test_two_sides_progress_resume_and_pictures(exact, tmp_path, seed):
    options = {**OPTIONS, "two_sided": True, "seed": seed}
    whole = annealz.estimate_log_z(MODEL, **options)
    assert_within_mc_error(whole.log_z, exact, whole.std_err)
    steps = []

    def stop(progress):
        steps.append(progress.step)
        if len(steps) > 4 and np.isfinite(progress.log_z):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        annealz.estimate_log_z(
            MODEL, out=tmp_path / "r", chunk_steps=50, on_progress=stop, **options
        )
    resumed = annealz.resume(tmp_path / "r", model=MODEL)
    assert np.array_equal(resumed.log_weights, whole.log_weights)
    assert np.array_equal(resumed.reverse.log_weights, whole.reverse.log_weights)
    resumed.plot().savefig(tmp_path / "estimate.png")
    resumed.schedule.plot().figure.savefig(tmp_path / "schedule.png")

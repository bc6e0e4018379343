"""Pictures: made without a display, and showing what they should."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import annealz
from annealz.testing import random_rbm


@pytest.fixture(scope="module")
def estimate() -> annealz.Estimate:
    return annealz.estimate_log_z(random_rbm(4, 6, 0.5, 1), num_steps=40, num_chains=60)


def test_estimate_shows_schedule_ess_and_weights(estimate):
    figure = estimate.plot()
    left, middle, right = figure.axes
    assert left.get_lines()[0].get_ydata()[-1] == 1
    assert middle.get_lines()[0].get_ydata()[-1] == pytest.approx(estimate.ess, rel=1e-4)
    marks = [float(np.asarray(line.get_xdata())[0]) for line in right.get_lines()]
    assert marks == pytest.approx([estimate.log_z, estimate.exact_log_z])


def test_schedule_goes_into_given_axes():
    axes = Figure().add_subplot()
    assert annealz.linear(7).plot(axes) is axes
    assert annealz.sm08(100_000).plot().get_lines()[0].get_xdata().size <= 2001


def test_one_chain_can_be_plotted(tmp_path):
    single = annealz.estimate_log_z(random_rbm(2, 3, 0.5, 1), num_steps=3, num_chains=1)
    single.plot().savefig(tmp_path / "one.png")
    assert (tmp_path / "one.png").exists()

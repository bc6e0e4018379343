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


def test_two_sides_show_both_works_their_means_and_log_z(tmp_path):
    model = random_rbm(4, 6, 1.5, 1)
    both = annealz.estimate_log_z(
        model, schedule="linear", num_steps=20, num_chains=300, two_sided=True
    )
    figure = both.plot()
    right = figure.axes[2]
    sides = both.to_dict()["two_sided"]
    marks = [float(np.asarray(line.get_xdata())[0]) for line in right.get_lines()]
    assert marks == pytest.approx([sides["lower"], sides["upper"], both.log_z, both.exact_log_z])
    assert [text.get_text() for text in right.get_legend().get_texts()][:2] == [
        "forward",
        "reverse",
    ]
    counts = [sum(bar.get_height() for bar in bars) for bars in right.containers]
    assert counts == [298, 298]  # all but the lowest forward and the highest reverse 0.5 %
    figure.savefig(tmp_path / "both.png")


def test_resampling_is_told():
    model = random_rbm(4, 6, 2.0, 1)
    result = annealz.estimate_log_z(
        model, schedule="linear", num_steps=20, num_chains=100, resample=1.0
    )
    assert f"resampled {result.run.num_resamplings} times" in result.plot().axes[1].get_title()


def test_schedule_goes_into_given_axes():
    axes = Figure().add_subplot()
    assert annealz.linear(7).plot(axes) is axes
    assert annealz.sm08(100_000).plot().get_lines()[0].get_xdata().size <= 2001


def test_one_chain_can_be_plotted(tmp_path):
    single = annealz.estimate_log_z(random_rbm(2, 3, 0.5, 1), num_steps=3, num_chains=1)
    single.plot().savefig(tmp_path / "one.png")
    assert (tmp_path / "one.png").exists()
